"""INSERT OVERWRITE: one commit removes the old rows and adds the new ones; rows that others added later stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from millstream.common import Row, Types
from millstream.connector.sink import WriterContext
from millstream.connectors.lakehouse.iceberg_catalog import TableLoader
from millstream.datastream.connectors.delta import DeltaSink
from millstream.datastream.connectors.iceberg import IcebergSink
from millstream.errors import MillstreamError
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.sql.errors import SqlError
from millstream.table import EnvironmentSettings, TableEnvironment

pytest.importorskip("pyiceberg")
pytest.importorskip("sqlalchemy")

ROWS = Types.ROW_NAMED(["v", "p"], [Types.INT(), Types.STRING()])
KINDS = ("delta", "iceberg")


def properties(folder: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}


def split_by_partition(folder: Path) -> None:
    """A table of an Iceberg catalog: SQL makes those without partitions only."""
    with TableLoader.from_catalog("c", properties(folder), "db.parts").open_table() as (catalog, _):
        catalog.create_namespace("db")
        table = catalog.create_table("db.parts", pa.schema([("v", pa.int32()), ("p", pa.string())]))
        with table.update_spec() as spec:
            spec.add_identity("p")


@pytest.fixture
def env(tmp_path: Path) -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    split_by_partition(tmp_path)
    given = properties(tmp_path)
    iceberg = "'connector'='iceberg', 'catalog-name'='c', 'catalog-database'='db', 'catalog-type'='sql', "
    iceberg += f"'uri'='{given['uri']}', 'warehouse'='{given['warehouse']}'"
    for name, columns, more in (("plain", "v INT", ""), ("parts", "v INT, p STRING", "PARTITIONED BY (p)")):
        delta = f"'connector'='delta', 'table-path'='{tmp_path}/{name}'"
        made.execute_sql(f"CREATE TABLE delta_{name} ({columns}) {more} WITH ({delta})")
        made.execute_sql(f"CREATE TABLE iceberg_{name} ({columns}) {more} WITH ({iceberg}, 'catalog-table'='{name}')")
    return made


def rows_of(env: TableEnvironment, table: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(f"SELECT * FROM {table}").collect() as rows:
        return sorted((tuple(row) for row in rows), key=repr)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_replaced_as_a_whole_even_by_nothing(env: TableEnvironment, kind: str) -> None:
    table = f"{kind}_plain"
    env.execute_sql(f"INSERT OVERWRITE {table} VALUES (0)").wait()  # which does not exist yet
    env.execute_sql(f"INSERT INTO {table} VALUES (1)").wait()
    assert rows_of(env, table) == [(0,), (1,)]
    env.execute_sql(f"INSERT OVERWRITE {table} SELECT v + 10 FROM {table}").wait()
    assert rows_of(env, table) == [(10,), (11,)]
    env.get_config().set("restart-strategy.type", "none")
    with pytest.raises(MillstreamError):
        env.execute_sql(f"INSERT OVERWRITE {table} SELECT 1 / (v - 10) FROM {table}").wait()
    assert rows_of(env, table) == [(10,), (11,)]
    env.execute_sql(f"INSERT OVERWRITE {table} SELECT v FROM {table} WHERE v < 0").wait()
    assert rows_of(env, table) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_partitions_that_get_rows_are_replaced(env: TableEnvironment, kind: str) -> None:
    table = f"{kind}_parts"
    env.execute_sql(f"INSERT INTO {table} VALUES (1, 'a b/c'), (2, 'b'), (3, CAST(NULL AS STRING))").wait()
    env.execute_sql(f"INSERT OVERWRITE {table} VALUES (10, 'a b/c'), (30, CAST(NULL AS STRING))").wait()
    assert rows_of(env, table) == [(10, "a b/c"), (2, "b"), (30, None)]
    env.execute_sql(f"INSERT OVERWRITE {table} PARTITION (p = 'b') SELECT v FROM {table} WHERE v = 10").wait()
    assert rows_of(env, table) == [(10, "a b/c"), (10, "b"), (30, None)]
    env.execute_sql(f"INSERT OVERWRITE {table} SELECT * FROM {table} WHERE v < 0").wait()
    assert len(rows_of(env, table)) == 3


def test_a_stream_replaces_nothing(env: TableEnvironment) -> None:
    env.get_config().set("execution.runtime-mode", "streaming")
    with pytest.raises(SqlError, match="INSERT OVERWRITE needs batch mode"):
        env.execute_sql("INSERT OVERWRITE delta_plain VALUES (1)")


@pytest.mark.parametrize("kind", KINDS)
def test_committing_again_removes_nothing_that_came_later(kind: str, tmp_path: Path) -> None:
    loader = TableLoader.from_catalog("c", properties(tmp_path), "db.t")

    def sink(overwrite: bool) -> DeltaSink | IcebergSink:
        if kind == "delta":
            return DeltaSink.for_row_data(f"{tmp_path}/t", ROWS).overwrite(overwrite).build()
        return IcebergSink.for_row(loader, ROWS).create_table_if_missing().overwrite(overwrite).build()

    def written(to: DeltaSink | IcebergSink, value: int, epoch: int) -> list[Any]:
        to.check()
        writer = to.create_writer(WriterContext("job", f"sink{value}", 0, 1, epoch, "0", 5))
        writer.write([Row(value, "p")], None)
        return list(json.loads(json.dumps(writer.prepare_commit())))

    def values() -> list[int]:
        if kind == "delta":
            from deltalake import DeltaTable

            return sorted(DeltaTable(f"{tmp_path}/t").to_pyarrow_table().column("v").to_pylist())
        with loader.open_table() as (_, table):
            return sorted(table.scan().to_arrow().column("v").to_pylist())

    first = sink(overwrite=False)
    first.create_committer().commit(1, written(first, 1, 1))
    replacing = sink(overwrite=True)
    other = sink(overwrite=False)
    other.create_committer().commit(1, written(other, 2, 1))  # while the job runs
    staged, later = written(replacing, 3, 1), written(replacing, 4, 2)
    for _ in range(2):  # recovery begins with another committer of the same sink
        committer = replacing.create_committer()
        committer.commit(1, staged)
        assert set(values()) - {4} == {2, 3}
        committer.commit(2, later)
        committer.reached(MAX_WATERMARK, 0)
        assert values() == [2, 3, 4]


@pytest.mark.parametrize("kind", KINDS)
def test_update_and_delete_replace_the_whole_table(env: TableEnvironment, kind: str) -> None:
    env.execute_sql(f"INSERT INTO {kind}_parts VALUES (1, 'a'), (2, 'a'), (3, 'b')").wait()
    env.execute_sql(f"DELETE FROM {kind}_parts WHERE v = 3").wait()
    assert rows_of(env, f"{kind}_parts") == [(1, "a"), (2, "a")]
    env.execute_sql(f"UPDATE {kind}_parts SET p = 'c', v = v + 10 WHERE v = 2").wait()
    assert rows_of(env, f"{kind}_parts") == [(1, "a"), (12, "c")]
    env.execute_sql(f"TRUNCATE TABLE {kind}_parts")
    assert rows_of(env, f"{kind}_parts") == []
