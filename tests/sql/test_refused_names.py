"""Names and hints that Flink refuses are refused with a reason."""

from __future__ import annotations

import pytest

from millstream.sql.errors import SqlError
from millstream.table import ResultKind, TableEnvironment


@pytest.fixture
def env(t_env: TableEnvironment) -> TableEnvironment:
    t_env.execute_sql("CREATE TABLE orders (id INT) WITH ('connector' = 'datagen')")
    t_env.execute_sql("CREATE VIEW order_ids AS SELECT id FROM orders")
    return t_env


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "SELECT * FROM order_ids /*+ OPTIONS('number-of-rows' = '1') */",
            "view .*order_ids' cannot have an OPTIONS hint",
        ),
        ("CREATE CATALOG a.b WITH ('type' = 'generic_in_memory')", "the name of a catalog has one part"),
        ("DROP CATALOG a.b", "the name of a catalog has one part"),
        ("CREATE DATABASE a.b.c", "is not the name of a database"),
        ("SHOW DATABASES IN default_catalog.default_database", "is not the name of a catalog"),
        ("CREATE VIEW order_ids AS SELECT 1", "there is a view '.*order_ids' already"),
        ("CREATE TABLE orders (id INT) WITH ('connector' = 'datagen')", "there is a table '.*orders' already"),
        (
            "SELECT * FROM f(input => TABLE orders PARTITION BY id ORDER BY (id ASC))",
            "ORDER BY of a table argument is not supported",
        ),
    ],
)
def test_a_statement_is_refused(env: TableEnvironment, statement: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        env.execute_sql(statement)


@pytest.mark.parametrize(
    ("statement", "named"), [("DROP VIEW order_idz", "order_ids"), ("DROP TABLE orderz", "orders")]
)
def test_the_hint_names_objects_that_can_be_dropped(env: TableEnvironment, statement: str, named: str) -> None:
    with pytest.raises(SqlError) as refused:
        env.execute_sql(statement)
    hint = str(refused.value.hint)
    assert named in hint
    assert ({"orders", "order_ids"} - {named}).pop() not in hint.replace(named, "")


def test_an_empty_statement_set_is_accepted(env: TableEnvironment) -> None:
    assert env.execute_sql("BEGIN STATEMENT SET; END").get_result_kind() is ResultKind.SUCCESS


def test_explain_accepts_execute(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE nowhere (id INT) WITH ('connector' = 'blackhole')")
    plans = []
    for statement in ("INSERT INTO nowhere SELECT id FROM orders", "SELECT id FROM orders"):
        for prefix in ("EXPLAIN", "EXPLAIN EXECUTE"):
            with env.execute_sql(f"{prefix} {statement}").collect() as rows:
                plans.append(next(rows)[0])
    assert plans[0] == plans[1]
    assert plans[2] == plans[3]
