"""Records that a receiver has emitted are processed exactly once, whatever fails."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.cluster.sources import Sources
from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.connector.source import Budget, ReaderContext
from millstream.connectors.receiver import LogDamaged, LogTaken, LogTruncated, ReceiverFailed, SegmentedLog
from millstream.connectors.receiver.enumerator import ReceiverEnumerator
from millstream.connectors.receiver.log import read_frames, segment_path
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.receiver import Receiver, ReceiverSource, SocketTextReceiver
from millstream.datastream.functions import ProcessFunction
from millstream.errors import ExternalError, UserError
from millstream.files.frames import OVERHEAD, frame_record
from millstream.graph.execution_plan import execution_plan
from millstream.graph.job_graph import job_graph


class Emits(Receiver):
    """Emits numbers, then returns, raises or waits to be stopped."""

    def __init__(self, numbers, then: str = "return"):
        self.numbers, self.then, self.stopped = numbers, then, False

    def run(self, emit):
        for number in self.numbers:
            emit(number, number * 10)
        while self.then == "wait" and not self.stopped:
            time.sleep(0.01)
        if self.then == "raise":
            raise ConnectionResetError("hung up")

    def stop(self):
        self.stopped = True

    def __repr__(self):
        return "Emits"


def read(source: ReceiverSource, enumerator, wanted: int, records: int = 7) -> list[int]:
    """Plan and read until there are so many records."""
    found, deadline = [], time.monotonic() + 60
    reader = source.create_reader(ReaderContext(0, 1, 3))
    while len(found) < wanted and time.monotonic() < deadline:
        for part in enumerator.plan(Budget(min(records, wanted - len(found)), 1 << 30, 0)):
            for block in reader.read(part):
                assert block.timestamps == [number * 10 for number in block.values]
                found += block.values
    return found


def wait_for(condition) -> bool:
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()


@pytest.fixture(autouse=True)
def closed(monkeypatch) -> Iterator[None]:
    """Close every log and enumerator of the test."""
    made = []
    for kind in (SegmentedLog, ReceiverEnumerator):
        begin = kind.__init__

        def remember(self, *arguments, begin=begin, **named):
            made.append(self)
            begin(self, *arguments, **named)

        monkeypatch.setattr(kind, "__init__", remember)
    yield
    for each in reversed(made):
        with contextlib.suppress(AttributeError):  # one that could not be written
            each.close()


# ------------------------------------------------------------------------------------------------------------- the log


def payloads(log: SegmentedLog, directory: Path) -> list[bytes]:
    found, at = [], log.first
    while True:
        segment, start, end, behind = log.part(at, 3, 1 << 30)
        if behind == at:
            return found
        found += read_frames(segment_path(str(directory), segment), start, end)
        at = behind


def test_a_log_returns_synced_records_after_a_crash(tmp_path: Path):
    log = SegmentedLog(str(tmp_path), segment_bytes=30)
    written = [f"record {number}".encode() for number in range(10)]
    for payload in written:
        log.append(payload)
    assert log.part(log.durable, 5, 100)[3] == log.durable  # not durable, not planned
    log.sync()
    assert payloads(log, tmp_path) == written
    assert len(list(tmp_path.glob("*.log"))) > 3
    last = max(tmp_path.glob("*.log"))
    log.close()
    with last.open("ab") as file:
        file.write(frame_record(last.stat().st_size, b"half")[:-1])  # the process died while it wrote
    again = SegmentedLog(str(tmp_path), segment_bytes=30)
    assert again.end == 10
    again.append(b"more")
    again.sync()
    assert payloads(again, tmp_path) == [*written, b"more"]


def test_a_part_is_bounded_by_records_and_bytes(tmp_path: Path):
    log = SegmentedLog(str(tmp_path), segment_bytes=1000)
    for _ in range(5):
        log.append(b"x" * (20 - OVERHEAD))
    log.sync()
    assert log.part(0, 3, 1 << 20)[1:] == (0, 60, 3)
    assert log.part(1, 9, 45)[1:] == (20, 60, 3)
    assert log.part(1, 9, 1)[1:] == (20, 40, 2)
    assert log.bytes_from(2) == 60


def test_segments_are_deleted_and_numbers_continue(tmp_path: Path):
    log = SegmentedLog(str(tmp_path), segment_bytes=1)
    for number in range(4):
        log.append(b"%d" % number)
    log.sync()
    log.forget_before(4)
    assert (log.first, log.end) == (3, 4)
    for _ in range(2):  # twice: a segment in which nothing was written must not lose the numbers
        log.close()
        log = SegmentedLog(str(tmp_path), segment_bytes=1)
        log.forget_before(log.end)
        assert (log.first, log.end) == (4, 4)
    with pytest.raises(LogTruncated, match="record 2 is needed"):
        log.check(2)


def test_damage_is_named(tmp_path: Path):
    log = SegmentedLog(str(tmp_path), segment_bytes=1)
    for number in range(3):
        log.append(b"%d" % number)
    log.close()
    first = min(tmp_path.glob("*.log"))
    first.write_bytes(first.read_bytes()[:-1] + b"?")
    with pytest.raises(LogDamaged, match="damaged at byte 0"):
        SegmentedLog(str(tmp_path), segment_bytes=1)
    with pytest.raises(LogDamaged):
        list(read_frames(str(first), 0, first.stat().st_size))


@pytest.mark.parametrize("at", [0, 5, 10, OVERHEAD, OVERHEAD + 3])
def test_a_flipped_bit_in_the_last_segment_is_not_a_torn_tail(tmp_path: Path, at: int):
    log = SegmentedLog(str(tmp_path), segment_bytes=1000)
    for number in range(5):
        log.append(b"record %d" % number)
    log.close()
    last = max(tmp_path.glob("*.log"))
    data = bytearray(last.read_bytes())
    size = OVERHEAD + len(b"record 0")
    data[2 * size + at] ^= 1
    last.write_bytes(data)
    with pytest.raises(LogDamaged, match=f"damaged at byte {2 * size}"):
        SegmentedLog(str(tmp_path), segment_bytes=1000)
    assert last.read_bytes() == data, "nothing is cut off"


@pytest.mark.parametrize("segment_bytes", [1, 60, 1000])
def test_records_of_a_replaced_driver_are_not_part_of_the_log(tmp_path: Path, segment_bytes: int):
    old = SegmentedLog(str(tmp_path), segment_bytes)
    old.append(b"old 0")
    old.sync()
    old.append(b"never synced")
    new = SegmentedLog(str(tmp_path), segment_bytes)
    new.append(b"new 1")
    new.sync()

    def wake_up():
        for number in range(5):
            old.append(b"old %d" % number)
        old.sync()

    with pytest.raises(LogTaken):
        wake_up()
    with pytest.raises(LogTaken):
        old.finish()
    old.close()
    new.append(b"new 2")
    new.sync()
    new.close()
    third = SegmentedLog(str(tmp_path), segment_bytes)
    assert not third.ended
    assert payloads(third, tmp_path) == [b"old 0", b"new 1", b"new 2"]


def test_only_one_of_two_drivers_can_own_a_log(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(SegmentedLog, "_newest_term", lambda self: 0)
    SegmentedLog(str(tmp_path), 1000)
    with pytest.raises(LogTaken):
        SegmentedLog(str(tmp_path), 1000)


def test_a_log_that_is_opened_often_has_few_files(tmp_path: Path):
    for number in range(20):
        log = SegmentedLog(str(tmp_path), 1000)
        if number == 10:
            log.append(b"one")
        log.close()
    assert log.end == 1
    assert len(list(tmp_path.iterdir())) <= 3


# ------------------------------------------------------------------------------------------------------ the enumerator


def test_a_restart_continues_at_the_checkpoint(tmp_path: Path):
    source = ReceiverSource(Emits(range(20)), str(tmp_path), segment_bytes=60)
    enumerator = source.create_enumerator(1)
    assert read(source, enumerator, 8) == list(range(8))
    state = enumerator.snapshot()
    assert read(source, enumerator, 12) == list(range(8, 20))
    assert wait_for(enumerator.finished)
    enumerator.close()
    again = source.create_enumerator(1, state)
    assert not again.finished()
    assert read(source, again, 12) == list(range(8, 20))
    assert again.finished()  # it had ended: nothing is received again
    assert again._thread is None


def test_a_restarted_receiver_continues_the_numbering(tmp_path: Path):
    source = ReceiverSource(Emits(range(5), "wait"), str(tmp_path))
    for start in (0, 5, 10):
        enumerator = source.create_enumerator(1, {"directory": str(tmp_path), "position": start})
        assert read(source, enumerator, 5) == list(range(5))
        assert not enumerator.finished()
        assert enumerator.splits() == [str(tmp_path)]
        enumerator.close()
        assert not enumerator._thread.is_alive()


def test_records_before_a_failure_are_read_before_the_failure_is_raised(tmp_path: Path):
    source = ReceiverSource(Emits(range(5), "raise"), str(tmp_path))
    enumerator = source.create_enumerator(1)
    assert read(source, enumerator, 5) == list(range(5))
    wait_for(lambda: enumerator._failure is not None)
    with pytest.raises(ReceiverFailed, match="Emits failed: ConnectionResetError: hung up"):
        enumerator.plan(Budget(1, 1, 0))


def test_segments_are_deleted_when_no_retained_checkpoint_needs_them(tmp_path: Path):
    source = ReceiverSource(Emits(range(30)), str(tmp_path), segment_bytes=1, kept_checkpoints=2)
    enumerator = source.create_enumerator(1)
    left = []
    for _ in range(3):
        read(source, enumerator, 10, records=1)
        enumerator.acknowledge()
        left.append(min(int(path.stem.partition("-")[0]) for path in tmp_path.glob("*.log")))
    assert left == [0, 10, 20]


def test_records_that_a_retained_checkpoint_needs_are_kept(tmp_path: Path):
    source = ReceiverSource(Emits(range(40)), str(tmp_path), segment_bytes=1)
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_source(source, WatermarkStrategy.no_watermarks(), "received").print()
    sources = Sources(execution_plan(job_graph(env._graph(), "job")), {}, retained=3)
    (enumerator,) = sources._enumerators.values()
    left = []
    for _ in range(4):
        read(source, enumerator, 10, records=1)
        sources.acknowledge()
        left.append(min(int(path.stem.partition("-")[0]) for path in tmp_path.glob("*.log")))
    assert left == [0, 0, 10, 20]


def test_a_receiver_waits_while_the_job_is_far_behind(tmp_path: Path):
    source = ReceiverSource(Emits(range(1000)), str(tmp_path), max_backlog_bytes=500)
    enumerator = source.create_enumerator(1)
    enumerator.plan(Budget(0, 1, 0))
    time.sleep(0.05)
    assert enumerator.lag() < 100
    assert len(read(source, enumerator, 999)) >= 998
    enumerator.close()


def test_a_value_that_is_not_a_receiver_is_refused():
    with pytest.raises(UserError, match="not a receiver"):
        ReceiverSource(print)
    with pytest.raises(UserError, match="kept_checkpoints is 0"):
        ReceiverSource(Emits([]), kept_checkpoints=0)


# ------------------------------------------------------------------------------------------------------------- sockets


@contextlib.contextmanager
def server(*answers: bytes, pause: float = 0.0) -> Iterator[int]:
    """A server on the loopback interface that gives every client the same answer."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for answer in answers:
            with contextlib.suppress(OSError):
                caller, _ = listening.accept()
                with caller:
                    for start in range(0, len(answer), 5):
                        caller.sendall(answer[start : start + 5])
                        time.sleep(pause)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.close()
        thread.join(5)


