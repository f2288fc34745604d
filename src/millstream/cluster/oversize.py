"""An epoch that was too large for memory or for its deadline is planned smaller.

Promises: after such a failure the next epochs are smaller, and the plan of the epoch that failed is replaced by one
that begins at the same positions and reads less, if its sources can plan less. The new plan is durable before it runs;
it writes to the log and notifies the listeners.
Does not know: engines, restarts."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from millstream.cluster.checkpoints import Checkpoints
from millstream.cluster.failures import EpochTimedOut
from millstream.cluster.observations import EpochCut
from millstream.cluster.sizing import EpochSize
from millstream.cluster.sources import EpochPlan, Sources

_log = logging.getLogger("millstream.job")


def is_for_size(problem: BaseException) -> bool:
    """Whether an epoch may have failed because it was too large: for its deadline, or for memory.

    An error of a task or an engine says so by a true attribute `out_of_memory`."""
    return isinstance(problem, EpochTimedOut) or bool(getattr(problem, "out_of_memory", False))


class Oversize:
    """Remembers which epoch was too large."""

    def __init__(self, observe: Callable[[EpochCut], None]) -> None:
        self.epoch: int | None = None
        self._observe = observe

    def failed(self, plan: EpochPlan, problem: BaseException, size: EpochSize) -> EpochSize:
        """An epoch has failed; gives the size of the next ones."""
        if not is_for_size(problem):
            return size
        self.epoch = plan.epoch
        smaller = size.too_large(plan.records)
        _log.warning("epochs read %s records at most for now: %s", smaller.budget, problem)
        return smaller

    def replay(
        self,
        logged: deque[EpochPlan],
        sources: Sources,
        checkpoints: Checkpoints,
        most: tuple[int, int],
        memory: Mapping[str, Sequence[dict[str, Any]]],
    ) -> EpochPlan:
        """Take the next of the logged plans; one that was too large is replaced by one of `most` records and bytes.

        That is allowed because no checkpoint has included the epoch, so what sinks staged for it was not shown, and
        sinks that do not stage may show output twice. A job that may go back behind committed output is an exception.
        A crash before the new plan is logged replays the old one."""
        plan = logged.popleft()
        if plan.epoch != self.epoch or checkpoints.allow_older:
            sources.replay(plan)
            return plan
        smaller = sources.plan_again(plan, *most, memory)
        if smaller is not plan:
            checkpoints.log_plan(smaller.to_json())
            logged.clear()  # they begin where the old plan ended
            _log.warning("epoch %s reads %s records instead of %s", plan.epoch, smaller.records, plan.records)
            self._observe(EpochCut(plan.epoch, plan.records, smaller.records))
        return smaller
