"""Check that the reports of an epoch belong to one run: every task has read what the reported attempts have sent.

Promises: an epoch is accepted only when each task has reported once, and each channel (an edge from one upstream
subtask to one downstream subtask) was read as the reported attempt of its sender sent it: that attempt, that number of
blocks. An epoch whose reports disagree is run again, a limited number of times.
Does not know: engines, sinks, why a task was attempted twice.

Spark recomputes a lost map output by itself, even if some of the tasks that need it have read it already. Without this
check one task could process the first attempt and another one the second. If the two differ (a random key, answers in
another order), records would be lost or duplicated."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from millstream.engine.contract import EpochResult
from millstream.errors import ExternalError, InternalError
from millstream.graph.execution_plan import ExecutionPlan
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
    """Describe the first channel that was not read as it was sent; None if there is none."""
    by_task = {(report.vertex, report.subtask): report for report in reports}
    tasks = {planned.task.vertex: planned.task for planned in plan.vertices}
    expected = sum(task.parallelism for task in tasks.values())
    if not len(by_task) == len(reports) == expected:
        msg = f"{len(reports)} reports of {len(by_task)} subtasks, but there are {expected} subtasks"
        raise InternalError(msg)
    for number, edge in enumerate(plan.job.edges):
        sender, reader = tasks[edge.upstream], tasks[edge.downstream]
        for upstream in range(sender.parallelism):
            sent = by_task[sender.vertex, upstream]
            counts = sent.sent.get(number, {})
            for subtask in range(reader.parallelism):
                read = by_task[reader.vertex, subtask].read.get((number, upstream), {})
                if read != ({sent.attempt: counts[subtask]} if subtask in counts else {}):
                    return _describe(reader.name, subtask, sender.name, upstream, sent.attempt, read)
    return None


def _describe(reader: str, subtask: int, sender: str, upstream: int, accepted: bytes, read: Mapping[bytes, int]) -> str:
    difference = "another attempt" if set(read) - {accepted} else "another number of blocks"
    return f"{reader} ({subtask + 1}) read {difference} of {sender} ({upstream + 1}) than the one that reported"
