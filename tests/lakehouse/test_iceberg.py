"""Iceberg tables: one snapshot for each checkpoint, however often it is tried; the rows that are read equal those
written."""

from __future__ import annotations

import datetime
import json
import os
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from millstream.common import Configuration, Row, Types, WatermarkStrategy
from millstream.connector.sink import WriterContext
from millstream.connectors.lakehouse import iceberg_commits
from millstream.connectors.lakehouse.commits import CommittedByAnother
from millstream.connectors.lakehouse.iceberg_catalog import TableLoader
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.iceberg import IcebergSink, IcebergSource
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.errors import UserError
from millstream.times import Instant

pyiceberg = pytest.importorskip("pyiceberg")
pytest.importorskip("sqlalchemy")

ROWS = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])


@pytest.fixture
def loader(tmp_path):
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    return TableLoader.from_catalog("test", properties, "shop.items")


def context(epoch=1, subtask=0, attempt="0-a"):
    return WriterContext("job", "sink", subtask, 2, epoch, attempt, 0)


def written(sink, rows, **where):
    writer = sink.create_writer(context(**where))
    writer.write(rows, None)
    staged = writer.prepare_commit()
    writer.close()
    return json.loads(json.dumps(staged))


def made(loader, *partition_by):
    sink = IcebergSink.for_row(loader, ROWS).create_table_if_missing(*partition_by).build()
    sink.check()
    return sink


def snapshots(loader):
    with loader.open_table() as (_, table):
        return [each.summary for each in table.metadata.snapshots]


def names(loader):
    with loader.open_table() as (_, table):
        return sorted(table.scan().to_arrow().column("name").to_pylist())


def test_rows_are_in_the_table_once_after_the_commit(loader):
    sink = made(loader)
    staged = written(sink, [Row(1, "a"), Row(2, "b")]) + written(sink, [Row(3, "c")], epoch=2, subtask=1)
    assert names(loader) == []
    for _ in range(3):
        sink.create_committer().commit(7, staged)
        assert names(loader) == ["a", "b", "c"]
    (summary,) = snapshots(loader)
    assert summary["millstream.checkpoint"] == "7"
    sink.create_committer().commit(8, written(sink, [Row(4, "d")], epoch=3))
    sink.create_committer().commit(7, staged)
    assert names(loader) == ["a", "b", "c", "d"]


def test_only_the_same_attempt_counts_as_committed(loader, caplog):
    sink = made(loader)
    first, later = written(sink, [Row(1, "a")]), written(sink, [Row(2, "b")], epoch=2)
    other = written(sink, [Row(1, "c")], attempt="1-a")
    sink.create_committer().commit(1, first)
    for _ in range(2):
        with pytest.raises(CommittedByAnother, match=r"1 files up to epoch 1 .* has committed up to epoch"):
            sink.create_committer().commit(1, other)
        assert "committed again" not in caplog.text
        sink.create_committer().commit(2, later)
    assert names(loader) == ["a", "b"]
    assert "checkpoint 2: 1 files with 1 rows were committed to shop.items before" in caplog.text


def test_a_table_keeps_the_marks_of_a_bounded_number_of_jobs(loader, monkeypatch):
    monkeypatch.setattr(iceberg_commits, "_MAX_MARKS", 3)
    sink = made(loader)
    with loader.open_table() as (_, table), table.transaction() as transaction:
        transaction.set_properties({"millstream.epoch.old": "17", "another": "1"})  # as earlier releases wrote it
    staged = []
    for number in range(5):
        context_of_job = replace(context(), job=f"job{number}", now=number)
        writer = sink.create_writer(context_of_job)
        writer.write([Row(number, str(number))], None)
        staged.append(writer.prepare_commit())
        sink.create_committer().commit(1, staged[-1])
    with loader.open_table() as (_, table):
        kept = sorted(name for name in table.properties if name.startswith("millstream.epoch."))
        assert table.properties["another"] == "1"
    assert kept == [f"millstream.epoch.millstream:job{number}:sink" for number in (2, 3, 4)]
    sink.create_committer().commit(1, staged[-1])
    assert len(names(loader)) == 5


