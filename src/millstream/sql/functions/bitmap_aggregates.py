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
    """The result is the bitmap of `_bitmap`, or its cardinality."""

    counted: ClassVar[bool] = False

    @classmethod
    def result_type(cls, arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return BITMAP or BIGINT."""
        return (t.BIGINT if cls.counted else t.BITMAP) if len(arg_types) == 1 and cls._takes(arg_types[0]) else None

    @classmethod
    def _takes(cls, data_type: t.DataType) -> bool:
        return isinstance(data_type, t.BitmapType)

    @abstractmethod
    def _bitmap(self, acc: Accumulator) -> bytes | None:
        """Return the bitmap; None if there are no values."""

    def value(self, acc: Accumulator) -> Any:
        """Return the bitmap or its cardinality."""
        result = self._bitmap(acc)
        return decode(result).cardinality() if self.counted and result is not None else result


def _change(counts: dict[int, int], numbers: Iterable[int], by: int) -> None:
    for each in numbers:
        count = counts.get(each, 0) + by
        if count:
            counts[each] = count
        else:
            del counts[each]


class _Build(_Bitmaps):
    """A bitmap and a buffer of integers to add to it; with retractions, the count of each integer."""

    @classmethod
    def _takes(cls, data_type: t.DataType) -> bool:
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
            _change(acc[0], (number,), 1)
            return
        acc[1].append(number)
        if len(acc[1]) >= _BUFFER_SIZE:
            acc[:] = [self._bitmap(acc), []]

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Retract a value."""
        if values[0] is not None:
            _change(acc[0], values, -1)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Merge the integers."""
        if self.retracts:
            for number, count in other[0].items():
                _change(acc[0], (number,), count)
            return
        if other[0] is not None:
            acc[0] = other[0] if acc[0] is None else combine("OR", acc[0], other[0])
        for number in other[1]:
            self.add(acc, (number,))

    def _bitmap(self, acc: Accumulator) -> bytes | None:
        if self.retracts:
            known = [number for number, count in acc[0].items() if count > 0]
            return build(known) if known else None
        if not acc[1]:
            return None if acc[0] is None else bytes(acc[0])
        waiting = build(acc[1])
        return waiting if acc[0] is None else combine("OR", acc[0], waiting)


class _Merged(_Bitmaps):
    """The combination of all bitmaps so far; with retractions, the number of bitmaps and the count of each integer."""

    how: ClassVar[str]

    def create(self) -> Accumulator:
        """Return an accumulator without bitmaps."""
        return [0, {}] if self.retracts else [None]

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Add a value."""
        result = values[0]
        if result is None:
            return
        if self.retracts:
            self._counted(acc, result, 1)
        else:
            acc[0] = result if acc[0] is None else combine(self.how, acc[0], result)

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Retract a value."""
        if values[0] is not None:
            self._counted(acc, values[0], -1)

    def _counted(self, acc: Accumulator, result: bytes, by: int) -> None:
        acc[0] += by
        _change(acc[1], decode(result).values().tolist(), by)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Merge the bitmaps."""
        if not self.retracts:
            self.add(acc, (other[0],))
            return
        acc[0] += other[0]
        for number, count in other[1].items():
            _change(acc[1], (number,), count)

    def _bitmap(self, acc: Accumulator) -> bytes | None:
        if not self.retracts:
            return None if acc[0] is None else bytes(acc[0])
        if acc[0] <= 0:
            return None
        match self.how:
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
    counted = True


@aggregate
class AndAgg(_Merged):
    """BITMAP_AND_AGG."""

    name = "BITMAP_AND_AGG"
    doc = "Returns the bitmap of the integers that are in all bitmaps."
    syntax = "BITMAP_AND_AGG(bitmap)"
    how = "AND"


@aggregate
class AndCardinalityAgg(AndAgg):
    """BITMAP_AND_CARDINALITY_AGG."""

    name = "BITMAP_AND_CARDINALITY_AGG"
    doc = "Returns the number of integers that are in all bitmaps."
    syntax = "BITMAP_AND_CARDINALITY_AGG(bitmap)"
    counted = True


@aggregate
class OrAgg(_Merged):
    """BITMAP_OR_AGG."""

    name = "BITMAP_OR_AGG"
    doc = "Returns the bitmap of the integers that are in at least one of the bitmaps."
    syntax = "BITMAP_OR_AGG(bitmap)"
    how = "OR"


@aggregate
class OrCardinalityAgg(OrAgg):
    """BITMAP_OR_CARDINALITY_AGG."""

    name = "BITMAP_OR_CARDINALITY_AGG"
    doc = "Returns the number of integers that are in at least one of the bitmaps."
    syntax = "BITMAP_OR_CARDINALITY_AGG(bitmap)"
    counted = True


@aggregate
class XorAgg(_Merged):
    """BITMAP_XOR_AGG."""

    name = "BITMAP_XOR_AGG"
    doc = "Returns the bitmap of the integers that are in an odd number of the bitmaps."
    syntax = "BITMAP_XOR_AGG(bitmap)"
    how = "XOR"


@aggregate
class XorCardinalityAgg(XorAgg):
    """BITMAP_XOR_CARDINALITY_AGG."""

    name = "BITMAP_XOR_CARDINALITY_AGG"
    doc = "Returns the number of integers that are in an odd number of the bitmaps."
    syntax = "BITMAP_XOR_CARDINALITY_AGG(bitmap)"
    counted = True
