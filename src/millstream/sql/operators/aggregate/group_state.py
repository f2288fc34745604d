"""What GROUP BY on whole columns keeps: partial aggregates by key, or runs of keys with them.

Promises: in memory all keys of an epoch are looked up and replaced with whole arrays, without Python for a key; on disk
each key has a value of its own. An operator that finds state in the other form takes it over, so that state moves
between memory and disk.
Does not know: what is added up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import array_of, arrow_type, internal_values, tuple_type_info, tuples_of
from millstream.sql.operators.base import key_of, key_values
from millstream.sql.operators.row_runs import KeyColumns, RowRuns, Sorted
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT


class Known(NamedTuple):
    """Keys with whatever belongs to them; their parts so far, and which of them have none yet."""

    chunk: pa.RecordBatch
    hashes: np.ndarray | None
    before: list[pa.Array]
    fresh: np.ndarray


class GroupState:
    """The partial aggregates of each key; those of a key that is not there are `nothing`."""

    def __init__(
        self,
        context: OperatorContext,
        keys: Sequence[t.DataType],
        parts: Sequence[t.DataType],
        nothing: tuple[Any, ...],
    ) -> None:
        self._keys, self._parts, self._nothing = list(keys), list(parts), nothing
        self._places = tuple(range(len(keys)))
        self._schema = t.row_of([f"c{i}" for i in range(len(keys) + len(parts))], [*keys, *parts], null=False)
        self._columns = KeyColumns(keys)
        self._runs = RowRuns(context, "groups/runs", self._schema, self._places, newest=True)
        self._table = context.state.table("groups/partials", tuple_type_info(self._parts))
        self._in_runs = context.state.is_in_memory

    def settle(self) -> None:
        """Take over what is kept in the other form."""
        width = len(self._keys)
        if not self._in_runs:
            array = self._runs.rows()
            if array is not None:
                self._runs.clear()
                rows = tuples_of(array, self._schema)
                self._table.put_many(None, [key_of(row, self._places) for row in rows], [row[width:] for row in rows])
            return
        stored = list(self._table.scan(None))
        if stored:
            for key, _ in stored:
                self._table.delete(None, key)
            array = array_of([((key,) if width == 1 else key) + value for key, value in stored], None, self._schema)
            columns = [array.field(i) for i in range(len(self._schema))]
            self.keep(columns[:width], columns[width:], self._columns.hashes(columns[:width], len(stored)))

    def known(self, chunk: pa.RecordBatch) -> Known:
        """The keys of a chunk, each of which is there once, in the order in which they are found best."""
        if not self._in_runs:
            return Known(chunk, None, *self._found_by_key(chunk.columns[: len(self._keys)]))
        hashes = self._columns.hashes(chunk.columns[: len(self._keys)], len(chunk))
        order = np.argsort(hashes)
        chunk, hashes = chunk.take(pa.array(order)), hashes[order]
        return Known(chunk, hashes, *self._found_in_runs(chunk.columns[: len(self._keys)], hashes))

    def keep(self, keys: Sequence[pa.Array], parts: Sequence[pa.Array], hashes: np.ndarray | None) -> None:
        """These are the parts of the keys from now on."""
        if hashes is not None:
            self._runs.add([*keys, *parts], Sorted.of(hashes))
            return
        values = [internal_values(column, kind) for column, kind in zip(parts, self._parts, strict=True)]
        rows = list(zip(*values, strict=True)) or [()] * len(keys[0])
        self._table.put_many(None, key_values(keys, self._keys), rows)

    def _found_in_runs(self, keys: Sequence[pa.Array], hashes: np.ndarray) -> tuple[list[pa.Array], np.ndarray]:
        width = len(keys)
        found = self._runs.find(keys, hashes, self._columns)
        places = np.zeros(len(hashes), dtype=np.int64)
        end = 1
        for each in found:
            places[each.mine] = np.arange(end, end + len(each.mine))
            end += len(each.mine)
        rows, parts = pa.array(places), []
        for index, (kind, none) in enumerate(zip(self._parts, self._nothing, strict=True)):
            pieces = [each.run.columns[width + index].take(pa.array(each.places)) for each in found]
            parts.append(pa.concat_arrays([pa.array([none], arrow_type(kind)), *pieces]).take(rows))
        return parts, places == 0

    def _found_by_key(self, keys: Sequence[pa.Array]) -> tuple[list[pa.Array], np.ndarray]:
        live = self._table.reader(None)
        stored = [live[key] for key in key_values(keys, self._keys)]
        fresh = np.fromiter((each is ABSENT for each in stored), dtype=bool, count=len(stored))
        known = [self._nothing if each is ABSENT else each for each in stored]
        columns = zip(zip(*known, strict=True), self._parts, strict=True)
        return [pa.array(column, arrow_type(kind)) for column, kind in columns], fresh
