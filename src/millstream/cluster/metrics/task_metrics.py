"""The metrics of subtasks and of their operators, under Flink's names.

Promises: pure functions of the plan and of the statistics. Busy, idle and backpressured time of a subtask add up to
1000 milliseconds a second. Rates are over the last minute.
Does not know: the job as a whole, see `job_metrics`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.cluster.job_statistics import OperatorTotals, Statistics, SubtaskTotals
from millstream.cluster.metrics.metric import Value
from millstream.event_time.watermarks import MAX_WATERMARK, MIN_WATERMARK
from millstream.graph.execution_plan import PlannedVertex
from millstream.graph.stream_graph import StreamNode
from millstream.job.job_status import JobStatus

_SECOND = 1000
_RENAMED = {
    "records_in": "numRecordsIn",
    "records_out": "numRecordsOut",
    "numRecordsSkipped": "numRecordsInErrors",
    "lookup.hits": "hitCount",
    "lookup.asked": "missCount",
    "lookup.loaded": "numCachedRecords",
    "dropped.null": "numRecordsOutErrors",
}
_NOTHING, _NO_OPERATOR = SubtaskTotals(), OperatorTotals()


def task_metrics(planned: PlannedVertex, statistics: Statistics, subtask: int, now: int) -> dict[str, Value]:
    """Return the metrics of one subtask by name."""
    totals, before = _totals(planned, statistics, subtask)
    elapsed = _elapsed(statistics, now)
    busy, backpressured = _load(statistics, totals, before, elapsed)
    metrics: dict[str, Value] = {
        **_with_rate("numRecordsIn", totals.records_in, before.records_in, elapsed),
        **_with_rate("numRecordsOut", totals.records_out, before.records_out, elapsed),
        **_with_rate("numBytesIn", totals.bytes_in, before.bytes_in, elapsed),
        **_with_rate("numBytesOut", totals.bytes_out, before.bytes_out, elapsed),
        **_with_rate("numFiredTimers", _fired(totals), _fired(before), elapsed),
        "busyTimeMsPerSecond": busy,
        "backPressuredTimeMsPerSecond": backpressured,
        "softBackPressuredTimeMsPerSecond": backpressured,
        "hardBackPressuredTimeMsPerSecond": 0.0,
        "idleTimeMsPerSecond": _SECOND - busy - backpressured,
        "accumulateBusyTimeMs": totals.busy_ms,
        "accumulateBackPressuredTimeMs": totals.backpressured_ms,
        "accumulateIdleTimeMs": max(0.0, _running_ms(statistics, now) - totals.busy_ms - totals.backpressured_ms),
        "isBackPressured": backpressured > 0,
        "currentInputWatermark": totals.watermark,
        "stateSizeBytes": sum(operator.state_bytes for operator in totals.operators.values()),
    }
    return metrics


def operator_metrics(
    planned: PlannedVertex, node: StreamNode, statistics: Statistics, subtask: int, now: int
) -> dict[str, Value]:
    """Return the metrics of one operator of one subtask by name, those of user functions included."""
    totals, before = (
        total.operators.get(node.operator, _NO_OPERATOR) for total in _totals(planned, statistics, subtask)
    )
    elapsed = _elapsed(statistics, now)
    metrics: dict[str, Value] = {"numRecordsIn": 0, "numRecordsOut": 0}
    for name, value in totals.counts.items():
        metrics.update(_name_count(name, value))
    for name in ("records_in", "records_out"):
        count, count_before = totals.counts.get(name, 0), before.counts.get(name, 0)
        metrics.update(_with_rate(_RENAMED[name], count, count_before, elapsed))
    metrics["currentInputWatermark"] = MIN_WATERMARK if totals.input_watermark is None else totals.input_watermark
    metrics["currentOutputWatermark"] = MIN_WATERMARK if totals.output_watermark is None else totals.output_watermark
    metrics["stateSizeBytes"] = totals.state_bytes
    if node.source is not None:
        metrics.update(_source_metrics(planned, node, totals, statistics, subtask, now))
    if node.sink is not None:
        metrics.update({"numRecordsSend": metrics["numRecordsIn"], "numRecordsOut": metrics["numRecordsIn"]})
        metrics.update(_lag("currentEmitEventTimeLag", totals.input_watermark, now))
    return metrics


def _source_metrics(
    planned: PlannedVertex, node: StreamNode, totals: OperatorTotals, statistics: Statistics, subtask: int, now: int
) -> dict[str, Value]:
    metrics: dict[str, Value] = {"numRecordsInErrors": totals.counts.get("numRecordsSkipped", 0)}
    metrics.update(_lag("watermarkLag", totals.output_watermark, now))
    metrics.update(_lag("currentEmitEventTimeLag", totals.output_watermark, now))
    lag = None if statistics.last_epoch is None else statistics.last_epoch.event.source_lags.get(node.operator)
    if lag is not None:  # the enumerator knows the sum over all subtasks
        share, rest = divmod(lag, planned.task.parallelism)
        metrics["pendingRecords"] = share + (subtask < rest)
    return metrics


def _lag(name: str, watermark: int | None, now: int) -> dict[str, Value]:
    """Return how far a watermark is behind the clock, if event time has begun and not ended."""
    if watermark is None or not MIN_WATERMARK < watermark < MAX_WATERMARK:
        return {}
    return {name: max(0, now - watermark)}


def _name_count(name: str, value: Any) -> Mapping[str, Value]:
    """Return one count under Flink's name; a distribution becomes several metrics."""
    short = name.removeprefix("gauge.").removeprefix("distribution.").removeprefix("user.")
    if not isinstance(value, Mapping):
        return {_RENAMED.get(short, short): value}
    mean = value["sum"] / value["count"] if value.get("count") else 0.0
    return {f"{short}_{part}": number for part, number in {**value, "mean": mean}.items()}


