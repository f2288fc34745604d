"""How many values each key has seen for the first time: COUNT(DISTINCT ...) with and without FILTER, on columns.

Promises: a value counts once for a key and a filter, however often and in whichever batch it comes.
Does not know: what is done with the counts; rows that are taken back.

Rows are first reduced to pairs of key and value; each pair then costs one look-up. A value's mark has one bit for each
filter under which it was seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.model.types import Types
from millstream.runtime.operator import OperatorContext
from millstream.sql import types as t
from millstream.sql.columns import SqlTypeInfo, internal_values
from millstream.state.store import ABSENT

Counted = tuple[int, int | None]  # the column of the values, and that of the filter

MOST_FILTERS = 62


class DistinctCounts:
    """State: by column and key, the marks of the values seen."""

    def __init__(
        self, context: OperatorContext, counted: Sequence[Counted], keys: Sequence[int], schema: t.RowType
    ) -> None:
        self._keys, self._schema = keys, schema
        self._filters: dict[int, list[int | None]] = {}
        for column, condition in counted:
            listed = self._filters.setdefault(column, [])
            if condition not in listed:
                listed.append(condition)
        self._tables = {
            column: context.state.table(
                f"groups/distinct/{place}",
                Types.MAP(SqlTypeInfo(schema.types[column], internal=True), Types.LONG()),
                kind="map",
            )
            for place, column in enumerate(self._filters)
        }

    def fresh(self, array: pa.Array, keys: Sequence[Any]) -> dict[Counted, np.ndarray]:
        """For each of `keys`, how many values of its rows it had not seen before."""
        places = {key: place for place, key in enumerate(keys)}
        made: dict[Counted, np.ndarray] = {}
        for column, filters in self._filters.items():
            rows, marks = self._new_marks(column, *self._pairs(array, column, filters), places)
            for bit, condition in enumerate(filters):
                weights = ((marks >> bit) & 1).astype(np.float64)
                made[column, condition] = np.bincount(rows, weights, minlength=len(keys)).astype(np.int64)
        return made

    def _pairs(
        self, array: pa.Array, column: int, filters: Sequence[int | None]
    ) -> tuple[list[Any], list[Any], np.ndarray]:
        """Key, value and mark of each pair of a key and a value that is not NULL."""
        names = [f"k{i}" for i in range(len(self._keys))]
        columns = {name: array.field(i) for name, i in zip(names, self._keys, strict=True)}
        columns["v"] = array.field(column)
        conditions = [condition for condition in filters if condition is not None]
        for condition in conditions:
            columns[f"f{condition}"] = pc.fill_null(array.field(condition), False).cast(pa.int8())
        rows = pa.table(columns)
        if columns["v"].null_count:
            rows = rows.filter(pc.is_valid(rows["v"]))
        pairs = rows.group_by([*names, "v"], use_threads=False).aggregate([(f"f{c}", "max") for c in conditions])
        marks = np.zeros(pairs.num_rows, dtype=np.int64)
        for bit, each in enumerate(filters):
            held = 1 if each is None else pairs[f"f{each}_max"].to_numpy().astype(np.int64)
            marks |= held << bit
        kinds = [self._schema.types[i] for i in self._keys]
        parts = [internal_values(pairs[name], kind) for name, kind in zip(names, kinds, strict=True)]
        keys = parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))
        return keys, internal_values(pairs["v"], self._schema.types[column]), marks

    def _new_marks(
        self, column: int, keys: list[Any], values: list[Any], marks: np.ndarray, places: dict[Any, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Note what was seen; the place of the key and the bits that are new, of each pair that has some."""
        table = self._tables[column]
        live, dirty = table.by_key()
        rows: list[int] = []
        bits: list[int] = []
        changed: dict[Any, list[Any]] = {}
        for key, value, mark in zip(keys, values, marks.tolist(), strict=True):
            seen = live[key]
            if seen is ABSENT:
                seen = live[key] = {}
            before = seen.get(value, 0)
            new = mark & ~before
            if new:
                seen[value] = before | mark
                changed.setdefault(key, []).append(value)
                rows.append(places[key])
                bits.append(new)
        dirty.update(changed)
        for key, entries in changed.items():
            table.touch(None, key, entries)
        return np.array(rows, dtype=np.int64), np.array(bits, dtype=np.int64)
