"""Calls functions that listen to the iteration they are part of.

Promises: a listener is called once for each round, after all records of the round; what it returns is emitted as
results of the function are, before event time comes to its end.
Does not know: when a round ends or an iteration terminates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from millstream.functions import IterationContext, IterationListener
from millstream.runtime import rowwise
from millstream.runtime.batch import NO_TIMESTAMP
from millstream.runtime.loops import LoopWork, Phase
from millstream.runtime.operator import OperatorContext


class Aggregates(IterationContext):
    """The aggregates in the plan of the epoch."""

    def __init__(self, aggregates: Mapping[str, float]) -> None:
        self._aggregates = aggregates

    def get_aggregate(self, name: str) -> float | None:
        """Return an aggregate of the round before."""
        return self._aggregates.get(name)

    def get_aggregates(self) -> Mapping[str, float]:
        """Return all aggregates of the round before."""
        return dict(self._aggregates)


class Listener:
    """The listener of one operator."""

    def __init__(self, context: OperatorContext, function: IterationListener) -> None:
        self._context, self._function = context, function

    def end_round(self) -> None:
        """Notify the function if a round ends with this epoch."""
        work = self._context.work
        if isinstance(work, LoopWork) and work.ends_round:
            self._call(work, self._function.on_epoch_watermark_incremented, work.round)

    def terminate(self) -> None:
        """Notify the function if the iteration terminates."""
        work = self._context.work
        if isinstance(work, LoopWork) and work.phase is Phase.CLOSE:
            self._call(work, self._function.on_iteration_terminated)

    def _call(self, work: LoopWork, method: Callable[..., Any], *arguments: Any) -> None:
        context = self._context
        context.scope.key = None
        collector = rowwise.Collector(context)

        def call() -> None:
            collector.take(method(*arguments, Aggregates(work.aggregates)), NO_TIMESTAMP)

        rowwise.call_user_code(context, call)
        collector.flush()
