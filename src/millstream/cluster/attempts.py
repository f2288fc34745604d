"""Check that the reports of an epoch belong to one run: every task has read what the reported attempts have sent.

Promises: an epoch is accepted only when each task has reported once, and each channel (an edge from one upstream
subtask to one downstream subtask) was read as the reported attempt of its sender sent it: that attempt, that number of
blocks; sums are compared, see `block_sums`. An epoch whose reports disagree is run again, a limited number of times.
Does not know: engines, sinks, why a task was attempted twice.

Spark recomputes a lost map output by itself, even if some of the tasks that need it have read it already. Without this
check one task could process the first attempt and another one the second. If the two differ (a random key, answers in
another order), records would be lost or duplicated."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from millstream.engine.contract import EpochResult
from millstream.errors import ExternalError, InternalError
from millstream.graph.execution_plan import ExecutionPlan
from millstream.runtime.block_sums import add_sums
from millstream.runtime.report import TaskReport

_log = logging.getLogger("millstream.job")

RUNS = 10  # of an epoch, before disagreeing reports count as its failure

Reports = Sequence[TaskReport]


class AttemptsDisagree(ExternalError):
    """In every run of an epoch, tasks read different attempts of another task."""

    hint = "executors are lost in every epoch: see the Spark log for the reason"

    def __init__(self, epoch: int, runs: int, example: str) -> None:
        self.epoch, self.runs = epoch, runs
        super().__init__(f"epoch {epoch} was run {runs} times, and its tasks never read the same attempts: {example}")


def run_until_reports_agree(
    plan: ExecutionPlan, epoch: int, run: Callable[[], EpochResult], discard: Callable[[Reports], None]
) -> EpochResult:
    """Run an epoch until its reports agree. `discard` removes what other runs have staged."""
    number = 0
    while True:
        number += 1
        result = run()
        problem = find_disagreement(plan, result.reports)
        if problem is None:
            return result
        discard(result.reports)
        if number == RUNS:
            raise AttemptsDisagree(epoch, RUNS, problem)
        _log.warning("run %s of epoch %s is discarded and the epoch is run again: %s", number, epoch, problem)


def find_disagreement(plan: ExecutionPlan, reports: Reports) -> str | None:
    """Describe the first edge that was not read as it was sent; None if there is none."""
    subtasks = {(report.vertex, report.subtask) for report in reports}
    tasks = {planned.task.vertex: planned.task for planned in plan.vertices}
    expected = sum(task.parallelism for task in tasks.values())
    if not len(subtasks) == len(reports) == expected:
        msg = f"{len(reports)} reports of {len(subtasks)} subtasks, but there are {expected} subtasks"
        raise InternalError(msg)
    reports_of: dict[str, list[TaskReport]] = {vertex: [] for vertex in tasks}
    for report in reports:
        reports_of[report.vertex].append(report)
    for number, edge in enumerate(plan.job.edges):
        sent = add_sums(report.sent.get(number, 0) for report in reports_of[edge.upstream])
        read = add_sums(report.read.get(number, 0) for report in reports_of[edge.downstream])
        if sent != read:
            reader, sender = tasks[edge.downstream].name, tasks[edge.upstream].name
            return f"{reader} has read other blocks of {sender} than the attempts that reported have sent"
    return None
