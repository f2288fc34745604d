"""Summary of an accepted epoch, from the reports of its subtasks.

Promises: a pure function of the plan and the reports.
Does not know: listeners."""

from __future__ import annotations

import functools
from typing import Any

from millstream.cluster.job_events import EpochDone
from millstream.cluster.sources import EpochPlan
from millstream.engine.contract import EpochResult
from millstream.event_time.watermarks import MIN_WATERMARK
from millstream.graph.execution_plan import ExecutionPlan
from millstream.job.accumulators import merged
from millstream.runtime.metrics import combined


def summarize_epoch(
    program: ExecutionPlan, plan: EpochPlan, result: EpochResult, seconds: float, lag: int | None
) -> EpochDone:
    """Return an accepted epoch as listeners get it."""
    metrics: dict[str, dict[str, Any]] = {}
    names = {planned.task.vertex: planned.task.name for planned in program.vertices}
    busy: dict[str, float] = {}
    for report in result.reports:
        for operator, counts in report.metrics.items():
            totals = metrics.setdefault(operator, {})
            for name, count in counts.items():
                totals[name] = combined(totals[name], count) if name in totals else count
        vertex = names[report.vertex]
        busy[vertex] = busy.get(vertex, 0.0) + report.busy * 1000
    return EpochDone(
        epoch=plan.epoch,
        records=sum(metrics.get(operator, {}).get("records_in", 0) for operator in plan.sources),
        duration_ms=seconds * 1000,
        watermark=min((report.watermark for report in result.reports), default=MIN_WATERMARK),
        lag=lag,
        busy_ms=sum(busy.values()),
        metrics=metrics,
        accumulators=functools.reduce(merged, (dict(report.accumulators) for report in result.reports), {}),
        vertex_busy_ms=busy,
    )
