"""Eviction: records of a window are left out before or after it is evaluated.

Promises: the elements after eviction are a subset of those before it, in the same order; aggregation uses only them.
Does not know: where the window keeps its records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.errors import UserError
from millstream.functions import AggregateFunction, ReduceFunction
from millstream.runtime.batch import NO_TIMESTAMP
from millstream.runtime.metrics import UserMetrics
from millstream.runtime.operator import Operator
from millstream.windows.evictors import Evictor, EvictorContext, TimestampedValue

Stored = tuple[int, Any]
Elements = list[TimestampedValue[Any]]


class BadEviction(UserError):
    """An evictor did something else than removing elements."""

    def __init__(self, evictor: object, problem: str) -> None:
        super().__init__(f"{evictor} {problem}", hint="remove from the list in place, keep the rest, return nothing")


class _Context(EvictorContext):
    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    def get_current_processing_time(self) -> int:
        return self._operator.context.now

    def get_metric_group(self) -> Any:
        return UserMetrics(self._operator.context.metrics)

    def get_current_watermark(self) -> int:
        return self._operator.watermark


class Eviction:
    """An evictor, and the fold that is applied to what it leaves. Records are stored as (timestamp, value)."""

    def __init__(
        self, operator: Operator, evictor: Evictor[Any, Any], fold: ReduceFunction | AggregateFunction | None
    ) -> None:
        self._evictor, self._fold = evictor, fold
        self._context = _Context(operator)

    def before(self, stored: list[Stored], window: Any) -> Elements:
        """What is left to evaluate."""
        elements: Elements = [TimestampedValue(value, None if time == NO_TIMESTAMP else time) for time, value in stored]
        self._evict(self._evictor.evict_before, elements, window)
        return elements

    def evaluated(self, elements: Elements) -> list[Any] | None:
        """What the window function is given: the values, or what they fold to; None when it is not to be called.

        Nothing reduces to nothing; an aggregate of nothing is that of a new accumulator."""
        values = [element.value for element in elements]
        match self._fold:
            case ReduceFunction() as reduce:
                return [_reduced(reduce, values)] if values else None
            case AggregateFunction() as aggregate:
                accumulator = aggregate.create_accumulator()
                for value in values:
                    accumulator = aggregate.add(value, accumulator)
                return [aggregate.get_result(accumulator)]
        return values

    def after(self, elements: Elements, window: Any) -> list[Stored]:
        """What the window keeps after it was evaluated."""
        self._evict(self._evictor.evict_after, elements, window)
        return [(NO_TIMESTAMP if each.timestamp is None else each.timestamp, each.value) for each in elements]

    def _evict(self, evict: Callable[..., Any], elements: Elements, window: Any) -> None:
        was = list(elements)
        answer = evict(elements, len(elements), window, self._context)
        if answer is not None:
            raise BadEviction(self._evictor, f"returned {answer!r}")
        following = iter(was)
        for element in elements:
            if not any(element is other for other in following):  # consumes what was removed: order counts
                raise BadEviction(self._evictor, f"left {element!r}, which it was not given at that place")


def _reduced(function: ReduceFunction, values: list[Any]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = function.reduce(result, value)
    return result
