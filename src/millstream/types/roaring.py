"""Sets of unsigned 32-bit numbers as bytes: the portable form of Roaring bitmaps.

Promises: equal sets have equal bytes, those that Roaring's libraries write after optimising runs; bytes of any of them
are read, and bytes that are no bitmap are refused, whoever made them. Memory and time go by the number of runs, not by
that of the numbers.
Does not know: SQL; how many bitmaps there are."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
_MOST_LISTED = 4096  # numbers of a container that are still listed one by one
_BITS = 1 << 16  # numbers of a container
_BITSET = _BITS // 8
_FEWEST_WITH_OFFSETS = 4
_LIMIT = 1 << 32
_SHORT = "it ends too early"
_OTHER = "it does not start as one"
_MANY = "it has too many parts"
_SIZE = "a part has another size than it says"
_ORDER = "its numbers are not in order"


class CorruptBitmap(ValueError):
    """Bytes that are no Roaring bitmap."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the bytes are no bitmap: {reason}")


class Runs(NamedTuple):
    """A set as runs of numbers that follow each other: where each starts, and where it has ended."""

    starts: np.ndarray
    ends: np.ndarray

    def cardinality(self) -> int:
        """How many numbers there are."""
        return int((self.ends - self.starts).sum())

    def values(self) -> np.ndarray:
        """The numbers in ascending order."""
        lengths = self.ends - self.starts
        before = np.cumsum(lengths) - lengths
        found: np.ndarray = np.arange(lengths.sum(), dtype=np.int64) + np.repeat(self.starts - before, lengths)
        return found

    def first(self, count: int) -> Runs:
        """The runs with the first so many numbers."""
        last = int(np.searchsorted(np.cumsum(self.ends - self.starts), count)) + 1
        starts, ends = self.starts[:last], self.ends[:last].copy()
        over = int((ends - starts).sum()) - count
        if over > 0:
            ends[-1] -= over
        return Runs(starts, ends)

    def __contains__(self, number: object) -> bool:
        place = int(np.searchsorted(self.starts, number, side="right")) - 1  # type: ignore[call-overload]
        return place >= 0 and bool(number < self.ends[place])


def runs_of(numbers: Any) -> Runs:
    """The set of some integers, each taken as its lowest 32 bits."""
    values = np.unique(np.asarray(numbers, dtype=np.int64) % _LIMIT)
    breaks = np.flatnonzero(np.diff(values) != 1)
    starts = values[np.concatenate(([0], breaks + 1))] if len(values) else values
    ends = values[np.concatenate((breaks, [len(values) - 1]))] + 1 if len(values) else values
    return Runs(starts, ends)


