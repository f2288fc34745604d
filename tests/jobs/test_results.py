"""Results of a job: accumulators and metrics, counted once, and job listeners."""

from __future__ import annotations

import gc
import queue
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from millstream.client.job_client import JobClient, JobExecutionResult
from millstream.client.job_listener import JobListener
from millstream.cluster import connector_deadlines
from millstream.cluster.commit_workers import CommitWorkers
from millstream.cluster.connector_deadlines import CommitterWithDeadline
from millstream.cluster.deadlines import start_in_thread
from millstream.cluster.leadership import Leadership, LeadershipGivenUp
from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.common.accumulators import Accumulator, AverageAccumulator, ListAccumulator
from millstream.connectors import collect
from millstream.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from millstream.datastream.connectors.blackhole import BlackHoleSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.errors import UserError
from millstream.table import StreamTableEnvironment
from millstream.testing.inline_engine import InlineEngine


class Longest(Accumulator[str, str]):
    """A user-defined accumulator."""

    def __init__(self) -> None:
        self.word = ""

    def add(self, value: str) -> None:
        self.word = max(self.word, value, key=len)

    def get_local_value(self) -> str:
        return self.word

    def reset_local(self) -> None:
        self.word = ""

    def merge(self, other: Accumulator[str, str]) -> None:
        self.add(other.get_local_value())


class Counts(MapFunction):
    """Counts with every type of accumulator and metric; fails once, after value 11, if it has a file in which to
    remember that."""

    def __init__(self, marker: Path | None = None) -> None:
        self.marker = marker

    def open(self, runtime_context: RuntimeContext) -> None:
        context: Any = runtime_context
        self.seen = context.get_int_counter("seen")
        self.weight = context.get_double_counter("weight")
        self.sizes = context.get_histogram("sizes")
        context.add_accumulator("longest", Longest())
        context.add_accumulator("mean", AverageAccumulator())
        context.add_accumulator("all", ListAccumulator())
        self.context = context
        group = context.get_metrics_group().add_group("calls", "map")
        self.counter, self.meter = group.counter("n"), group.meter("m")
        self.distribution = group.distribution("d")
        group.gauge("g", lambda: 7)

    def map(self, value: int) -> int:
        self.seen.add(1)
        self.weight.add(0.5)
        self.sizes.add(value % 3)
        for name, given in (("longest", "x" * value), ("mean", value), ("all", value)):
            self.context.get_accumulator(name).add(given)
        self.counter.inc()
        self.meter.mark_event(2)
        self.distribution.update(value)
        if value == 11 and self.marker is not None and not self.marker.exists():
            self.marker.touch()
            raise RuntimeError("once")
        return value


def run(env: StreamExecutionEnvironment, function: MapFunction) -> JobExecutionResult:
    numbers = env.from_collection(list(range(20)), Types.INT()).rebalance()
    numbers.map(function, Types.INT()).sink_to(BlackHoleSink())
    return env.execute("counts")


def check(result: JobExecutionResult) -> None:
    get = result.get_accumulator_result
    assert get("seen") == 20
    assert get("weight") == 10.0
    assert get("sizes") == {0: 7, 1: 7, 2: 6}
    assert get("longest") == "x" * 19
    assert get("mean") == 9.5
    assert sorted(get("all")) == list(range(20))
    assert get("calls.map.n") == 20
    assert get("calls.map.m") == 40
    assert get("calls.map.d") == {"count": 20, "sum": 190, "min": 0, "max": 19}
    assert get("no such") is None


def test_the_result_has_the_totals_of_all_subtasks(env: StreamExecutionEnvironment) -> None:
    check(run(env, Counts()))


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_restart_counts_nothing_twice(env: StreamExecutionEnvironment, tmp_path: Path, checkpoints: bool) -> None:
    if checkpoints:
        env.enable_checkpointing(10)
    env.configure(_restarting())
    check(run(env, Counts(tmp_path / "failed")))
    assert (tmp_path / "failed").exists()


def _restarting() -> Configuration:
    configuration = Configuration()
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.delay", "1 ms")
    configuration.set_string("restart-strategy.fixed-delay.attempts", "3")
    configuration.set_string("millstream.epoch.max-records", "4")
    return configuration


