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

from millstream.model.aggregations import Aggregate
from millstream.runtime.batch import Batch

_MERGED_BY = {"count": "sum", "count_all": "sum", "sum": "sum", "min": "min", "max": "max"}


def starts(timestamps: np.ndarray, size: int, slide: int, offset: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each of the windows a record can be in: (rows that are in it, where it starts)."""
    last = timestamps - np.mod(timestamps - offset, slide)
    found = []
    for step in range(-(-size // slide)):
        start = last - step * slide
        inside = start + size > timestamps
        rows = np.arange(len(start)) if inside.all() else np.flatnonzero(inside)
        found.append((rows, start[rows]))
    return found


class Partials:
    """Partial aggregates of some aggregates: how chunks are made, merged and finished."""

    def __init__(self, aggregates: Sequence[Aggregate]) -> None:
        self._aggregates = list(aggregates)
        self._parts: list[tuple[str | int | None, str]] = []  # (field, kind) of each column behind the key
        for aggregate in aggregates:
            field: str | int | None = aggregate.field
            kinds = (
                ("count_all",) if field is None else ("count", "sum") if aggregate.kind == "avg" else (aggregate.kind,)
            )
            self._parts.extend((field, kind) for kind in kinds)

    def chunks(
        self, batches: Sequence[Batch], key: str | int, windows: np.ndarray, rows: np.ndarray
    ) -> list[tuple[int, pa.RecordBatch]]:
        """A chunk for each window that has records."""
        columns: dict[str, Any] = {"window": pa.array(windows), "key": _column(batches, key, rows)}
        wanted: list[tuple[Any, str]] = []
        for field, kind in self._parts:
            if field is not None:
                columns.setdefault(f"field {field}", None)
            asked = ([] if field is None else f"field {field}", kind)
            if asked not in wanted:  # the sum of an average may be that of a sum, too
                wanted.append(asked)
        for field in {field for field, _ in self._parts if field is not None}:
            columns[f"field {field}"] = _column(batches, field, rows)
        table = pa.table(columns)
        several = len(windows) > 0 and bool((windows != windows[0]).any())
        groups = ["window", "key"] if several else ["key"]
        made = table.group_by(groups, use_threads=False).aggregate(wanted)
        names = ["count_all" if field is None else f"field {field}_{kind}" for field, kind in self._parts]
        arrays = [made.column("key"), *(made.column(name) for name in names)]
        whole = pa.table(arrays, names=["key", *(f"part{i}" for i in range(len(names)))])
        if not several:
            return [(int(windows[0]), _one(whole))] if len(windows) else []
        where = made.column("window").to_numpy()
        return [
            (int(window), _one(whole.take(pa.array(np.flatnonzero(where == window))))) for window in np.unique(where)
        ]

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
        parts = iter(chunk.columns[1:])
        results = []
        for aggregate, kind in zip(self._aggregates, kinds, strict=True):
            part = next(parts)
            if aggregate.kind == "avg":
                total = pc.cast(next(parts), pa.float64(), safe=False)
                part = pc.divide(total, pc.cast(pc.if_else(pc.equal(part, 0), None, part), pa.float64()))
            results.append(part if part.type == kind else pc.cast(part, kind))
        return results


def packed(chunk: pa.RecordBatch) -> bytes:
    """A chunk as bytes, for state."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, chunk.schema) as writer:
        writer.write_batch(chunk)
    data: bytes = sink.getvalue().to_pybytes()
    return data


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
