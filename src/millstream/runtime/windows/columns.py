"""Fixed windows over whole columns: assignment and grouping.

Promises: the same windows and the same aggregates as record by record, without touching a record.
Does not know: state, watermarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.model.aggregations import Aggregate
from millstream.model.arrow_types import python_values
from millstream.runtime.batch import Batch


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


def grouped(
    batches: Sequence[Batch], key: str | int, windows: np.ndarray, rows: np.ndarray, aggregates: Sequence[Aggregate]
) -> tuple[np.ndarray, pa.Array, list[list[Any]]]:
    """Partial aggregates by window and key: (window starts, keys, one list of partials per aggregate)."""
    columns: dict[str, Any] = {"window": pa.array(windows), "key": _column(batches, key, rows)}
    wanted: list[tuple[Any, str]] = []
    for aggregate in aggregates:
        field: str | int | None = aggregate.field
        if field is None:
            wanted.append(([], "count_all"))
            continue
        name = f"field {field}"
        if name not in columns:
            columns[name] = _column(batches, field, rows)
        kinds = ("count", "sum") if aggregate.kind == "avg" else (aggregate.kind,)
        wanted.extend((name, kind) for kind in kinds)
    table = pa.table(columns).group_by(["window", "key"], use_threads=False).aggregate(wanted)
    made = [table.column("count_all" if kind == "count_all" else f"{name}_{kind}") for name, kind in wanted]
    partials = iter(_values(column) for column in made)
    lists = [
        list(zip(next(partials), [0 if s is None else s for s in next(partials)], strict=True))
        if aggregate.kind == "avg"
        else next(partials)
        for aggregate in aggregates
    ]
    keys = table.column("key").combine_chunks()
    return table.column("window").to_numpy(), keys, lists


def _column(batches: Sequence[Batch], field: str | int, rows: np.ndarray) -> pa.ChunkedArray:
    chunks = []
    for batch in batches:
        column = batch.column(field)
        assert column is not None
        chunks.append(column[0])
    whole = pa.chunked_array(chunks)
    return whole if len(rows) == len(whole) else whole.take(pa.array(rows))


def _values(column: pa.ChunkedArray) -> list[Any]:
    """A column as Python values; integers beside nulls stay integers."""
    return [value for chunk in column.chunks for value in python_values(chunk)]


def combined(aggregate: Aggregate, old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """old merged with new, one by one."""
    if aggregate.kind == "count":
        return [one + other for one, other in zip(old, new, strict=True)]
    merge = aggregate.merge
    if aggregate.kind == "sum":
        return [
            other if one is None else one if other is None else one + other for one, other in zip(old, new, strict=True)
        ]
    return [merge(one, other) for one, other in zip(old, new, strict=True)]
