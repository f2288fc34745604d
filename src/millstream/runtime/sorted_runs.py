"""The sending end of an exchange by key in a batch job: sorted runs, cut into blocks that say where they belong.

Promises: a run is sorted by hash of the key, then time, then arrival; its blocks are so small that a reader who gets
the blocks of all runs in the order of their first records holds about one block of each run at a time. A key with many
records in a run has blocks of its own.
Does not know: who sorts blocks, other subtasks."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.runtime import block as blocks
from millstream.runtime import rowwise
from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.runtime.block import BlockKind
from millstream.runtime.combining import Combining
from millstream.runtime.partitioners import Hash
from millstream.runtime.places import Origin, sorted_place
from millstream.state.key_groups import routing_table
from millstream.state.key_hashes import KeyHasher, KeyHashes
from millstream.types.factory import TypeInformation

_ROW_BYTES = 256  # what a record costs as a Python value, roughly
_ROW_OVERHEAD = 24  # hash, time and place in the order of a record in columns
_BLOCKS = 256  # of a run
_COMBINED_RUNS = 6  # as much memory goes to folding records before they make a run
_LEAST_BLOCK = 256  # records
_COUNT = struct.Struct("<Q")

Send = Callable[[int, bytes, bytes], None]
"""(target, place, block)."""


class SortedRuns:
    """Gathers records of one edge, sorts them by key and time, and sends them as blocks."""

    def __init__(
        self,
        partitioner: Hash,
        operator: str,
        edge: int,
        upstream: int,
        targets: int,
        rank: int,
        run_bytes: int,
        send: Send,
        fold: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        """`fold` makes one record of two of the same key; with it, keys that repeat leave once as long as that pays."""
        self._key = partitioner.key
        self._groups = np.uint64(partitioner.max_parallelism)
        self._route = routing_table(targets, partitioner.max_parallelism)
        self._operator, self._edge, self._upstream, self._targets = operator, edge, upstream, targets
        self._rank, self._limit, self._send = rank, run_bytes, send
        self.attempt = blocks.NO_ATTEMPT
        most, room = max(1, run_bytes // _ROW_BYTES), _COMBINED_RUNS * run_bytes
        self._combining = None if fold is None else Combining(operator, partitioner.key, fold, most, room)
        self._hasher = KeyHasher()
        self._held: list[Batch] = []
        self._hashes: list[KeyHashes] = []
        self._bytes = 0
        self._run = 0

    def add(self, batch: Batch) -> None:
        """Take records in."""
        batch = batch.without_keys()
        for ready in (batch,) if self._combining is None else self._combining.add(batch):
            self._gather(ready)

    def _gather(self, batch: Batch) -> None:
        keyed, hashes = self._key.keyed(batch, self._hasher, self._operator)
        if self._held and _form(self._held[0]) != _form(keyed):
            self._send_runs()
        self._held.append(keyed)
        self._hashes.append(hashes)
        self._bytes += _weight(keyed)
        if self._bytes >= self._limit:
            self._send_runs()

    def flush(self) -> None:
        """Send all there is."""
        for ready in () if self._combining is None else self._combining.flush():
            self._gather(ready)
        self._send_runs()

    def _send_runs(self) -> None:
        """Send what is gathered as one run."""
        if not self._held:
            return
        held, hashes = self._held, np.concatenate(self._hashes)
        self._held, self._hashes, self._bytes = [], [], 0
        whole = concatenated(held)
        order = sorted_order(hashes, whole.timestamps)
        hashes = hashes[order]
        for target, mine in self._shares(hashes):
            batch = whole.take(order if mine is None else order[mine])
            self._send_run(target, batch, hashes if mine is None else hashes[mine])
        self._run += 1

    def _shares(self, hashes: KeyHashes) -> Iterator[tuple[int, Any]]:
        """Each target with the positions of its records; None for all of them."""
        if self._targets == 1:
            yield 0, None
            return
        targets = self._route[(hashes % self._groups).astype(np.int64)]
        for target in range(self._targets):
            mine = np.flatnonzero(targets == target)
            if len(mine):
                yield target, mine

    def _send_run(self, target: int, batch: Batch, hashes: KeyHashes) -> None:
        cuts = _cuts(len(hashes), first_of_each(hashes))
        for index, (start, stop) in enumerate(pairwise(cuts)):
            part = batch.slice(start, stop)
            time = NO_TIMESTAMP if part.timestamps is None else int(part.timestamps[0])
            origin = Origin(self._edge, self._upstream, self._run, index)
            place = sorted_place(self._rank, int(hashes[start]), time, origin)
            packed = pack_sorted(self._edge, self._upstream, self._run, part, hashes[start:stop], self.attempt)
            self._send(target, place, packed)


def _form(batch: Batch) -> tuple[bool, bool]:
    return batch.columnar, batch.timestamps is None


def _weight(batch: Batch) -> int:
    if batch.columnar:
        return int(batch.array().nbytes) + _ROW_OVERHEAD * len(batch)
    return _ROW_BYTES * len(batch)


def concatenated(batches: list[Batch]) -> Batch:
    """Batches of one form as one."""
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    times = None if first.timestamps is None else np.concatenate([batch.timestamps for batch in batches])
    if all(batch.columnar for batch in batches):
        return Batch(first.kind, array=pa.concat_arrays([batch.array() for batch in batches]), timestamps=times)
    rows = [row for batch in batches for row in batch.rows()]
    keyed = all(batch.keys is not None for batch in batches)
    keys = [key for batch in batches for key in batch.keys or ()] if keyed else None
    return Batch(first.kind, rows=rows, timestamps=times, keys=keys)


def sorted_order(hashes: KeyHashes, times: np.ndarray | None) -> np.ndarray:
    """The order by hash, then time, then place."""
    if times is None or (times[1:] >= times[:-1]).all():
        return np.argsort(hashes, kind="stable")
    return np.lexsort((times, hashes))


def first_of_each(hashes: KeyHashes) -> np.ndarray:
    """Where each hash begins, in sorted hashes."""
    return np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))


def key_starts(hashes: KeyHashes, keys: list[Any] | None) -> np.ndarray | None:
    """Where each key begins, in sorted hashes; None when keys that differ share a hash.

    Without `keys`, they are such that this cannot be."""
    starts = first_of_each(hashes)
    if keys is not None and rowwise.changes(keys, hashes[1:] == hashes[:-1]):
        return None
    return starts


def _cuts(count: int, firsts: np.ndarray) -> list[int]:
    """Where blocks begin, and the end: every so many records, and around keys that fill half a block."""
    size = max(_LEAST_BLOCK, count // _BLOCKS)
    cuts = set(range(0, count, size)) | {count}
    ends = np.append(firsts[1:], count)
    large = ends - firsts >= size // 2
    cuts.update(firsts[large].tolist())
    cuts.update(ends[large].tolist())
    return sorted(cuts)


def pack_sorted(
    edge: int, upstream: int, run: int, batch: Batch, hashes: KeyHashes, attempt: bytes = blocks.NO_ATTEMPT
) -> bytes:
    """A block of a run: its hashes, then the records."""
    head = blocks.pack_header(BlockKind.SORTED, edge, upstream, run, attempt)
    inner = blocks.pack_batch(edge, upstream, run, batch)
    return b"".join((head, _COUNT.pack(len(hashes)), hashes.tobytes(), inner))


def unpack_sorted(data: bytes, kind: TypeInformation) -> tuple[Batch, KeyHashes]:
    """The inverse of `pack_sorted`."""
    start = blocks.HEADER_SIZE + _COUNT.size
    (count,) = _COUNT.unpack_from(data, blocks.HEADER_SIZE)
    hashes = np.frombuffer(data, dtype=np.uint64, count=count, offset=start)
    return blocks.unpack_batch(memoryview(data)[start + 8 * count :], kind), hashes
