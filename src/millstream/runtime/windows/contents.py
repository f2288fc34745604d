"""The contents of windows: their elements, or the result of a reduce or aggregate function.

Promises: all window operators use the same table and the same aggregation.
Does not know: triggers, merging, when content is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.functions import AggregateFunction, ReduceFunction
from millstream.state.backend import OperatorState
from millstream.state.table import StateTable
from millstream.state.views import AggregatingView, ListView, ReducingView, Scope, split_aggregate
from millstream.types.factory import TypeInformation, Types


@dataclass(frozen=True)
class Contents:
    """Content by window and key. `add(content or None, element)` and `merge(content, content)` return the new content;
    `result` is the result of the function, None if there is none. Without a function, content is a list of elements."""

    table: StateTable
    view_type: Callable[..., Any]
    add: Callable[[Any, Any], Any]
    merge: Callable[[Any, Any], Any]
    result: Callable[[Any], Any]

    def view(self, scope: Scope) -> Any:
        """Return a view of the content of the scope's key and namespace."""
        if self.view_type is ListView:
            return ListView(self.table, scope, None)
        return self.view_type(self.table, scope, None, self.add, self.merge, self.result)

    def elements(self, content: Any) -> list[Any]:
        """Return the elements for the window function; an empty list if it must not be called."""
        if self.view_type is ListView:
            elements: list[Any] = content
            return elements
        result = None if content is None else self.result(content)
        return [] if result is None else [result]


def create_contents(
    state: OperatorState,
    fold: ReduceFunction | AggregateFunction | None,
    input_type: TypeInformation,
    accumulator_type: TypeInformation | None,
    *,
    evictable: bool = False,
) -> Contents:
    """Create the contents of windows; with `evictable`, they are elements with their timestamps."""
    if evictable:
        timed = state.table("window/evictable", Types.LIST(Types.TUPLE([Types.LONG(), input_type])))
        return Contents(timed, ListView, _append, _extend, _identity)
    match fold:
        case None:
            elements = state.table("window/elements", Types.LIST(input_type))
            return Contents(elements, ListView, _append, _extend, _identity)
        case ReduceFunction() as reduce:
            reduce_values = _reduce_or_first(reduce)
            return Contents(
                state.table("window/reduced", input_type), ReducingView, reduce_values, reduce_values, _identity
            )
        case AggregateFunction() as aggregate:
            stored_type = accumulator_type or Types.PICKLED_BYTE_ARRAY()
            return Contents(
                state.table("window/accumulator", stored_type), AggregatingView, *split_aggregate(aggregate)
            )


def _reduce_or_first(function: ReduceFunction) -> Callable[[Any, Any], Any]:
    return lambda reduced, value: value if reduced is None else function.reduce(reduced, value)


def _append(elements: list[Any] | None, element: Any) -> list[Any]:
    if elements is None:
        return [element]
    elements.append(element)
    return elements


def _extend(elements: list[Any], more: list[Any]) -> list[Any]:
    elements.extend(more)
    return elements


def _identity(content: Any) -> Any:
    return content