def combined(one: Runs, other: Runs, keep: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Runs:
    """What `keep` says of being in the one and in the other; it must not keep what is in neither."""
    points = np.unique(np.concatenate([*one, *other]))
    kept = keep(_inside(one, points), _inside(other, points))
    changed = np.diff(kept, prepend=False)
    return Runs(points[changed & kept], points[changed & ~kept])


def _inside(runs: Runs, points: np.ndarray) -> np.ndarray:
    inside: np.ndarray = np.searchsorted(runs.starts, points, "right") > np.searchsorted(runs.ends, points, "right")
    return inside


# ------------------------------------------------------------------------------------------------------------- writing


def encode(runs: Runs) -> bytes:
    """A set as bytes."""
    if not len(runs.starts):
        return struct.pack("<II", _WITHOUT_RUNS, 0)
    cut, owner = _cut(runs)
    keys, first, counts = np.unique(owner, return_index=True, return_counts=True)
    cards = np.add.reduceat(cut.ends - cut.starts, first)
    run_sizes, listed = 2 + 4 * counts, cards <= _MOST_LISTED
    sizes = np.where(listed, 2 * cards, _BITSET)
    as_runs = run_sizes < sizes
    sizes = np.where(as_runs, run_sizes, sizes)
    head = _head(keys, cards, as_runs, sizes)
    if not as_runs.any() and listed.all():
        return head + (runs.values() % _BITS).astype("<u2").tobytes()
    parts = [head]
    for start, count, run, short in zip(
        first.tolist(), counts.tolist(), as_runs.tolist(), listed.tolist(), strict=True
    ):
        mine = Runs(cut.starts[start : start + count], cut.ends[start : start + count])
        parts.append(_container(mine, run, short))
    return b"".join(parts)


def _cut(runs: Runs) -> tuple[Runs, np.ndarray]:
    """The runs, none of them in two containers, and the container of each."""
    lowest, highest = runs.starts // _BITS, (runs.ends - 1) // _BITS
    pieces = highest - lowest + 1
    before = np.cumsum(pieces) - pieces
    owner = np.arange(pieces.sum(), dtype=np.int64) + np.repeat(lowest - before, pieces)
    starts = np.maximum(np.repeat(runs.starts, pieces), owner * _BITS)
    ends = np.minimum(np.repeat(runs.ends, pieces), (owner + 1) * _BITS)
    return Runs(starts, ends), owner


def _head(keys: np.ndarray, cards: np.ndarray, as_runs: np.ndarray, sizes: np.ndarray) -> bytes:
    count, offsets = len(keys), True
    if as_runs.any():
        head = struct.pack("<I", _WITH_RUNS | (count - 1) << 16) + np.packbits(as_runs, bitorder="little").tobytes()
        offsets = count >= _FEWEST_WITH_OFFSETS
    else:
        head = struct.pack("<II", _WITHOUT_RUNS, count)
    head += np.stack((keys, cards - 1), axis=1).astype("<u2").tobytes()
    if offsets:
        head += (len(head) + 4 * count + np.cumsum(sizes) - sizes).astype("<u4").tobytes()
    return head


def _container(runs: Runs, as_runs: bool, listed: bool) -> bytes:
    starts = runs.starts % _BITS
    if as_runs:
        pairs = np.stack((starts, runs.ends - runs.starts - 1), axis=1)
        return struct.pack("<H", len(starts)) + pairs.astype("<u2").tobytes()
    values = runs.values() % _BITS
    if listed:
        return values.astype("<u2").tobytes()
    bits = np.zeros(_BITS, dtype=bool)
    bits[values] = True
    return np.packbits(bits, bitorder="little").tobytes()


# ------------------------------------------------------------------------------------------------------------- reading


def decode(data: bytes) -> Runs:
    """The set that bytes stand for; `CorruptBitmap` where they stand for none."""
    return _Reader(data).runs()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def _take(self, count: int, kind: str) -> np.ndarray:
        size = count * np.dtype(kind).itemsize
        if self._at + size > len(self._data):
            raise CorruptBitmap(_SHORT)
        found = np.frombuffer(self._data, kind, count, self._at)
        self._at += size
        return found.astype(np.int64)

    def runs(self) -> Runs:
        """All of them."""
        cookie = int(self._take(1, "<u4")[0])
        if cookie & 0xFFFF == _WITH_RUNS:
            count = (cookie >> 16) + 1
            flags = self._take((count + 7) // 8, "u1").astype(np.uint8)
            as_runs = np.unpackbits(flags, count=count, bitorder="little").astype(bool)
        elif cookie == _WITHOUT_RUNS:
            count = int(self._take(1, "<u4")[0])
            as_runs = np.zeros(min(count, _BITS), dtype=bool)
        else:
            raise CorruptBitmap(_OTHER)
        if count > _BITS:
            raise CorruptBitmap(_MANY)
        head = self._take(2 * count, "<u2")
        keys, cards = head[::2], head[1::2] + 1
        if cookie == _WITHOUT_RUNS or count >= _FEWEST_WITH_OFFSETS:
            self._take(count, "<u4")
        if not as_runs.any() and (cards <= _MOST_LISTED).all():
            values = np.repeat(keys * _BITS, cards) + self._take(int(cards.sum()), "<u2")
            return _joined(values, values + 1)
        starts, ends = [], []
        for key, card, run in zip(keys.tolist(), cards.tolist(), as_runs.tolist(), strict=True):
            mine = self._container(card, run)
            starts.append(mine.starts + key * _BITS)
            ends.append(mine.ends + key * _BITS)
        return _joined(np.concatenate(starts), np.concatenate(ends))

    def _container(self, card: int, run: bool) -> Runs:
        if run:
            pairs = self._take(2 * int(self._take(1, "<u2")[0]), "<u2")
            found = Runs(pairs[::2], pairs[::2] + pairs[1::2] + 1)
            if found.cardinality() != card or (found.ends > _BITS).any():
                raise CorruptBitmap(_SIZE)
            return found
        if card <= _MOST_LISTED:
            values = self._take(card, "<u2")
        else:
            values = np.flatnonzero(np.unpackbits(self._take(_BITSET, "u1").astype(np.uint8), bitorder="little"))
            if len(values) != card:
                raise CorruptBitmap(_SIZE)
        return Runs(values, values + 1)


def _joined(starts: np.ndarray, ends: np.ndarray) -> Runs:
    """Runs of which some may follow each other without a gap."""
    if (starts[1:] < ends[:-1]).any():
        raise CorruptBitmap(_ORDER)
    if not len(starts):
        return Runs(starts, ends)
    gaps = starts[1:] > ends[:-1]
    return Runs(starts[np.concatenate(([True], gaps))], ends[np.concatenate((gaps, [True]))])
