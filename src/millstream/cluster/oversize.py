"""An epoch that was too large for memory or for its deadline is planned smaller.

Promises: after such a failure the next epochs are smaller, and the plan of the epoch that failed is replaced by one
that begins at the same positions and reads less, if its sources can plan less. The new plan is durable before it runs;
it writes to the log and notifies the listeners.
Does not know: engines, restarts."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from millstream.cluster.checkpoints import Checkpoints
from millstream.cluster.failures import EpochTimedOut
from millstream.cluster.observations import EpochCut
from millstream.cluster.sizing import EpochSize
from millstream.cluster.sources import EpochPlan, Sources
from millstream.runtime.memory import SubtaskMemory

_log = logging.getLogger("millstream.job")


def is_for_size(problem: BaseException) -> bool:
    """Whether an epoch may have failed because it was too large: for its deadline, or for memory.

    An error of a task or an engine says so by a true attribute `out_of_memory`."""
    return isinstance(problem, EpochTimedOut) or bool(getattr(problem, "out_of_memory", False))


class Oversize:
    """Remembers which epoch was too large, until that epoch or a later one is accepted."""

    def __init__(self, observe: Callable[[EpochCut], None]) -> None:
        self.epoch: int | None = None  # the epoch whose plan is to be replaced
        self._most = 0  # the records of its next plan
        self._failed: int | None = None  # the last epoch that failed for its size
        self._uncut: int | None = None  # an epoch that no source can plan smaller
        self._observe = observe

    def failed(self, plan: EpochPlan, problem: BaseException, size: EpochSize) -> EpochSize:
        """An epoch has failed; gives the size of the next ones.

        An epoch as small as others that succeeded is repeated once as it is: a lost executor or a slow external system
        may be the reason. An epoch that reads nothing, or that cannot be planned smaller, changes no size."""
        records = plan.most_records
        if not is_for_size(problem) or records == 0 or plan.epoch == self._uncut:
            return size
        repeated, self._failed = plan.epoch == self._failed, plan.epoch
        if size.is_small(records) and not repeated:
            _log.warning("epoch %s is repeated as it is, because it is small: %s", plan.epoch, problem)
            return size
        smaller = size.too_large(records)
        self.epoch, self._most = plan.epoch, smaller.budget
        _log.warning("epochs read %s records at most for now: %s", smaller.budget, problem)
        return smaller

    def accepted(self, epoch: int) -> None:
        """An epoch has succeeded. A replayed epoch before the one that was too large says nothing about that one."""
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
        """Take the next of the logged plans; one that was too large is replaced by one of `most` records and bytes.

        That is allowed because no checkpoint has included the epoch, so what sinks staged for it was not shown, and
        sinks that do not stage may show output twice. A job that may go back behind committed output is an exception.
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
        self._observe(EpochCut(plan.epoch, plan.records, smaller.records))
        return smaller
