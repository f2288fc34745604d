"""The receiving end of exchanges by key in a batch job: merges blocks of sorted runs into complete keys.

Promises: records are ordered by hash of the key, then by time; equal times keep the order of edges and of channels. A
unit has all records of its keys; only a key with more records than a unit should have comes in several units of its
own. About one block of each run, and one unit, are in memory.
Does not know: operators, who sorted the blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.runtime.block_order import Origin, origin_of
from millstream.runtime.keys import KeySelection
from millstream.runtime.sorted_runs import concat_batches, sorted_order, unpack_sorted
from millstream.state.key_hashes import KeyHashes
from millstream.types.factory import TypeInformation

UNIT = 1 << 16
"""The number of records from which on a unit is emitted."""

_HOT_KEY_UNITS = 4  # a key with more units of records is emitted in parts


@dataclass(frozen=True)
class SortedEdge:
    """The records of one edge."""

    side: int
    record_type: TypeInformation
    key: KeySelection


@dataclass(frozen=True)
class SortedUnit:
    """Records sorted by hash of the key and time. `complete`: no more records of their keys follow.

    If there are records of both inputs, `sides` has the input of each record and `record_types` the types of the
    inputs; else all records are of input `side`."""

    batch: Batch
    hashes: KeyHashes
    complete: bool
    side: int = 0
    sides: np.ndarray | None = None
    record_types: Mapping[int, TypeInformation] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.hashes)

    def batches_by_input(self) -> Iterator[tuple[Batch, int]]:
        """Yield the records in order, in batches of one input."""
        if self.sides is None:
            yield self.batch, self.side
            return
        edges = np.flatnonzero(np.diff(self.sides)) + 1
        for start, stop in zip([0, *edges.tolist()], [*edges.tolist(), len(self)], strict=True):
            part, side = self.batch.slice(start, stop), int(self.sides[start])
            part.record_type = self.record_types.get(
                side, part.record_type
            )  # a batch of both inputs has rows of two types
            yield part, side


class _OpenBlock:
    """A block of which some records are not emitted yet."""

    __slots__ = ("at", "batch", "edge", "hashes", "origin", "times")

    def __init__(self, edge: SortedEdge, origin: Origin, data: bytes) -> None:
        self.edge, self.origin, self.at = edge, origin, 0
        self.batch, self.hashes = unpack_sorted(data, edge.record_type)
        self.times = self.batch.timestamps

    def __len__(self) -> int:
        return len(self.hashes) - self.at

    @property
    def first(self) -> tuple[int, int, Origin]:
        """Return what the first remaining record is sorted by."""
        time = NO_TIMESTAMP if self.times is None else int(self.times[self.at])
        return int(self.hashes[self.at]), time, self.origin

    def below(self, key_hash: int) -> int:
        """Return the index after the last record with a smaller hash."""
        return int(np.searchsorted(self.hashes, np.uint64(key_hash), "left"))

    def before(self, key_hash: int, time: int, origin: Origin) -> int:
        """Return the index after the last record that comes before this one."""
        start, stop = self.below(key_hash), int(np.searchsorted(self.hashes, np.uint64(key_hash), "right"))
        if self.times is None:
            same = stop if (NO_TIMESTAMP, self.origin) < (time, origin) else start
            return max(same, self.at)
        side = "right" if self.origin < origin else "left"
        return start + int(np.searchsorted(self.times[start:stop], time, side))  # type: ignore[call-overload]

    def take(self, stop: int) -> tuple[SortedEdge, Batch, KeyHashes]:
        """Remove and return the records before index `stop`."""
        part = self.edge, self.batch.slice(self.at, stop), self.hashes[self.at : stop]
        self.at = stop
        return part


Part = tuple[SortedEdge, Batch, KeyHashes]


class SortedInput:
    """Merges the blocks of one vertex into units."""

    def __init__(self, edges: Mapping[int, SortedEdge], operator: str, unit: int | None = None) -> None:
        unit = unit or UNIT
        self._edges, self._operator, self._unit = edges, operator, unit
        self._blocks: list[_OpenBlock] = []
        self._rows = 0
        self._next_try = unit
        self._open: int | None = None  # the hash of the key that has been emitted in part

    def units(self, arrived: Iterable[tuple[bytes, bytes]]) -> Iterator[SortedUnit]:
        """Merge pairs (sort key, block), which come in the order of sort keys."""
        for sort_key, data in arrived:
            origin = origin_of(sort_key)
            block = _OpenBlock(self._edges[origin.edge], origin, data)
            if self._rows >= self._next_try:
                yield from self._emit_before(*block.first)
            self._blocks.append(block)
            self._rows += len(block)
        yield from self._complete_units(self._take(lambda block: len(block.hashes)))

    def _emit_before(self, key_hash: int, time: int, origin: Origin) -> Iterator[SortedUnit]:
        """Yield the records before the next block: complete keys, or part of a key that has more than a few units."""
        parts = self._take(lambda block: block.below(key_hash))
        if parts:
            yield from self._complete_units(parts)
        elif self._open is not None or self._rows >= _HOT_KEY_UNITS * self._unit:
            part = self._take(lambda block: block.before(key_hash, time, origin))
            if part:
                self._open = key_hash
                yield self._unit_of(part, complete=False)
        # most remaining records overlap with blocks to come: another try at once would emit few
        self._next_try = self._rows + max(self._unit, 0 if self._open is not None else self._rows // 2)

    def _take(self, until: Callable[[_OpenBlock], int]) -> list[Part]:
        self._blocks.sort(key=_origin)
        parts = [block.take(stop) for block in self._blocks if (stop := until(block)) > block.at]
        self._rows -= sum(len(part[2]) for part in parts)
        self._blocks = [block for block in self._blocks if len(block)]
        return parts

    def _complete_units(self, parts: list[Part]) -> Iterator[SortedUnit]:
        """Yield complete keys; the rest of a key that was emitted in part is a unit of its own."""
        if not parts:
            return
        unit = self._unit_of(parts, complete=True)
        if self._open is not None:
            open_key_end = int(np.searchsorted(unit.hashes, np.uint64(self._open), "right"))
            self._open = None
            yield _slice(unit, 0, open_key_end)
            unit = _slice(unit, open_key_end, len(unit))
        if len(unit):
            yield unit

    def _unit_of(self, parts: list[Part], *, complete: bool) -> SortedUnit:
        hashes = np.concatenate([part[2] for part in parts])
        sides = {part[0].side for part in parts}
        first = parts[0][0].record_type
        timed = any(part[1].timestamps is not None for part in parts)
        batches = [part[1] for part in parts]
        if timed and any(batch.timestamps is None for batch in batches):
            batches = [_with_timestamps(batch) for batch in batches]
        have_same_type = len(sides) == 1 and all(part[0].record_type == first for part in parts)
        if not have_same_type or len({batch.columnar for batch in batches}) > 1:
            batches = [self._with_keys(*part[:2], batch) for part, batch in zip(parts, batches, strict=True)]
        merged = concat_batches(batches)
        if len(parts) > 1:
            order = sorted_order(hashes, merged.timestamps)
            merged, hashes = merged.take(order), hashes[order]
        if len(sides) == 1:
            return SortedUnit(merged, hashes, complete, sides.pop())
        side = np.concatenate([np.full(len(part[2]), part[0].side, dtype=np.int8) for part in parts])
        record_types = {part[0].side: part[0].record_type for part in parts}
        return SortedUnit(merged, hashes, complete, 0, side[order], record_types)

    def _with_keys(self, edge: SortedEdge, part: Batch, batch: Batch) -> Batch:
        """Return rows with keys, so that records of different types can be in one batch."""
        keys = edge.key.keys(part, self._operator)
        return Batch(batch.record_type, rows=batch.rows(), timestamps=batch.timestamps, keys=keys)


def _origin(block: _OpenBlock) -> Origin:
    return block.origin


def _with_timestamps(batch: Batch) -> Batch:
    if batch.timestamps is not None:
        return batch
    return batch.with_timestamps(np.full(len(batch), NO_TIMESTAMP, dtype=np.int64))


def _slice(unit: SortedUnit, start: int, stop: int) -> SortedUnit:
    sides = None if unit.sides is None else unit.sides[start:stop]
    batch = unit.batch.slice(start, stop)
    return SortedUnit(batch, unit.hashes[start:stop], unit.complete, unit.side, sides, unit.record_types)
