"""Tables of the faker connector: scanned and looked up."""

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from millstream.sql.errors import SqlError
from millstream.table import TableEnvironment

COLUMNS = {
    "id": ("INT", "#{number.numberBetween ''0'',''100''}"),
    "status": ("STRING", "#{regexify ''(RECEIVED|SHIPPED){1}''}"),
    "price": ("DECIMAL(10, 2)", "#{Number.randomDouble ''2'',''1'',''150''}"),
    "ok": ("BOOLEAN", "#{regexify ''true|false''}"),
    "tags": ("ARRAY<INT>", "#{number.digit}"),
    "at": ("TIMESTAMP(3)", "#{date.past ''15'',''5'',''SECONDS''}"),
}


def create(env: TableEnvironment, name: str, columns: dict[str, tuple[str, str]], more: str = "") -> None:
    declared = ", ".join(f"`{column}` {data_type}" for column, (data_type, _) in columns.items())
    options = "".join(f", 'fields.{column}.expression' = '{text}'" for column, (_, text) in columns.items())
    env.execute_sql(f"CREATE TABLE {name} ({declared}) WITH ('connector' = 'faker'{options}{more})")


def rows_of(env: TableEnvironment, query: str) -> list[list[Any]]:
    with env.execute_sql(query).collect() as rows:
        return [list(row) for row in rows]


def test_columns_have_their_types(t_env: TableEnvironment) -> None:
    create(t_env, "orders", COLUMNS, ", 'number-of-rows' = '50', 'rows-per-second' = '0', 'fields.tags.length' = '3'")
    rows = rows_of(t_env, "SELECT * FROM orders")
    assert len(rows) == 50
    ids, statuses, prices, oks, tags, times = zip(*rows, strict=True)
    assert all(0 <= number < 100 for number in ids)
    assert set(statuses) == {"RECEIVED", "SHIPPED"}
    assert all(isinstance(price, Decimal) and 1 <= price <= 150 for price in prices)
    assert set(oks) == {True, False}
    assert all(len(digits) == 3 and all(0 <= digit < 10 for digit in digits) for digits in tags)
    assert all(isinstance(at, datetime) for at in times)
    lag = [row[0] for row in rows_of(t_env, "SELECT TIMESTAMPDIFF(SECOND, `at`, LOCALTIMESTAMP) FROM orders")]
    assert all(4 <= seconds <= 16 for seconds in lag)
    assert rows_of(t_env, "SELECT id, status FROM orders") == [row[:2] for row in rows]


def test_some_values_are_null(t_env: TableEnvironment) -> None:
    columns = {"a": COLUMNS["id"], "b": COLUMNS["at"]}
    more = (
        ", 'number-of-rows' = '200', 'rows-per-second' = '0', 'fields.a.null-rate' = '0.5', 'fields.b.null-rate' = '1'"
    )
    create(t_env, "n", columns, more)
    rows = rows_of(t_env, "SELECT * FROM n")
    assert 50 < sum(row[0] is None for row in rows) < 150
    assert all(row[1] is None for row in rows)


def test_a_row_is_generated_for_each_key(t_env: TableEnvironment) -> None:
    create(t_env, "characters", {"id": COLUMNS["id"], "name": ("STRING", "#{harry_potter.character}")})
    t_env.execute_sql("CREATE VIEW k AS SELECT id, PROCTIME() AS p FROM (VALUES (1), (2), (1)) AS v (id)")
    rows = rows_of(t_env, "SELECT k.id, c.name FROM k JOIN characters FOR SYSTEM_TIME AS OF k.p AS c ON k.id = c.id")
    names = {(row[0], row[1]) for row in rows}
    assert len(rows) == 3
    assert {number for number, _ in names} == {1, 2}
    assert len(names) == 2


@pytest.mark.parametrize(
    ("columns", "more", "message"),
    [
        ({"a": ("INT", "#{number.digit}")}, ", 'fields.b.expression' = 'x'", "unknown option 'fields.b.expression'"),
        ({"a": ("MAP<INT, INT>", "#{number.digit}")}, "", "faker cannot generate MAP"),
        ({"a": ("INT", "#{number.digit")}, "", "an incomplete call"),
        ({"a": ("STRING", "#{date.past ''1'',''DAYS''}")}, "", r"declare the column TIMESTAMP\(3\)"),
        ({"a": ("INT", "#{number.digit}")}, ", 'fields.a.null-rate' = '2'", "must be a number from 0 to 1, not '2'"),
    ],
)
def test_wrong_options_are_refused(t_env: TableEnvironment, columns: Any, more: str, message: str) -> None:
    create(t_env, "wrong", columns, more)
    with pytest.raises(SqlError, match=message):
        t_env.execute_sql("SELECT * FROM wrong")


def test_every_column_needs_an_expression(t_env: TableEnvironment) -> None:
    t_env.execute_sql("CREATE TABLE wrong (a INT) WITH ('connector' = 'faker')")
    with pytest.raises(SqlError, match=r"option 'fields\.a\.expression' is missing"):
        t_env.execute_sql("SELECT * FROM wrong")
