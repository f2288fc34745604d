"""Bitmap: the values of the SQL type BITMAP, which are frozen sets of unsigned 32-bit integers.

Promises: a Bitmap behaves like a Python set, is hashable, and is small if integers are consecutive. Its bytes are in
the portable Roaring format, which other programs can read.
Does not know: SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any

import numpy as np

from millstream.types.roaring import Runs, combine, decode, encode, find_runs

_MAX_TEXT_LENGTH = 0x80000


class Bitmap(Set[int]):
    """A frozen set of unsigned 32-bit integers.

    A negative integer is converted to the unsigned integer with the same 32 bits, as in SQL: -1 is 4294967295.

    Example:
        >>> Bitmap([1, 2]) | Bitmap([2, 3])
        Bitmap({1,2,3})

    """

    __slots__ = ("_runs",)

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        integers = list(map(int, numbers))
        for integer in integers:
            if not -(1 << 31) <= integer < 1 << 32:
                message = f"a bitmap holds integers of 32 bits, not {integer}"
                raise ValueError(message)
        self._runs = find_runs(integers)

    @classmethod
    def _of(cls, runs: Runs) -> Bitmap:
        bitmap = cls.__new__(cls)
        bitmap._runs = runs
        return bitmap

    @classmethod
    def from_bytes(cls, data: bytes) -> Bitmap:
        """Read a bitmap in the portable Roaring format.

        Args:
            data: The bytes.

        Raises:
            CorruptBitmap: If the bytes are not a bitmap; it is a ValueError.

        """
        return cls._of(decode(bytes(data)))

    def to_bytes(self) -> bytes:
        """Write the bitmap in the portable Roaring format; equal bitmaps have equal bytes."""
        return encode(self._runs)

    def to_array(self) -> list[int]:
        """Return the integers in ascending unsigned order, each as a signed INT with the same 32 bits."""
        integers: list[int] = self._runs.values().astype(np.uint32).astype(np.int32).tolist()
        return integers

    def __len__(self) -> int:
        return self._runs.cardinality()

    def __iter__(self) -> Iterator[int]:
        return iter(self._runs.values().tolist())

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int | np.integer) and int(number) in self._runs

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Bitmap):
            return all(map(np.array_equal, self._runs, other._runs))
        return super().__eq__(other)

    def __hash__(self) -> int:
        return self._hash()

    def _combine(self, other: Any, keep: Callable[[Any, Any], Any], combine_sets: Callable[[Any], Any]) -> Any:
        return Bitmap._of(combine(self._runs, other._runs, keep)) if isinstance(other, Bitmap) else combine_sets(other)

    def __and__(self, other: Any) -> Any:
        return self._combine(other, np.logical_and, super().__and__)

    def __or__(self, other: Any) -> Any:
        return self._combine(other, np.logical_or, super().__or__)

    def __xor__(self, other: Any) -> Any:
        return self._combine(other, np.logical_xor, super().__xor__)

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, lambda left, right: left & ~right, super().__sub__)

    def __reduce__(self) -> tuple[Any, ...]:
        return Bitmap, (), (self.to_bytes(),)

    def __setstate__(self, state: tuple[bytes]) -> None:
        self._runs = decode(state[0])

    def __str__(self) -> str:
        """Return the integers as Flink writes them: {1,2,4294967295}; a long text is truncated."""
        text = ",".join(map(str, self._runs.first(_MAX_TEXT_LENGTH).values().tolist()))
        if len(text) < _MAX_TEXT_LENGTH:
            return f"{{{text}}}"
        end = text.find(",", _MAX_TEXT_LENGTH - 1)
        return f"{{{text}}}" if end < 0 else f"{{{text[:end]},...}}"

    def __repr__(self) -> str:
        return f"Bitmap({self})"