def _totals(planned: PlannedVertex, statistics: Statistics, subtask: int) -> tuple[SubtaskTotals, SubtaskTotals]:
    """Return the totals of a subtask, and those at the beginning of the last minute."""
    base = {} if statistics.rate_base is None else statistics.rate_base.event
    known = (counts_of_vertex.get(planned.task.vertex, ()) for counts_of_vertex in (statistics.subtasks, base))
    totals, before = (
        counts_of_vertex[subtask] if subtask < len(counts_of_vertex) else _NOTHING for counts_of_vertex in known
    )
    return totals, before


def _elapsed(statistics: Statistics, now: int) -> int:
    """Return the milliseconds over which rates are computed; a job that has ended has none."""
    if statistics.rate_base is None or statistics.status.is_terminal_state():
        return 0
    return max(0, now - statistics.rate_base.time)


def _with_rate(name: str, count: int, before: int, elapsed: int) -> dict[str, Value]:
    rate = (count - before) * _SECOND / elapsed if elapsed else 0.0
    return {name: count, f"{name}PerSecond": rate}


def _load(statistics: Statistics, totals: SubtaskTotals, before: SubtaskTotals, elapsed: int) -> tuple[float, float]:
    """Return busy and backpressured time, in milliseconds per second."""
    if not elapsed or statistics.status is not JobStatus.RUNNING:
        return 0.0, 0.0
    busy = min(_SECOND, (totals.busy_ms - before.busy_ms) * _SECOND / elapsed)
    waited = (totals.backpressured_ms - before.backpressured_ms) * _SECOND / elapsed
    return busy, min(waited, _SECOND - busy)


def _fired(totals: SubtaskTotals) -> int:
    return sum(operator.counts.get("numFiredTimers", 0) for operator in totals.operators.values())


def _running_ms(statistics: Statistics, now: int) -> int:
    return now - statistics.status_times[JobStatus.RUNNING] if JobStatus.RUNNING in statistics.status_times else 0