def test_a_name_for_two_types_of_accumulators_is_refused(env: StreamExecutionEnvironment) -> None:
    class Other(Counts):
        def open(self, runtime_context: RuntimeContext) -> None:
            super().open(runtime_context)
            self.context.get_histogram("seen")

    with pytest.raises(UserError, match="'seen' is a IntCounter in one function, and a Histogram"):
        run(env, Other())


def test_a_gauge_that_raises_is_named(env: StreamExecutionEnvironment) -> None:
    class Broken(Counts):
        def open(self, runtime_context: RuntimeContext) -> None:
            super().open(runtime_context)
            self.context.get_metrics_group().gauge("broken", lambda: 1 // 0)

    with pytest.raises(UserError, match=r"gauge 'user\.broken' raised ZeroDivisionError"):
        run(env, Broken())


class Heard(JobListener):
    def __init__(self) -> None:
        self.events: list[tuple[str, type, type]] = []

    def on_job_submitted(self, job_client: JobClient | None, throwable: BaseException | None) -> None:
        self.events.append(("submitted", type(job_client), type(throwable)))

    def on_job_executed(self, job_execution_result: JobExecutionResult | None, throwable: BaseException | None) -> None:
        self.events.append(("executed", type(job_execution_result), type(throwable)))


class Rude(Heard):
    def on_job_submitted(self, job_client: JobClient | None, throwable: BaseException | None) -> None:
        raise RuntimeError("leave me alone")


def test_listeners_are_notified_of_finished_and_failed_jobs(
    env: StreamExecutionEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()
    env.register_job_listener(Rude()).register_job_listener(heard)
    run(env, Counts())
    with pytest.raises(UserError):
        run(env, _Failing())
    with pytest.raises(UserError):
        env.execute("there is no program")
    assert [name for name, *_ in heard.events] == ["submitted", "executed", "submitted", "executed", "submitted"]
    well, _, badly, refused = heard.events[1:]
    assert well[1:] == (JobExecutionResult, type(None))
    assert badly[1] is refused[1] is type(None)
    assert issubclass(badly[2], UserError)
    assert issubclass(refused[2], UserError)
    assert "the job listener Rude raised" in caplog.text


def test_a_listener_that_raises_does_not_fail_the_job_and_is_logged_once(
    env: StreamExecutionEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Any] = []

    def broken(observation: Any) -> None:
        raise LookupError("no such row in the notebook")

    env.configure(_restarting())
    env.register_listener(broken).register_listener(seen.append)
    result = run(env, Counts())
    check(result)
    assert result.get_accumulator_result("millstream.restarts") == 0
    assert len(seen) > 3
    (record,) = [each for each in caplog.records if "a listener of job 'counts' raised on" in each.getMessage()]
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)


class _Failing(MapFunction):
    def map(self, value: int) -> int:
        raise ValueError(value)


def test_execute_async_notifies_listeners_of_the_submission_only(env: StreamExecutionEnvironment) -> None:
    heard = Heard()
    env.register_job_listener(heard)
    env.from_collection([1]).sink_to(BlackHoleSink())
    env.execute_async().get_job_execution_result().result()
    assert [name for name, *_ in heard.events] == ["submitted"]


def numbers(last: int) -> Any:
    configuration = Configuration().set_string("millstream.epoch.max-records", "10")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    return env.from_source(NumberSequenceSource(1, last), WatermarkStrategy.no_watermarks(), "numbers")


def test_the_job_waits_for_a_slow_reader(monkeypatch: Any) -> None:
    monkeypatch.setattr(collect.get_results, "__defaults__", (5,))
    with numbers(200).execute_and_collect() as results:
        first = next(results)
        assert len(results._results._values) < 15
        assert sorted([first, *results]) == list(range(1, 201))


@pytest.mark.parametrize("interval", [None, "20 ms"], ids=["no checkpoints", "checkpoints"])
def test_a_reader_may_take_longer_than_a_commit_and_gets_every_row_once(
    monkeypatch: Any, caplog: pytest.LogCaptureFixture, interval: str | None
) -> None:
    monkeypatch.setattr(collect.get_results, "__defaults__", (5,))
    monkeypatch.setattr(connector_deadlines, "_POLL", 0.05)
    monkeypatch.setattr(connector_deadlines, "_WARN_EVERY", 2)
    stream = numbers(200)
    stream._env._configuration.set_string("execution.checkpointing.timeout", "200 ms")
    stream._env.configure(_restarting())
    if interval is not None:
        stream._env._configuration.set_string("execution.checkpointing.interval", interval)
        stream._env._configuration.set_string("millstream.epoch.min-interval", "10 ms")  # three epochs in a checkpoint
    with stream.execute_and_collect() as results:
        first = [next(results) for _ in range(3)]
        time.sleep(1)
        assert len(results._results._values) < 60
        assert sorted([*first, *results]) == list(range(1, 201))
        accumulators = results._client.get_accumulators().result()
    assert accumulators["millstream.restarts"] == 0
    assert "the job is backpressured: sink 'Sink: Collect' cannot" in caplog.text


def test_a_job_that_waits_for_its_reader_keeps_its_lease() -> None:
    moved = threading.Event()
    leadership: Any = SimpleNamespace(report_progress=moved.set)
    workers = CommitWorkers("run", InlineEngine(), lambda: None, leadership, 1, 1)
    results = collect.Results(1)
    committer = CommitterWithDeadline(collect.CollectCommitter(results), "rows", None, "none", workers.backpressured)
    committer.commit(1, ["a"])
    waiting = threading.Thread(target=committer.commit, args=(2, ["b"]), daemon=True)
    waiting.start()
    assert moved.wait(10)
    assert [results.get(1), results.get(10)] == ["a", "b"]
    waiting.join(10)
    assert not waiting.is_alive()


def test_a_job_that_waits_for_its_reader_ends_when_its_lease_was_given_up(monkeypatch: Any) -> None:
    monkeypatch.setattr(connector_deadlines, "_POLL", 0.02)
    now = [0.0]
    lease: Any = SimpleNamespace()
    leadership = Leadership(lease, "this", 10, lambda: now[0], time.sleep, patience=5)
    workers = CommitWorkers("run", InlineEngine(), lambda: None, leadership, 1, 1)
    results = collect.Results(1)
    committer = CommitterWithDeadline(collect.CollectCommitter(results), "rows", None, "none", workers.backpressured)
    committer.commit(1, ["a"])
    now[0] = 6.0  # the process was stopped for a while
    assert leadership.give_up_if_stuck()
    outcome = start_in_thread(lambda: committer.commit(2, ["b"]))
    with pytest.raises(LeadershipGivenUp):
        outcome.result(10)
    committer.close()
    assert [results.get(1), results.get(1)] == ["a", "b"]


def test_results_wait_for_space_until_the_reader_closes() -> None:
    def second_put(results: collect.Results) -> threading.Thread:
        results.put([1, 2, 3])
        waiting = threading.Thread(target=results.put, args=([4],), daemon=True)
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
        return waiting

    read, closed, held = (collect.Results(2) for _ in range(3))
    waiting = second_put(read)
    assert [read.get(1), read.get(1)] == [1, 2]
    waiting.join(10)
    assert [read.get(1), read.get(1)] == [3, 4]
    with pytest.raises(queue.Empty):
        read.get(0.01)
    waiting = second_put(closed)
    closed.close()
    waiting.join(10)
    assert closed.empty()
    waiting = second_put(held)
    collect.CollectCommitter(held).interrupt()
    waiting.join(10)
    assert [held.get(1) for _ in range(4)] == [1, 2, 3, 4]


def test_a_job_with_unread_results_can_be_cancelled_and_closed(monkeypatch: Any) -> None:
    monkeypatch.setattr(collect.get_results, "__defaults__", (5,))
    for end in ("cancel", "close", "forget"):
        results = numbers(10**9).execute_and_collect()
        client = results._client
        next(results)
        if end == "cancel":
            client.cancel().result()
        elif end == "close":
            results.close()
        else:
            del results  # the iterator is gone: rows are dropped, the job runs on
            gc.collect()
            client.cancel().result()
        assert client.wait(30)


def test_a_query_whose_end_is_awaited_keeps_its_rows(monkeypatch: Any) -> None:
    monkeypatch.setattr(collect.get_results, "__defaults__", (5,))
    table_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
    table_env.get_config().set("millstream.epoch.max-records", "10")
    generated = "'connector'='datagen', 'number-of-rows'='60', 'fields.i.kind'='sequence', 'fields.i.start'='1'"
    table_env.execute_sql(f"CREATE TABLE t (i BIGINT) WITH ({generated}, 'fields.i.end'='60')")
    result = table_env.execute_sql("SELECT i FROM t")
    result.wait(60_000)
    with result.collect() as rows:
        assert sorted(row[0] for row in rows) == list(range(1, 61))
