"""Summary of an accepted epoch, from the reports of its subtasks.

Promises: a pure function of the plan and the reports.
Does not know: listeners."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from millstream.cluster.hot_keys import KeySample
from millstream.cluster.job_events import EpochDone, OperatorEpoch, SubtaskEpoch
from millstream.cluster.sources import EpochPlan
from millstream.engine.contract import EpochResult
from millstream.event_time.watermarks import MIN_WATERMARK
from millstream.graph.execution_plan import ExecutionPlan
from millstream.job.accumulators import merge_accumulators
from millstream.runtime.metrics import combine_values
from millstream.runtime.report import TaskReport
from millstream.runtime.task import TaskSpec
from millstream.state.handles import Lineage


def summarize_epoch(
    program: ExecutionPlan,
    plan: EpochPlan,
    result: EpochResult,
    seconds: float,
    lags: Mapping[str, int],
    lineages: Mapping[str, Sequence[Lineage]],
) -> EpochDone:
    """Return an accepted epoch as listeners get it. `lags` are those of sources after the epoch, and `lineages` are the
    state files of operators."""
    metrics: dict[str, dict[str, Any]] = {}
    tasks = {planned.task.vertex: planned.task for planned in program.vertices}
    busy: dict[str, float] = {}
    subtasks: dict[str, list[SubtaskEpoch]] = {}
    waits = _downstream_waits(program, result.reports) if any(lags.values()) else {}
    for report in result.reports:
        for operator, counts in report.metrics.items():
            totals = metrics.setdefault(operator, {})
            for name, count in counts.items():
                totals[name] = combine_values(totals[name], count) if name in totals else count
        task, busy_ms = tasks[report.vertex], report.busy * 1000
        busy[task.name] = busy.get(task.name, 0.0) + busy_ms
        wait_ms = min(waits.get(report.vertex, 0.0), max(0.0, seconds * 1000 - busy_ms))
        summary = _summarize_subtask(task, report, busy_ms, wait_ms, lineages)
        subtasks.setdefault(report.vertex, []).append(summary)
    stacks: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    for report in result.reports:
        if report.stacks:
            stacks.setdefault(report.vertex, []).append((report.subtask, report.stacks))
    samples: dict[str, list[Any]] = {}
    for report in result.reports:
        for operator, records in report.samples.items():
            samples.setdefault(operator, []).extend(records)
    keys: dict[str, list[KeySample]] = {}
    for report in result.reports:
        if report.keys is not None:
            operator = tasks[report.vertex].operators[0].id
            records_in = report.metrics.get(operator, {}).get("records_in", 0)
            keys.setdefault(operator, []).append(KeySample(report.subtask, records_in, *report.keys))
    return EpochDone(
        epoch=plan.epoch,
        records=sum(metrics.get(operator, {}).get("records_in", 0) for operator in plan.sources),
        duration_ms=seconds * 1000,
        watermark=min((report.watermark for report in result.reports), default=MIN_WATERMARK),
        lag=sum(lags.values()) if lags else None,
        busy_ms=sum(busy.values()),
        metrics=metrics,
        accumulators=functools.reduce(merge_accumulators, (dict(report.accumulators) for report in result.reports), {}),
        vertex_busy_ms=busy,
        subtasks={vertex: tuple(epochs) for vertex, epochs in subtasks.items()},
        source_lags=lags,
        stacks={vertex: tuple(reported) for vertex, reported in stacks.items()},
        samples=samples,
        keys=keys,
    )


def _downstream_waits(program: ExecutionPlan, reports: Sequence[TaskReport]) -> dict[str, float]:
    """Return how long subtasks of each vertex wait for the levels after their own, in milliseconds.

    An epoch ends with its last level, and only then a subtask gets more input."""
    levels = {planned.task.vertex: planned.level for planned in program.vertices}
    longest = [0.0] * program.levels
    for report in reports:
        longest[levels[report.vertex]] = max(longest[levels[report.vertex]], report.busy * 1000)
    return {vertex: sum(longest[level + 1 :]) for vertex, level in levels.items()}


def _summarize_subtask(
    task: TaskSpec, report: TaskReport, busy_ms: float, wait_ms: float, lineages: Mapping[str, Sequence[Lineage]]
) -> SubtaskEpoch:
    """Return the records that entered the first operator of the chain, and those that its operators sent away."""
    senders = {edge.source for edge in task.outputs}
    return SubtaskEpoch(
        report.subtask,
        report.metrics.get(task.operators[0].id, {}).get("records_in", 0),
        sum(report.metrics.get(task.operators[index].id, {}).get("records_out", 0) for index in senders),
        busy_ms,
        report.watermark,
        report.bytes_in,
        report.bytes_out,
        wait_ms,
        {node.id: _summarize_operator(task, index, report, lineages) for index, node in enumerate(task.operators)},
    )


def _summarize_operator(
    task: TaskSpec, index: int, report: TaskReport, lineages: Mapping[str, Sequence[Lineage]]
) -> OperatorEpoch:
    """Return one operator of a chain; it reads what the operators before it in the chain emit."""
    operator = task.operators[index].id
    counts = report.metrics.get(operator, {})
    if index > 0:
        before = [task.operators[edge.source].id for edge in task.chained if edge.target == index and edge.tag is None]
        read = sum(report.metrics.get(upstream, {}).get("records_out", 0) for upstream in before)
        counts = {"records_in": read, **counts}
    memory = report.memory.get(operator)
    lineage = lineages.get(operator)
    return OperatorEpoch(
        counts,
        memory.watermark if memory is not None else None,
        memory.emitted_watermark if memory is not None else None,
        0 if lineage is None else lineage[report.subtask].size,
    )
