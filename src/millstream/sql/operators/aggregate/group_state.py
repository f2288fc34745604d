"""State of GROUP BY on columns: partial aggregates by key, or runs of keys and partial aggregates.

Promises: in memory, all keys of an epoch are looked up and replaced with array operations, without Python code for a
key; on disk, each key has a value of its own. State in the other form is converted, so that state can move between
memory and disk.
Does not know: what is aggregated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import arrow_type, create_row_array, create_tuple_type_info, to_internal_values, to_tuples
from millstream.sql.operators.base import get_key, read_keys
from millstream.sql.operators.row_runs import KeyColumns, RowRuns, SortedHashes
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT


class LookedUpKeys(NamedTuple):
    """The chunk with its keys in look-up order, their partial columns so far, and which keys are new."""

    chunk: pa.RecordBatch
    hashes: np.ndarray | None
    before: list[pa.Array]
    is_new: np.ndarray


class GroupState:
    """The partial aggregates of each key; `nothing` are those of a key without rows."""

    def __init__(
        self,
        context: OperatorContext,
        keys: Sequence[t.DataType],
        parts: Sequence[t.DataType],
        nothing: tuple[Any, ...],
    ) -> None:
        self._keys, self._parts, self._nothing = list(keys), list(parts), nothing
        self._key_indexes = tuple(range(len(keys)))
        self._schema = t.row_of([f"c{i}" for i in range(len(keys) + len(parts))], [*keys, *parts], null=False)
        self._columns = KeyColumns(keys)
        self._runs = RowRuns(context, "groups/runs", self._schema, self._key_indexes, newest=True)
        self._table = context.state.table("groups/partials", create_tuple_type_info(self._parts))
        self._in_runs = context.state.is_in_memory

    def convert_stored_form(self) -> None:
        """Convert state that is stored in the other form."""
        width = len(self._keys)
        if not self._in_runs:
            array = self._runs.rows()
            if array is not None:
                self._runs.clear()
                rows = to_tuples(array, self._schema)
                self._table.put_many(
                    None, [get_key(row, self._key_indexes) for row in rows], [row[width:] for row in rows]
                )
            return
        stored = list(self._table.scan(None))
        if stored:
            for key, _ in stored:
                self._table.delete(None, key)
            array = create_row_array(
                [((key,) if width == 1 else key) + value for key, value in stored], None, self._schema
            )
            columns = [array.field(i) for i in range(len(self._schema))]
            self.put(columns[:width], columns[width:], self._columns.hashes(columns[:width], len(stored)))

    def look_up(self, chunk: pa.RecordBatch) -> LookedUpKeys:
        """Look up the distinct keys of a chunk."""
        if not self._in_runs:
            return LookedUpKeys(chunk, None, *self._read_by_key(chunk.columns[: len(self._keys)]))
        hashes = self._columns.hashes(chunk.columns[: len(self._keys)], len(chunk))
        order = np.argsort(hashes)
        chunk, hashes = chunk.take(pa.array(order)), hashes[order]
        return LookedUpKeys(chunk, hashes, *self._read_runs(chunk.columns[: len(self._keys)], hashes))

    def put(self, keys: Sequence[pa.Array], parts: Sequence[pa.Array], hashes: np.ndarray | None) -> None:
        """Set the partial aggregates of keys."""
        if hashes is not None:
            self._runs.add([*keys, *parts], SortedHashes.of(hashes))
            return
        values = [to_internal_values(column, data_type) for column, data_type in zip(parts, self._parts, strict=True)]
        rows = list(zip(*values, strict=True)) or [()] * len(keys[0])
        self._table.put_many(None, read_keys(keys, self._keys), rows)

    def _read_runs(self, keys: Sequence[pa.Array], hashes: np.ndarray) -> tuple[list[pa.Array], np.ndarray]:
        width = len(keys)
        matches = self._runs.find(keys, hashes, self._columns)
        positions = np.zeros(len(hashes), dtype=np.int64)
        end = 1
        for match in matches:
            positions[match.key_rows] = np.arange(end, end + len(match.key_rows))
            end += len(match.key_rows)
        rows, parts = pa.array(positions), []
        for index, (data_type, empty) in enumerate(zip(self._parts, self._nothing, strict=True)):
            pieces = [match.run.columns[width + index].take(pa.array(match.rows)) for match in matches]
            parts.append(pa.concat_arrays([pa.array([empty], arrow_type(data_type)), *pieces]).take(rows))
        return parts, positions == 0

    def _read_by_key(self, keys: Sequence[pa.Array]) -> tuple[list[pa.Array], np.ndarray]:
        live = self._table.reader(None)
        stored = [live[key] for key in read_keys(keys, self._keys)]
        is_new = np.fromiter((value is ABSENT for value in stored), dtype=bool, count=len(stored))
        partials = [self._nothing if value is ABSENT else value for value in stored]
        columns = zip(zip(*partials, strict=True), self._parts, strict=True)
        return [pa.array(column, arrow_type(data_type)) for column, data_type in columns], is_new
