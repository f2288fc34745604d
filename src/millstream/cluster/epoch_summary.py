"""Summary of an accepted epoch, from the reports of its subtasks.

Promises: a pure function of the plan and the reports.
Does not know: listeners."""

from __future__ import annotations

import functools
from typing import Any

from millstream.cluster.job_events import EpochDone, SubtaskEpoch
from millstream.cluster.sources import EpochPlan
from millstream.engine.contract import EpochResult
from millstream.event_time.watermarks import MIN_WATERMARK
from millstream.graph.execution_plan import ExecutionPlan
from millstream.job.accumulators import merge_accumulators
from millstream.runtime.metrics import combine_values
from millstream.runtime.report import TaskReport
from millstream.runtime.task import TaskSpec


def summarize_epoch(
    program: ExecutionPlan, plan: EpochPlan, result: EpochResult, seconds: float, lag: int | None
) -> EpochDone:
    """Return an accepted epoch as listeners get it."""
    metrics: dict[str, dict[str, Any]] = {}
    tasks = {planned.task.vertex: planned.task for planned in program.vertices}
    busy: dict[str, float] = {}
    subtasks: dict[str, list[SubtaskEpoch]] = {}
    for report in result.reports:
        for operator, counts in report.metrics.items():
            totals = metrics.setdefault(operator, {})
            for name, count in counts.items():
                totals[name] = combine_values(totals[name], count) if name in totals else count
        task, busy_ms = tasks[report.vertex], report.busy * 1000
        busy[task.name] = busy.get(task.name, 0.0) + busy_ms
        subtasks.setdefault(report.vertex, []).append(_summarize_subtask(task, report, busy_ms))
    return EpochDone(
        epoch=plan.epoch,
        records=sum(metrics.get(operator, {}).get("records_in", 0) for operator in plan.sources),
        duration_ms=seconds * 1000,
        watermark=min((report.watermark for report in result.reports), default=MIN_WATERMARK),
        lag=lag,
        busy_ms=sum(busy.values()),
        metrics=metrics,
        accumulators=functools.reduce(merge_accumulators, (dict(report.accumulators) for report in result.reports), {}),
        vertex_busy_ms=busy,
        subtasks={vertex: tuple(epochs) for vertex, epochs in subtasks.items()},
    )


def _summarize_subtask(task: TaskSpec, report: TaskReport, busy_ms: float) -> SubtaskEpoch:
    """Return the records that entered the first operator of the chain, and those that its operators sent away."""
    senders = {edge.source for edge in task.outputs}
    return SubtaskEpoch(
        report.subtask,
        report.metrics.get(task.operators[0].id, {}).get("records_in", 0),
        sum(report.metrics.get(task.operators[index].id, {}).get("records_out", 0) for index in senders),
        busy_ms,
        report.watermark,
    )
