"""Savepoints of running jobs: taken, stopped with, and started from."""

from __future__ import annotations

import _thread
import os
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from millstream.checkpoint.savepoint import open_snapshot
from millstream.cluster.job_events import EpochDone
from millstream.cluster.savepoints import JobHasEnded, NoSavepointDirectory, SavepointFailed
from millstream.common import Types
from millstream.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from millstream.datastream.functions import KeyedProcessFunction
from millstream.datastream.state import ValueStateDescriptor
from millstream.errors import UserError
from millstream.job.job_status import JobStatus
from millstream.testing.feed import Feed
from millstream_chaos.outputs.visible_output import VisibleOutput, read_visible_rows
from millstream_chaos.storage.memory_files import MemoryFileSystem, Named

OUT = "/out"


class Count(KeyedProcessFunction):
    """Emits each key with its count so far, and again when event time reaches 1000."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        ctx.timer_service().register_event_time_timer(1000)
        yield value[0], count

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), f"timer at {self.count.value()}"


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


@pytest.fixture
def disk():
    made = MemoryFileSystem()
    made.make_dirs(OUT)
    named = Named.of(made)
    yield named
    named.unregister()


def start(env, feed, disk, **options):
    for key, value in options.items():
        env._configuration.set_string(f"execution.state-recovery.{key.replace('_', '-')}", value)
    build(env, feed, disk)
    return env.execute_async("counting")


def build(env, feed, disk):
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    stream = env.from_source(feed, times, "feed").uid("feed")
    stream.key_by(lambda value: value[0]).process(Count()).uid("count").sink_to(VisibleOutput(disk, OUT)).uid("out")


def rows(disk):
    return [eval(row) for row in read_visible_rows(disk, OUT)]


@pytest.mark.parametrize("form", ["CANONICAL", "NATIVE"])
@pytest.mark.parametrize("checkpoints", [True, False], ids=["checkpoints", "no checkpoints"])
def test_a_job_continues_where_it_was_stopped(environment, disk, form, checkpoints):
    feed = Feed.of(("a", 1), ("b", 2), ("a", 3))
    client = start(environment(checkpoints=checkpoints), feed, disk)
    path = client.stop_with_savepoint(False, format_type=form).result(60)
    assert client.get_job_status().result() is JobStatus.FINISHED
    feed.give(("a", 4), ("b", 5)).close()
    again = start(environment(parallelism=3), feed, disk, path=path)
    again.get_job_execution_result().result(60)
    assert rows(disk) == [
        ("a", "timer at 3"),
        ("a", 1),
        ("a", 2),
        ("a", 3),
        ("b", "timer at 2"),
        ("b", 1),
        ("b", 2),
    ]


def test_draining_fires_all_windows_and_a_job_can_continue_from_the_savepoint(environment, disk, eventually):
    feed = Feed.of(("a", 1), ("b", 2))
    client = start(environment(), feed, disk)
    eventually(lambda: len(rows(disk)) == 2)
    path = client.stop_with_savepoint(True).result(60)
    assert rows(disk) == [("a", "timer at 1"), ("a", 1), ("b", "timer at 1"), ("b", 1)]
    feed.give(("a", 3), ("a", 2000))
    again = start(environment(), feed, disk, path=path)
    eventually(lambda: ("a", "timer at 3") in rows(disk))  # event time has started again
    again.cancel().result(60)


def test_a_savepoint_of_a_running_job_does_not_disturb_it(environment, disk, eventually):
    feed = Feed.of(("a", 1))
    client = start(environment(), feed, disk)
    eventually(lambda: rows(disk) == [("a", 1)])
    paths = [client.trigger_savepoint(format_type=form).result(60) for form in ("canonical", "native")]
    feed.give(("a", 2)).close()
    client.get_job_execution_result().result(60)
    assert rows(disk) == [("a", "timer at 2"), ("a", 1), ("a", 2)]
    for path in paths:
        open_snapshot(path).verify()
        assert open_snapshot(path).metadata.committables == {}
    fork = MemoryFileSystem()
    fork.make_dirs(OUT)
    other = Named.of(fork)
    start(environment(), feed, other, path=paths[1]).get_job_execution_result().result(60)
    assert rows(other) == [("a", "timer at 2"), ("a", 2)]
    other.unregister()


def test_cancel_with_savepoint(environment, disk):
    feed = Feed.of(("a", 1))
    client = start(environment(), feed, disk)
    path = client.cancel_with_savepoint().result(60)
    client.wait(60)
    assert client.get_job_status().result() is JobStatus.CANCELED
    open_snapshot(path).verify()


def test_a_savepoint_can_be_moved(environment, disk, tmp_path):
    feed = Feed.of(("a", 1))
    path = start(environment(), feed, disk).stop_with_savepoint(False).result(60)
    moved = tmp_path / "elsewhere" / "kept"
    moved.parent.mkdir()
    os.rename(path, moved)
    feed.give(("a", 2)).close()
    start(environment(), feed, disk, path=str(moved)).get_job_execution_result().result(60)
    assert ("a", 2) in rows(disk)


def test_a_savepoint_can_be_read_by_any_parquet_reader(environment, disk, eventually):
    client = start(environment(), Feed.of(("a", 1), ("b", 2), ("a", 3)), disk)
    eventually(lambda: len(rows(disk)) == 3)
    path = client.stop_with_savepoint(False).result(60)
    found = {}
    for file in Path(path).glob("operators/count-*/user.count/*.parquet"):
        table = pq.read_table(file)
        found.update(zip(table.column("key").to_pylist(), table.column("value").to_pylist(), strict=True))
    assert found == {"a": 2, "b": 1}


def test_a_savepoint_needs_a_directory(environment, disk):
    env = environment()
    env._configuration.set_string("execution.checkpointing.savepoint-dir", "")
    client = start(env, Feed.of(), disk)
    with pytest.raises(NoSavepointDirectory):
        client.trigger_savepoint()
    client.cancel().result(60)


def test_a_savepoint_that_cannot_be_written_leaves_the_job_running(environment, disk, tmp_path, eventually):
    feed = Feed.of(("a", 1))
    client = start(environment(), feed, disk)
    (tmp_path / "file").write_text("in the way")
    for ask in (client.trigger_savepoint, lambda where: client.stop_with_savepoint(False, where)):
        with pytest.raises(SavepointFailed, match="could not be written"):
            ask(str(tmp_path / "file")).result(60)
    feed.give(("a", 2)).close()
    client.get_job_execution_result().result(60)
    assert rows(disk) == [("a", "timer at 2"), ("a", 1), ("a", 2)]


def test_no_savepoint_is_written_of_an_ended_job(environment, disk):
    feed = Feed.of(("a", 1))
    feed.close()
    client = start(environment(), feed, disk)
    client.get_job_execution_result().result(60)
    with pytest.raises(JobHasEnded, match="is FINISHED"):
        client.trigger_savepoint().result(60)


@pytest.fixture
def interruptible():
    """Processes in the background of a shell ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("where", ["savepoints", "file"], ids=["a place to write", "none"])
