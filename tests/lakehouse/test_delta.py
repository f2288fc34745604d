"""Delta tables: one commit for each checkpoint, however often it is tried; the rows that are read equal those
written."""

from __future__ import annotations

import datetime
import json
import os
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from millstream.common import Configuration, Row, RowKind, Types, WatermarkStrategy
from millstream.connector.sink import WriterContext
from millstream.connector.source import Budget, ReaderContext, SplitRange
from millstream.connectors.lakehouse.commits import CommittedByAnother
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.delta import DeltaSink, DeltaSource
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.errors import UserError
from millstream.times import Instant

deltalake = pytest.importorskip("deltalake")

ROWS = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])
KINDS = Types.ROW_NAMED(
    ["l", "i", "d", "n", "t", "b", "z", "day", "raw", "list", "map", "inner"],
    [
        *(Types.LONG(), Types.SHORT(), Types.DOUBLE(), Types.BIG_DEC(), Types.STRING(), Types.BOOLEAN()),
        *(Types.INSTANT(), Types.SQL_DATE(), Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.LIST(Types.INT())),
        *(Types.MAP(Types.STRING(), Types.INT()), Types.ROW_NAMED(["x"], [Types.INT()])),
    ],
)


@pytest.fixture
def location(tmp_path):
    return str(tmp_path / "table")


def context(epoch=1, subtask=0, attempt="0-a"):
    return WriterContext("job", "sink", subtask, 2, epoch, attempt, 1_700_000_000_000)


def written(sink, rows, **where):
    writer = sink.create_writer(context(**where))
    writer.write(rows, None)
    staged = writer.prepare_commit()
    writer.close()
    return json.loads(json.dumps(staged))


def names(location):
    return sorted(deltalake.DeltaTable(location).to_pyarrow_table().column("name").to_pylist())


def versions(location):
    return deltalake.DeltaTable(location).version()


def test_rows_are_in_the_table_once_after_the_commit(location):
    sink = DeltaSink.for_row_data(location, ROWS).build()
    sink.check()
    staged = written(sink, [Row(1, "a"), Row(2, "b")]) + written(sink, [Row(3, "c")], epoch=2, subtask=1)
    assert names(location) == []
    for _ in range(3):
        sink.create_committer().commit(7, staged)
        assert names(location) == ["a", "b", "c"]
    assert versions(location) == 1
    entry = deltalake.DeltaTable(location).history(1)[0]
    assert entry["millstream.checkpoint"] == "7"
    sink.create_committer().commit(8, written(sink, [Row(4, "d")], epoch=3))
    sink.create_committer().commit(7, staged)
    assert names(location) == ["a", "b", "c", "d"]


def test_a_commit_is_recognised_after_its_files_were_compacted(location):
    sink = DeltaSink.for_row_data(location, ROWS).build()
    sink.check()
    staged = [written(sink, [Row(n, str(n))], epoch=n) for n in (1, 2)]
    for number, each in enumerate(staged):
        sink.create_committer().commit(number, each)
    deltalake.DeltaTable(location).optimize.compact()
    for number, each in enumerate(staged):
        sink.create_committer().commit(number, each)
    assert names(location) == ["1", "2"]


def test_only_the_same_attempt_counts_as_committed(location, caplog):
    sink = DeltaSink.for_row_data(location, ROWS).build()
    sink.check()
    first, later = written(sink, [Row(1, "a")]), written(sink, [Row(2, "b")], epoch=2)
    other = written(sink, [Row(1, "c")], attempt="1-a")
    sink.create_committer().commit(1, first)
    for _ in range(2):
        with pytest.raises(CommittedByAnother, match=r"1 files up to epoch 1 .* has committed up to epoch"):
            sink.create_committer().commit(1, other)
        assert "committed again" not in caplog.text
        sink.create_committer().commit(2, later)  # then a later epoch is the last one
    assert names(location) == ["a", "b"]
    assert "checkpoint 2: 1 files with 1 rows were committed to" in caplog.text
    begun_anew = sink.create_writer(replace(context(attempt="1-a"), job="job-two"))
    begun_anew.write([Row(1, "c")], None)
    sink.create_committer().commit(1, begun_anew.prepare_commit())
    assert names(location) == ["a", "b", "c"]