@pytest.mark.parametrize("proof", ["snapshot", "files"])
def test_a_commit_is_recognised_after_the_mark_of_its_job_expired(loader, monkeypatch, proof):
    monkeypatch.setattr(iceberg_commits, "_MAX_MARKS", 3)
    sink = made(loader)

    def commit_of(job, now, epoch=1):
        writer = sink.create_writer(replace(context(epoch), job=job, now=now))
        writer.write([Row(now, job)], None)
        staged = writer.prepare_commit()
        sink.create_committer().commit(epoch, staged)
        return staged

    first = commit_of("job", 0)
    for number in range(1, 5):
        commit_of(f"other{number}", number)
    with loader.open_table() as (_, table):
        assert "millstream.epoch.millstream:job:sink" not in table.properties
        if proof == "files":
            table.maintenance.expire_snapshots().by_id(table.metadata.snapshots[0].snapshot_id).commit()
        else:
            table.delete("name = 'job'")
    sink.create_committer().commit(1, first)
    others = [f"other{number}" for number in range(1, 5)]
    assert names(loader) == (["job", *others] if proof == "files" else others)
    commit_of("job", 9, epoch=2)
    assert len(names(loader)) == (6 if proof == "files" else 5)


def test_partly_committed_files_are_refused(loader):
    sink = made(loader)
    first, second = written(sink, [Row(1, "a")]), written(sink, [Row(2, "b")], epoch=2)
    sink.create_committer().commit(1, first)
    with loader.open_table() as (_, table), table.transaction() as transaction:
        transaction.remove_properties("millstream.epoch.millstream:job:sink")
    with pytest.raises(CommittedByAnother, match=r"2 files up to epoch 2 .* has committed up to epoch 1 "):
        sink.create_committer().commit(2, first + second)
    sink.create_committer().commit(2, second)
    assert names(loader) == ["a", "b"]


def test_a_commit_that_failed_or_whose_response_was_lost_is_retried(loader, monkeypatch):
    sink = made(loader)
    staged = written(sink, [Row(1, "a")])
    table_class = __import__("pyiceberg.table").table.Table
    real = table_class._do_commit
    for before in (True, False):

        def broken(table, *arguments, before=before, **named):
            if not before:
                real(table, *arguments, **named)
            msg = "the network is gone"
            raise OSError(msg)

        monkeypatch.setattr(table_class, "_do_commit", broken)
        with pytest.raises(Exception, match="the network is gone"):
            sink.create_committer().commit(1, staged)
        monkeypatch.undo()
        assert names(loader) == ([] if before else ["a"])
    sink.create_committer().commit(1, staged)
    assert names(loader) == ["a"]
    assert len(snapshots(loader)) == 1


def test_aborted_output_is_removed(loader):
    sink = made(loader)
    staged = written(sink, [Row(1, "a")])
    path = f"{sink.form.location.removeprefix('file://')}/{staged[0]['path']}"
    assert os.path.exists(path)
    sink.create_committer().abort(staged)
    assert not os.path.exists(path)


def job():
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.interval", "1 ms")
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.delay", "1 ms")
    configuration.set_string("restart-strategy.fixed-delay.attempts", "3")
    configuration.set_string("millstream.epoch.max-records", "20")
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)


