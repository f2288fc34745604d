"""Every wait for an external system has a deadline, and a late return does not overlap newer calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from millstream.cluster import entrypoint
from millstream.cluster.connector_deadlines import (
    CallStillRunning,
    CallTimedOut,
    CommitterWithDeadline,
    ConnectorCalls,
    EnumeratorWithDeadline,
)
from millstream.cluster.deadlines import run_watched, without_deadlines
from millstream.cluster.job_events import StatusChanged
from millstream.cluster.sinks import Sinks
from millstream.common import Configuration, WatermarkStrategy
from millstream.connector.sink import Committer, Sink, SinkWriter, ThisProcess, WriterContext
from millstream.connector.source import Budget, SplitEnumerator
from millstream.connectors.collect import CollectSink, forget, get_results
from millstream.connectors.sequence import SequenceEnumerator
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.engine.contract import EpochRequest, EpochResult
from millstream.errors import ExternalError
from millstream.job.job_status import JobStatus
from millstream.testing.inline_engine import InlineEngine


class Hanging(Committer):
    """Its first call waits until it is released; overlapping calls are recorded."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.calls: list[int] = []
        self.interrupted = self.closed = False
        self.overlapped = False
        self._busy = threading.Lock()

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        self.overlapped |= not self._busy.acquire(blocking=False)
        self.calls.append(checkpoint)
        if len(self.calls) == 1:
            self.let_go.wait(30)
        self._busy.release()

    def interrupt(self) -> None:
        self.interrupted = True

    def close(self) -> None:
        self.closed = True


def wait(until: Any) -> None:
    deadline = time.monotonic() + 20
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_hanging_commit_is_an_error_that_names_the_sink_and_the_operation() -> None:
    inner = Hanging()
    committer = CommitterWithDeadline(inner, "orders", 50, "execution.checkpointing.timeout")
    with pytest.raises(CallTimedOut, match=r"sink 'orders' did not commit the output of checkpoint 3 within 0\.05 s"):
        committer.commit(3, ["x"])
    assert inner.interrupted
    with pytest.raises(CallStillRunning, match="an earlier call to commit the output of checkpoint 3 timed out"):
        committer.commit(4, ["y"])
    committer.close()
    assert not inner.closed
    inner.let_go.set()
    wait(lambda: inner.closed)
    committer.commit(3, ["x"])
    assert inner.calls == [3, 3]


@pytest.mark.parametrize(("grace", "advice"), [(100, True), (10_000, False)])
def test_a_longer_cancellation_timeout_is_advised_only_where_it_has_an_effect(
    monkeypatch: pytest.MonkeyPatch, grace: int, advice: bool
) -> None:
    inner = Hanging()
    committer = CommitterWithDeadline(inner, "orders", 600_000, "execution.checkpointing.timeout")
    nobody: Any = SimpleNamespace(vertices=())
    sinks = Sinks(nobody, ThisProcess(), with_epoch=False)
    sinks._committers, sinks._sinks = {"orders": committer}, {"orders": HangingSink()}
    sinks.cancel(grace)
    monkeypatch.setattr(ConnectorCalls, "_wait", lambda *_: None)
    with pytest.raises(CallTimedOut, match=rf"within {grace / 1000:g} s") as caught:
        committer.commit(3, ["x"])
    inner.let_go.set()
    hint = str(caught.value.hint)
    assert ("raise task.cancellation.timeout" in hint) is advice
    assert "a cancelled job waits for 10 s at most" in hint


class SlowEnumerator(SequenceEnumerator):
    """Plans when it is released."""

    def __init__(self) -> None:
        self.let_go, self.closed = threading.Event(), False

    def plan(self, budget: Any) -> Any:
        self.let_go.wait(30)
        return []

    def close(self) -> None:
        self.closed = True


def test_a_hanging_enumerator_is_abandoned_and_closed_later() -> None:
    slow = SlowEnumerator()
    enumerator = EnumeratorWithDeadline(lambda: slow, "numbers", 50, "millstream.epoch.deadline")
    with pytest.raises(CallTimedOut, match="source 'numbers' did not plan what to read within"):
        enumerator.plan(Budget(1, 1, 0))
    enumerator.close()
    assert not slow.closed
    slow.let_go.set()
    wait(lambda: slow.closed)


@pytest.mark.parametrize(
    ("bounded", "plain"), [(CommitterWithDeadline, Committer), (EnumeratorWithDeadline, SplitEnumerator)]
)
def test_every_method_of_committers_and_enumerators_has_a_deadline(bounded: type, plain: type) -> None:
    methods = {name for name, value in vars(plain).items() if callable(value) and not name.startswith("_")}
    assert methods <= vars(bounded).keys()