def test_a_commit_is_recognised_after_the_history_was_cleaned_up(location):
    sink = DeltaSink.for_row_data(location, ROWS).build()
    sink.check()
    staged = [written(sink, [Row(n, str(n))], epoch=n) for n in (1, 2, 3)]
    for each in staged:
        sink.create_committer().commit(1, each)
    properties = {"delta.logRetentionDuration": "interval 0 days"}
    deltalake.DeltaTable(location).alter.set_table_properties(properties)
    deltalake.DeltaTable(location).optimize.compact()
    deltalake.DeltaTable(location).create_checkpoint()
    for entry in sorted(Path(location, "_delta_log").glob("*.json"))[:-1]:
        entry.unlink()
    sink.create_committer().commit(1, staged[2])
    assert names(location) == ["1", "2", "3"]
    with pytest.raises(CommittedByAnother):  # nothing proves that it was committed, so it is not skipped silently
        sink.create_committer().commit(1, staged[1])


@pytest.mark.parametrize("compacted", [False, True])
def test_a_commit_is_recognised_after_its_transaction_identifier_expired(location, monkeypatch, compacted):
    """Another writer has cleaned the table up, with delta.setTransactionRetentionDuration."""
    sink = DeltaSink.for_row_data(location, ROWS).build()
    sink.check()
    staged = [written(sink, [Row(n, str(n))], epoch=n) for n in range(1, 4)]
    for number, each in enumerate(staged[:2]):
        sink.create_committer().commit(number, each)
    if compacted:
        deltalake.DeltaTable(location).optimize.compact()
    monkeypatch.setattr(deltalake.DeltaTable, "transaction_version", lambda table, name: None)
    for number, each in enumerate(staged[:2]):
        sink.create_committer().commit(number, each)
    assert names(location) == ["1", "2"]
    sink.create_committer().commit(3, staged[2])
    assert names(location) == ["1", "2", "3"]


def test_aborted_output_is_removed(location):
    sink = DeltaSink.for_row_data(location, ROWS).build()
    sink.check()
    staged = written(sink, [Row(1, "a")])
    assert os.path.exists(f"{location}/{staged[0]['path']}")
    sink.create_committer().abort(staged)
    sink.create_committer().abort(staged)
    writer = sink.create_writer(context())
    writer.write([Row(1, "a")], None)
    writer.prepare_commit()
    writer.abort()
    assert [name for name in os.listdir(location) if name.endswith("parquet")] == []
    with pytest.raises(UserError, match="does not name a file"):
        sink.create_committer().commit(1, [{**staged[0], "path": "../other/x.parquet"}])


def test_a_commit_that_failed_or_whose_response_was_lost_is_retried(location, monkeypatch):
    sink = DeltaSink.for_row_data(location, ROWS).build()
    sink.check()
    real = deltalake.DeltaTable.create_write_transaction
    staged = written(sink, [Row(1, "a")])
    for before in (True, False):

        def broken(table, *arguments, before=before, **named):
            if not before:
                real(table, *arguments, **named)
            msg = "the network is gone"
            raise OSError(msg)

        monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", broken)
        if before:
            with pytest.raises(Exception, match="the network is gone"):
                sink.create_committer().commit(1, staged)
            assert names(location) == []
        else:
            sink.create_committer().commit(1, staged)
    monkeypatch.undo()
    sink.create_committer().commit(1, staged)
    assert names(location) == ["a"]
    assert versions(location) == 1


def job(*, records=10, parallelism=2):
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.interval", "1 ms")
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.delay", "1 ms")
    configuration.set_string("restart-strategy.fixed-delay.attempts", "3")
    configuration.set_string("millstream.epoch.max-records", str(records))
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)


def test_a_job_writes_partitions_and_another_reads_them(location):
    env = job()
    parts = Types.ROW_NAMED(
        ["id", "name", "part", "day"], [Types.LONG(), Types.STRING(), Types.STRING(), Types.SQL_DATE()]
    )
    days = [datetime.date(2024, 1, 1), None]
    rows = [Row(n, f"n{n}", ["x/y", None, "z"][n % 3], days[n % 2]) for n in range(30)]
    env.from_collection(rows, parts).sink_to(
        DeltaSink.for_row_data(location, parts).with_partition_columns("part", "day").build()
    )
    env.execute()
    assert sorted(deltalake.DeltaTable(location).to_pyarrow_table().column("id").to_pylist()) == list(range(30))
    env = job()
    source = DeltaSource.for_bounded_row_data(location).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "table")
    assert sorted(map(list, stream.execute_and_collect())) == sorted(map(list, rows))
    some = DeltaSource.for_bounded_row_data(location).column_names("part", "id").build()
    stream = job().from_source(some, WatermarkStrategy.no_watermarks(), "table")
    assert sorted((row.id, row.part) for row in stream.execute_and_collect()) == [(row[0], row[2]) for row in rows]


