"""The sending end of an exchange by key in a batch job: sorted runs, cut into blocks that have sort keys.

Promises: a run is sorted by hash of the key, then time, then arrival. Its blocks are so small that a reader that gets
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
from millstream.runtime.block_order import Origin, sorted_block_key
from millstream.runtime.combiner import Combiner
from millstream.runtime.partitioners import Hash
from millstream.state.key_groups import routing_table
from millstream.state.key_hashes import KeyHasher, KeyHashes
from millstream.types.factory import TypeInformation

_ROW_BYTES = 256  # of a record as a Python value, roughly
_ROW_OVERHEAD = 24  # hash, time and index of a record in columns
_BLOCKS_PER_RUN = 256
_COMBINER_RUNS = 6  # the memory of the combiner, in runs
_MIN_BLOCK_RECORDS = 256
_COUNT = struct.Struct("<Q")

Send = Callable[[int, bytes, bytes], None]
"""(target, sort key, block)."""


class SortedRuns:
    """Buffers records of one edge, sorts them by key and time, and sends them as blocks."""

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
        reduce: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        """`reduce` returns one record for two of the same key. With it, a combiner runs before the exchange."""
        self._key = partitioner.key
        self._groups = np.uint64(partitioner.max_parallelism)
        self._route = routing_table(targets, partitioner.max_parallelism)
        self._operator, self._edge, self._upstream, self._targets = operator, edge, upstream, targets
        self._rank, self._limit, self._send = rank, run_bytes, send
        self.attempt = blocks.NO_ATTEMPT
        self._combiner = None
        if reduce is not None:
            batch_size, memory_limit = max(1, run_bytes // _ROW_BYTES), _COMBINER_RUNS * run_bytes
            self._combiner = Combiner(operator, partitioner.key, reduce, batch_size, memory_limit)
        self._hasher = KeyHasher()
        self._batches: list[Batch] = []
        self._hashes: list[KeyHashes] = []
        self._bytes = 0
        self._run = 0

    def add(self, batch: Batch) -> None:
        """Add records; full runs are sent."""
        batch = batch.without_keys()
        for ready in (batch,) if self._combiner is None else self._combiner.add(batch):
            self._buffer(ready)

    def _buffer(self, batch: Batch) -> None:
        batch_with_keys, hashes = self._key.compute_keys(batch, self._hasher, self._operator)
        if self._batches and _form(self._batches[0]) != _form(batch_with_keys):
            self._send_buffer()
        self._batches.append(batch_with_keys)
        self._hashes.append(hashes)
        self._bytes += _weight(batch_with_keys)
        if self._bytes >= self._limit:
            self._send_buffer()

    def flush(self) -> None:
        """Send all records."""
        for ready in () if self._combiner is None else self._combiner.flush():
            self._buffer(ready)
        self._send_buffer()

    def _send_buffer(self) -> None:
        """Send the buffered records as one run."""
        if not self._batches:
            return
        batches, hashes = self._batches, np.concatenate(self._hashes)
        self._batches, self._hashes, self._bytes = [], [], 0
        batch = concat_batches(batches)
        order = sorted_order(hashes, batch.timestamps)
        hashes = hashes[order]
        for target, rows in self._partition(hashes):
            part = batch.take(order if rows is None else order[rows])
            self._send_run(target, part, hashes if rows is None else hashes[rows])
        self._run += 1

    def _partition(self, hashes: KeyHashes) -> Iterator[tuple[int, Any]]:
        """Yield each target with the row indexes of its records; None for all of them."""
        if self._targets == 1:
            yield 0, None
            return
        targets = self._route[(hashes % self._groups).astype(np.int64)]
        for target in range(self._targets):
            rows = np.flatnonzero(targets == target)
            if len(rows):
                yield target, rows

    def _send_run(self, target: int, batch: Batch, hashes: KeyHashes) -> None:
        cuts = _cuts(len(hashes), first_of_each(hashes))
        for index, (start, stop) in enumerate(pairwise(cuts)):
            part = batch.slice(start, stop)
            time = NO_TIMESTAMP if part.timestamps is None else int(part.timestamps[0])
            origin = Origin(self._edge, self._upstream, self._run, index)
            sort_key = sorted_block_key(self._rank, int(hashes[start]), time, origin)
            packed = pack_sorted(self._edge, self._upstream, self._run, part, hashes[start:stop], self.attempt)
            self._send(target, sort_key, packed)


def _form(batch: Batch) -> tuple[bool, bool]:
    return batch.columnar, batch.timestamps is None


def _weight(batch: Batch) -> int:
    if batch.columnar:
        return int(batch.array().nbytes) + _ROW_OVERHEAD * len(batch)
    return _ROW_BYTES * len(batch)


def concat_batches(batches: list[Batch]) -> Batch:
    """Return several batches as one; all have timestamps, or none has."""
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    times = None if first.timestamps is None else np.concatenate([batch.timestamps for batch in batches])
    if all(batch.columnar for batch in batches):
        return Batch(first.record_type, array=pa.concat_arrays([batch.array() for batch in batches]), timestamps=times)
    rows = [row for batch in batches for row in batch.rows()]
    keyed = all(batch.keys is not None for batch in batches)
    keys = [key for batch in batches for key in batch.keys or ()] if keyed else None
    return Batch(first.record_type, rows=rows, timestamps=times, keys=keys)


def sorted_order(hashes: KeyHashes, times: np.ndarray | None) -> np.ndarray:
    """Return the indexes of records in the order of hash, then time, then arrival."""
    if times is None or (times[1:] >= times[:-1]).all():
        return np.argsort(hashes, kind="stable")
    return np.lexsort((times, hashes))


def first_of_each(hashes: KeyHashes) -> np.ndarray:
    """Return the index at which each hash begins, in sorted hashes."""
    return np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))


def key_starts(hashes: KeyHashes, keys: list[Any] | None) -> np.ndarray | None:
    """Return the index at which each key begins, in sorted hashes; None if two keys have the same hash.

    Without `keys`, the hashes are known to be unique."""
    starts = first_of_each(hashes)
    if keys is not None and rowwise.has_changes(keys, hashes[1:] == hashes[:-1]):
        return None
    return starts


def _cuts(count: int, firsts: np.ndarray) -> list[int]:
    """Return where blocks begin, and the end: at regular distances, and around keys that fill half a block."""
    size = max(_MIN_BLOCK_RECORDS, count // _BLOCKS_PER_RUN)
    cuts = set(range(0, count, size)) | {count}
    ends = np.append(firsts[1:], count)
    large = ends - firsts >= size // 2
    cuts.update(firsts[large].tolist())
    cuts.update(ends[large].tolist())
    return sorted(cuts)


def pack_sorted(
    edge: int, upstream: int, run: int, batch: Batch, hashes: KeyHashes, attempt: bytes = blocks.NO_ATTEMPT
) -> bytes:
    """Return a block of a run: its hashes, then the records."""
    head = blocks.pack_header(BlockKind.SORTED, edge, upstream, run, attempt)
    inner = blocks.pack_batch(edge, upstream, run, batch)
    return b"".join((head, _COUNT.pack(len(hashes)), hashes.tobytes(), inner))


def unpack_sorted(data: bytes, record_type: TypeInformation) -> tuple[Batch, KeyHashes]:
    """Return the records and their hashes."""
    start = blocks.HEADER_SIZE + _COUNT.size
    (count,) = _COUNT.unpack_from(data, blocks.HEADER_SIZE)
    hashes = np.frombuffer(data, dtype=np.uint64, count=count, offset=start)
    return blocks.unpack_batch(memoryview(data)[start + 8 * count :], record_type), hashes
