"""Metrics of subtasks and operators: rates, load, watermarks, state and user metrics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from millstream.cluster.epoch_summary import summarize_epoch
from millstream.cluster.job_events import StatusChanged
from millstream.cluster.job_statistics import JobStatistics, Statistics
from millstream.cluster.metrics.job_metrics import job_metrics
from millstream.cluster.metrics.task_metrics import operator_metrics, task_metrics
from millstream.cluster.sources import EpochPlan
from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.engine.contract import EpochResult
from millstream.graph.execution_plan import ExecutionPlan, execution_plan
from millstream.graph.job_graph import job_graph
from millstream.job.job_status import JobStatus
from millstream.runtime.memory import SubtaskMemory
from millstream.runtime.report import TaskReport
from millstream.state.handles import Handle, Lineage


class Clock:
    time = 0

    def now(self) -> int:
        return self.time

    def precise(self) -> float:
        return self.time / 1000


@pytest.fixture(scope="module")
def plan() -> ExecutionPlan:
    """A source, and a keyed sum that is chained to a map."""
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"parallelism.default": "2"}))
    numbers = env.from_source(NumberSequenceSource(0, 9), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.key_by(lambda n: n, Types.LONG()).reduce(lambda a, b: a + b).map(lambda n: n).print()
    return execution_plan(job_graph(env._graph(), "job"))


def run_epoch(plan: ExecutionPlan, statistics: JobStatistics, number: int, pending: int) -> None:
    """Report an epoch of one second: sources work for 0.1 s, the vertex after them for 0.4 s."""
    source, keyed = plan.vertices
    source_id = source.vertex.nodes[0].operator
    reduce_id, map_id = (node.operator for node in keyed.vertex.nodes[:2])
    reports = []
    for subtask in range(2):
        counts = {source_id: {"records_in": 10, "records_out": 10, "numRecordsSkipped": 1}}
        memory = {source_id: SubtaskMemory(emitted_watermark=500)}
        report = TaskReport(source.task.vertex, subtask, b"", metrics=counts, memory=memory, busy=0.1, bytes_out=1000)
        reports.append(report)
        counts = {
            reduce_id: {"records_in": 10, "records_out": 8, "numFiredTimers": 2},
            map_id: {
                "records_out": 8,
                "user.a.bad": 1,
                "gauge.user.size": number,
                "distribution.user.ms": {"count": 2, "sum": 6, "min": 1, "max": 5},
            },
        }
        reports.append(TaskReport(keyed.task.vertex, subtask, b"", metrics=counts, busy=0.4, bytes_in=1000))
    lineages = {reduce_id: [Lineage((Handle("f", 30, "", number),)), Lineage()]}
    lags = {source_id: pending}
    result = EpochResult(reports=tuple(reports), failures=())
    statistics(summarize_epoch(plan, EpochPlan(number, 0, {source_id: {}}), result, 1.0, lags, lineages))


@pytest.fixture
def statistics(plan: ExecutionPlan) -> Statistics:
    """The statistics after two epochs of one second each, which had more input than they read."""
    clock = Clock()
    listener = JobStatistics(clock)
    listener(StatusChanged(JobStatus.RUNNING, 0))
    for number in (1, 2):
        clock.time += 1000
        run_epoch(plan, listener, number, pending=5)
    return listener.get()


def test_busy_idle_and_backpressured_time_add_up(plan: ExecutionPlan, statistics: Statistics) -> None:
    source, keyed = (task_metrics(planned, statistics, 0, 2000) for planned in plan.vertices)
    assert source["busyTimeMsPerSecond"] == pytest.approx(100)
    assert source["backPressuredTimeMsPerSecond"] == pytest.approx(400)  # it waited for the vertex downstream
    assert (keyed["busyTimeMsPerSecond"], keyed["backPressuredTimeMsPerSecond"]) == (pytest.approx(400), 0)
    assert (source["isBackPressured"], keyed["isBackPressured"]) == (True, False)
    for metrics in (source, keyed):
        times = (metrics[f"{name}TimeMsPerSecond"] for name in ("busy", "idle", "backPressured"))
        assert sum(times) == pytest.approx(1000)
    assert source["accumulateIdleTimeMs"] == pytest.approx(1000)


def test_a_job_without_pending_input_is_not_backpressured(plan: ExecutionPlan) -> None:
    clock = Clock()
    listener = JobStatistics(clock)
    listener(StatusChanged(JobStatus.RUNNING, 0))
    clock.time = 1000
    run_epoch(plan, listener, 1, pending=0)
    assert task_metrics(plan.vertices[0], listener.get(), 0, 1000)["backPressuredTimeMsPerSecond"] == 0


def test_records_and_bytes_with_their_rates(plan: ExecutionPlan, statistics: Statistics) -> None:
    source, keyed = (task_metrics(planned, statistics, 1, 2000) for planned in plan.vertices)
    assert (source["numRecordsOut"], source["numRecordsOutPerSecond"]) == (20, pytest.approx(10))
    assert (source["numBytesOut"], keyed["numBytesIn"], keyed["numBytesInPerSecond"]) == (2000, 2000, 1000)
    assert (keyed["numFiredTimers"], keyed["numFiredTimersPerSecond"]) == (4, 2)
    ended = replace(statistics, status=JobStatus.FINISHED)
    assert task_metrics(plan.vertices[0], ended, 1, 9000)["numRecordsOutPerSecond"] == 0


def test_rates_are_those_of_the_last_minute(plan: ExecutionPlan) -> None:
    clock = Clock()
    listener = JobStatistics(clock)
    listener(StatusChanged(JobStatus.RUNNING, 0))
    for number in range(1, 200):
        clock.time += 1000 if number < 100 else 2000
        run_epoch(plan, listener, number, pending=0)
    metrics = task_metrics(plan.vertices[0], listener.get(), 0, clock.time)
    assert metrics["numRecordsInPerSecond"] == pytest.approx(5, rel=0.1)
    assert len(listener.history()) == pytest.approx(clock.time / 10_000, abs=2)


def test_operators_of_a_chain(plan: ExecutionPlan, statistics: Statistics) -> None:
    source, keyed = plan.vertices
    numbers = operator_metrics(source, source.vertex.nodes[0], statistics, 0, 2000)
    assert (numbers["numRecordsIn"], numbers["numRecordsInErrors"]) == (20, 2)
    assert (numbers["watermarkLag"], numbers["currentOutputWatermark"]) == (1500, 500)
    pending = [
        operator_metrics(source, source.vertex.nodes[0], statistics, subtask, 2000)["pendingRecords"]
        for subtask in range(2)
    ]
    assert pending == [3, 2]
    reduce, mapped, printed = (operator_metrics(keyed, node, statistics, 0, 2000) for node in keyed.vertex.nodes)
    assert (reduce["stateSizeBytes"], mapped["stateSizeBytes"]) == (30, 0)
    assert mapped["numRecordsIn"] == reduce["numRecordsOut"] == 16
    assert (mapped["a.bad"], mapped["size"]) == (2, 2)
    assert (mapped["ms_count"], mapped["ms_mean"], mapped["ms_max"]) == (4, 3, 5)
    assert printed["numRecordsSend"] == printed["numRecordsIn"] == 16


def test_a_job_before_its_first_checkpoint(statistics: Statistics) -> None:
    metrics = job_metrics(statistics, 5000)
    assert (metrics["uptime"], metrics["runningTime"], metrics["downtime"]) == (5000, 5000, 0)
    assert (metrics["numberOfCompletedCheckpoints"], metrics["lastCheckpointSize"]) == (0, -1)
    assert metrics["pendingRecords"] == 5
