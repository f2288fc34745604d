"""Eviction: removes records of a window before or after it is evaluated.

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
    """An evictor did something other than remove elements."""

    def __init__(self, evictor: object, problem: str) -> None:
        super().__init__(
            f"{evictor} {problem}", hint="remove elements from the list in place, do not add any, and return None"
        )


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
    """An evictor, and the function that aggregates the remaining records. Records are stored as (timestamp, value)."""

    def __init__(
        self, operator: Operator, evictor: Evictor[Any, Any], fold: ReduceFunction | AggregateFunction | None
    ) -> None:
        self._evictor, self._fold = evictor, fold
        self._context = _Context(operator)

    def before(self, stored: list[Stored], window: Any) -> Elements:
        """Return the elements to evaluate."""
        elements: Elements = [TimestampedValue(value, None if time == NO_TIMESTAMP else time) for time, value in stored]
        self._evict(self._evictor.evict_before, elements, window)
        return elements

    def evaluate(self, elements: Elements) -> list[Any] | None:
        """Return the input of the window function: the values, or their aggregate; None if it must not be called.

        Without values there is no reduced value; an aggregate is then that of a new accumulator."""
        values = [element.value for element in elements]
        match self._fold:
            case ReduceFunction() as reduce:
                return [_reduce_all(reduce, values)] if values else None
            case AggregateFunction() as aggregate:
                accumulator = aggregate.create_accumulator()
                for value in values:
                    accumulator = aggregate.add(value, accumulator)
                return [aggregate.get_result(accumulator)]
        return values

    def after(self, elements: Elements, window: Any) -> list[Stored]:
        """Return the elements that the window keeps after it was evaluated."""
        self._evict(self._evictor.evict_after, elements, window)
        return [
            (NO_TIMESTAMP if element.timestamp is None else element.timestamp, element.value) for element in elements
        ]

    def _evict(self, evict: Callable[..., Any], elements: Elements, window: Any) -> None:
        elements_before = list(elements)
        result = evict(elements, len(elements), window, self._context)
        if result is not None:
            raise BadEviction(self._evictor, f"returned {result!r}")
        remaining_before = iter(elements_before)
        for element in elements:
            if not any(
                element is element_before for element_before in remaining_before
            ):  # skips removed elements; the order must be kept
                raise BadEviction(self._evictor, f"added or moved {element!r} in the list")


def _reduce_all(function: ReduceFunction, values: list[Any]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = function.reduce(result, value)
    return result
