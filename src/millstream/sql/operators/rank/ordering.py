"""Rows in order: keys that Python can compare, for any columns, directions and places of NULL.

Promises: the order of ORDER BY; equal keys keep the order in which rows came.
Does not know: operators."""

from __future__ import annotations

from collections.abc import Callable
from functools import total_ordering
from typing import Any

Order = tuple[tuple[int, bool, bool], ...]


@total_ordering
class Backwards:
    """A value that sorts the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Backwards) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backwards) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


def sort_key(order: Order) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """The key of a row in an order of (column, ascending, nulls first)."""
    parts = [(column, ascending, 0 if nulls_first else 2) for column, ascending, nulls_first in order]

    def key(row: tuple[Any, ...]) -> tuple[Any, ...]:
        made: list[Any] = []
        for column, ascending, null in parts:
            value = row[column]
            if value is None:
                made.append((null, None))
            elif ascending:
                made.append((1, value))
            else:
                made.append((1, -value if type(value) in (int, float) else Backwards(value)))
        return tuple(made)

    return key
