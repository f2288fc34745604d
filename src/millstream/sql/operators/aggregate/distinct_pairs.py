"""Reduces rows of COUNT(DISTINCT ...) to distinct pairs of key and value before they are partitioned by key.

Promises: distinct counts can be computed from the pairs and the partial aggregates of the other calls; pairs of pairs
are the pairs of all rows.
Does not know: which values a key has seen before.

The mark of a pair has one bit for each filter that it has passed. A chunk has the keys, the partial columns, and for
each counted column its values and marks. The pairs of a key occupy as few rows as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.operators.aggregate.partials import Partials
from millstream.sql.operators.row_runs import compute_dense_key_codes
from millstream.sql.types import data_types as t

Filters = list[int | None]

_MAX_SPARSITY = 2  # up to this ratio of possible to actual numbers, unused numbers are not removed


class Groups(NamedTuple):
    """The keys of some rows: the columns of the distinct keys, the key index of each row, and the number of keys."""

    keys: list[pa.Array]
    codes: np.ndarray
    number: int


class Pairs(NamedTuple):
    """Pairs of key and value: key indexes, value indexes, the distinct values, and marks."""

    key_indexes: np.ndarray
    value_indexes: np.ndarray
    distinct: pa.Array
    marks: np.ndarray


class CodedRows:
    """The columns of rows, followed by the key index of each row."""

    def __init__(self, array: pa.Array, width: int, codes: np.ndarray) -> None:
        self._array, self._width, self._codes = array, width, pa.array(codes)

    def __len__(self) -> int:
        return len(self._codes)

    def field(self, index: int) -> pa.Array:
        """Return a column."""
        return self._codes if index == self._width else self._array.field(index)


def find_counted_columns(calls: Sequence[AggregateCall]) -> dict[int, Filters]:
    """Return the columns of distinct counts, with their filters."""
    filters_by_column: dict[int, Filters] = {}
    for call in calls:
        if call.distinct:
            filters = filters_by_column.setdefault(call.args[0], [])
            if call.filter not in filters:
                filters.append(call.filter)
    return filters_by_column


def group_rows(keys: Sequence[pa.Array], count: int) -> Groups:
    """Group rows by key, in the order of their first rows."""
    codes, number = compute_dense_key_codes(keys, count)
    firsts = np.empty(number, dtype=np.int64)
    firsts[codes[::-1]] = np.arange(
        len(codes) - 1, -1, -1
    )  # assigned from back to front, so that the first row of a code remains
    rows = pa.array(firsts)
    return Groups([key.take(rows) for key in keys], codes, number)


def aggregate_codes(calls: Sequence[AggregateCall], schema: t.RowType) -> Partials:
    """Return the partial aggregates of the calls without DISTINCT, for `CodedRows`."""
    coded = t.row_of([*schema.names, "$code"], [*schema.types, t.BIGINT], null=False)
    return Partials([call for call in calls if not call.distinct], (len(schema),), coded)


def sort_by_code(chunk: pa.RecordBatch) -> list[pa.Array]:
    """Return the partial columns of a chunk in the order of the codes, which are its key."""
    codes = chunk.column(0).to_numpy()
    if (codes[1:] < codes[:-1]).any():
        chunk = chunk.take(pa.array(np.argsort(codes)))
    return list(chunk.columns[1:])


def evaluate_filters(array: pa.Array, filters: Filters) -> list[np.ndarray | None]:
    """Return which rows pass each filter; None for all rows."""
    return [
        None if column is None else pc.fill_null(array.field(column), False).to_numpy(zero_copy_only=False)
        for column in filters
    ]


def read_filters_of_marks(marks: pa.Array, filters: Filters) -> list[np.ndarray | None]:
    """Return which rows pass each filter, given their marks."""
    bits = marks.to_numpy()
    return [(bits >> bit) & 1 == 1 for bit in range(len(filters))]


def collect_pairs(values: pa.Array, groups: Groups, conditions: Sequence[np.ndarray | None]) -> Pairs:
    """Return the distinct pairs of rows whose value is not NULL and which pass a filter."""
    codes = groups.codes
    if values.null_count:
        valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
        values, codes = values.drop_null(), codes[valid]
        conditions = [None if condition is None else condition[valid] for condition in conditions]
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary
    codes_of_pairs = codes.astype(np.int64) * len(distinct) + encoded.indices.to_numpy()
    pair_indexes, pair_codes = _find_distinct_numbers(codes_of_pairs, groups.number * len(distinct))
    marks = np.zeros(len(pair_codes), dtype=np.int64)
    for bit, condition in enumerate(conditions):
        is_marked = np.zeros(len(pair_codes), dtype=bool)
        is_marked[pair_indexes if condition is None else pair_indexes[condition]] = True
        marks |= is_marked.astype(np.int64) << bit
    marked_pairs = np.flatnonzero(marks)
    key_indexes, value_indexes = np.divmod(pair_codes[marked_pairs], max(len(distinct), 1))
    return Pairs(key_indexes, value_indexes, distinct, marks[marked_pairs])


def _find_distinct_numbers(numbers: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of each number among the distinct ones, and the distinct ones, which are all below `most`.

    If there are few possible numbers, all of them are returned as distinct ones."""
    if most <= _MAX_SPARSITY * len(numbers):
        return numbers, np.arange(most)
    encoded = pa.array(numbers).dictionary_encode()
    return encoded.indices.to_numpy(), encoded.dictionary.to_numpy()


