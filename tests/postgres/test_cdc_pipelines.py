"""Pipelines of changes from PostgreSQL: to another schema, to Delta and Iceberg tables, with columns that change."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deltalake
import pytest

sys.path.append(str(Path(__file__).parent.parent / "cdc"))
from pipeline_running import RunningPipeline

from millstream.cdc.definition import Pipeline, parse_pipeline
from millstream.connectors.lakehouse.iceberg_catalog import TableLoader


@pytest.fixture
def start(tmp_path: Path, inline_engine: None) -> Iterator[Callable[[Pipeline], RunningPipeline]]:
    with RunningPipeline.starter(tmp_path) as start:
        yield start


def pipeline_of(database: Any, sink: dict[str, Any], **blocks: Any) -> Pipeline:
    server = database.server
    source = {
        "type": "postgres",
        "hostname": server.host,
        "port": server.port,
        "username": server.user,
        "password": "",
        "tables": f"{database.name}.public.items",
        "slot.name": f"slot_{database.name}",
    }
    return parse_pipeline({"source": source, "sink": sink, **blocks})


@pytest.fixture
def items(database: Any) -> Any:
    database.execute("CREATE TABLE items (id int PRIMARY KEY, name text, price numeric(10, 2), stock int)")
    database.execute("INSERT INTO items VALUES (1, 'pen', 1.50, 5), (2, 'ink', 9.99, 7)")
    return database


def test_another_schema_gets_rows_and_new_columns(items: Any, start: Callable[[Pipeline], RunningPipeline]) -> None:
    sink = {"type": "jdbc", "url": items.options.url}
    table = f"{items.name}.public.items"
    running = start(pipeline_of(items, sink, route=[{"source-table": table, "sink-table": "copy.things"}]))

    def rows() -> list[Any]:
        if not items.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'copy'"):
            return []
        columns = items.execute("SELECT column_name FROM information_schema.columns WHERE table_schema = 'copy'")
        colour = "colour" if ("colour",) in columns else "NULL"
        return items.execute(f"SELECT id, name, price::float, stock, {colour} FROM copy.things ORDER BY id")

    running.wait_until(lambda: rows() == [(1, "pen", 1.5, 5, None), (2, "ink", 9.99, 7, None)])
    items.execute("DELETE FROM items WHERE id = 2")
    items.execute("INSERT INTO items VALUES (3, 'cup', 2.25, 1)")
    items.execute("ALTER TABLE items ADD COLUMN colour text")
    items.execute("ALTER TABLE items ALTER COLUMN stock TYPE bigint")
    items.execute("UPDATE items SET colour = 'blue' WHERE id = 1")
    running.wait_until(lambda: rows() == [(1, "pen", 1.5, 5, "blue"), (3, "cup", 2.25, 1, None)])
    items.execute("ALTER TABLE items DROP COLUMN name")
    items.execute("INSERT INTO items VALUES (4, 3.00, 2, 'red')")
    items.execute("UPDATE items SET stock = 6 WHERE id = 1")
    running.wait_until(
        lambda: rows() == [(1, None, 1.5, 6, "blue"), (3, "cup", 2.25, 1, None), (4, None, 3.0, 2, "red")]
    )


def test_a_delta_table_gets_rows_and_new_columns(
    items: Any, start: Callable[[Pipeline], RunningPipeline], tmp_path: Path
) -> None:
    running = start(pipeline_of(items, {"type": "delta", "path": str(tmp_path / "lake")}))
    location = str(tmp_path / "lake" / "public" / "items")

    def rows() -> list[Any]:
        if not deltalake.DeltaTable.is_deltatable(location):
            return []
        table = deltalake.DeltaTable(location).to_pyarrow_table().to_pylist()
        names = ("id", "name", "price", "stock", "colour")
        return sorted(
            (tuple(float(row[n]) if n == "price" else row.get(n) for n in names) for row in table),
            key=lambda row: row[0],
        )

    running.wait_until(lambda: [row[:4] for row in rows()] == [(1, "pen", 1.5, 5), (2, "ink", 9.99, 7)])
    items.execute("ALTER TABLE items ADD COLUMN colour text")
    items.execute("INSERT INTO items VALUES (4, 'cup', 3.00, 2, 'red')")
    items.execute("DELETE FROM items WHERE id = 2")
    running.wait_until(lambda: rows() == [(1, "pen", 1.5, 5, None), (4, "cup", 3.0, 2, "red")])


def test_an_iceberg_table_gets_rows_and_new_columns(
    items: Any, start: Callable[[Pipeline], RunningPipeline], tmp_path: Path
) -> None:
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    sink = {"type": "iceberg", "catalog-name": "lake", **{f"catalog.properties.{k}": v for k, v in properties.items()}}
    loader = TableLoader.from_catalog("lake", properties, "public.items")

    def rows() -> list[Any]:
        with loader.open_table() as (_, table):
            content = [] if table is None else table.scan().to_arrow().to_pylist()
        return sorted((row["id"], row["name"], row.get("colour")) for row in content)

    assert rows() == []  # creates the catalog's own tables: two connections cannot do so at the same time
    running = start(pipeline_of(items, sink))
    running.wait_until(lambda: rows() == [(1, "pen", None), (2, "ink", None)])
    items.execute("ALTER TABLE items ADD COLUMN colour text")
    items.execute("INSERT INTO items VALUES (4, 'cup', 3.00, 2, 'red')")
    items.execute("DELETE FROM items WHERE id = 2")
    running.wait_until(lambda: rows() == [(1, "pen", None), (4, "cup", "red")])