def test_with_a_virtual_clock_calls_run_in_the_callers_thread() -> None:
    threads: list[threading.Thread] = []

    class Noting(Hanging):
        def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
            threads.append(threading.current_thread())

    committer = CommitterWithDeadline(Noting(), "orders", 1, "an option")
    with without_deadlines():
        committer.commit(1, [])
    assert threads == [threading.current_thread()]


COMMITTER = Hanging()


class Writer(SinkWriter):
    def __init__(self) -> None:
        self.values: list[Any] = []

    def write(self, values: Sequence[Any], timestamps: Any) -> None:
        self.values.extend(values)

    def prepare_commit(self) -> list[Any]:
        return [self.values] if self.values else []


class HangingSink(Sink):
    def create_writer(self, context: WriterContext) -> SinkWriter:
        return Writer()

    def create_committer(self) -> Committer:
        return COMMITTER


def test_a_job_restarts_after_a_hanging_commit_and_continues_when_it_has_ended(tmp_path) -> None:
    COMMITTER.__init__()  # type: ignore[misc]
    configuration = Configuration()
    for key, value in {
        "execution.checkpointing.dir": str(tmp_path),
        "execution.checkpointing.interval": "1 ms",
        "execution.checkpointing.timeout": "500 ms",
        "millstream.epoch.max-records": "10",
        "restart-strategy.type": "exponential-delay",
        "restart-strategy.exponential-delay.initial-backoff": "20 ms",
        "restart-strategy.exponential-delay.max-backoff": "20 ms",
    }.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    source = env.from_source(NumberSequenceSource(0, 49), WatermarkStrategy.no_watermarks(), "numbers")
    source.sink_to(HangingSink()).name("slow store")
    told: list[Any] = []
    job = entrypoint.submit(env._graph(), configuration, "hangs", engine=InlineEngine(), listeners=[told.append])
    wait(lambda: "still not ended" in (job.master.job.cause or ""))
    assert COMMITTER.interrupted
    assert len(COMMITTER.calls) == 1
    COMMITTER.let_go.set()
    assert job.wait(20)
    assert job.master.job.status is JobStatus.FINISHED
    assert not COMMITTER.overlapped
    assert COMMITTER.calls[:2] == [1, 1]  # the late commit is repeated before anything newer
    causes = [each.cause for each in told if isinstance(each, StatusChanged) and each.cause]
    assert "sink 'slow store' did not commit the output of checkpoint 1 within 0.5 s" in causes[0]


class StuckEngine(InlineEngine):
    """Its second epoch does not end until someone cancels it."""

    def __init__(self) -> None:
        super().__init__()
        self.epochs = 0
        self.cancelled = threading.Event()

    def run_epoch(self, request: EpochRequest) -> EpochResult:
        self.epochs += 1
        if self.epochs == 2:
            assert self.cancelled.wait(20), "nobody has cancelled the epoch"
            raise ExternalError("the tasks were cancelled")
        return super().run_epoch(request)

    def cancel(self) -> None:
        self.cancelled.set()


def test_an_epoch_that_does_not_end_is_cancelled_at_its_deadline_and_repeated(tmp_path) -> None:
    configuration = Configuration()
    for key, value in {
        "execution.checkpointing.dir": str(tmp_path),
        "execution.checkpointing.interval": "1 ms",
        "millstream.epoch.deadline": "500 ms",
        "millstream.epoch.max-records": "10",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "1 ms",
    }.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    source = env.from_source(NumberSequenceSource(0, 49), WatermarkStrategy.no_watermarks(), "numbers")
    source.sink_to(CollectSink("stuck"))
    told: list[Any] = []
    job = entrypoint.submit(env._graph(), configuration, "stuck", engine=StuckEngine(), listeners=[told.append])
    assert job.wait(30)
    assert job.master.job.status is JobStatus.FINISHED
    queue, numbers = get_results("stuck"), []
    while not queue.empty():
        numbers.append(queue.get())
    forget("stuck")
    assert sorted(numbers) == list(range(50))
    causes = [each.cause for each in told if isinstance(each, StatusChanged) and each.cause]
    assert "epoch 2 did not end within 0.5 s" in causes[0]


def test_work_that_does_not_end_when_it_is_cancelled_is_abandoned() -> None:
    abandoned = threading.Event()
    asked: list[str] = []

    def work() -> None:
        assert abandoned.wait(20)
        raise ExternalError("the engine is gone")

    late = ExternalError("late")
    with pytest.raises(ExternalError, match="late"):
        run_watched(20, work, lambda: asked.append("cancel"), late, 20, abandoned.set)
    assert asked == ["cancel"]


def test_work_that_ends_when_it_is_cancelled_is_not_abandoned() -> None:
    cancelled = threading.Event()
    abandoned: list[str] = []

    def work() -> None:
        assert cancelled.wait(20)
        raise ExternalError("cancelled")

    with pytest.raises(ExternalError, match="late"):
        run_watched(20, work, cancelled.set, ExternalError("late"), 10_000, lambda: abandoned.append("abandoned"))
    assert not abandoned
