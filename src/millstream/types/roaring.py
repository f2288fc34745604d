"""The portable Roaring format of sets of unsigned 32-bit integers.

Promises: equal sets are encoded to equal bytes, which are the same as those of the Roaring libraries after run
optimization. Bytes that any of these libraries has written can be read, and bytes that are not a bitmap are refused.
Memory and time depend on the number of runs, not on the number of integers.
Does not know: SQL."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

_COOKIE_WITH_RUNS, _COOKIE_WITHOUT_RUNS = 12347, 12346
_MAX_ARRAY_CARDINALITY = 4096  # a container with more integers is a bitset
_CONTAINER_SIZE = 1 << 16  # the integers of a container have the same upper 16 bits
_BITSET_BYTES = _CONTAINER_SIZE // 8
_MIN_CONTAINERS_WITH_OFFSETS = 4
_LIMIT = 1 << 32
_TRUNCATED = "they end too early"
_UNKNOWN_COOKIE = "they do not start with the cookie of a bitmap"
_TOO_MANY_CONTAINERS = "they declare too many containers"
_WRONG_CARDINALITY = "the cardinality of a container differs from the header"
_NOT_SORTED = "the integers are not sorted"


class CorruptBitmap(ValueError):
    """Bytes are not a Roaring bitmap."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the bytes are not a bitmap: {reason}")


class Runs(NamedTuple):
    """A set as runs of consecutive integers: the start of each run, and its end (exclusive)."""

    starts: np.ndarray
    ends: np.ndarray

    def cardinality(self) -> int:
        """Return the number of integers."""
        return int((self.ends - self.starts).sum())

    def values(self) -> np.ndarray:
        """Return the integers in ascending order."""
        lengths = self.ends - self.starts
        before = np.cumsum(lengths) - lengths
        values: np.ndarray = np.arange(lengths.sum(), dtype=np.int64) + np.repeat(self.starts - before, lengths)
        return values

    def first(self, count: int) -> Runs:
        """Return the runs of the first `count` integers."""
        last = int(np.searchsorted(np.cumsum(self.ends - self.starts), count)) + 1
        starts, ends = self.starts[:last], self.ends[:last].copy()
        excess = int((ends - starts).sum()) - count
        if excess > 0:
            ends[-1] -= excess
        return Runs(starts, ends)

    def __contains__(self, number: object) -> bool:
        index = int(np.searchsorted(self.starts, number, side="right")) - 1  # type: ignore[call-overload]
        return index >= 0 and bool(number < self.ends[index])


def find_runs(numbers: Any) -> Runs:
    """Return the set of integers, of which the lowest 32 bits are used."""
    values = np.unique(np.asarray(numbers, dtype=np.int64) % _LIMIT)
    breaks = np.flatnonzero(np.diff(values) != 1)
    starts = values[np.concatenate(([0], breaks + 1))] if len(values) else values
    ends = values[np.concatenate((breaks, [len(values) - 1]))] + 1 if len(values) else values
    return Runs(starts, ends)


