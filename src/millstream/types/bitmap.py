"""The values of SQL's BITMAP: frozen sets of unsigned 32-bit numbers.

Promises: a Bitmap is a set as Python's sets are, hashable, and small where numbers follow each other; its bytes are
those of the portable Roaring form, so that other programs read them.
Does not know: SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any

import numpy as np

from millstream.types.roaring import Runs, combined, decode, encode, runs_of

_LONGEST_TEXT = 0x80000


class Bitmap(Set[int]):
    """A frozen set of unsigned 32-bit numbers. Negative numbers stand for their 32 bits, as in SQL: -1 is
    4294967295."""

    __slots__ = ("_runs",)

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        listed = [int(each) for each in numbers]
        if any(not -(1 << 31) <= each < 1 << 32 for each in listed):
            message = "the numbers of a bitmap have 32 bits"
            raise ValueError(message)
        self._runs = runs_of(listed)

    @classmethod
    def _of(cls, runs: Runs) -> Bitmap:
        made = cls.__new__(cls)
        made._runs = runs
        return made

    @classmethod
    def from_bytes(cls, data: bytes) -> Bitmap:
        """The bitmap of its portable form; `CorruptBitmap`, a ValueError, where the bytes are none."""
        return cls._of(decode(bytes(data)))

    def to_bytes(self) -> bytes:
        """The portable form; equal bitmaps have the same."""
        return encode(self._runs)

    def to_array(self) -> list[int]:
        """The numbers in ascending order, each as SQL's INT with the same 32 bits."""
        found: list[int] = self._runs.values().astype(np.uint32).astype(np.int32).tolist()
        return found

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

    def _with(self, other: Any, keep: Callable[[Any, Any], Any], plain: Callable[[Any], Any]) -> Any:
        return Bitmap._of(combined(self._runs, other._runs, keep)) if isinstance(other, Bitmap) else plain(other)

    def __and__(self, other: Any) -> Any:
        return self._with(other, np.logical_and, super().__and__)

    def __or__(self, other: Any) -> Any:
        return self._with(other, np.logical_or, super().__or__)

    def __xor__(self, other: Any) -> Any:
        return self._with(other, np.logical_xor, super().__xor__)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda one, two: one & ~two, super().__sub__)

    def __reduce__(self) -> tuple[Any, ...]:
        return Bitmap, (), (self.to_bytes(),)

    def __setstate__(self, state: tuple[bytes]) -> None:
        self._runs = decode(state[0])

    def __str__(self) -> str:
        """As Flink writes it: {1,2,4294967295}, of a long one the beginning."""
        made = ",".join(map(str, self._runs.first(_LONGEST_TEXT).values().tolist()))
        if len(made) < _LONGEST_TEXT:
            return f"{{{made}}}"
        end = made.find(",", _LONGEST_TEXT - 1)
        return f"{{{made}}}" if end < 0 else f"{{{made[:end]},...}}"

    def __repr__(self) -> str:
        return f"Bitmap({self})"
