"""Replaces plans of epochs that were too large for memory or for their deadline by smaller plans.

Promises: after such a failure the next epochs are smaller, and the plan of the failed epoch is replaced by one that
begins at the same positions and reads less, if its sources can plan less. The new plan is logged before it runs, and
listeners are notified.
Does not know: engines, restarts."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from millstream.cluster.checkpoints import Checkpoints
from millstream.cluster.failures import EpochTimedOut
from millstream.cluster.job_events import EpochCut
from millstream.cluster.sizing import EpochSize
from millstream.cluster.sources import EpochPlan, Sources
from millstream.runtime.memory import SubtaskMemory

_log = logging.getLogger("millstream.job")


def is_too_large(problem: BaseException) -> bool:
    """Whether an epoch may have failed because it was too large for its deadline or for memory.

    An error of a task or an engine has a true attribute `out_of_memory` in that case."""
    return isinstance(problem, EpochTimedOut) or bool(getattr(problem, "out_of_memory", False))


class Oversize:
    """Remembers which epoch was too large, until that epoch or a later one is accepted."""

    def __init__(self, notify: Callable[[EpochCut], None]) -> None:
        self.epoch: int | None = None  # the epoch whose plan is to be replaced
        self._most = 0  # the records of its next plan
        self._failed: int | None = None  # the last epoch that failed because of its size
        self._uncut: int | None = None  # an epoch that no source can plan smaller
        self._notify = notify

    def on_failure(self, plan: EpochPlan, problem: BaseException, size: EpochSize) -> EpochSize:
        """Return the size of the next epochs after one has failed.

        An epoch that is as small as others that succeeded is repeated once unchanged, because a lost executor or a slow
        external system may be the reason. An epoch that reads nothing, or that cannot be planned smaller, changes no
        size."""
        records = plan.most_records
        if not is_too_large(problem) or records == 0 or plan.epoch == self._uncut:
            return size
        repeated, self._failed = plan.epoch == self._failed, plan.epoch
        if size.is_small(records) and not repeated:
            _log.warning("epoch %s is repeated as it is, because it is small: %s", plan.epoch, problem)
            return size
        smaller = size.too_large(records)
        self.epoch, self._most = plan.epoch, smaller.budget
        _log.warning("epochs read %s records at most for now: %s", smaller.budget, problem)
        return smaller

    def on_accepted(self, epoch: int) -> None:
        """Forget the epoch that was too large when it, or a later one, is accepted."""
        if self._failed is not None and epoch >= self._failed:
            self.epoch = self._failed = self._uncut = None

    def replay(
        self,
        logged: deque[EpochPlan],
        sources: Sources,
        checkpoints: Checkpoints,
        most: tuple[int, int],
        memory: Mapping[str, Sequence[SubtaskMemory]],
    ) -> EpochPlan:
        """Take the next logged plan; one that was too large is replaced by one of at most `most` records and bytes.

        That is allowed because no checkpoint contains the epoch: output that sinks staged for it was never visible, and
        sinks that do not stage may write output twice. A job that may restore a checkpoint that is older than committed
        output is an exception.
        The logged plans after it begin where the old plan ended, so they are dropped and those epochs get new plans;
        a reader of the log does the same, because the new plan has the number of an earlier record.
        A crash before the new plan is logged replays the old one."""
        plan = logged.popleft()
        if plan.epoch != self.epoch or checkpoints.allow_older:
            self._uncut = plan.epoch if plan.epoch == self.epoch else self._uncut
            sources.replay(plan)
            return plan
        records, size = most
        smaller = sources.plan_again(plan, min(records, self._most), size, memory)
        if smaller is plan:
            self._uncut = plan.epoch
            return plan
        checkpoints.log_plan(smaller.to_json())
        logged.clear()
        _log.warning("epoch %s reads %s records instead of %s", plan.epoch, smaller.records, plan.records)
        self._notify(EpochCut(plan.epoch, plan.records, smaller.records))
        return smaller
