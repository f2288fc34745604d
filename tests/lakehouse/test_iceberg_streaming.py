"""An Iceberg source that follows a growing table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from millstream.connector.source import Boundedness, Budget, ReaderContext, SplitRange
from millstream.connectors.lakehouse.iceberg_catalog import TableLoader
from millstream.connectors.lakehouse.iceberg_source import FileGone, NoSuchSnapshot, NotAppendOnly, SnapshotExpired
from millstream.datastream.connectors.iceberg import IcebergSource, StreamingStartingStrategy
from millstream.sql.errors import SqlError
from millstream.table import EnvironmentSettings, TableEnvironment

pytest.importorskip("pyiceberg")
pytest.importorskip("sqlalchemy")


class Numbers:
    """A table that grows."""

    def __init__(self, path: Path) -> None:
        self.properties = {"type": "sql", "uri": f"sqlite:///{path}/c.db", "warehouse": f"file://{path}/warehouse"}
        self.loader = TableLoader.from_catalog("test", self.properties, "shop.numbers")
        with self.loader.open_table() as (catalog, _):
            catalog.create_namespace("shop")
            catalog.create_table("shop.numbers", pa.schema([("n", pa.int64())]))

    def append(self, *numbers: int) -> int:
        with self.loader.open_table() as (_, table):
            table.append(pa.table({"n": pa.array(numbers, pa.int64())}))
            return int(table.current_snapshot().snapshot_id)

    def change(self, method: str, *arguments: Any) -> None:
        with self.loader.open_table() as (_, table):
            getattr(table, method)(*arguments)

    def source(self, **settings: Any) -> IcebergSource:
        builder = IcebergSource.builder().table_loader(self.loader).streaming().monitor_interval(100)
        for name, value in settings.items():
            builder = getattr(builder, name)(value)
        return builder.build()


@pytest.fixture
def numbers(tmp_path: Path) -> Numbers:
    return Numbers(tmp_path)


def plan(enumerator: Any, now: int = 0) -> list[SplitRange]:
    return list(enumerator.plan(Budget(1000, 1 << 20, now)))


def read(source: IcebergSource, ranges: list[SplitRange]) -> list[int]:
    reader = source.create_reader(ReaderContext(0, 1, 100))
    return sorted(
        row.n
        for part in ranges
        for records in reader.read(part)
        for row in source.type_info().from_arrow(records.values)
    )


def read_available(source: IcebergSource, enumerator: Any, now: int = 0) -> list[int]:
    """All records that can be read now."""
    found: list[int] = []
    while ranges := plan(enumerator, now):
        found += read(source, ranges)
    return found


@pytest.mark.parametrize(
    ("strategy", "first"),
    [
        (StreamingStartingStrategy.TABLE_SCAN_THEN_INCREMENTAL, [1, 2, 3, 4]),
        (StreamingStartingStrategy.INCREMENTAL_FROM_LATEST_SNAPSHOT, [4]),
        (StreamingStartingStrategy.INCREMENTAL_FROM_EARLIEST_SNAPSHOT, [1, 2, 3, 4]),
    ],
)
def test_each_row_is_read_once_from_where_the_strategy_begins(
    numbers: Numbers, strategy: StreamingStartingStrategy, first: list[int]
) -> None:
    for batch in ((1, 2), (3,), (4,)):
        numbers.append(*batch)
    source = numbers.source(streaming_starting_strategy=strategy)
    assert source.boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    enumerator = source.create_enumerator(2)
    assert read_available(source, enumerator) == first
    numbers.append(5)
    assert read_available(source, enumerator, now=99) == [], "the interval is not over"
    numbers.append(6, 7)
    assert read_available(source, enumerator, now=100) == [5, 6, 7]
    assert not enumerator.finished()


def test_a_restored_source_continues_and_a_replay_reads_the_same(numbers: Numbers) -> None:
    numbers.append(1)
    source = numbers.source()
    enumerator = source.create_enumerator(1)
    before = enumerator.snapshot()
    ranges = plan(enumerator)
    numbers.append(2)
    assert read(source, ranges) == read(source, ranges) == [1]
    replaying = source.create_enumerator(1, before)
    replaying.replayed(ranges)
    restored = source.create_enumerator(1, enumerator.snapshot())
    assert read_available(source, replaying) == read_available(source, restored) == [2]


def test_a_source_begins_at_a_snapshot_or_a_time(numbers: Numbers) -> None:
    numbers.append(1)
    second = numbers.append(2)
    numbers.append(3)
    with numbers.loader.open_table() as (_, table):
        time = table.snapshot_by_id(second).timestamp_ms
    for settings in ({"start_snapshot_id": second}, {"start_snapshot_timestamp": time}):
        source = numbers.source(**settings)
        assert read_available(source, source.create_enumerator(1)) == [2, 3]
    source = numbers.source(start_snapshot_timestamp=time + 10**9)
    enumerator = source.create_enumerator(1)
    assert read_available(source, enumerator) == []
    numbers.append(4)
    assert read_available(source, enumerator, now=100) == [4]
    with pytest.raises(NoSuchSnapshot, match=f"no snapshot 7; hint: .*{second}"):
        plan(numbers.source(start_snapshot_id=7).create_enumerator(1))


def test_an_empty_table_is_followed(numbers: Numbers) -> None:
    source = numbers.source()
    enumerator = source.create_enumerator(1)
    assert read_available(source, enumerator) == []
    numbers.append(1)
    assert read_available(source, enumerator, now=100) == [1]


def test_snapshots_that_change_rows_are_refused_or_skipped(numbers: Numbers) -> None:
    numbers.append(1, 2)
    careful, skipping = numbers.source(), numbers.source(skip_overwrite_snapshots=True)
    enumerators = [(source, source.create_enumerator(1)) for source in (careful, skipping)]
    for source, enumerator in enumerators:
        assert read_available(source, enumerator) == [1, 2]
    numbers.change("delete", "n = 1")
    numbers.append(3)
    with pytest.raises(NotAppendOnly, match=r"changes or deletes rows .*streaming-skip-overwrite-snapshots"):
        plan(enumerators[0][1], now=100)
    assert read_available(*enumerators[1], now=100) == [3]


def test_an_expired_history_is_an_error(numbers: Numbers) -> None:
    numbers.append(1)
    source = numbers.source()
    enumerator = source.create_enumerator(1)
    (part,) = plan(enumerator)
    second = numbers.append(2)
    numbers.append(3)
    first = int(enumerator.snapshot()["version"])
    with numbers.loader.open_table() as (_, table):
        table.maintenance.expire_snapshots().by_ids([first, second]).commit()
    with pytest.raises(FileGone):
        read(source, [part])
    with pytest.raises(SnapshotExpired, match=f"no snapshot after {first}"):
        plan(enumerator, now=100)


@pytest.fixture
def options(numbers: Numbers) -> str:
    return (
        "'connector' = 'iceberg', 'catalog-name' = 'test', 'catalog-database' = 'shop', 'catalog-table' = 'numbers', "
        f"'catalog-type' = 'sql', 'uri' = '{numbers.properties['uri']}', "
        f"'warehouse' = '{numbers.properties['warehouse']}'"
    )


def test_a_query_follows_a_table(numbers: Numbers, options: str) -> None:
    numbers.append(1)
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.execute_sql(f"CREATE TABLE numbers (n BIGINT) WITH ({options})")
    query = (
        "SELECT n FROM numbers /*+ OPTIONS('streaming' = 'true', 'monitor-interval' = '5 ms', "
        "'starting-strategy' = 'incremental_from_earliest_snapshot') */"
    )
    with env.execute_sql(query).collect() as rows:
        found: Iterator[Any] = iter(rows)
        assert next(found)[0] == 1
        numbers.append(2, 3)
        assert sorted(next(found)[0] for _ in range(2)) == [2, 3]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("'monitor-interval' = '5 s'", "'monitor-interval' needs 'streaming' = 'true'"),
        ("'streaming' = 'true', 'snapshot-id' = '1'", "'snapshot-id' reads one snapshot"),
        (
            "'streaming' = 'true', 'starting-strategy' = 'INCREMENTAL_FROM_SNAPSHOT_ID'",
            "'start-snapshot-id' is missing",
        ),
        ("'streaming' = 'true', 'starting-strategy' = 'latest'", "option 'starting-strategy' must be"),
    ],
)
def test_options_that_do_not_fit_are_refused(numbers: Numbers, options: str, given: str, message: str) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.execute_sql(f"CREATE TABLE numbers (n BIGINT) WITH ({options}, {given})")
    with pytest.raises(SqlError, match=message):
        env.execute_sql("SELECT n FROM numbers")
