"""Every exactly-once mode, with a crash at every statement."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from millstream.common import Configuration, Row, Types, WatermarkStrategy
from millstream.connector.sink import WriterContext
from millstream.connectors.jdbc import commit_records
from millstream.connectors.jdbc.commit_records import CommittedByAnother, Gid, OutputLost
from millstream.connectors.jdbc.prepared import list_prepared, roll_back
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcSink,
)
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.errors import ExternalError, MillstreamError, UserError
from millstream.testing.postgres import postgres_server

ROWS = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])
ONCE = JdbcExecutionOptions.builder().with_max_retries(0).build()


def context(epoch=1, subtask=0, attempt="0-a", parallelism=1, recovered=0) -> WriterContext:
    return WriterContext("job", "sink", subtask, parallelism, epoch, attempt, 0, recovered=recovered)


def written(sink, rows, **where):
    writer = sink.create_writer(context(**where))
    writer.write(rows, None)
    staged = writer.prepare_commit()
    writer.close()
    return staged


@pytest.fixture
def items(database):
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, name text)")
    return lambda: database.execute("SELECT id, name FROM items ORDER BY id")


def prepared(database, **options):
    sql = "INSERT INTO items (id, name) VALUES (?, ?)"
    made = JdbcExactlyOnceOptions(**{"max_commit_attempts": 1, **options})
    return JdbcSink.exactly_once_sink(sql, ROWS, database.options, ONCE, made)


def staged(database, *, keys=("id",)):
    builder = JdbcSink.builder().with_table("items", ROWS, keys).with_staging()
    return builder.build_exactly_once(database.options, JdbcExactlyOnceOptions(max_commit_attempts=1))


BOTH = pytest.mark.parametrize(
    "make", [prepared, staged, lambda db: staged(db, keys=())], ids=["prepared", "upsert", "append"]
)


@BOTH
def test_rows_are_visible_once_after_the_commit(database, items, make):
    sink = make(database)
    sink.check()
    committables = written(sink, [Row(1, "a"), Row(2, "b")]) + written(sink, [Row(3, "c")], epoch=2)
    assert items() == []
    for _ in range(3):
        sink.create_committer().commit(7, committables)
        assert items() == [(1, "a"), (2, "b"), (3, "c")]


@BOTH
def test_aborted_output_is_removed(database, items, make):
    sink = make(database)
    committables = written(sink, [Row(1, "a")])
    writer = sink.create_writer(context(epoch=2))
    writer.write([Row(2, "b")], None)
    writer.abort()
    sink.create_committer().abort(committables)
    sink.create_committer().abort(committables)
    with pytest.raises(OutputLost):
        sink.create_committer().commit(1, committables)
    assert items() == []
    again = written(sink, [Row(1, "a")], attempt="1-a")
    sink.create_committer().commit(1, again)
    assert items() == [(1, "a")]


def test_deleted_staged_rows_are_detected(database, items):
    sink = staged(database)
    committables = written(sink, [Row(1, "a"), Row(2, "b")])
    database.execute("DELETE FROM millstream_staged_items WHERE id = 1")
    with pytest.raises(OutputLost, match="1 of its 2 rows"):
        sink.create_committer().commit(1, committables)
    assert items() == []


@BOTH
def test_an_epoch_that_another_attempt_has_committed_is_refused(database, items, make, caplog, monkeypatch):
    sink = make(database)
    first = written(sink, [Row(1, "a")])
    sink.create_committer().commit(1, first)
    sink.create_committer().commit(1, first)
    assert "1 of 1 transactions were committed before" in caplog.text
    other = written(sink, [Row(2, "b")], attempt="1-a", subtask=1)
    with pytest.raises(CommittedByAnother, match=r"1:1:1-a is not committed: .*:1:0:0-a of the same job is"):
        sink.create_committer().commit(1, other)
    monkeypatch.setattr(commit_records, "_EPOCHS_KEPT", 1)
    sink.create_committer().commit(2, written(sink, [Row(3, "c")], epoch=3))  # the proof of epoch 1 is deleted now
    gone = written(sink, [Row(4, "d")], attempt="1-a", subtask=1)
    with pytest.raises(CommittedByAnother, match="output up to epoch 2 of the same job is"):
        sink.create_committer().commit(1, gone)
    assert items() == [(1, "a"), (3, "c")]


@BOTH
def test_output_of_dead_attempts_is_removed_with_the_commit_of_their_epoch(database, items, make):
    sink = make(database)
    written(sink, [Row(10, "dead")], attempt="0-dead")
    later = written(sink, [Row(11, "later")], epoch=2, subtask=1, attempt="0-later")
    good = written(sink, [Row(1, "a")], attempt="0-good")
    sink.create_committer().commit(1, good)
    assert items() == [(1, "a")]
    sink.create_committer().commit(2, later)
    assert items() == [(1, "a"), (11, "later")]
    assert list_prepared(database.url) == []
    if make is not prepared:
        assert database.execute("SELECT count(*) FROM millstream_staged_items") == [(0,)]


def test_a_restarted_job_rolls_back_transactions_that_lock_its_rows(database, items):
    sink = prepared(database, timeout_sec=1)
    written(sink, [Row(1, "dead")], attempt="0-dead")
    same = sink.create_writer(context(attempt="0-other"))
    with pytest.raises(MillstreamError, match="locked by another transaction"):
        same.write([Row(1, "a")], None)  # the same generation: it may be the one that counts
    same.abort()
    rescaled = sink.create_writer(context(attempt="1-other"))
    with pytest.raises(MillstreamError, match="locked by another transaction"):
        rescaled.write([Row(1, "a")], None)  # nothing was recovered since: it waits for its checkpoint
    rescaled.abort()
    fresh = written(sink, [Row(1, "a")], attempt="1-x", recovered=1)
    assert [gid.attempt for gid in list_prepared(database.url)] == ["1-x"]
    sink.create_committer().commit(1, fresh)
    assert items() == [(1, "a")]


def test_commit_records_of_old_epochs_are_replaced_by_one(database, items):
    sink = prepared(database)
    old = written(sink, [Row(1, "a")], epoch=1)
    sink.create_committer().commit(1, old)
    new = written(sink, [Row(2, "b")], epoch=commit_records._EPOCHS_KEPT + 5)
    sink.create_committer().commit(2, new)
    assert [gid for (gid,) in database.execute(f"SELECT gid FROM {commit_records.TABLE} ORDER BY gid")] == [
        "",
        new[0]["gid"],
    ]
    sink.create_committer().commit(1, old)
    unknown = replace(Gid.parse(new[0]["gid"]), epoch=commit_records._EPOCHS_KEPT + 6)
    with pytest.raises(OutputLost):
        sink.create_committer().commit(3, [{"gid": str(unknown)}])
    assert items() == [(1, "a"), (2, "b")]


def test_a_server_without_prepared_transactions_is_refused():
    with postgres_server(max_prepared_transactions="0", wal_level="replica", max_wal_senders="0") as server:
        server.execute("CREATE TABLE items (id bigint PRIMARY KEY, name text)")
        options = JdbcConnectionOptions(server.jdbc_url)
        sink = JdbcSink.exactly_once_sink("INSERT INTO items VALUES (?, ?)", ROWS, options)
        with pytest.raises(UserError, match="max_prepared_transactions is 0") as refusal:
            sink.check()
        assert "postgresql.conf" in str(refusal.value)
        sink.create_committer().close()


def test_too_many_prepared_transactions_are_named(database, items, server):
    sink = prepared(database)
    most = int(server.execute("SHOW max_prepared_transactions")[0][0])
    for number in range(most):
        written(sink, [Row(number, "x")], epoch=number)
    with pytest.raises(MillstreamError, match="as many prepared transactions"):
        written(sink, [Row(most, "x")], epoch=most)


def rows_of(epoch, subtask):
    return [Row(epoch * 10 + subtask * 4 + n, f"{epoch}/{subtask}") for n in range(4)]


def run_epochs(sink, checkpoints):
    """Act as a JobMaster: epochs of two subtasks, a commit after each checkpoint, and replay after a failure."""
    generation, done, durable = 0, 0, []
    staged, epoch, recovered = [], 1, True
    while epoch <= max(checkpoints) or not recovered:
        committer = sink.create_committer()
        try:
            if not recovered:
                committer.commit(done, durable)
                recovered = True
                continue
            for subtask in (0, 1):
                where = {"attempt": f"{generation}-x", "recovered": generation, "epoch": epoch, "subtask": subtask}
                staged += written(sink, rows_of(epoch, subtask), **where)
            if epoch in checkpoints:
                done, durable, staged = epoch, staged, []
                committer.commit(done, durable)
            epoch += 1
        except ExternalError:
            generation += 1
            with contextlib.suppress(ExternalError):
                committer.abort(staged)
            staged, epoch, recovered = [], done + 1, False
        finally:
            committer.close()


@pytest.mark.parametrize("make", [prepared, staged])
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_statement_loses_and_duplicates_nothing(database, items, faults, make, after):
    """The primary key refuses repeated rows; visible rows are read from the database."""
    sink = make(database)
    sink.check()
    expected = [(row[0], row[1]) for epoch in (1, 2) for subtask in (0, 1) for row in rows_of(epoch, subtask)]
    broken = []
    while True:
        for table in ("items", commit_records.TABLE):
            database.execute(f"TRUNCATE {table}")
        faults.arm(len(broken), after=after)
        run_epochs(sink, checkpoints=(1, 2))
        at = faults.broken
        faults.disarm()
        assert items() == sorted(expected), at
        assert list_prepared(database.url) == [], at
        if at is None:
            break
        broken.append(at)
    words = " ".join(broken)
    assert len(broken) > 30
    assert ("PREPARE TRANSACTION" in words and "COMMIT PREPARED" in words) or ("COPY" in words and "COMMIT" in words)


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_crashes_of_a_recovery_lose_and_duplicate_nothing(database, items, faults, make, seed):
    sink = make(database)
    sink.check()
    faults.arm_often(seed, 1 / 40)
    run_epochs(sink, checkpoints=(2, 3, 5, 6))
    faults.disarm()
    expected = [(row[0], row[1]) for epoch in range(1, 7) for subtask in (0, 1) for row in rows_of(epoch, subtask)]
    assert items() == sorted(expected)
    assert list_prepared(database.url) == []
    assert faults.breaks > 2


def test_transactions_of_a_dead_job_can_be_listed_and_rolled_back(database, items):
    written(prepared(database), [Row(1, "a")])
    (left,) = list_prepared(database.url)
    assert (left.owner, left.epoch) == ("millstream:job:sink", 1)
    roll_back(database.url, [left, left])
    assert list_prepared(database.url) == []


@BOTH
@pytest.mark.parametrize("at", [3, 14, 25, 31])
def test_a_job_recovers_from_a_broken_connection(database, items, faults, make, at, monkeypatch):
    sink = make(database)
    sink.check()
    monkeypatch.setattr(JdbcSink, "check", lambda sink: None)  # errors before the start of the job are raised
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.interval", "1 ms")
    configuration.set_string("millstream.epoch.max-records", "10")
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.delay", "1 ms")
    configuration.set_string("restart-strategy.fixed-delay.attempts", "5")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    numbers = env.from_source(NumberSequenceSource(1, 20), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.map(lambda n: Row(n, f"n{n}"), ROWS).sink_to(sink)
    faults.arm(at, after=True)
    env.execute()
    assert faults.broken is not None
    assert items() == [(n, f"n{n}") for n in range(1, 21)]
    assert list_prepared(database.url) == []
