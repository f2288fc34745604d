"""UPDATE, DELETE and TRUNCATE TABLE change exactly the rows that match, and nothing if they fail."""

from pathlib import Path
from typing import Any

import pytest

from millstream.errors import MillstreamError
from millstream.sql.errors import SqlError
from millstream.table import EnvironmentSettings, TableEnvironment


@pytest.fixture
def env(tmp_path: Path, inline_engine: None) -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    env.get_config().set("parallelism.default", "2")
    env.get_config().set("restart-strategy.type", "none")
    options = "'connector'='filesystem', 'format'='json', 'path'='{}/{}'"
    env.execute_sql(
        f"CREATE TABLE orders (`user` STRING, product STRING, amount INT) WITH ({options.format(tmp_path, 'orders')})"
    )
    env.execute_sql(
        "CREATE TABLE parts (v INT, day STRING, twice AS v * 2) PARTITIONED BY (day) "
        f"WITH ({options.format(tmp_path, 'parts')})"
    )
    env.execute_sql("CREATE TABLE b (v INT) WITH ('connector' = 'blackhole')")
    env.execute_sql("CREATE VIEW w AS SELECT 1 AS v")
    env.execute_sql(
        "INSERT INTO orders VALUES ('Lili', 'Apple', 1), ('Jessica', 'Banana', 2), "
        "('White', 'Chicken', CAST(NULL AS INT))"
    ).wait()
    env.execute_sql("INSERT INTO parts VALUES (1, 'a'), (2, 'a'), (3, 'b')").wait()
    return env


def rows_of(env: TableEnvironment, table: str) -> list[Any]:
    with env.execute_sql(f"SELECT * FROM {table}").collect() as rows:
        return sorted((list(row) for row in rows), key=str)


ALL = [["Jessica", "Banana", 2], ["Lili", "Apple", 1], ["White", "Chicken", None]]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("DELETE FROM orders WHERE `user` = 'Lili'", [ALL[0], ALL[2]]),
        ("DELETE FROM orders WHERE amount > 0", [ALL[2]]),  # NULL > 0 is not true, so the row stays
        ("DELETE FROM orders AS o WHERE o.amount = 2", [ALL[1], ALL[2]]),
        ("DELETE FROM orders o WHERE o.product IN (SELECT 'Apple')", [ALL[0], ALL[2]]),
        ("DELETE FROM orders WHERE amount = (SELECT MAX(amount) FROM orders)", [ALL[1], ALL[2]]),
        ("DELETE FROM orders", []),
        ("TRUNCATE TABLE orders", []),
        (
            "UPDATE orders SET amount = amount * 2, product = 'x' WHERE amount = 2",
            [["Jessica", "x", 4], ALL[1], ALL[2]],
        ),
        ("UPDATE orders SET amount = 10 / (amount - 1) WHERE amount > 1", [["Jessica", "Banana", 10], ALL[1], ALL[2]]),
        ("UPDATE orders o SET amount = 7", [["Jessica", "Banana", 7], ["Lili", "Apple", 7], ["White", "Chicken", 7]]),
        ("UPDATE orders SET amount = NULL WHERE amount = 1", [ALL[0], ["Lili", "Apple", None], ALL[2]]),
        (
            "UPDATE orders SET `user` = product, product = `user` WHERE amount = 1",
            [["Apple", "Lili", 1], ALL[0], ALL[2]],
        ),
        ("UPDATE orders SET amount = 0 WHERE amount = 99", ALL),
    ],
)
def test_matching_rows_are_changed(env: TableEnvironment, statement: str, expected: list[Any]) -> None:
    env.execute_sql(statement).wait()
    assert rows_of(env, "orders") == expected


def test_partitions_without_remaining_rows_are_emptied(env: TableEnvironment) -> None:
    env.execute_sql("DELETE FROM parts WHERE twice > 4 OR v = 1").wait()
    assert rows_of(env, "parts") == [[2, "a", 4]]
    env.execute_sql("UPDATE parts SET day = 'c'").wait()
    assert rows_of(env, "parts") == [[2, "c", 4]]
    env.execute_sql("TRUNCATE TABLE parts")
    assert rows_of(env, "parts") == []


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM b", "connector 'blackhole' does not support DELETE"),
        ("UPDATE b SET v = 1", "connector 'blackhole' does not support UPDATE"),
        ("TRUNCATE TABLE b", "connector 'blackhole' does not support TRUNCATE TABLE"),
        ("DELETE FROM w", "'w' is not a table that can be written to"),
        ("UPDATE orders SET amuont = 1", "no column 'amuont'.*did you mean 'amount'"),
        ("UPDATE parts SET twice = 1", "no column 'twice' that can be written to"),
        ("UPDATE orders SET amount = 1, amount = 2", "column 'amount' is assigned twice"),
        ("UPDATE orders SET amount = 'x'", "the assigned value is .*, but 'amount' .* is INT.*hint: CAST it to INT"),
        ("UPDATE orders SET amount = CAST(3000000000 AS BIGINT)", "the assigned value is BIGINT"),
        ("DELETE FROM orders WHERE amount", "a condition must be BOOLEAN, this is INT"),
        ("DELETE FROM nothing", "there is no table 'nothing'"),
    ],
)
def test_tables_and_columns_that_cannot_be_changed_are_refused(
    env: TableEnvironment, statement: str, message: str
) -> None:
    with pytest.raises(SqlError, match=f"(?s){message}"):
        env.execute_sql(statement)
    assert rows_of(env, "orders") == ALL


def test_a_job_that_fails_changes_nothing(env: TableEnvironment) -> None:
    with pytest.raises(MillstreamError):
        env.execute_sql("UPDATE orders SET amount = CAST(product AS INT) WHERE amount = 1").wait()
    assert rows_of(env, "orders") == ALL


@pytest.mark.parametrize("statement", ["DELETE FROM orders", "UPDATE orders SET amount = 1", "TRUNCATE TABLE orders"])
def test_streams_are_refused(env: TableEnvironment, statement: str) -> None:
    env.get_config().set("execution.runtime-mode", "streaming")
    with pytest.raises(SqlError, match=r"needs batch mode(?s:.*)SET 'execution\.runtime-mode' = 'batch'"):
        env.execute_sql(statement)


def test_they_can_be_explained(env: TableEnvironment) -> None:
    assert "Sink" in env.explain_sql("DELETE FROM orders WHERE amount = 1")
    assert "Sink" in env.explain_sql("UPDATE orders SET amount = 1")
    assert rows_of(env, "orders") == ALL


def test_they_cannot_be_compiled(env: TableEnvironment) -> None:
    with pytest.raises(SqlError, match="compiled"):
        env.compile_plan_sql("DELETE FROM orders WHERE amount = 1")
