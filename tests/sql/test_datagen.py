"""datagen: every type, NULLs and variable lengths; columns are independent of tables, names and runs."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from millstream.sql.errors import SqlError
from millstream.table import TableEnvironment

pytestmark = pytest.mark.usefixtures("inline_engine")


def generate(env: TableEnvironment, columns: str, options: str = "", count: int = 200) -> list[Any]:
    """The rows of a generated table."""
    env.execute_sql(
        f"CREATE OR REPLACE TEMPORARY TABLE generated ({columns}) WITH "
        f"('connector' = 'datagen', 'number-of-rows' = '{count}'{', ' if options else ''}{options})"
    )
    with env.execute_sql("SELECT * FROM generated").collect() as rows:
        return [tuple(row) for row in rows]


TYPES: dict[str, Any] = {
    "BOOLEAN": lambda v: isinstance(v, bool),
    "TINYINT": lambda v: -128 <= v <= 127,
    "BIGINT": lambda v: isinstance(v, int),
    "FLOAT": lambda v: 0 < v <= 3.4028235e38,
    "DOUBLE": lambda v: v > 0,
    "DECIMAL(10, 2)": lambda v: isinstance(v, Decimal) and 0 <= v < 10**8 and v.as_tuple().exponent == -2,
    "DECIMAL(38, 18)": lambda v: isinstance(v, Decimal),
    "CHAR(5)": lambda v: len(v) == 5 and set(v) <= set("0123456789abcdef"),
    "VARCHAR(150)": lambda v: len(v) == 150,
    "STRING": lambda v: len(v) == 100,
    "BINARY(3)": lambda v: len(v) == 3,
    "BYTES": lambda v: len(v) == 100,
    "INTERVAL MONTH": lambda v: 0 <= v <= 120000,
    "INTERVAL SECOND(3)": lambda v: isinstance(v, datetime.timedelta),
    "ARRAY<INT>": lambda v: len(v) == 3 and all(isinstance(e, int) for e in v),
    "ARRAY<ARRAY<STRING>>": lambda v: [len(e) for e in v] == [3, 3, 3],
    "MAP<INT, STRING>": lambda v: len(v) == 3 and all(isinstance(k, int) and len(e) == 100 for k, e in v.items()),
    "MAP<BOOLEAN, INT>": lambda v: 1 <= len(v) <= 2,
    "MULTISET<INT>": lambda v: len(v) == 3 and all(0 <= n <= 10 for n in v.values()),
    "ROW<a STRING, b ROW<c INT>>": lambda v: len(v[0]) == 100 and isinstance(v[1][0], int),
}


def test_every_type(t_env: TableEnvironment) -> None:
    rows = generate(t_env, ", ".join(f"c{i} {data_type}" for i, data_type in enumerate(TYPES)))
    assert len(rows) == 200
    for (data_type, fits), values in zip(TYPES.items(), zip(*rows, strict=True), strict=True):
        assert all(map(fits, values)), data_type
        assert len(set(map(repr, values))) > 1, data_type


def test_dates_and_times_are_the_current_ones(t_env: TableEnvironment) -> None:
    columns = "d DATE, c TIME, t TIMESTAMP(3), z TIMESTAMP_LTZ(3), p TIMESTAMP(3), r ROW<t TIMESTAMP(3)>"
    before = datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - datetime.timedelta(seconds=60)
    rows = generate(t_env, columns, "'fields.p.max-past' = '1 h'")
    for day, _, timestamp, instant, past, row in rows:
        assert day == instant.date()
        assert timestamp > before
        assert before - datetime.timedelta(hours=1) < past <= timestamp
        assert row[0] > before
    assert len({past for *_, past, _ in rows}) > 1


def test_a_part_of_the_values_is_null(t_env: TableEnvironment) -> None:
    options = "'fields.a.null-rate' = '0.5', 'fields.r.b.null-rate' = '1', 'fields.l.null-rate' = '0.2'"
    rows = generate(t_env, "a INT, r ROW<b INT, c INT>, l ARRAY<INT>, n INT", options, 1000)
    assert 400 < sum(a is None for a, *_ in rows) < 600
    assert all(r[0] is None and r[1] is not None for _, r, *_ in rows)
    assert 100 < sum(items is None for *_, items, _ in rows) < 300
    assert all(n is not None for *_, n in rows)


def test_lengths(t_env: TableEnvironment) -> None:
    options = (
        "'fields.v.var-len' = 'true', 'fields.s.length' = '7', 'fields.b.length' = '9', 'fields.b.var-len' = 'true', "
        "'fields.l.length' = '10', 'fields.m.length' = '11'"
    )
    rows = generate(t_env, "v VARCHAR(20), s STRING, b BYTES, l ARRAY<INT>, m MAP<BIGINT, STRING>", options)
    assert {len(v) for v, *_ in rows} == set(range(1, 20))
    assert {len(b) for _, _, b, *_ in rows} == set(range(1, 9))
    assert {(len(s), len(items), len(m)) for _, s, _, items, m in rows} == {(7, 10, 11)}


def test_sequences(t_env: TableEnvironment) -> None:
    columns = "i INT, s STRING, b BYTES, d DECIMAL(5, 1), f FLOAT"
    options = ", ".join(
        f"'fields.{name}.kind' = 'sequence', 'fields.{name}.start' = '3', 'fields.{name}.end' = '5'" for name in "isbdf"
    )
    rows = sorted(generate(t_env, columns, options))
    assert rows == [(i, str(i), bytearray(i.to_bytes(8, "big")), Decimal(i), float(i)) for i in (3, 4, 5)]


def test_tables_columns_and_runs_differ(t_env: TableEnvironment) -> None:
    first = generate(t_env, "user_id BIGINT, other BIGINT")
    second_run = generate(t_env, "user_id BIGINT, other BIGINT")
    assert not {a for a, _ in first} & {b for _, b in first}
    assert not {a for a, _ in first} & {a for a, _ in second_run}


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("c CHAR(5)", "'fields.c.length' = '3'", "fixed length"),
        ("c VARCHAR(5)", "'fields.c.length' = '30'", "more than the length"),
        ("c INT", "'fields.c.min' = '9', 'fields.c.max' = '3'", "greater than"),
        ("c INT", "'fields.c.min' = 'x'", "cannot be 'x'"),
        ("c INT", "'fields.c.null-rate' = '2'", "between 0 and 1"),
        ("c INT", "'fields.c.var-len' = 'true'", "unknown option"),
        ("c TIMESTAMP(3)", "'fields.c.kind' = 'sequence'", "no sequence of"),
        ("c INT", "'fields.d.min' = '1'", "unknown option"),
    ],
)
def test_wrong_options_are_refused(t_env: TableEnvironment, columns: str, options: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        generate(t_env, columns, options)
