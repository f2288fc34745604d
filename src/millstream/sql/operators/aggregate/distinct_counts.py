"""Counts of values that are new to their key: COUNT(DISTINCT ...) with and without FILTER, on columns.

Promises: a value counts once for a key and a filter, in whichever batches it occurs. In memory, all pairs of an epoch
are looked up with array operations; on disk, the values are stored by key. State in the other form is converted.
Does not know: what is done with the counts; retractions.

The input are pairs of key and value, or rows that are first reduced to pairs. A mark has one bit for each filter that a
pair has passed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import SqlTypeInfo, create_row_array, to_internal_values, to_tuples
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.operators.aggregate.distinct_pairs import (
    Filters,
    Groups,
    Pairs,
    collect_pairs,
    evaluate_filters,
    find_counted_columns,
    read_filters_of_marks,
)
from millstream.sql.operators.base import get_key
from millstream.sql.operators.row_runs import KeyColumns, RowRuns, SortedHashes
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types

Counted = tuple[int, int | None]  # the column of the values, and the column of the filter

MAX_FILTERS = 62
_MIX = np.int64(-7046029254386353131)  # 2**64 divided by the golden ratio
_SHIFT = np.int64(29)


class DistinctCounts:
    """Counts for each key how many values of some columns are new to it."""

    def __init__(
        self, context: OperatorContext, calls: Sequence[AggregateCall], keys: Sequence[int], schema: t.RowType
    ) -> None:
        key_types = [schema.types[i] for i in keys]
        self._key_columns = KeyColumns(key_types)
        self._seen_by_column = {
            column: _SeenPairs(context, index, schema.types[column], filters, key_types)
            for index, (column, filters) in enumerate(find_counted_columns(calls).items())
        }

    def convert_stored_form(self) -> None:
        """Convert state that is stored in the other form."""
        for seen in self._seen_by_column.values():
            seen.convert_stored_form()

    def count_new(self, array: pa.Array, groups: Groups) -> dict[Counted, np.ndarray]:
        """Return for each key how many values of its rows are new to it."""
        return self._count(
            {
                column: collect_pairs(array.field(column), groups, evaluate_filters(array, seen.filters))
                for column, seen in self._seen_by_column.items()
            },
            groups,
        )

    def count_new_in_pairs(self, array: pa.Array, first: int, groups: Groups) -> dict[Counted, np.ndarray]:
        """Do the same for rows that hold pairs from column `first` on."""
        return self._count(
            {
                column: collect_pairs(
                    array.field(column_index),
                    groups,
                    read_filters_of_marks(array.field(column_index + 1), seen.filters),
                )
                for column_index, (column, seen) in zip(
                    itertools.count(first, 2), self._seen_by_column.items(), strict=False
                )
            },
            groups,
        )

    def _count(self, pairs: dict[int, Pairs], groups: Groups) -> dict[Counted, np.ndarray]:
        new_counts: dict[Counted, np.ndarray] = {}
        key_hashes = self._key_columns.hashes(groups.keys, groups.number)
        for column, seen in self._seen_by_column.items():
            owners, bits = seen.add(pairs[column], groups, key_hashes)
            for bit, condition in enumerate(seen.filters):
                new_keys = owners[(bits >> bit) & 1 == 1]
                new_counts[column, condition] = np.bincount(new_keys, minlength=groups.number)
        return new_counts


class _RepeatedColumn:
    """A column of repeated values that is built for the rows that are taken only."""

    def __init__(self, values: pa.Array, rows: np.ndarray) -> None:
        self._values, self._rows = values, rows

    def take(self, row_indexes: pa.Array) -> pa.Array:
        """Return some rows."""
        return self._values.take(pa.array(self._rows[row_indexes.to_numpy()]))


class _SeenPairs:
    """State: the marks of the pairs seen, as runs of rows or by key."""

    def __init__(
        self,
        context: OperatorContext,
        index: int,
        value_type: t.DataType,
        filters: Filters,
        key_types: Sequence[t.DataType],
    ) -> None:
        self.filters = filters
        self._width, self._kinds = len(key_types), [*key_types, value_type, t.BIGINT]
        self._schema = t.row_of([f"c{i}" for i in range(len(key_types) + 2)], self._kinds, null=False)
        self._key_numbers, self._value_numbers = KeyColumns(key_types), KeyColumns([value_type])
        self._both = KeyColumns([*key_types, value_type])
        pair = tuple(range(len(key_types) + 1))
        self._runs = RowRuns(
            context, f"groups/seen/{index}", self._schema, pair, newest=True, partition_columns=pair[:-1]
        )
        self._table = context.state.table(
            f"groups/distinct/{index}", Types.MAP(SqlTypeInfo(value_type, internal=True), Types.LONG()), kind="map"
        )
        self._in_runs = context.state.is_in_memory

    def convert_stored_form(self) -> None:
        """Convert state that is stored in the other form."""
        keys = tuple(range(self._width))
        if not self._in_runs:
            array = self._runs.rows()
            if array is not None:
                self._runs.clear()
                marks_by_key: dict[Any, dict[Any, int]] = {}
                for row in to_tuples(array, self._schema):
                    marks_by_key.setdefault(get_key(row, keys), {})[row[-2]] = row[-1]
                for key, marks in marks_by_key.items():
                    self._table.put(None, key, marks)
            return
        stored = list(self._table.scan(None))
        if stored:
            for key, _ in stored:
                self._table.delete(None, key)
            entries = [((key,) if self._width == 1 else key, marks) for key, marks in stored]
            rows = [(*key, value, mark) for key, marks in entries for value, mark in marks.items()]
            array = create_row_array(rows, None, self._schema)
            columns = [array.field(i) for i in range(len(self._schema))]
            key_hashes = self._key_numbers.hashes(columns[: self._width], len(rows))
            hashes = _mix_hashes(key_hashes, self._value_numbers.hashes([columns[-2]], len(rows)))
            self._runs.add(columns, SortedHashes.of(hashes))

    def add(self, pairs: Pairs, groups: Groups, key_hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add pairs, and return the key index and the new bits of each pair that has new bits."""
        if not self._in_runs:
            return self._add_by_key(pairs, groups)
        value_hashes = self._value_numbers.hashes([pairs.distinct], len(pairs.distinct))
        hashes = _mix_hashes(key_hashes[pairs.key_indexes], value_hashes[pairs.value_indexes])
        columns = [
            *(_RepeatedColumn(key, pairs.key_indexes) for key in groups.keys),
            _RepeatedColumn(pairs.distinct, pairs.value_indexes),
        ]
        before = np.zeros(len(hashes), dtype=np.int64)
        for match in self._runs.find(columns, hashes, self._both):
            before[match.key_rows] = match.run.columns[-1].to_numpy()[match.rows]
        bits = pairs.marks & ~before
        changed = np.flatnonzero(bits)
        marks = pa.array((before | bits)[changed])
        self._runs.add(
            [*(column.take(pa.array(changed)) for column in columns), marks], SortedHashes.of(hashes[changed])
        )
        return pairs.key_indexes[changed], bits[changed]

    def _add_by_key(self, pairs: Pairs, groups: Groups) -> tuple[np.ndarray, np.ndarray]:
        live, dirty = self._table.by_key()
        key_columns = [
            to_internal_values(key, data_type) for key, data_type in zip(groups.keys, self._kinds, strict=False)
        ]
        keys = key_columns[0] if self._width == 1 else list(zip(*key_columns, strict=True))
        distinct = to_internal_values(pairs.distinct, self._kinds[self._width])
        values = [distinct[value_index] for value_index in pairs.value_indexes.tolist()]
        bits = np.zeros(len(values), dtype=np.int64)
        changed: dict[Any, list[Any]] = {}
        pair_values = zip(pairs.key_indexes.tolist(), values, pairs.marks.tolist(), strict=True)
        for pair_index, (group, value, mark) in enumerate(pair_values):
            key = keys[group]
            seen = live[key]
            if seen is ABSENT:
                seen = live[key] = {}
            before = seen.get(value, 0)
            if mark & ~before:
                bits[pair_index] = mark & ~before
                seen[value] = before | mark
                changed.setdefault(key, []).append(value)
        dirty.update(changed)
        for key, entries in changed.items():
            self._table.touch(None, key, entries)
        changed_pairs = np.flatnonzero(bits)
        return pairs.key_indexes[changed_pairs], bits[changed_pairs]


def _mix_hashes(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the hashes of pairs, given those of keys and values."""
    mixed = (keys ^ (keys >> _SHIFT)) * _MIX + values
    return mixed ^ (mixed >> _SHIFT)  # type: ignore[no-any-return]