def test_a_job_writes_and_another_reads(loader):
    env = job()
    numbers = env.from_source(NumberSequenceSource(1, 50), WatermarkStrategy.no_watermarks(), "numbers")
    sink = IcebergSink.for_row(loader, ROWS).create_table_if_missing().build()
    numbers.map(lambda n: Row(n, f"n{n:02d}"), ROWS).sink_to(sink)
    env.execute()
    assert names(loader) == [f"n{n:02d}" for n in range(1, 51)]
    source = IcebergSource.builder().table_loader(loader).build()
    found = job().from_source(source, WatermarkStrategy.no_watermarks(), "table").execute_and_collect()
    assert sorted((row.id, row.name) for row in found) == [(n, f"n{n:02d}") for n in range(1, 51)]
    with loader.open_table() as (_, table):
        first = table.metadata.snapshots[0].snapshot_id
        rows = int(table.metadata.snapshots[0].summary["added-records"])
        table.delete("id <= 10")
    old = IcebergSource.builder().table_loader(loader).snapshot_id(first).project("id").build()
    found = job().from_source(old, WatermarkStrategy.no_watermarks(), "table").execute_and_collect()
    assert len(list(found)) == rows < 50
    now = job().from_source(source, WatermarkStrategy.no_watermarks(), "table").execute_and_collect()
    assert sorted(row.id for row in now) == list(range(11, 51))


def test_every_type_survives_a_round_trip(loader):
    kinds = Types.ROW_NAMED(
        ["l", "i", "d", "n", "t", "b", "z", "day", "raw", "list"],
        [
            *(Types.LONG(), Types.INT(), Types.DOUBLE(), Types.BIG_DEC(), Types.STRING(), Types.BOOLEAN()),
            *(Types.INSTANT(), Types.SQL_DATE(), Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.LIST(Types.INT())),
        ],
    )
    row = Row(
        *(1, 2, 0.5, Decimal("1.100000000000000000"), "é", True, Instant(-1, 500_000_000)),
        *(datetime.date(1960, 2, 29), b"\0\xff", [1, None]),
    )
    rows = [row, Row(*[None] * 10)]
    env = job()
    sink = IcebergSink.for_row(loader, kinds).create_table_if_missing().build()
    env.from_collection(rows, kinds).sink_to(sink)
    env.execute()
    source = IcebergSource.builder().table_loader(loader).build()
    found = job().from_source(source, WatermarkStrategy.no_watermarks(), "table").execute_and_collect()
    assert sorted(map(list, found), key=str) == sorted(map(list, rows), key=str)


def test_a_partitioned_table_is_written_by_partition(loader):
    made(loader, "name")
    sink = IcebergSink.for_row(loader, ROWS).build()
    assert sink.form.partition_by == ("name",)
    staged = written(sink, [Row(n, f"p{n % 2}") for n in range(6)])
    assert len(staged) == 2
    sink.create_committer().commit(1, staged)
    with loader.open_table() as (_, table):
        assert len(table.scan("name = 'p1'").to_arrow()) == 3
        assert len(list(table.scan("name = 'p1'").plan_files())) == 1


def test_unsupported_types_and_tables_are_refused(loader):
    with pytest.raises(UserError, match=r"the catalog has no table shop\.items"):
        IcebergSink.for_row(loader, ROWS).build()
    with pytest.raises(UserError, match=r"partitioned by \['day'\]"):
        IcebergSink.for_row(loader, ROWS).create_table_if_missing("day").build()
    late = IcebergSink.for_row(loader, ROWS).create_table_if_missing("name").build()
    with loader.open_table() as (_, table):
        assert table is None  # it is made as the job starts
    made(loader)
    with pytest.raises(UserError, match="has changed since"):
        late.check()
    other = Types.ROW_NAMED(["id", "nome"], [Types.LONG(), Types.STRING()])
    with pytest.raises(UserError, match="the table has"):
        IcebergSink.for_row(loader, other).build()


def test_the_page_runs(loader, capsys):
    page = Path(__file__).parent.parent.parent / "docs" / "howto" / "lakehouse.md"
    (block,) = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    there = block.replace('{"type": "rest", "uri": "http://localhost:8181"}', repr(dict(loader.properties)))
    exec(compile(there, "<documentation>", "exec"), {"__name__": "__main__"})
    assert "[('ann', 1), ('bob', 2)]" in capsys.readouterr().out
