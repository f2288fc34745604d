"""Aggregates that return a bitmap or its cardinality.

Promises: NULLs are ignored; without other values the result is NULL. Retracted values leave no trace.
Does not know: how a bitmap is stored as bytes; groups, windows, state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from millstream.sql.functions.aggregation import Accumulator, Aggregation, aggregate
from millstream.sql.functions.bitmaps import build, combine
from millstream.sql.types import data_types as t
from millstream.types.roaring import decode

_BUFFER_SIZE = 1024  # integers that are added to the bitmap together


class _Bitmaps(Aggregation):
    """An aggregate whose result is a bitmap or, with `returns_cardinality`, the cardinality of it."""

    returns_cardinality: ClassVar[bool] = False

    @classmethod
    def result_type(cls, arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return BITMAP or BIGINT."""
        return (
            (t.BIGINT if cls.returns_cardinality else t.BITMAP)
            if len(arg_types) == 1 and cls._is_argument(arg_types[0])
            else None
        )

    @classmethod
    def _is_argument(cls, data_type: t.DataType) -> bool:
        return isinstance(data_type, t.BitmapType)

    @abstractmethod
    def _bitmap(self, acc: Accumulator) -> bytes | None:
        """Return the bitmap; None if there are no values."""

    def value(self, acc: Accumulator) -> Any:
        """Return the bitmap or its cardinality."""
        result = self._bitmap(acc)
        return decode(result).cardinality() if self.returns_cardinality and result is not None else result


def _change_counts(counts: dict[int, int], numbers: Iterable[int], by: int) -> None:
    for number in numbers:
        count = counts.get(number, 0) + by
        if count:
            counts[number] = count
        else:
            del counts[number]


class _Build(_Bitmaps):
    """A bitmap and a buffer of integers to add to it; with retractions, the count of each integer."""

    @classmethod
    def _is_argument(cls, data_type: t.DataType) -> bool:
        return isinstance(data_type, t.TinyIntType | t.SmallIntType | t.IntType)

    def create(self) -> Accumulator:
        """Return an accumulator without integers."""
        return [{}] if self.retracts else [None, []]

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Add a value."""
        number = values[0]
        if number is None:
            return
        if self.retracts:
            _change_counts(acc[0], (number,), 1)
            return
        acc[1].append(number)
        if len(acc[1]) >= _BUFFER_SIZE:
            acc[:] = [self._bitmap(acc), []]

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Retract a value."""
        if values[0] is not None:
            _change_counts(acc[0], values, -1)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Merge the integers."""
        if self.retracts:
            for number, count in other[0].items():
                _change_counts(acc[0], (number,), count)
            return
        if other[0] is not None:
            acc[0] = other[0] if acc[0] is None else combine("OR", acc[0], other[0])
        for number in other[1]:
            self.add(acc, (number,))

    def _bitmap(self, acc: Accumulator) -> bytes | None:
        if self.retracts:
            numbers = [number for number, count in acc[0].items() if count > 0]
            return build(numbers) if numbers else None
        if not acc[1]:
            return None if acc[0] is None else bytes(acc[0])
        buffered = build(acc[1])
        return buffered if acc[0] is None else combine("OR", acc[0], buffered)


class _Combine(_Bitmaps):
    """The combination of all bitmaps so far; with retractions, the number of bitmaps and the count of each integer."""

    operator: ClassVar[str]  # AND, OR or XOR

    def create(self) -> Accumulator:
        """Return an accumulator without bitmaps."""
        return [0, {}] if self.retracts else [None]

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Add a value."""
        bitmap = values[0]
        if bitmap is None:
            return
        if self.retracts:
            self._count(acc, bitmap, 1)
        else:
            acc[0] = bitmap if acc[0] is None else combine(self.operator, acc[0], bitmap)

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Retract a value."""
        if values[0] is not None:
            self._count(acc, values[0], -1)

    def _count(self, acc: Accumulator, bitmap: bytes, by: int) -> None:
        acc[0] += by
        _change_counts(acc[1], decode(bitmap).values().tolist(), by)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Merge the bitmaps."""
        if not self.retracts:
            self.add(acc, (other[0],))
            return
        acc[0] += other[0]
        for number, count in other[1].items():
            _change_counts(acc[1], (number,), count)

    def _bitmap(self, acc: Accumulator) -> bytes | None:
        if not self.retracts:
            return None if acc[0] is None else bytes(acc[0])
        if acc[0] <= 0:
            return None
        match self.operator:
            case "AND":
                return build(number for number, count in acc[1].items() if count >= acc[0])
            case "OR":
                return build(number for number, count in acc[1].items() if count > 0)
        return build(number for number, count in acc[1].items() if count % 2)


@aggregate
class BuildAgg(_Build):
    """BITMAP_BUILD_AGG."""

    name = "BITMAP_BUILD_AGG"
    doc = "Returns the bitmap of the integers."
    syntax = "BITMAP_BUILD_AGG(int)"


@aggregate
class BuildCardinalityAgg(_Build):
    """BITMAP_BUILD_CARDINALITY_AGG."""

    name = "BITMAP_BUILD_CARDINALITY_AGG"
    doc = "Returns the number of distinct integers."
    syntax = "BITMAP_BUILD_CARDINALITY_AGG(int)"
    returns_cardinality = True


@aggregate
class AndAgg(_Combine):
    """BITMAP_AND_AGG."""

    name = "BITMAP_AND_AGG"
    doc = "Returns the bitmap of the integers that are in all bitmaps."
    syntax = "BITMAP_AND_AGG(bitmap)"
    operator = "AND"


@aggregate
class AndCardinalityAgg(AndAgg):
    """BITMAP_AND_CARDINALITY_AGG."""

    name = "BITMAP_AND_CARDINALITY_AGG"
    doc = "Returns the number of integers that are in all bitmaps."
    syntax = "BITMAP_AND_CARDINALITY_AGG(bitmap)"
    returns_cardinality = True


@aggregate
class OrAgg(_Combine):
    """BITMAP_OR_AGG."""

    name = "BITMAP_OR_AGG"
    doc = "Returns the bitmap of the integers that are in at least one of the bitmaps."
    syntax = "BITMAP_OR_AGG(bitmap)"
    operator = "OR"


@aggregate
class OrCardinalityAgg(OrAgg):
    """BITMAP_OR_CARDINALITY_AGG."""

    name = "BITMAP_OR_CARDINALITY_AGG"
    doc = "Returns the number of integers that are in at least one of the bitmaps."
    syntax = "BITMAP_OR_CARDINALITY_AGG(bitmap)"
    returns_cardinality = True


@aggregate
class XorAgg(_Combine):
    """BITMAP_XOR_AGG."""

    name = "BITMAP_XOR_AGG"
    doc = "Returns the bitmap of the integers that are in an odd number of the bitmaps."
    syntax = "BITMAP_XOR_AGG(bitmap)"
    operator = "XOR"


@aggregate
class XorCardinalityAgg(XorAgg):
    """BITMAP_XOR_CARDINALITY_AGG."""

    name = "BITMAP_XOR_CARDINALITY_AGG"
    doc = "Returns the number of integers that are in an odd number of the bitmaps."
    syntax = "BITMAP_XOR_CARDINALITY_AGG(bitmap)"
    returns_cardinality = True