class PairPartials:
    """Partial aggregates by key, with the distinct pairs."""

    def __init__(self, calls: Sequence[AggregateCall], keys: Sequence[int], schema: t.RowType) -> None:
        self._keys, self._schema = keys, schema
        self._plain = aggregate_codes(calls, schema)
        self._columns = find_counted_columns(calls)

    def part_types(self) -> list[t.DataType]:
        """Return the logical types of the columns after the keys."""
        counted = [t.strip_time_attribute(self._schema.types[column]).nullable() for column in self._columns]
        return [*self._plain.part_types(), *(data_type for value in counted for data_type in (value, t.BIGINT))]

    def chunk(self, array: pa.Array) -> pa.RecordBatch:
        """Aggregate rows to one row for each key, or more if a key has several pairs."""
        groups = group_rows([array.field(i) for i in self._keys], len(array))
        parts = sort_by_code(self._plain.chunk(CodedRows(array, len(self._schema), groups.codes)))
        pairs = [
            collect_pairs(array.field(column), groups, evaluate_filters(array, filters))
            for column, filters in self._columns.items()
        ]
        counts = [np.bincount(column_pairs.key_indexes, minlength=groups.number) for column_pairs in pairs]
        rows = np.maximum.reduce([np.ones(groups.number, dtype=np.int64), *counts])
        begins = np.cumsum(rows) - rows
        total = int(rows.sum())
        owners = pa.array(np.repeat(np.arange(groups.number), rows))
        columns = [key.take(owners) for key in groups.keys]
        firsts = _scatter(begins, np.arange(groups.number), total)
        columns += [part.take(firsts) for part in parts]
        for column_pairs, count in zip(pairs, counts, strict=True):
            order = np.argsort(column_pairs.key_indexes, kind="stable")
            offsets = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
            row_indexes = begins[column_pairs.key_indexes[order]] + offsets
            marks = np.zeros(total, dtype=np.int64)
            marks[row_indexes] = column_pairs.marks[order]
            columns += [
                column_pairs.distinct.take(_scatter(row_indexes, column_pairs.value_indexes[order], total)),
                pa.array(marks),
            ]
        return pa.RecordBatch.from_arrays(columns, [str(i) for i in range(len(columns))])

    def pass_rows(self, array: pa.Array) -> list[pa.Array]:
        """Return the columns of a chunk with one row for each input row."""
        parts = self._plain.pass_rows(CodedRows(array, len(self._schema), np.zeros(len(array), dtype=np.int64)))[1:]
        columns = [*(array.field(i) for i in self._keys), *parts]
        for column, filters in self._columns.items():
            marks = np.zeros(len(array), dtype=np.int64)
            for bit, condition in enumerate(evaluate_filters(array, filters)):
                marks |= (1 if condition is None else condition.astype(np.int64)) << bit
            columns += [array.field(column), pa.array(marks)]
        return columns


def _scatter(row_indexes: np.ndarray, values: np.ndarray, count: int) -> Any:
    """Return an array of indexes: `values` at the given rows, NULL elsewhere."""
    indexes = np.zeros(count, dtype=np.int64)
    is_missing = np.ones(count, dtype=bool)
    indexes[row_indexes], is_missing[row_indexes] = values, False
    return pa.array(indexes, mask=is_missing)