def combine(left: Runs, right: Runs, keep: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Runs:
    """Combine two sets with a boolean function of the membership in each; it must be false for neither."""
    points = np.unique(np.concatenate([*left, *right]))
    is_kept = keep(_contains_points(left, points), _contains_points(right, points))
    is_boundary = np.diff(is_kept, prepend=False)
    return Runs(points[is_boundary & is_kept], points[is_boundary & ~is_kept])


def _contains_points(runs: Runs, points: np.ndarray) -> np.ndarray:
    inside: np.ndarray = np.searchsorted(runs.starts, points, "right") > np.searchsorted(runs.ends, points, "right")
    return inside


# ------------------------------------------------------------------------------------------------------------- writing


def encode(runs: Runs) -> bytes:
    """Encode a set."""
    if not len(runs.starts):
        return struct.pack("<II", _COOKIE_WITHOUT_RUNS, 0)
    split_runs, containers = _split_at_containers(runs)
    keys, first, counts = np.unique(containers, return_index=True, return_counts=True)
    cardinalities = np.add.reduceat(split_runs.ends - split_runs.starts, first)
    run_sizes, is_array = 2 + 4 * counts, cardinalities <= _MAX_ARRAY_CARDINALITY
    sizes = np.where(is_array, 2 * cardinalities, _BITSET_BYTES)
    is_run = run_sizes < sizes
    sizes = np.where(is_run, run_sizes, sizes)
    header = _encode_header(keys, cardinalities, is_run, sizes)
    if not is_run.any() and is_array.all():
        return header + (runs.values() % _CONTAINER_SIZE).astype("<u2").tobytes()
    parts = [header]
    for start, count, as_run, as_array in zip(
        first.tolist(), counts.tolist(), is_run.tolist(), is_array.tolist(), strict=True
    ):
        container = Runs(split_runs.starts[start : start + count], split_runs.ends[start : start + count])
        parts.append(_encode_container(container, as_run, as_array))
    return b"".join(parts)


def _split_at_containers(runs: Runs) -> tuple[Runs, np.ndarray]:
    """Split runs at container boundaries; return the runs and the container of each."""
    lowest, highest = runs.starts // _CONTAINER_SIZE, (runs.ends - 1) // _CONTAINER_SIZE
    part_counts = highest - lowest + 1
    before = np.cumsum(part_counts) - part_counts
    containers = np.arange(part_counts.sum(), dtype=np.int64) + np.repeat(lowest - before, part_counts)
    starts = np.maximum(np.repeat(runs.starts, part_counts), containers * _CONTAINER_SIZE)
    ends = np.minimum(np.repeat(runs.ends, part_counts), (containers + 1) * _CONTAINER_SIZE)
    return Runs(starts, ends), containers


def _encode_header(keys: np.ndarray, cardinalities: np.ndarray, is_run: np.ndarray, sizes: np.ndarray) -> bytes:
    count, has_offsets = len(keys), True
    if is_run.any():
        header = (
            struct.pack("<I", _COOKIE_WITH_RUNS | (count - 1) << 16) + np.packbits(is_run, bitorder="little").tobytes()
        )
        has_offsets = count >= _MIN_CONTAINERS_WITH_OFFSETS
    else:
        header = struct.pack("<II", _COOKIE_WITHOUT_RUNS, count)
    header += np.stack((keys, cardinalities - 1), axis=1).astype("<u2").tobytes()
    if has_offsets:
        header += (len(header) + 4 * count + np.cumsum(sizes) - sizes).astype("<u4").tobytes()
    return header


def _encode_container(runs: Runs, as_run: bool, as_array: bool) -> bytes:
    starts = runs.starts % _CONTAINER_SIZE
    if as_run:
        pairs = np.stack((starts, runs.ends - runs.starts - 1), axis=1)
        return struct.pack("<H", len(starts)) + pairs.astype("<u2").tobytes()
    values = runs.values() % _CONTAINER_SIZE
    if as_array:
        return values.astype("<u2").tobytes()
    bits = np.zeros(_CONTAINER_SIZE, dtype=bool)
    bits[values] = True
    return np.packbits(bits, bitorder="little").tobytes()


# ------------------------------------------------------------------------------------------------------------- reading


def decode(data: bytes) -> Runs:
    """Decode a set.

    Raises:
        CorruptBitmap: If the bytes are not a bitmap.

    """
    return _Reader(data).runs()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._offset = data, 0

    def _read(self, count: int, number_format: str) -> np.ndarray:
        size = count * np.dtype(number_format).itemsize
        if self._offset + size > len(self._data):
            raise CorruptBitmap(_TRUNCATED)
        numbers = np.frombuffer(self._data, number_format, count, self._offset)
        self._offset += size
        return numbers.astype(np.int64)

    def runs(self) -> Runs:
        """Read all containers."""
        cookie = int(self._read(1, "<u4")[0])
        if cookie & 0xFFFF == _COOKIE_WITH_RUNS:
            count = (cookie >> 16) + 1
            flags = self._read((count + 7) // 8, "u1").astype(np.uint8)
            is_run = np.unpackbits(flags, count=count, bitorder="little").astype(bool)
        elif cookie == _COOKIE_WITHOUT_RUNS:
            count = int(self._read(1, "<u4")[0])
            is_run = np.zeros(min(count, _CONTAINER_SIZE), dtype=bool)
        else:
            raise CorruptBitmap(_UNKNOWN_COOKIE)
        if count > _CONTAINER_SIZE:
            raise CorruptBitmap(_TOO_MANY_CONTAINERS)
        header = self._read(2 * count, "<u2")
        keys, cardinalities = header[::2], header[1::2] + 1
        if cookie == _COOKIE_WITHOUT_RUNS or count >= _MIN_CONTAINERS_WITH_OFFSETS:
            self._read(count, "<u4")
        if not is_run.any() and (cardinalities <= _MAX_ARRAY_CARDINALITY).all():
            values = np.repeat(keys * _CONTAINER_SIZE, cardinalities) + self._read(int(cardinalities.sum()), "<u2")
            return _merge_adjacent(values, values + 1)
        starts, ends = [], []
        for key, cardinality, as_run in zip(keys.tolist(), cardinalities.tolist(), is_run.tolist(), strict=True):
            container = self._read_container(cardinality, as_run)
            starts.append(container.starts + key * _CONTAINER_SIZE)
            ends.append(container.ends + key * _CONTAINER_SIZE)
        return _merge_adjacent(np.concatenate(starts), np.concatenate(ends))

    def _read_container(self, cardinality: int, as_run: bool) -> Runs:
        if as_run:
            pairs = self._read(2 * int(self._read(1, "<u2")[0]), "<u2")
            runs = Runs(pairs[::2], pairs[::2] + pairs[1::2] + 1)
            if runs.cardinality() != cardinality or (runs.ends > _CONTAINER_SIZE).any():
                raise CorruptBitmap(_WRONG_CARDINALITY)
            return runs
        if cardinality <= _MAX_ARRAY_CARDINALITY:
            values = self._read(cardinality, "<u2")
        else:
            values = np.flatnonzero(np.unpackbits(self._read(_BITSET_BYTES, "u1").astype(np.uint8), bitorder="little"))
            if len(values) != cardinality:
                raise CorruptBitmap(_WRONG_CARDINALITY)
        return Runs(values, values + 1)


def _merge_adjacent(starts: np.ndarray, ends: np.ndarray) -> Runs:
    """Merge runs that follow each other without a gap."""
    if (starts[1:] < ends[:-1]).any():
        raise CorruptBitmap(_NOT_SORTED)
    if not len(starts):
        return Runs(starts, ends)
    gaps = starts[1:] > ends[:-1]
    return Runs(starts[np.concatenate(([True], gaps))], ends[np.concatenate((gaps, [True]))])
