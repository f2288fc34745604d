"""Upserts and deletions by primary key: one commit for each checkpoint, applied once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from millstream.cluster.job_events import CheckpointDone
from millstream.common import Row, Types, WatermarkStrategy
from millstream.connector.sink import WriterContext
from millstream.connectors.lakehouse import delta_changes, delta_sink, iceberg_changes, iceberg_commits, iceberg_sink
from millstream.connectors.lakehouse.changes import KeyIsNull, UnsuitableKey
from millstream.connectors.lakehouse.commits import CommittedByAnother
from millstream.datastream.connectors.delta import DeltaSink
from millstream.datastream.connectors.iceberg import IcebergSink, TableLoader
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.errors import UserError
from millstream.job.job_status import JobStatus
from millstream.sql.connectors.simple import register_values
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.types.row import RowKind
from millstream_chaos.simulation import Setup, World, run
from millstream_chaos.storage.faulty_files import SimulatedCrash

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
pytest.importorskip("sqlalchemy")

ROWS = Types.ROW_NAMED(
    ["id", "part", "name", "tags"], [Types.LONG(), Types.STRING(), Types.STRING(), Types.LIST(Types.LONG())]
)


@dataclass(frozen=True)
class Table:
    """A table of one of the formats."""

    kind: str
    path: Path

    @property
    def loader(self) -> TableLoader:
        catalog = {"type": "sql", "uri": f"sqlite:///{self.path}/c.db", "warehouse": f"file://{self.path}/warehouse"}
        return TableLoader.from_catalog("test", catalog, "shop.items")

    def sink(self, *key: str, row_type: Any = ROWS, by: tuple[str, ...] = ()) -> Any:
        if self.kind == "delta":
            builder = DeltaSink.for_row_data(f"{self.path}/table", row_type).with_partition_columns(*by)
            made: Any = builder.with_primary_key(*key).build()
        else:
            built = IcebergSink.for_row(self.loader, row_type).create_table_if_missing(*by)
            made = built.equality_field_columns(*key).build()
        made.check()
        return made

    def rows(self) -> list[dict[str, Any]]:
        if self.kind == "delta":
            read = deltalake.DeltaTable(f"{self.path}/table").to_pyarrow_table()
        else:
            with self.loader.open_table() as (_, table):
                read = table.scan().to_arrow()
        return sorted(read.to_pylist(), key=lambda row: str(row["id"]))

    def names(self) -> dict[Any, str]:
        rows = self.rows()
        names = {row["id"]: row["name"] for row in rows}
        assert len(names) == len(rows), "a key has one row"
        return names

    def commits(self) -> int:
        if self.kind == "delta":
            return int(deltalake.DeltaTable(f"{self.path}/table").version())
        with self.loader.open_table() as (_, table):
            return len(table.metadata.snapshots)

    def staged(self) -> list[Path]:
        return list(self.path.rglob("_changes/*.parquet"))


@pytest.fixture(params=["delta", "iceberg"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return Table(request.param, tmp_path)


def change(kind: str, number: int, name: str | None = None, part: str = "x") -> Row:
    row = Row(number, part, name, None if name is None else [number])
    row.set_row_kind(
        {"+I": RowKind.INSERT, "-U": RowKind.UPDATE_BEFORE, "+U": RowKind.UPDATE_AFTER, "-D": RowKind.DELETE}[kind]
    )
    return row


def write(sink: Any, rows: list[Row], epoch: int = 1, subtask: int = 0, attempt: str = "0-a") -> list[Any]:
    writer = sink.create_writer(WriterContext("job", "sink", subtask, 2, epoch, attempt, 0))
    for row in rows:
        writer.write([row], None)
    staged = writer.prepare_commit()
    writer.close()
    return json.loads(json.dumps(staged))


@pytest.mark.parametrize("by", [(), ("part",)])
def test_the_last_change_of_each_key_is_in_the_table(table: Table, by: tuple[str, ...]) -> None:
    sink = table.sink("id", by=by)
    committer = sink.create_committer()
    first = [change("+I", 1, "a"), change("+U", 1, "b"), change("+I", 2, "b", "y"), change("+I", 3, "c")]
    committer.commit(1, write(sink, [*first, change("-D", 4)]))
    assert table.names() == {1: "b", 2: "b", 3: "c"}
    before = table.commits()
    # several epochs and subtasks in one checkpoint, in any order
    later = write(sink, [change("-D", 1), change("+I", 5, "e")], epoch=3)
    earlier = write(sink, [change("-U", 1, "b"), change("+U", 1, "z"), change("-D", 5)], epoch=2)
    moved = write(sink, [change("+U", 2, "B", "x")], epoch=2, subtask=1)
    staged = [*later, *moved, *earlier]
    for _ in range(3):
        sink.create_committer().commit(2, staged)  # a recovery repeats the commit
        assert table.names() == {2: "B", 3: "c", 5: "e"}
    assert table.commits() == before + 1
    assert not table.staged()
    assert next(row for row in table.rows() if row["id"] == 2) == {"id": 2, "part": "x", "name": "B", "tags": [2]}


def test_deletions_of_rows_that_do_not_exist_are_committed_once(table: Table) -> None:
    sink = table.sink("id")
    sink.create_committer().commit(1, write(sink, [change("+I", 1, "a")]))
    nothing = write(sink, [change("-D", 7)], epoch=2)
    sink.create_committer().commit(2, nothing)
    sink.create_committer().commit(2, nothing)
    assert table.names() == {1: "a"}
    with pytest.raises(CommittedByAnother):
        sink.create_committer().commit(2, write(sink, [change("-D", 1)], epoch=2, attempt="0-b"))
    assert table.names() == {1: "a"}


def test_a_key_of_several_columns_of_any_type(table: Table) -> None:
    types = [Types.LONG(), Types.STRING(), Types.SQL_DATE(), Types.INSTANT(), Types.BIG_DEC(), Types.BOOLEAN()]
    row_type = Types.ROW_NAMED(["id", "name", "day", "at", "price", "flag"], types)
    key = ("day", "at", "price", "flag", "name")
    sink = table.sink(*key, row_type=row_type)
    from decimal import Decimal

    from millstream.times import Instant

    def row(number: int, name: str, flag: bool = True) -> Row:
        return Row(number, name, date(2024, 1, 2), Instant(7, 1000), Decimal("1.5"), flag)

    sink.create_committer().commit(1, write(sink, [row(1, "a"), row(2, "b"), row(3, "a", False)]))
    gone = row(0, "b")
    gone.set_row_kind(RowKind.DELETE)
    sink.create_committer().commit(2, write(sink, [row(9, "a"), gone], epoch=2))
    assert [(each["id"], each["name"], each["flag"]) for each in table.rows()] == [(3, "a", False), (9, "a", True)]
    assert isinstance(table.rows()[0]["at"], datetime)


def test_rows_of_other_writers_stay(table: Table) -> None:
    sink, other = table.sink("id"), table.sink()
    other.create_committer().commit(1, write(other, [change("+I", 1, "a"), change("+I", 2, "b")], attempt="0-o"))
    writer = sink.create_writer(WriterContext("mine", "sink", 0, 1, 1, "0-a", 0))
    writer.write([change("-D", 1), change("+I", 3, "c")], None)
    sink.create_committer().commit(1, writer.prepare_commit())
    assert table.names() == {2: "b", 3: "c"}


def test_aborted_changes_and_rows_without_a_key_leave_nothing(table: Table) -> None:
    sink = table.sink("id")
    sink.create_committer().abort(write(sink, [change("+I", 1, "a")]))
    with pytest.raises(KeyIsNull, match="NULL in column id"):
        write(sink, [Row(None, "x", "a", None)])
    assert not table.staged()
    assert table.rows() == []
    with pytest.raises(UnsuitableKey, match="no column number"):
        table.sink("number")


@pytest.mark.parametrize("key", [(), ("id",)])
def test_two_drivers_that_commit_at_the_same_time_commit_once(
    table: Table, key: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other driver commits after this one has looked for the commit."""
    sink = table.sink(*key)
    staged = write(sink, [change("+I", 1, "a")])
    delta, iceberg = (delta_changes, iceberg_changes) if key else (delta_sink, iceberg_sink)
    module: Any = delta if table.kind == "delta" else iceberg
    look, calls = module.is_committed, []

    def look_and_be_overtaken(*arguments: Any) -> bool:
        calls.append(arguments)
        found = look(*arguments)
        if len(calls) == 1:
            sink.create_committer().commit(1, staged)
        return bool(found)

    monkeypatch.setattr(module, "is_committed", look_and_be_overtaken)
    monkeypatch.setattr(iceberg_commits, "is_committed", look_and_be_overtaken)
    sink.create_committer().commit(1, staged)
    assert len(calls) > 1
    assert table.names() == {1: "a"}


