"""What a window holds: its elements, or what they fold to.

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
    """Content by window and key. `add(content or None, element)` and `merge(content, content)` give the new content;
    `result` is what comes out of a fold, None where there is nothing; without a fold content is a list of elements."""

    table: StateTable
    view_type: Callable[..., Any]
    add: Callable[[Any, Any], Any]
    merge: Callable[[Any, Any], Any]
    result: Callable[[Any], Any]

    def view(self, scope: Scope) -> Any:
        """The content of the scope's key and namespace."""
        if self.view_type is ListView:
            return ListView(self.table, scope, None)
        return self.view_type(self.table, scope, None, self.add, self.merge, self.result)

    def elements(self, content: Any) -> list[Any]:
        """What a window function is called with; nothing where it is not called."""
        if self.view_type is ListView:
            elements: list[Any] = content
            return elements
        found = None if content is None else self.result(content)
        return [] if found is None else [found]


def contents(
    state: OperatorState,
    fold: ReduceFunction | AggregateFunction | None,
    input_type: TypeInformation,
    accumulator_type: TypeInformation | None,
    *,
    evictable: bool = False,
) -> Contents:
    """The contents of windows with a fold, or with none; what is `evictable` is elements with their times."""
    if evictable:
        timed = state.table("window/evictable", Types.LIST(Types.TUPLE([Types.LONG(), input_type])))
        return Contents(timed, ListView, _appended, _extended, _itself)
    match fold:
        case None:
            elements = state.table("window/elements", Types.LIST(input_type))
            return Contents(elements, ListView, _appended, _extended, _itself)
        case ReduceFunction() as reduce:
            folded = _reducing(reduce)
            return Contents(state.table("window/reduced", input_type), ReducingView, folded, folded, _itself)
        case AggregateFunction() as aggregate:
            kind = accumulator_type or Types.PICKLED_BYTE_ARRAY()
            return Contents(state.table("window/accumulator", kind), AggregatingView, *split_aggregate(aggregate))


def _reducing(function: ReduceFunction) -> Callable[[Any, Any], Any]:
    return lambda one, other: other if one is None else function.reduce(one, other)


def _appended(elements: list[Any] | None, element: Any) -> list[Any]:
    if elements is None:
        return [element]
    elements.append(element)
    return elements


def _extended(one: list[Any], other: list[Any]) -> list[Any]:
    one.extend(other)
    return one


def _itself(content: Any) -> Any:
    return content
