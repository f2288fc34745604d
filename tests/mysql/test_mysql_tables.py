"""Changes of tables in SQL: 'connector' = 'mysql-cdc'."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from millstream.sql.errors import SqlError
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.types.row import Row

ITEMS = "id INT NOT NULL, name STRING, PRIMARY KEY (id) NOT ENFORCED"


@pytest.fixture
def env(database: Any) -> TableEnvironment:
    database.execute("CREATE TABLE items (id int PRIMARY KEY, extra text, name text NOT NULL, flag tinyint(1))")
    database.execute("INSERT INTO items VALUES (1, '', 'one', 1), (2, '', 'two', 0)")
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    return env


@pytest.fixture
def create(env: TableEnvironment, database: Any) -> Callable[..., None]:
    def create_table(columns: str = ITEMS, /, **options: str) -> None:
        server = database.server
        every = {
            "connector": "mysql-cdc", "hostname": server.host, "port": str(server.port), "username": server.user,
            "password": server.password, "database-name": database.name, "table-name": "items",
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
    create("id INT, name STRING, flag BOOLEAN, PRIMARY KEY (id) NOT ENFORCED")

    def change() -> None:
        database.execute("UPDATE items SET name = 'uno' WHERE id = 1")
        database.execute("DELETE FROM items WHERE id = 2")
        database.execute("INSERT INTO items VALUES (3, '', 'three', NULL)")

    assert changes(env, "SELECT name, id, flag FROM items", 2, change, 4) == [
        "+I[one, 1, True]", "+I[two, 2, False]", "-U[one, 1, True]", "+U[uno, 1, True]", "-D[two, 2, False]",
        "+I[three, 3, None]",
    ]  # fmt: skip


def test_metadata_and_changes_as_a_list(env: TableEnvironment, create: Callable[..., None], database: Any) -> None:
    create(
        "`at` TIMESTAMP_LTZ(3) METADATA FROM 'op_ts' VIRTUAL, id INT, kind STRING METADATA FROM 'row_kind' VIRTUAL, "
        "path STRING METADATA FROM 'table_name' VIRTUAL, db STRING METADATA FROM 'database_name' VIRTUAL, flag TINYINT",
        **{"scan--read-changelog-as-append-only--enabled": "true"},
    )
    where = f"items, {database.name}"
    assert changes(
        env,
        "SELECT id, flag, kind, path, db, EXTRACT(YEAR FROM `at`) > 1970 FROM items",
        2,
        lambda: database.execute("UPDATE items SET name = 'uno' WHERE id = 1"),
        2,
    ) == [
        f"+I[1, 1, +I, {where}, False]", f"+I[2, 0, +I, {where}, False]",
        f"+I[1, 1, -U, {where}, True]", f"+I[1, 1, +U, {where}, True]",
    ]  # fmt: skip


def test_startup_modes_and_types(env: TableEnvironment, create: Callable[..., None], database: Any) -> None:
    create(**{"scan--startup--mode": "snapshot"})
    with env.execute_sql("SELECT * FROM items").collect() as rows:
        assert [text(row) for row in rows] == ["+I[1, one]", "+I[2, two]"]
    gtid = database.execute("SELECT @@gtid_binlog_pos")[0][0]
    database.execute("INSERT INTO items VALUES (3, '', 'three', 1)")
    create(**{"scan--startup--mode": "specific-offset", "scan--startup--specific-offset--gtid-set": gtid})
    insert = "INSERT INTO items VALUES (4, '', 'four', 1)"
    assert changes(env, "SELECT * FROM items", 1, lambda: database.execute(insert), 1) == [
        "+I[3, three]",
        "+I[4, four]",
    ]
    database.execute(
        "CREATE TABLE typed (id bigint unsigned PRIMARY KEY, n decimal(10,2), at datetime(3), t time, b varbinary(3), "
        "s set('a','b'), e enum('x'), y year, f float)"
    )
    database.execute(
        "INSERT INTO typed VALUES (18446744073709551615, 1.5, '2024-01-02 03:04:05.678', '01:02:03', x'00ff', 'a,b', "
        "'x', 2024, 0.5)"
    )
    create(
        "id DECIMAL(20, 0), n DECIMAL(10, 2), `at` TIMESTAMP(3), t TIME, b VARBINARY(3), s ARRAY<STRING>, e STRING, "
        "y INT, f FLOAT, PRIMARY KEY (id) NOT ENFORCED",
        table_name="typed", **{"scan--startup--mode": "snapshot"},
    )  # fmt: skip
    query = "SELECT CAST(id AS STRING), n, CAST(`at` AS STRING), t, b, s, e, y, f FROM items"
    with env.execute_sql(query).collect() as rows:
        assert [text(row) for row in rows] == [
            "+I[18446744073709551615, 1.50, 2024-01-02 03:04:05.678, 01:02:03, bytearray(b'\\x00\\xff'), ['a', 'b'], "
            "x, 2024, 0.5]"
        ]


def test_several_tables_that_match_a_pattern(env: TableEnvironment, create: Callable[..., None], database: Any) -> None:
    for shard in (1, 2):
        database.execute(f"CREATE TABLE Shard_{shard} (id int PRIMARY KEY, name text)")
        database.execute(f"INSERT INTO Shard_{shard} VALUES ({shard}, 'x')")
    create(
        "id INT, t STRING METADATA FROM 'table_name' VIRTUAL, PRIMARY KEY (id) NOT ENFORCED",
        table_name="Shard_[0-9]+", **{"scan--startup--mode": "snapshot"},
    )  # fmt: skip
    with env.execute_sql("SELECT id, t FROM items").collect() as rows:
        assert sorted(map(text, rows)) == ["+I[1, Shard_1]", "+I[2, Shard_2]"]


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (ITEMS, {"table_name": "nothing"}, r"no table of the server matches test_\d+.nothing"),
        ("id INT, gone STRING", {}, "has no column gone"),
        (ITEMS, {"scan--startup--mode": "committed-offset"}, "must be initial, earliest-offset, latest-offset"),
        (ITEMS, {"scan--startup--mode": "timestamp"}, "needs 'scan.startup.timestamp-millis'"),
        (ITEMS, {"scan--startup--mode": "specific-offset"}, "needs a position"),
        (ITEMS, {"scan--startup--specific-offset--skip-rows": "1"}, "is not supported"),
        (ITEMS, {"serverid": "x"}, "unknown option 'serverid'"),
        (ITEMS, {"server_time_zone": "Mars"}, "there is no time zone Mars"),
    ],
)
def test_a_wrong_option_is_refused_by_name(env, create, columns, options, message):
    create(columns, **options)
    with pytest.raises(SqlError, match=message):
        env.execute_sql("SELECT * FROM items")


def test_a_job_continues_from_its_savepoint(
    env: TableEnvironment, create: Callable[..., None], database: Any, tmp_path: Path
) -> None:
    """Stopped with a savepoint after the snapshot; started from it, the job emits what changed meanwhile, once."""
    create()
    target = tmp_path / "out"
    env.get_config().set("execution.checkpointing.interval", "100 ms")
    env.get_config().set("execution.checkpointing.dir", str(tmp_path / "checkpoints"))

    def start() -> Any:
        env.execute_sql(
            f"CREATE OR REPLACE TABLE sink (id INT, name STRING) WITH ('connector' = 'filesystem', "
            f"'path' = '{target}', 'format' = 'csv')"
        )
        return env.execute_sql(
            "INSERT INTO sink SELECT id, name FROM items "
            "/*+ OPTIONS('scan.read-changelog-as-append-only.enabled'='true') */"
        ).get_job_client()

    def written(rows: int) -> list[str]:
        """Wait until there are so many rows, and return all."""
        lines: list[str] = []
        while len(lines) < rows:
            time.sleep(0.02)
            parts = [path for path in target.rglob("part-*") if path.is_file()]
            lines = [line for path in parts for line in path.read_text().splitlines()]
        return sorted(lines)

    job = start()
    written(2)
    savepoint = job.stop_with_savepoint(False, str(tmp_path / "savepoint")).result()
    database.execute("INSERT INTO items VALUES (3, '', 'three', 1)")
    env.get_config().set("execution.savepoint.path", savepoint)
    job = start()
    written(3)
    database.execute("INSERT INTO items VALUES (4, '', 'four', 1)")
    written(4)
    job.cancel().result()
    assert written(4) == ["1,one", "2,two", "3,three", "4,four"]