@pytest.mark.parametrize("key", [(), ("id",)])
def test_a_commit_is_retried_if_others_change_the_table(
    tmp_path: Path, key: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table("iceberg", tmp_path)
    sink, other = table.sink(*key), table.sink()
    set_mark, calls = iceberg_commits.set_mark, []

    def set_and_be_overtaken(*arguments: Any) -> dict[str, str]:
        calls.append(arguments)
        if len(calls) == 1:
            writer = other.create_writer(WriterContext("other", "sink", 0, 1, 1, "0-a", 0))
            writer.write([change("+I", 2, "b")], None)
            other.create_committer().commit(1, writer.prepare_commit())
        return set_mark(*arguments)

    monkeypatch.setattr(iceberg_commits, "set_mark", set_and_be_overtaken)
    sink.create_committer().commit(1, write(sink, [change("+I", 1, "a")]))
    assert table.names() == {1: "a", 2: "b"}
    assert len(calls) == 3


NUMBERS = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])
LAST = 40


@pytest.mark.parametrize("after", [2, 4])
def test_changes_are_applied_once_if_the_driver_dies_after_its_checkpoint(table: Table, after: int) -> None:
    def to_change(number: int) -> Row:
        row = Row(number % 7, str(number))
        if number % 5 == 0:
            row.set_row_kind(RowKind.DELETE)
        return row

    def program(environment: Any) -> Any:
        source = NumberSequenceSource(1, LAST)
        numbers = environment.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").set_parallelism(1)
        rows = numbers.uid("numbers").map(to_change, NUMBERS).uid("rows").set_parallelism(1)
        rows.sink_to(table.sink("id", row_type=NUMBERS)).uid("table").set_parallelism(1)
        return rows

    def die(observation: Any, _: Any) -> None:
        if isinstance(observation, CheckpointDone) and observation.epoch == after:
            raise SimulatedCrash

    def expected(last: int) -> dict[int, str]:
        names: dict[int, str] = {}
        for number in range(1, last + 1):
            names[number % 7] = str(number)
            if number % 5 == 0:
                del names[number % 7]
        return names

    setup = Setup(program, epoch_records=4, checkpoint_every=2)
    with World() as world:
        assert run(setup, world, listen=die).crashed
        assert table.names() == expected(4 * after)
        before = table.commits()
        assert run(setup, world).status is JobStatus.FINISHED
    assert table.names() == expected(LAST)
    assert table.commits() - before == (LAST - 4 * after) // 8
    assert not table.staged()