def environment(**options: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("millstream.epoch.idle-interval", "5 ms")
    for key, value in options.items():
        configuration.set_string(key.replace("__", ".").replace("_", "-"), value)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)


def test_text_from_a_socket():
    with server("to be\r\nor not\nzum Glück\nto be".encode()) as port:
        lines = environment().socket_text_stream("127.0.0.1", port).execute_and_collect()
        assert list(lines) == ["to be", "or not", "zum Glück", "to be"]


def test_another_delimiter_and_a_server_that_closes_the_connection():
    with server(b"a||b||c", b"d||e") as port:
        stream = environment().socket_text_stream("127.0.0.1", port, "||", max_retry=1)
        assert list(stream.execute_and_collect()) == ["a", "b", "cd", "e"]


def test_a_job_that_fails_and_restarts_loses_nothing_that_was_received(tmp_path: Path):
    once = tmp_path / "failed"

    def fails_once(line: str) -> str:
        if line == "3" and not once.exists():
            once.touch()
            raise RuntimeError("the power went out")
        return line

    env = environment(
        execution__checkpointing__dir=str(tmp_path),
        execution__checkpointing__interval="20 ms",
        restart_strategy__type="fixed-delay",
        restart_strategy__fixed_delay__delay="1 ms",
    )
    with server(b"".join(b"%d\n" % number for number in range(40)), b"40\n41\n", pause=0.005) as port:
        stream = env.socket_text_stream("127.0.0.1", port).map(fails_once, Types.STRING())
        found = [int(line) for line in stream.execute_and_collect()]
    assert once.exists()
    assert sorted(set(found)) == found  # nothing twice, and in order
    assert {0, 1, 2, 3} <= set(found)
    assert {40, 41} <= set(found)