def test_every_type_survives_a_round_trip(location):
    row = Row(
        *(1, 2, 0.5, Decimal("1.100000000000000000"), "é", True, Instant(-1, 500_000_000), datetime.date(1960, 2, 29)),
        *(b"\0\xff", [1, None], {"a": 1}, Row(x=7)),
    )
    rows = [row, Row(*[None] * 12)]
    env = job()
    env.from_collection(rows, KINDS).sink_to(DeltaSink.for_row_data(location, KINDS).build())
    env.execute()
    source = DeltaSource.for_bounded_row_data(location).build()
    found = job().from_source(source, WatermarkStrategy.no_watermarks(), "table").execute_and_collect()
    assert sorted(map(list, found), key=str) == sorted(map(list, rows), key=str)


class Reading:
    """Runs a source without a job; plans and positions pass through JSON."""

    def __init__(self, source):
        self.source, self.enumerator, self.log = source, source.create_enumerator(2), []
        self.reader = source.create_reader(ReaderContext(0, 1, 2))

    def epoch(self):
        planned = [
            SplitRange.from_json(json.loads(json.dumps(p.to_json()))) for p in self.enumerator.plan(Budget(1, 1, 0))
        ]
        self.log.append(planned)
        return [
            row["name"]
            for part in planned
            for read in self.reader.read(part)
            for row in self.source.type_info().from_arrow(read.values)
        ]

    def restart(self, replay):
        state = json.loads(json.dumps(self.enumerator.snapshot()))
        self.enumerator = self.source.create_enumerator(2, None if replay else state)
        for planned in self.log if replay else ():
            self.enumerator.replayed(planned)
        assert self.enumerator.snapshot() == state


@pytest.mark.parametrize("replay", [False, True])
def test_a_continuous_source_reads_added_rows_once(location, replay):
    sink = DeltaSink.for_row_data(location, ROWS).build()
    sink.check()
    add = lambda n: sink.create_committer().commit(n, written(sink, [Row(n, str(n))], epoch=n))  # noqa: E731
    add(1)
    add(2)
    reading = Reading(DeltaSource.for_continuous_row_data(location).build())
    found = []
    for step in range(12):
        found += reading.epoch()
        if step == 2:
            add(3)
            deltalake.DeltaTable(location).optimize.compact()  # moves rows, adds none
            add(4)
        reading.restart(replay)
    assert sorted(found) == ["1", "2", "3", "4"]
    assert not reading.enumerator.finished()
    deltalake.DeltaTable(location).delete("id = 4")
    with pytest.raises(UserError, match="deletes rows"):
        reading.epoch()


def test_an_older_version_is_read(location):
    sink = DeltaSink.for_row_data(location, ROWS).build()
    sink.check()
    for n in (1, 2, 3):
        sink.create_committer().commit(n, written(sink, [Row(n, str(n))], epoch=n))
    reading = Reading(DeltaSource.for_bounded_row_data(location).version_as_of(2).build())
    found = []
    while not reading.enumerator.finished():
        found += reading.epoch()
        reading.restart(True)
    assert sorted(found) == ["1", "2"]


def test_a_crash_of_the_job_duplicates_nothing(location, monkeypatch):
    env = job()
    real, calls = deltalake.DeltaTable.create_write_transaction, []

    def sometimes(table, *arguments, **named):
        calls.append(1)
        if len(calls) == 2:
            msg = "gone before"
            raise OSError(msg)
        real(table, *arguments, **named)

    monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", sometimes)
    numbers = env.from_source(NumberSequenceSource(1, 40), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.map(lambda n: Row(n, f"n{n:02d}"), ROWS).sink_to(DeltaSink.for_row_data(location, ROWS).build())
    env.execute()
    assert names(location) == [f"n{n:02d}" for n in range(1, 41)]
    assert len(calls) > 2


def test_unsupported_types_and_tables_are_refused(location):
    with pytest.raises(UserError, match="cannot hold"):
        DeltaSink.for_row_data(location, Types.ROW_NAMED(["x"], [Types.PICKLED_BYTE_ARRAY()])).build()
    deltalake.write_deltalake(location, pa.table({"id": [1], "name": [2.0]}))
    sink = DeltaSink.for_row_data(location, ROWS).build()
    with pytest.raises(UserError, match="the table has"):
        sink.check()
    with pytest.raises(UserError, match="can only append"):
        written(sink, [Row.of_kind(RowKind.DELETE, 1, "a")])
    with pytest.raises(UserError, match="has no column x"):
        DeltaSource.for_bounded_row_data(location).column_names("x").build()