def test_an_interrupt_stops_the_job_with_a_savepoint_or_cancels_it(
    environment, disk, tmp_path, caplog, where, interruptible
):
    (tmp_path / "file").write_text("in the way")
    env = environment(millstream__on_interrupt="savepoint")
    env._configuration.set_string("execution.checkpointing.savepoint-dir", str(tmp_path / where))
    seen = []

    def interrupt(observation):
        if isinstance(observation, EpochDone) and not seen:
            seen.append(observation)
            _thread.interrupt_main()

    env.register_listener(interrupt)
    build(env, Feed.of(("a", 1)), disk)
    with pytest.raises(KeyboardInterrupt):
        env.execute("counting")
    made = list(tmp_path.glob("savepoints/savepoint-*"))
    assert len(made) == (where == "savepoints")
    assert ("was stopped with the savepoint" if made else "cancelled without a savepoint") in caplog.text


# ------------------------------------------------------------------------------------------------- claim and retention


def files_below(path):
    return sorted(str(each.relative_to(path)) for each in Path(path).rglob("*") if each.is_file())


@pytest.mark.parametrize("form", ["CANONICAL", "NATIVE"])
def test_no_claim_mode_never_changes_the_initial_snapshot(environment, disk, form):
    feed = Feed.of(("a", 1))
    path = start(environment(), feed, disk).stop_with_savepoint(False, format_type=form).result(60)
    before = {name: (Path(path) / name).read_bytes() for name in files_below(path)}
    feed.give(*(("a", number) for number in range(2, 40))).close()
    env = environment(execution__checkpointing__num_retained="1", millstream__epoch__max_records="1")
    start(env, feed, disk, path=path, claim_mode="NO_CLAIM").get_job_execution_result().result(60)
    assert {name: (Path(path) / name).read_bytes() for name in files_below(path)} == before