def test_a_query_with_updates_is_a_table(table: Table) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("millstream.epoch.max-records", "2")
    where = f"'connector' = 'delta', 'table-path' = '{table.path}/table'"
    if table.kind == "iceberg":
        properties = dict(table.loader.properties)
        where = (
            "'connector' = 'iceberg', 'catalog-name' = 'test', 'catalog-database' = 'shop', 'catalog-table' = 'items', "
            f"'catalog-type' = 'sql', 'uri' = '{properties['uri']}', 'warehouse' = '{properties['warehouse']}'"
        )
    register_values("words", [(word,) for word in ["a", "b", "a", "c", "a", "b"]])
    env.execute_sql("CREATE TABLE words (word STRING) WITH ('connector' = 'values', 'data-id' = 'words')")
    env.execute_sql(f"CREATE TABLE counts (word STRING, n BIGINT, PRIMARY KEY (word) NOT ENFORCED) WITH ({where})")
    env.execute_sql("INSERT INTO counts SELECT word, COUNT(*) FROM words GROUP BY word").wait()
    env.execute_sql("INSERT INTO counts VALUES ('c', 10)").wait()

    def rows() -> list[tuple[Any, ...]]:
        with env.execute_sql("SELECT word, n FROM counts").collect() as found:
            return sorted(tuple(row) for row in found)

    assert rows() == [("a", 3), ("b", 2), ("c", 10)]
    env.execute_sql("CREATE TABLE appended WITH ('write.upsert.enabled' = 'false') LIKE counts")
    with pytest.raises(UserError, match="update"):
        env.execute_sql("INSERT INTO appended SELECT word, COUNT(*) FROM words GROUP BY word")
    env.execute_sql(f"CREATE TABLE without_key (word STRING, n BIGINT) WITH ({where}, 'write.upsert.enabled' = 'true')")
    with pytest.raises(UserError, match="needs a primary key"):
        env.execute_sql("INSERT INTO without_key VALUES ('c', 1)")
