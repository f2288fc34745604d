"""What the reports of an epoch say together.

Promises: a value made of the plan and the reports alone.
Does not know: who listens."""

from __future__ import annotations

import functools
from typing import Any

from millstream.cluster.observations import EpochDone
from millstream.cluster.sources import EpochPlan
from millstream.engine.contract import EpochResult
from millstream.event_time.watermarks import MIN_WATERMARK
from millstream.graph.execution_plan import ExecutionPlan
from millstream.job.accumulators import merged
from millstream.runtime.metrics import combined


def epoch_done(
    program: ExecutionPlan, plan: EpochPlan, result: EpochResult, seconds: float, lag: int | None
) -> EpochDone:
    """An accepted epoch as those who listen see it."""
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