def test_a_server_that_cannot_be_reached():
    with server() as port:
        pass
    stream = environment(restart_strategy__type="none").socket_text_stream("127.0.0.1", port)
    with pytest.raises(ExternalError, match=f"cannot connect to 127.0.0.1:{port}"):
        list(stream.execute_and_collect())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("h", 0), "not a port"), (("h", 1, ""), "delimiter is empty"), (("h", 1, "\n", -2), "max_retry is -2")],
)
def test_invalid_arguments_of_a_socket_are_refused(arguments, words):
    with pytest.raises(UserError, match=words):
        SocketTextReceiver(*arguments)


def test_a_temporary_log_is_deleted_with_its_source():
    source = ReceiverSource(Emits([1]))
    enumerator = source.create_enumerator(1)
    directory = enumerator.snapshot()["directory"]
    read(source, enumerator, 1)
    enumerator.close()
    assert os.path.isdir(directory)
    del source
    assert not os.path.isdir(directory)


class Times(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


def test_event_times_of_a_receiver_are_those_of_its_records():
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    env = environment()
    stream = env.from_source(ReceiverSource(Emits([1, 2, 3]), type_info=Types.LONG()), strategy, "numbers")
    assert list(stream.process(Times()).execute_and_collect()) == [(1, 10), (2, 20), (3, 30)]


@pytest.mark.parametrize("then", ["return", "raise"])
def test_the_job_is_notified_of_every_record_and_of_the_end(tmp_path: Path, then: str) -> None:
    enumerator = ReceiverSource(Emits([1, 2], then), str(tmp_path / "log")).create_enumerator(1, None)
    arrivals = threading.Semaphore(0)
    enumerator.notify_arrivals(arrivals.release)
    with contextlib.suppress(ReceiverFailed):
        enumerator.plan(Budget(0, 1 << 30, 0))
    for _ in range(3):
        assert arrivals.acquire(timeout=30)
    enumerator.close()
