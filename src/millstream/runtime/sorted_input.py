"""The receiving end of exchanges by key in a batch job: blocks of sorted runs in, whole keys out.

Promises: records come by hash of the key, and of each hash by time, equal times in the order of edges and of each
channel; a unit has all records of its keys, but for a key with more records than a unit should have, which comes in
several units of its own. What is held is about one block of each run, and one unit.
Does not know: operators, who sorted the blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.runtime.keys import KeySelection
from millstream.runtime.places import Origin, origin_of
from millstream.runtime.sorted_runs import concatenated, sorted_order, unpack_sorted
from millstream.state.key_hashes import KeyHashes
from millstream.types.factory import TypeInformation

UNIT = 1 << 16
"""Records from which on a unit is handed on."""

_HOT = 4  # units of one key that are held before it is handed on in parts


@dataclass(frozen=True)
class SortedEdge:
    """What arrives by one edge."""

    side: int
    record_type: TypeInformation
    key: KeySelection


@dataclass(frozen=True)
class SortedUnit:
    """Records sorted by hash of the key and time. `complete`: no more will come of any of their keys.

    `sides` has the input of each record when the records are of both, whose types `kinds` has; else all are of input
    `side`."""

    batch: Batch
    hashes: KeyHashes
    complete: bool
    side: int = 0
    sides: np.ndarray | None = None
    kinds: Mapping[int, TypeInformation] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.hashes)

    def stretches(self) -> Iterator[tuple[Batch, int]]:
        """The records cut where the input changes, in order."""
        if self.sides is None:
            yield self.batch, self.side
            return
        edges = np.flatnonzero(np.diff(self.sides)) + 1
        for start, stop in zip([0, *edges.tolist()], [*edges.tolist(), len(self)], strict=True):
            part, side = self.batch.slice(start, stop), int(self.sides[start])
            part.kind = self.kinds.get(side, part.kind)  # a batch of both inputs is of rows, whatever its kind says
            yield part, side


class _Held:
    """A block of which some records are not handed on yet."""

    __slots__ = ("at", "batch", "edge", "hashes", "origin", "times")

    def __init__(self, edge: SortedEdge, origin: Origin, data: bytes) -> None:
        self.edge, self.origin, self.at = edge, origin, 0
        self.batch, self.hashes = unpack_sorted(data, edge.record_type)
        self.times = self.batch.timestamps

    def __len__(self) -> int:
        return len(self.hashes) - self.at

    @property
    def first(self) -> tuple[int, int, Origin]:
        """The place of the first record that is left."""
        time = NO_TIMESTAMP if self.times is None else int(self.times[self.at])
        return int(self.hashes[self.at]), time, self.origin

    def below(self, key_hash: int) -> int:
        """How far the records with smaller hashes go."""
        return int(np.searchsorted(self.hashes, np.uint64(key_hash), "left"))

    def before(self, key_hash: int, time: int, origin: Origin) -> int:
        """How far the records go that come before this place."""
        start, stop = self.below(key_hash), int(np.searchsorted(self.hashes, np.uint64(key_hash), "right"))
        if self.times is None:
            same = stop if (NO_TIMESTAMP, self.origin) < (time, origin) else start
            return max(same, self.at)
        side = "right" if self.origin < origin else "left"
        return start + int(np.searchsorted(self.times[start:stop], time, side))  # type: ignore[call-overload]

    def take(self, stop: int) -> tuple[SortedEdge, Batch, KeyHashes]:
        """The records up to `stop`, which are then gone."""
        part = self.edge, self.batch.slice(self.at, stop), self.hashes[self.at : stop]
        self.at = stop
        return part


Part = tuple[SortedEdge, Batch, KeyHashes]


class SortedInput:
    """Merges the blocks of one vertex into units."""

    def __init__(self, edges: Mapping[int, SortedEdge], operator: str, unit: int | None = None) -> None:
        unit = unit or UNIT
        self._edges, self._operator, self._unit = edges, operator, unit
        self._held: list[_Held] = []
        self._rows = 0
        self._next_try = unit
        self._open: int | None = None  # the hash that has been handed on in part

    def units(self, arrived: Iterable[tuple[bytes, bytes]]) -> Iterator[SortedUnit]:
        """Units from (place, block), which come in the order of places."""
        for place, data in arrived:
            origin = origin_of(place)
            block = _Held(self._edges[origin.edge], origin, data)
            if self._rows >= self._next_try:
                yield from self._hand_on(*block.first)
            self._held.append(block)
            self._rows += len(block)
        yield from self._closed(self._taken(lambda held: len(held.hashes)))

    def _hand_on(self, key_hash: int, time: int, origin: Origin) -> Iterator[SortedUnit]:
        """What comes before the next block: whole keys; part of one key when it alone is more than a few units."""
        found = self._taken(lambda held: held.below(key_hash))
        if found:
            yield from self._closed(found)
        elif self._open is not None or self._rows >= _HOT * self._unit:
            part = self._taken(lambda held: held.before(key_hash, time, origin))
            if part:
                self._open = key_hash
                yield self._unit_of(part, complete=False)
        # of what is left most overlaps with blocks to come: to look again at once would find little
        self._next_try = self._rows + max(self._unit, 0 if self._open is not None else self._rows // 2)

    def _taken(self, until: Callable[[_Held], int]) -> list[Part]:
        self._held.sort(key=_origin)
        parts = [held.take(stop) for held in self._held if (stop := until(held)) > held.at]
        self._rows -= sum(len(part[2]) for part in parts)
        self._held = [held for held in self._held if len(held)]
        return parts

    def _closed(self, parts: list[Part]) -> Iterator[SortedUnit]:
        """Whole keys; what is left of one that was handed on in part comes by itself."""
        if not parts:
            return
        unit = self._unit_of(parts, complete=True)
        if self._open is not None:
            rest = int(np.searchsorted(unit.hashes, np.uint64(self._open), "right"))
            self._open = None
            yield _piece(unit, 0, rest)
            unit = _piece(unit, rest, len(unit))
        if len(unit):
            yield unit

    def _unit_of(self, parts: list[Part], *, complete: bool) -> SortedUnit:
        hashes = np.concatenate([part[2] for part in parts])
        sides = {part[0].side for part in parts}
        first = parts[0][0].record_type
        timed = any(part[1].timestamps is not None for part in parts)
        batches = [part[1] for part in parts]
        if timed and any(batch.timestamps is None for batch in batches):
            batches = [_timed(batch) for batch in batches]
        alike = len(sides) == 1 and all(part[0].record_type == first for part in parts)
        if not alike or len({batch.columnar for batch in batches}) > 1:
            batches = [self._with_keys(*part[:2], batch) for part, batch in zip(parts, batches, strict=True)]
        whole = concatenated(batches)
        if len(parts) > 1:
            order = sorted_order(hashes, whole.timestamps)
            whole, hashes = whole.take(order), hashes[order]
        if len(sides) == 1:
            return SortedUnit(whole, hashes, complete, sides.pop())
        side = np.concatenate([np.full(len(part[2]), part[0].side, dtype=np.int8) for part in parts])
        kinds = {part[0].side: part[0].record_type for part in parts}
        return SortedUnit(whole, hashes, complete, 0, side[order], kinds)

    def _with_keys(self, edge: SortedEdge, part: Batch, batch: Batch) -> Batch:
        """As rows, with keys: records of different types can then be in one batch."""
        keys = edge.key.keys(part, self._operator)
        return Batch(batch.kind, rows=batch.rows(), timestamps=batch.timestamps, keys=keys)


def _origin(held: _Held) -> Origin:
    return held.origin


def _timed(batch: Batch) -> Batch:
    if batch.timestamps is not None:
        return batch
    return batch.with_timestamps(np.full(len(batch), NO_TIMESTAMP, dtype=np.int64))


def _piece(unit: SortedUnit, start: int, stop: int) -> SortedUnit:
    sides = None if unit.sides is None else unit.sides[start:stop]
    batch = unit.batch.slice(start, stop)
    return SortedUnit(batch, unit.hashes[start:stop], unit.complete, unit.side, sides, unit.kinds)
