"""Tables of a database in SQL: scanned, looked up by key, written to by primary key."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from millstream.errors import MillstreamError
from millstream.sql.connectors.jdbc import JdbcLookup
from millstream.sql.connectors.simple import register_values
from millstream.sql.errors import SqlError
from millstream.table import EnvironmentSettings, TableEnvironment

ITEMS = "id INT, name STRING, price DECIMAL(10, 2), made TIMESTAMP_LTZ(3)"


@pytest.fixture
def env(database: Any) -> TableEnvironment:
    database.execute("CREATE TABLE items (id int PRIMARY KEY, name text, price numeric(10, 2), made timestamptz)")
    database.execute(
        "INSERT INTO items SELECT n, 'item ' || n, n * 1.5, to_timestamp(n) FROM generate_series(1, 100) AS n"
    )
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "2")
    env.get_config().set("table.local-time-zone", "UTC")
    return env


@pytest.fixture
def table(env: TableEnvironment, database: Any) -> Callable[..., None]:
    def create(name: str, columns: str, target: str, more: str = "") -> None:
        env.execute_sql(
            f"CREATE TABLE {name} ({columns}) WITH ('connector'='jdbc', 'url'='jdbc:{database.url}', "
            f"'table-name'='{target}'{more})"
        )

    return create


def rows_of(env: TableEnvironment, sql: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(sql).collect() as rows:
        return sorted(tuple(row) for row in rows)


def test_a_table_is_scanned_whole_and_in_parts(env: TableEnvironment, table: Callable[..., None]) -> None:
    table("whole", ITEMS, "items")
    bounds = ", 'scan.partition.lower-bound'='11', 'scan.partition.upper-bound'='20'"
    table("part", ITEMS, "items", f", 'scan.partition.column'='id', 'scan.partition.num'='3'{bounds}")
    whole = rows_of(env, "SELECT * FROM whole")
    assert len(whole) == 100
    assert whole[1][:3] == (2, "item 2", Decimal("3.00"))
    assert whole[1][3].timestamp() == 2
    assert [row[0] for row in rows_of(env, "SELECT id FROM part")] == list(range(11, 21))
    table("wrong", ITEMS, "items", ", 'scan.partition.column'='id'")
    with pytest.raises(SqlError, match=r"must be set together with 'scan\.partition\.num'"):
        env.execute_sql("SELECT * FROM wrong")


def test_updates_and_deletions_reach_the_row_of_their_key(
    env: TableEnvironment, table: Callable[..., None], database: Any
) -> None:
    database.execute("CREATE TABLE counts (word text PRIMARY KEY, n bigint)")
    table("counts", "word STRING, n BIGINT, PRIMARY KEY (word) NOT ENFORCED", "counts")
    register_values("words", [("a",), ("b",), ("a",)])
    env.execute_sql("CREATE TABLE words (word STRING) WITH ('connector'='values', 'data-id'='words')")
    env.execute_sql("INSERT INTO counts SELECT word, COUNT(*) FROM words GROUP BY word").wait()
    assert sorted(database.execute("SELECT * FROM counts")) == [("a", 2), ("b", 1)]
    env.execute_sql(
        "INSERT INTO counts SELECT word, n FROM (SELECT word, COUNT(*) AS n FROM words GROUP BY word) WHERE n < 2"
    ).wait()
    assert sorted(database.execute("SELECT * FROM counts")) == [("b", 1)]


def test_a_table_without_a_key_takes_no_updates(env: TableEnvironment, table: Callable[..., None]) -> None:
    table("items", "id BIGINT, name STRING", "items")
    with pytest.raises(SqlError, match="accepts inserts only"):
        env.execute_sql("INSERT INTO items SELECT COUNT(*), 'x' FROM (VALUES (1)) AS v(x)")


def test_rows_are_looked_up_with_one_query_for_many_keys(
    env: TableEnvironment, table: Callable[..., None], database: Any
) -> None:
    table("items", ITEMS, "items", ", 'lookup.cache'='PARTIAL', 'lookup.partial-cache.max-rows'='1000'")
    register_values("orders", [(n, n * 50) for n in range(4)] + [(9, None)])
    env.execute_sql(
        "CREATE TABLE orders (n INT, item INT, p AS PROCTIME()) WITH ('connector'='values', 'data-id'='orders')"
    )
    found = rows_of(
        env,
        "SELECT o.n, d.name, d.price FROM orders AS o LEFT JOIN items FOR SYSTEM_TIME AS OF o.p AS d ON o.item = d.id",
    )
    assert found == [
        (0, None, None), (1, "item 50", Decimal("75.00")), (2, "item 100", Decimal("150.00")), (3, None, None),
        (9, None, None),
    ]  # fmt: skip


def test_a_fully_cached_table_is_looked_up_too(env: TableEnvironment, table: Callable[..., None]) -> None:
    full = ", 'lookup.cache'='FULL', 'lookup.full-cache.periodic-reload.interval'='1 h'"
    table("items", ITEMS, "items", full)
    register_values("orders", [(n, n * 50) for n in range(4)])
    env.execute_sql(
        "CREATE TABLE orders (n INT, item INT, p AS PROCTIME()) WITH ('connector'='values', 'data-id'='orders')"
    )
    found = rows_of(
        env,
        "SELECT o.n, d.name, d.price FROM orders AS o JOIN items FOR SYSTEM_TIME AS OF o.p AS d ON o.item = d.id",
    )
    assert found == [(1, "item 50", Decimal("75.00")), (2, "item 100", Decimal("150.00"))]


def test_only_used_columns_are_selected(env: TableEnvironment, table: Callable[..., None], database: Any) -> None:
    table("items", f"{ITEMS}, gone STRING", "items")  # the database has no such column
    register_values("orders", [(1,), (2,)])
    env.execute_sql("CREATE TABLE orders (item INT, p AS PROCTIME()) WITH ('connector'='values', 'data-id'='orders')")
    sql = "SELECT d.name FROM orders AS o JOIN items FOR SYSTEM_TIME AS OF o.p AS d ON o.item = d.id"
    assert rows_of(env, sql) == [("item 1",), ("item 2",)]


def test_keys_of_several_columns_have_the_types_of_the_table(database: Any) -> None:
    database.execute("CREATE TABLE pairs (a uuid, b varchar(3), v int)")
    one = "00000000-0000-0000-0000-000000000001"
    database.execute("INSERT INTO pairs VALUES (%s, 'x', 1), (%s, 'x', 2), (%s, 'y', 3)", (one,) * 3)
    lookup = JdbcLookup(database.options, "pairs", ["v", "b"], ["a", "b"])
    found = lookup.find([(one, "y"), (one, "x"), (one, "z")])
    lookup.close()
    assert {key: sorted(rows) for key, rows in found.items()} == {
        (one, "x"): [[1, "x"], [2, "x"]],
        (one, "y"): [[3, "y"]],
    }


def test_a_missing_table_is_refused(env: TableEnvironment, table: Callable[..., None]) -> None:
    table("missing", "id INT", "nowhere")
    with pytest.raises(MillstreamError, match="nowhere"):
        env.execute_sql("SELECT * FROM missing")


def in_batch_mode(env: TableEnvironment) -> None:
    env.get_config().set("execution.runtime-mode", "batch")
    env.get_config().set("restart-strategy.type", "none")


def test_update_and_delete_change_rows_by_primary_key(
    env: TableEnvironment, table: Callable[..., None], database: Any
) -> None:
    in_batch_mode(env)
    table("items", f"{ITEMS}, PRIMARY KEY (id) NOT ENFORCED", "items")
    env.execute_sql("DELETE FROM items WHERE id > 3").wait()
    env.execute_sql("UPDATE items SET price = price + 1, name = UPPER(name) WHERE id < 3").wait()
    assert database.execute("SELECT id, name, price FROM items ORDER BY id") == [
        (1, "ITEM 1", Decimal("2.50")),
        (2, "ITEM 2", Decimal("4.00")),
        (3, "item 3", Decimal("4.50")),
    ]
    env.execute_sql("TRUNCATE TABLE items")
    assert database.execute("SELECT count(*) FROM items") == [(0,)]


def test_a_failed_update_changes_no_row(env: TableEnvironment, table: Callable[..., None], database: Any) -> None:
    in_batch_mode(env)
    table("items", f"{ITEMS}, PRIMARY KEY (id) NOT ENFORCED", "items")
    before = database.execute("SELECT * FROM items ORDER BY id")
    with pytest.raises(MillstreamError):
        env.execute_sql("UPDATE items SET price = 1 / (id - 100)").wait()
    assert database.execute("SELECT * FROM items ORDER BY id") == before


def test_updates_need_a_primary_key_and_cannot_change_it(env: TableEnvironment, table: Callable[..., None]) -> None:
    in_batch_mode(env)
    table("items", f"{ITEMS}, PRIMARY KEY (id) NOT ENFORCED", "items")
    table("keyless", ITEMS, "items")
    with pytest.raises(SqlError, match=r"column 'id' is part of the primary key(?s:.*)DELETE the row and INSERT"):
        env.execute_sql("UPDATE items SET id = id + 1")
    with pytest.raises(SqlError, match=r"finds rows by primary key, and the table has none(?s:.*)PRIMARY KEY"):
        env.execute_sql("DELETE FROM keyless")
