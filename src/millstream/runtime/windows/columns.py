"""Fixed windows over whole columns: assignment, partial aggregates, and their merging.

Promises: the same windows and the same aggregates as record by record, without touching a record. A chunk is a batch of
partial aggregates, one row per key; merging chunks and then finishing equals aggregating everything at once.
Does not know: state, watermarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.functions.aggregations import Aggregate
from millstream.runtime.batch import Batch
from millstream.runtime.rowwise import UserFunctionFailed
from millstream.types.arrow_streams import stream_bytes


class NeedsTimestamps(UserFunctionFailed):
    """Records without a timestamp came to event-time windows."""

    def __init__(self, operator: str) -> None:
        super().__init__(
            operator,
            "records without a timestamp cannot go into event-time windows; call assign_timestamps_and_watermarks",
            "",
        )


_MERGED_BY = {"count": "sum", "count_all": "sum", "sum": "sum", "min": "min", "max": "max"}


def starts(timestamps: np.ndarray, size: int, slide: int, offset: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Yield pairs (rows, starts of their windows): one pair for each window that a record can be in."""
    last = timestamps - np.mod(timestamps - offset, slide)
    found = []
    for step in range(-(-size // slide)):
        start = last - step * slide
        inside = start + size > timestamps
        rows = np.arange(len(start)) if inside.all() else np.flatnonzero(inside)
        found.append((rows, start[rows]))
    return found


class Partials:
    """Partial aggregates: computes, merges and finishes chunks of them."""

    def __init__(self, aggregates: Sequence[Aggregate]) -> None:
        self._parts: list[tuple[str | int | None, str]] = []  # (field, kind) of each column behind the key
        self._needed: list[list[int]] = []  # the parts of each aggregate
        for aggregate in aggregates:
            field: str | int | None = aggregate.field
            kinds = ("count", "sum") if aggregate.kind == "avg" else (aggregate.kind,)
            wanted = [(field, "count_all" if field is None else kind) for kind in kinds]
            self._parts.extend(part for part in wanted if part not in self._parts)
            self._needed.append([self._parts.index(part) for part in wanted])

    def chunks(
        self, batches: Sequence[Batch], key: str | int, windows: np.ndarray, rows: np.ndarray
    ) -> list[tuple[int, pa.RecordBatch]]:
        """Yield a chunk for each window that has records."""
        where, whole = self.groups(batches, key, windows, rows)
        if not len(where):
            return []
        if (where == where[0]).all():
            return [(int(where[0]), _one(whole))]
        return [
            (int(window), _one(whole.take(pa.array(np.flatnonzero(where == window))))) for window in np.unique(where)
        ]

    def groups(
        self, batches: Sequence[Batch], key: str | int, windows: np.ndarray, rows: np.ndarray
    ) -> tuple[np.ndarray, pa.Table]:
        """Return one chunk for all windows, and the window of each of its rows."""
        columns: dict[str, Any] = {"window": pa.array(windows), "key": _column(batches, key, rows)}
        wanted: list[tuple[Any, str]] = []
        for field, kind in self._parts:
            wanted.append(([] if field is None else f"field {field}", kind))
            if field is not None and f"field {field}" not in columns:
                columns[f"field {field}"] = _column(batches, field, rows)
        table = pa.table(columns)
        several = len(windows) > 0 and bool((windows != windows[0]).any())
        groups = ["window", "key"] if several else ["key"]
        made = table.group_by(groups, use_threads=False).aggregate(wanted)
        names = ["count_all" if field is None else f"field {field}_{kind}" for field, kind in self._parts]
        arrays = [made.column("key"), *(made.column(name) for name in names)]
        whole = pa.table(arrays, names=["key", *(f"part{i}" for i in range(len(names)))])
        where = made.column("window").to_numpy() if several else np.repeat(windows[:1], whole.num_rows)
        return where, whole

    def merged(self, chunks: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """One chunk with one row per key."""
        if len(chunks) == 1:
            return chunks[0]
        wanted = [(f"part{i}", _MERGED_BY[kind]) for i, (_, kind) in enumerate(self._parts)]
        made = pa.Table.from_batches(chunks).group_by("key", use_threads=False).aggregate(wanted)
        arrays = [made.column("key"), *(made.column(f"{part}_{how}") for part, how in wanted)]
        return _one(pa.table(arrays, schema=chunks[0].schema))

    def finished(self, chunk: pa.RecordBatch, kinds: Sequence[pa.DataType]) -> list[pa.Array]:
        """The results, one column per aggregate, of the Arrow types asked for."""
        results = []
        for needed, kind in zip(self._needed, kinds, strict=True):
            part = chunk.column(1 + needed[0])
            if len(needed) == 2:  # the mean of a count and a sum
                count = pc.if_else(pc.equal(part, 0), None, part)
                total = pc.cast(chunk.column(1 + needed[1]), pa.float64(), safe=False)
                part = pc.divide(total, pc.cast(count, pa.float64()))
            results.append(part if part.type == kind else pc.cast(part, kind))
        return results


def packed(chunk: pa.RecordBatch) -> bytes:
    """A chunk as bytes, for state."""
    return stream_bytes(chunk)


def unpacked(data: bytes) -> pa.RecordBatch:
    """The inverse of `packed`."""
    return pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()


def _one(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _column(batches: Sequence[Batch], field: str | int, rows: np.ndarray) -> pa.ChunkedArray:
    chunks = []
    for batch in batches:
        column = batch.column(field)
        assert column is not None
        chunks.append(column[0])
    whole = pa.chunked_array(chunks)
    return whole if len(rows) == len(whole) else whole.take(pa.array(rows))
