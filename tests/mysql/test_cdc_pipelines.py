"""Pipelines of changes from MySQL: tables, routes, transforms, and columns that change while a pipeline runs."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent.parent / "cdc"))
from pipeline_running import RunningPipeline

from millstream.cdc.definition import Pipeline, parse_pipeline


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[Pipeline], RunningPipeline]]:
    with RunningPipeline.starter(tmp_path) as start:
        yield start


def pipeline_of(database: Any, sink: dict[str, Any], tables: str, **blocks: Any) -> Pipeline:
    server = database.server
    source = {
        "type": "mysql",
        "hostname": server.host,
        "port": server.port,
        "username": server.user,
        "password": server.password,
        "tables": f"{database.name}.{tables}",
    }
    return parse_pipeline({"source": source, "sink": sink, **blocks})


@pytest.fixture
def target(tmp_path: Path) -> sqlite3.Connection:
    return sqlite3.connect(tmp_path / "target.db", timeout=30, isolation_level=None)


def sqlite_sink(tmp_path: Path) -> dict[str, Any]:
    return {"type": "jdbc", "url": f"jdbc:sqlite:{tmp_path / 'target.db'}"}


def rows_of(target: sqlite3.Connection, query: str) -> list[Any]:
    try:
        return target.execute(query).fetchall()
    except sqlite3.OperationalError:
        return []


def test_tables_are_copied_by_routes_and_transforms(
    database: Any, start: Any, target: sqlite3.Connection, tmp_path: Path
) -> None:
    for shard in (1, 2):
        database.execute(f"CREATE TABLE web_order_{shard} (id INT PRIMARY KEY, price DECIMAL(10, 2), who VARCHAR(20))")
        database.execute(f"INSERT INTO web_order_{shard} VALUES ({shard}, {shard}.50, 'ann'), ({shard}0, 9.99, 'test')")
    database.execute("CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(20))")
    database.execute("INSERT INTO customers VALUES (1, 'Ann')")
    running = start(
        pipeline_of(
            database,
            sqlite_sink(tmp_path),
            "\\.*",
            pipeline={"parallelism": 2},
            route=[
                {"source-table": f"{database.name}.web_order_\\.*", "sink-table": "ods.orders"},
                {"source-table": f"{database.name}.customers", "sink-table": "ods.copy_<>", "replace-symbol": "<>"},
            ],
            transform=[
                {
                    "source-table": f"{database.name}.web_order_[12]",
                    "projection": "\\*, UPPER(who) AS who, CAST(price * 100 AS BIGINT) AS cents, "
                    "__table_name__ AS shard",
                    "filter": "who <> 'test'",
                }
            ],
        )
    )
    orders = "SELECT id, price, who, cents, shard FROM orders ORDER BY id"
    expected = [(1, 1.5, "ANN", 150, "web_order_1"), (2, 2.5, "ANN", 250, "web_order_2")]
    running.wait_until(lambda: rows_of(target, orders) == expected and rows_of(target, "SELECT * FROM copy_customers"))
    database.execute("UPDATE web_order_2 SET price = 4 WHERE id = 2")
    database.execute("DELETE FROM web_order_1 WHERE id = 1")
    database.execute("INSERT INTO customers VALUES (2, 'Bob')")
    running.wait_until(lambda: rows_of(target, orders) == [(2, 4, "ANN", 400, "web_order_2")])
    running.wait_until(lambda: rows_of(target, "SELECT * FROM copy_customers ORDER BY id") == [(1, "Ann"), (2, "Bob")])


def test_new_dropped_and_wider_columns_reach_the_sink(
    database: Any, start: Any, target: sqlite3.Connection, tmp_path: Path
) -> None:
    database.execute("CREATE TABLE items (id INT PRIMARY KEY, name VARCHAR(20), stock INT)")
    database.execute("INSERT INTO items VALUES (1, 'pen', 5)")
    running = start(pipeline_of(database, sqlite_sink(tmp_path), "items"))
    running.wait_until(lambda: rows_of(target, "SELECT * FROM items") == [(1, "pen", 5)])
    # the last rows with the old columns and the first with the new ones are one range of the log
    database.execute("INSERT INTO items VALUES (2, 'ink', 7)")
    database.execute("ALTER TABLE items ADD COLUMN colour VARCHAR(10), MODIFY stock BIGINT")
    database.execute("INSERT INTO items VALUES (3, 'cup', 5000000000, 'red')")
    database.execute("UPDATE items SET colour = 'blue' WHERE id = 1")
    full = "SELECT id, name, stock, colour FROM items ORDER BY id"
    expected = [(1, "pen", 5, "blue"), (2, "ink", 7, None), (3, "cup", 5000000000, "red")]
    running.wait_until(lambda: rows_of(target, full) == expected)
    database.execute("ALTER TABLE items DROP COLUMN name")
    database.execute("INSERT INTO items VALUES (4, 1, 'white')")
    running.wait_until(lambda: rows_of(target, full) == [*expected, (4, None, 1, "white")])
    assert len(running.jobs) == 3


def test_changed_columns_can_stop_the_pipeline(
    database: Any, start: Any, target: sqlite3.Connection, tmp_path: Path
) -> None:
    database.execute("CREATE TABLE items (id INT PRIMARY KEY)")
    database.execute("INSERT INTO items VALUES (1)")
    running = start(
        pipeline_of(
            database, sqlite_sink(tmp_path), "items", pipeline={"schema.change.behavior": "exception", "name": "copy"}
        )
    )
    running.wait_until(lambda: rows_of(target, "SELECT * FROM items") == [(1,)])
    database.execute("ALTER TABLE items ADD COLUMN n INT")
    with pytest.raises(Exception, match="columns of a source table have changed; hint: the job was stopped with"):
        running.wait_until(lambda: False)
