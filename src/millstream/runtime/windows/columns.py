"""Tumbling and sliding windows on columns: window assignment, partial aggregates, and their merging.

Promises: the same windows and aggregates as record by record, without Python code per record. A chunk is a batch of
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
from millstream.types.arrow_streams import write_stream_bytes


class NeedsTimestamps(UserFunctionFailed):
    """Records of event-time windows have no timestamp."""

    def __init__(self, operator: str) -> None:
        super().__init__(
            operator,
            "event-time windows need records with timestamps; call assign_timestamps_and_watermarks first",
            "",
        )


_MERGE_FUNCTIONS = {"count": "sum", "count_all": "sum", "sum": "sum", "min": "min", "max": "max"}


def starts(timestamps: np.ndarray, size: int, slide: int, offset: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs (rows, starts of their windows): one pair for each window that a record can be in."""
    last = timestamps - np.mod(timestamps - offset, slide)
    assignments = []
    for step in range(-(-size // slide)):
        start = last - step * slide
        is_inside = start + size > timestamps
        rows = np.arange(len(start)) if is_inside.all() else np.flatnonzero(is_inside)
        assignments.append((rows, start[rows]))
    return assignments


class WindowPartials:
    """Computes, merges and finishes chunks of partial aggregates."""

    def __init__(self, aggregates: Sequence[Aggregate]) -> None:
        self._parts: list[tuple[str | int | None, str]] = []  # (field, function) of each column after the key
        self._needed: list[list[int]] = []  # the indexes of the parts of each aggregate
        for aggregate in aggregates:
            field: str | int | None = aggregate.field
            functions = ("count", "sum") if aggregate.kind == "avg" else (aggregate.kind,)
            parts = [(field, "count_all" if field is None else function) for function in functions]
            self._parts.extend(part for part in parts if part not in self._parts)
            self._needed.append([self._parts.index(part) for part in parts])

    def chunks(
        self, batches: Sequence[Batch], key: str | int, windows: np.ndarray, rows: np.ndarray
    ) -> list[tuple[int, pa.RecordBatch]]:
        """Return a chunk for each window that has records."""
        window_of_row, aggregates = self.groups(batches, key, windows, rows)
        if not len(window_of_row):
            return []
        if (window_of_row == window_of_row[0]).all():
            return [(int(window_of_row[0]), _to_batch(aggregates))]
        return [
            (int(window), _to_batch(aggregates.take(pa.array(np.flatnonzero(window_of_row == window)))))
            for window in np.unique(window_of_row)
        ]

    def groups(
        self, batches: Sequence[Batch], key: str | int, windows: np.ndarray, rows: np.ndarray
    ) -> tuple[np.ndarray, pa.Table]:
        """Return one chunk for all windows, and the window of each of its rows."""
        columns: dict[str, Any] = {"window": pa.array(windows), "key": _column(batches, key, rows)}
        aggregations: list[tuple[Any, str]] = []
        for field, function in self._parts:
            aggregations.append(([] if field is None else f"field {field}", function))
            if field is not None and f"field {field}" not in columns:
                columns[f"field {field}"] = _column(batches, field, rows)
        table = pa.table(columns)
        has_several_windows = len(windows) > 0 and bool((windows != windows[0]).any())
        group_columns = ["window", "key"] if has_several_windows else ["key"]
        grouped = table.group_by(group_columns, use_threads=False).aggregate(aggregations)
        names = ["count_all" if field is None else f"field {field}_{function}" for field, function in self._parts]
        arrays = [grouped.column("key"), *(grouped.column(name) for name in names)]
        aggregates = pa.table(arrays, names=["key", *(f"part{i}" for i in range(len(names)))])
        window_of_row = (
            grouped.column("window").to_numpy() if has_several_windows else np.repeat(windows[:1], aggregates.num_rows)
        )
        return window_of_row, aggregates

    def merge(self, chunks: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Merge chunks into one with one row per key."""
        if len(chunks) == 1:
            return chunks[0]
        aggregations = [(f"part{i}", _MERGE_FUNCTIONS[function]) for i, (_, function) in enumerate(self._parts)]
        grouped = pa.Table.from_batches(chunks).group_by("key", use_threads=False).aggregate(aggregations)
        arrays = [
            grouped.column("key"),
            *(grouped.column(f"{part}_{merge_function}") for part, merge_function in aggregations),
        ]
        return _to_batch(pa.table(arrays, schema=chunks[0].schema))

    def finish(self, chunk: pa.RecordBatch, result_types: Sequence[pa.DataType]) -> list[pa.Array]:
        """Return the results, one column per aggregate, of these Arrow types."""
        results = []
        for needed, result_type in zip(self._needed, result_types, strict=True):
            part = chunk.column(1 + needed[0])
            if len(needed) == 2:  # the mean of a count and a sum
                count = pc.if_else(pc.equal(part, 0), None, part)
                total = pc.cast(chunk.column(1 + needed[1]), pa.float64(), safe=False)
                part = pc.divide(total, pc.cast(count, pa.float64()))
            results.append(part if part.type == result_type else pc.cast(part, result_type))
        return results


def pack_chunk(chunk: pa.RecordBatch) -> bytes:
    """Return a chunk as bytes, for state."""
    return write_stream_bytes(chunk)


def unpack_chunk(data: bytes) -> pa.RecordBatch:
    """Return the inverse of `pack_chunk`."""
    return pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()


def _to_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _column(batches: Sequence[Batch], field: str | int, rows: np.ndarray) -> pa.ChunkedArray:
    chunks = []
    for batch in batches:
        column = batch.column(field)
        assert column is not None
        chunks.append(column[0])
    column_of_all = pa.chunked_array(chunks)
    return column_of_all if len(rows) == len(column_of_all) else column_of_all.take(pa.array(rows))
