"""Orders of rows: sort keys in Python for any ORDER BY, and a stable sort of rows by integer keys.

Promises: the order of ORDER BY, with any columns, directions and orders of NULL; rows with equal keys keep their order.
Does not know: operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import total_ordering
from typing import Any

import numpy as np

Order = tuple[tuple[int, bool, bool], ...]
_MIN_PACKED_ROWS = 512  # with fewer rows, packing costs more than it saves


@total_ordering
class Backwards:
    """A value with the reverse order."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Backwards) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backwards) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


def create_sort_key(order: Order) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return a function that computes the sort key of a row; the order has (column, ascending, nulls first)."""
    parts = [(column, ascending, 0 if nulls_first else 2) for column, ascending, nulls_first in order]

    def key(row: tuple[Any, ...]) -> tuple[Any, ...]:
        key_parts: list[Any] = []
        for column, ascending, null in parts:
            value = row[column]
            if value is None:
                key_parts.append((null, None))
            elif ascending:
                key_parts.append((1, value))
            else:
                key_parts.append((1, -value if type(value) in (int, float) else Backwards(value)))
        return tuple(key_parts)

    return key


def sort_stably(keys: Sequence[np.ndarray]) -> np.ndarray:
    """Return the indexes of rows sorted by keys, the most significant key last; like `numpy.lexsort`.

    If the keys and the row index fit into 63 bits, they are packed into one integer: sorting integers is much faster
    than sorting indexes by several keys."""
    count = len(keys[0])
    if len(keys) == 1:
        return np.argsort(keys[0], kind="stable")
    if count < _MIN_PACKED_ROWS:
        return np.lexsort(keys)
    bits = (count - 1).bit_length()
    total, parts = bits, []
    for key in keys:
        least = int(key.min())
        width = (int(key.max()) - least).bit_length()
        parts.append((key, least, width))
        total += width
    if total > 63:
        return np.lexsort(keys)
    packed = np.zeros(count, dtype=np.int64)
    for key, least, width in reversed(parts):
        if width:
            packed = (packed << width) | (key.astype(np.int64, copy=False) - least)
    packed = (packed << bits) | np.arange(count)
    packed.sort()
    return packed & ((1 << bits) - 1)