def test_claim_mode_deletes_the_initial_snapshot_when_it_is_subsumed(environment, disk, eventually):
    feed = Feed.of(("a", 1))
    path = start(environment(), feed, disk).stop_with_savepoint(False).result(60)
    env = environment(execution__checkpointing__num_retained="2")
    client = start(env, feed, disk, path=path, claim_mode="CLAIM")
    assert Path(path).exists()
    for number in range(2, 40):
        feed.give(("a", number))
        eventually(lambda number=number: ("a", number) in rows(disk))
    assert not Path(path).exists()
    client.cancel().result(60)


def test_the_first_checkpoint_after_a_restore_is_full(environment, disk, eventually, tmp_path):
    feed = Feed.of(("a", 1))
    path = start(environment(), feed, disk).stop_with_savepoint(False, format_type="NATIVE").result(60)
    env = environment(execution__checkpointing__externalized_checkpoint_retention="RETAIN_ON_CANCELLATION")
    client = start(env, feed, disk, path=path)
    feed.give(("b", 2))
    eventually(lambda: ("b", 1) in rows(disk))
    client.cancel().result(60)
    job = tmp_path / "checkpoints" / str(client.get_job_id())
    newest = sorted(job.glob("chk-*"), key=lambda each: int(each.name[4:]))[-1]
    snapshot = open_snapshot(str(newest))
    assert snapshot.metadata.handles
    assert all((tmp_path / "checkpoints" / handle.file).is_file() for handle in snapshot.metadata.handles)


@pytest.mark.parametrize(
    ("retention", "end", "kept"),
    [
        ("RETAIN_ON_CANCELLATION", "cancel", True),
        ("RETAIN_ON_CANCELLATION", "finish", False),
        ("DELETE_ON_CANCELLATION", "cancel", False),
        ("DELETE_ON_CANCELLATION", "fail", True),
    ],
)
def test_checkpoint_retention_is_that_of_flink(environment, disk, tmp_path, eventually, retention, end, kept):
    feed = Feed.of(("a", 1))
    client = start(environment(execution__checkpointing__externalized_checkpoint_retention=retention), feed, disk)
    eventually(lambda: rows(disk))
    if end == "cancel":
        client.cancel().result(60)
    elif end == "finish":
        feed.close()
    else:
        feed.give(None)
    client.wait(60)
    job = tmp_path / "checkpoints" / str(client.get_job_id())
    assert bool(list(job.glob("chk-*/_metadata"))) == kept


def test_unclaimed_state_is_refused_or_dropped(environment, disk, eventually):
    feed = Feed.of(("a", 1))
    client = start(environment(), feed, disk)
    eventually(lambda: rows(disk))
    path = client.stop_with_savepoint(False).result(60)
    feed.close()

    def without(**options):
        env = environment()
        for key, value in {"path": path, **options}.items():
            env._configuration.set_string(f"execution.state-recovery.{key}", value)
        env.from_source(feed, WatermarkStrategy.no_watermarks(), "feed").uid("feed").sink_to(
            VisibleOutput(disk, OUT)
        ).uid("out")
        return env.execute_async("less").get_job_execution_result().result(60)

    with pytest.raises(UserError, match="has state of 'KEYED PROCESS"):
        without()
    without(**{"ignore-unclaimed-state": "true"})


def test_savepoints_do_not_say_that_the_job_has_ended(environment, disk):
    path = start(environment(), Feed.of(("a", 1)), disk).stop_with_savepoint(True).result(60)
    metadata = open_snapshot(path).metadata
    assert not metadata.ended
    assert metadata.savepoint == "canonical"
