"""Changes of tables in SQL: 'connector' = 'postgres-cdc'."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
from cdc_running import Mirror, Running

from millstream.sql.connector.table_connector import TableContext
from millstream.sql.connectors.postgres_cdc import CONNECTORS
from millstream.sql.errors import SqlError
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.types.row import Row

ITEMS = "id INT NOT NULL, name STRING, PRIMARY KEY (id) NOT ENFORCED"


@pytest.fixture
def env(database: Any) -> TableEnvironment:
    database.execute("CREATE TABLE items (id int PRIMARY KEY, extra text, name text NOT NULL)")
    database.execute("INSERT INTO items VALUES (1, '', 'one'), (2, '', 'two')")
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    return env


@pytest.fixture
def create(env: TableEnvironment, database: Any) -> Callable[..., None]:
    def create_table(columns: str = ITEMS, /, **options: str) -> None:
        server = database.server
        every = {
            "connector": "postgres-cdc", "hostname": server.host, "port": str(server.port), "username": server.user,
            "database-name": database.name, "schema-name": "public", "table-name": "items",
            "slot.name": f"slot_{database.name}", "decoding.plugin.name": "pgoutput",
            **{key.replace("_", "-").replace("--", "."): value for key, value in options.items()},
        }  # fmt: skip
        pairs = ", ".join(f"'{key}' = '{value}'" for key, value in every.items())
        env.execute_sql(f"CREATE OR REPLACE TABLE items ({columns}) WITH ({pairs})")

    return create_table


def text(row: Row) -> str:
    return f"{row.get_row_kind()}[{', '.join(map(str, row))}]"


def changes(env: TableEnvironment, sql: str, first: int, then: Callable[[], None], more: int) -> list[str]:
    """Return the first changes of a query, and those that come after `then` was called, as text."""
    with env.execute_sql(sql).collect() as rows:
        before = [text(row) for row in islice(rows, first)]
        then()
        return [*before, *(text(row) for row in islice(rows, more))]


def test_a_snapshot_and_then_every_change(env: TableEnvironment, create: Callable[..., None], database: Any) -> None:
    database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    create()

    def change() -> None:
        database.execute("UPDATE items SET name = 'uno' WHERE id = 1")
        database.execute("DELETE FROM items WHERE id = 2")
        database.execute("INSERT INTO items VALUES (3, '', 'three')")

    assert changes(env, "SELECT name, id FROM items", 2, change, 4) == [
        "+I[one, 1]", "+I[two, 2]", "-U[one, 1]", "+U[uno, 1]", "-D[two, 2]", "+I[three, 3]",
    ]  # fmt: skip


def test_changes_by_key_need_no_full_rows(env: TableEnvironment, create: Callable[..., None], database: Any) -> None:
    create()
    with pytest.raises(SqlError, match=r"ALTER TABLE public\.items REPLICA IDENTITY FULL, or use 'changelog-mode'"):
        env.execute_sql("SELECT * FROM items")
    create(changelog_mode="upsert")

    def change() -> None:
        database.execute("UPDATE items SET name = 'uno' WHERE id = 1")
        database.execute("UPDATE items SET id = 4 WHERE id = 2")
        database.execute("DELETE FROM items WHERE id = 1")

    assert changes(env, "SELECT * FROM items", 2, change, 5) == [
        "+I[1, one]", "+I[2, two]", "-U[1, one]", "+U[1, uno]", "-D[2, two]", "+I[4, two]", "-D[1, uno]",
    ]  # fmt: skip


def test_metadata_and_changes_as_a_list(env: TableEnvironment, create: Callable[..., None], database: Any) -> None:
    database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    create(
        "`at` TIMESTAMP_LTZ(3) METADATA FROM 'op_ts' VIRTUAL, id INT, kind STRING METADATA FROM 'row_kind' VIRTUAL, "
        "path STRING METADATA FROM 'table_name' VIRTUAL, schema_name STRING METADATA VIRTUAL, "
        "db STRING METADATA FROM 'database_name' VIRTUAL",
        **{"scan--read-changelog-as-append-only--enabled": "true"},
    )
    where = f"items, public, {database.name}"
    assert changes(
        env,
        "SELECT id, kind, path, schema_name, db, EXTRACT(YEAR FROM `at`) > 1970 FROM items",
        2,
        lambda: database.execute("UPDATE items SET name = 'uno' WHERE id = 1"),
        2,
    ) == [
        f"+I[1, +I, {where}, False]", f"+I[2, +I, {where}, False]",
        f"+I[1, -U, {where}, True]", f"+I[1, +U, {where}, True]",
    ]  # fmt: skip


def test_startup_modes(env: TableEnvironment, create: Callable[..., None], database: Any) -> None:
    create(changelog_mode="upsert", **{"scan--startup--mode": "snapshot"})
    with env.execute_sql("SELECT * FROM items").collect() as rows:
        assert [text(row) for row in rows] == ["+I[1, one]", "+I[2, two]"]
    database.execute("INSERT INTO items VALUES (3, '', 'three')")
    create(changelog_mode="upsert", **{"scan--startup--mode": "committed-offset"})
    insert = "INSERT INTO items VALUES (4, '', 'four')"
    assert changes(env, "SELECT * FROM items", 1, lambda: database.execute(insert), 1) == [
        "+I[3, three]",
        "+I[4, four]",
    ]
    create(changelog_mode="upsert", **{"scan--startup--mode": "committed-offset", "slot--name": "other"})
    with pytest.raises(Exception, match="there is no slot other"):
        env.execute_sql("SELECT * FROM items").print()


def test_several_tables_that_match_a_pattern(env: TableEnvironment, create: Callable[..., None], database: Any) -> None:
    for shard in (1, 2):
        database.execute(f'CREATE TABLE "Shard_{shard}" (id int PRIMARY KEY, name text)')
        database.execute(f"INSERT INTO \"Shard_{shard}\" VALUES ({shard}, 'x')")
    create(
        "id INT, t STRING METADATA FROM 'table_name' VIRTUAL, PRIMARY KEY (id) NOT ENFORCED",
        changelog_mode="upsert", table_name="Shard_[0-9]+", **{"scan--startup--mode": "snapshot"},
    )  # fmt: skip
    with env.execute_sql("SELECT id, t FROM items").collect() as rows:
        assert sorted(map(text, rows)) == ["+I[1, Shard_1]", "+I[2, Shard_2]"]


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (ITEMS, {"table_name": "nothing"}, "has no table 'nothing' in the schema 'public'"),
        ("id INT, gone STRING", {"scan--read-changelog-as-append-only--enabled": "true"}, "has no column gone"),
        ("id INT", {"changelog_mode": "upsert"}, "needs a primary key"),
        (ITEMS, {"decoding--plugin--name": "wal2json"}, "the decoding plugin wal2json is not supported"),
        (ITEMS, {"scan--startup--mode": "timestamp"}, "must be initial, latest-offset, snapshot, committed-offset"),
        (ITEMS, {"slotname": "x"}, "unknown option 'slotname'"),
    ],
)
def test_a_wrong_option_is_refused_by_name(env, create, columns, options, message):
    create(columns, **options)
    with pytest.raises(SqlError, match=message):
        env.execute_sql("SELECT * FROM items")


@pytest.mark.parametrize("mode", ["all", "upsert"])
def test_no_change_is_lost_or_duplicated_by_crashes(env, create, database, mode):
    """The source is killed between planning, reading and checkpoints, while rows change."""
    if mode == "all":
        database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    create(changelog_mode=mode, **{"scan--incremental--snapshot--chunk--size": "3"})
    database.execute("INSERT INTO items SELECT n, '', 'n' || n FROM generate_series(10, 40) AS n")
    name, definition = env._catalogs.table(("items",))
    assert CONNECTORS[0].read is not None
    source = CONNECTORS[0].read(TableContext(name, definition, definition.options)).source
    running = Running(source, Mirror(["id"], full=mode == "all"), records=3)
    chance = random.Random(4711)
    for _ in range(60):
        id_ = chance.randrange(50)
        match chance.randrange(8):
            case 0:
                running.crash()
            case 1:
                running.checkpoint()
            case 2:
                database.execute("DELETE FROM items WHERE id = %s", (id_,))
            case 3:
                database.execute(
                    "INSERT INTO items VALUES (%s, '', 'new') ON CONFLICT (id) DO UPDATE SET name = items.name || 'x'",
                    (id_,),
                )
            case _:
                running.epoch()
    running.drain()
    running.close()
    assert running.mirror.rows == {(row[0],): list(row) for row in database.execute("SELECT id, name FROM items")}
