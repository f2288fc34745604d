"""Aggregates that give a bitmap, or only how many numbers it has.

Promises: NULLs are passed over; with nothing else there the result is NULL. Values that are taken back leave no trace.
Does not know: how a set becomes bytes; groups, windows, state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from millstream.sql.functions.aggregation import Accumulator, Aggregation, aggregate
from millstream.sql.functions.bitmaps import built, put_together
from millstream.sql.types import data_types as t
from millstream.types.roaring import decode

_MOST_WAITING = 1024  # numbers that wait to be put into the bitmap together


class _Bitmaps(Aggregation):
    """The result is the bitmap of `_bitmap`, or how many numbers it has."""

    counted: ClassVar[bool] = False

    @classmethod
    def result_type(cls, kinds: Sequence[t.DataType]) -> t.DataType | None:
        """A bitmap, or a number."""
        return (t.BIGINT if cls.counted else t.BITMAP) if len(kinds) == 1 and cls._takes(kinds[0]) else None

    @classmethod
    def _takes(cls, kind: t.DataType) -> bool:
        return isinstance(kind, t.BitmapType)

    @abstractmethod
    def _bitmap(self, acc: Accumulator) -> bytes | None:
        """The bitmap, None for nothing."""

    def value(self, acc: Accumulator) -> Any:
        """The bitmap, or its size."""
        found = self._bitmap(acc)
        return decode(found).cardinality() if self.counted and found is not None else found


def _change(counts: dict[int, int], numbers: Iterable[int], by: int) -> None:
    for each in numbers:
        count = counts.get(each, 0) + by
        if count:
            counts[each] = count
        else:
            del counts[each]


class _Build(_Bitmaps):
    """A bitmap and the numbers that wait to be put into it; how often each number is there when they may be taken
    back."""

    @classmethod
    def _takes(cls, kind: t.DataType) -> bool:
        return isinstance(kind, t.TinyIntType | t.SmallIntType | t.IntType)

    def create(self) -> Accumulator:
        """No numbers."""
        return [{}] if self.retracts else [None, []]

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """One more."""
        number = values[0]
        if number is None:
            return
        if self.retracts:
            _change(acc[0], (number,), 1)
            return
        acc[1].append(number)
        if len(acc[1]) >= _MOST_WAITING:
            acc[:] = [self._bitmap(acc), []]

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """One less."""
        if values[0] is not None:
            _change(acc[0], values, -1)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """The numbers of both."""
        if self.retracts:
            for number, count in other[0].items():
                _change(acc[0], (number,), count)
            return
        if other[0] is not None:
            acc[0] = other[0] if acc[0] is None else put_together("OR", acc[0], other[0])
        for number in other[1]:
            self.add(acc, (number,))

    def _bitmap(self, acc: Accumulator) -> bytes | None:
        if self.retracts:
            known = [number for number, count in acc[0].items() if count > 0]
            return built(known) if known else None
        if not acc[1]:
            return None if acc[0] is None else bytes(acc[0])
        waiting = built(acc[1])
        return waiting if acc[0] is None else put_together("OR", acc[0], waiting)


class _Merged(_Bitmaps):
    """All bitmaps put together so far. When they may be taken back: how many there are, and how many of them have each
    number."""

    how: ClassVar[str]

    def create(self) -> Accumulator:
        """No bitmaps."""
        return [0, {}] if self.retracts else [None]

    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """One more."""
        found = values[0]
        if found is None:
            return
        if self.retracts:
            self._counted(acc, found, 1)
        else:
            acc[0] = found if acc[0] is None else put_together(self.how, acc[0], found)

    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """One less."""
        if values[0] is not None:
            self._counted(acc, values[0], -1)

    def _counted(self, acc: Accumulator, found: bytes, by: int) -> None:
        acc[0] += by
        _change(acc[1], decode(found).values().tolist(), by)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """The bitmaps of both."""
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
                return built(number for number, count in acc[1].items() if count >= acc[0])
            case "OR":
                return built(number for number, count in acc[1].items() if count > 0)
        return built(number for number, count in acc[1].items() if count % 2)


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
