"""Rows of COUNT(DISTINCT ...) reduced to pairs of a key and a value, each once, before they are dealt out by key.

Promises: the pairs of some rows and what is added up of them say all that distinct counts need of the rows; pairs of
pairs are those of all rows.
Does not know: which values a key has seen before.

A pair's mark has one bit for each filter under which it came. In a chunk, behind the keys and the parts that are added
up, each counted column has its values and their marks; those of a key stand in as few rows as they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.operators.aggregate.partials import Partials
from millstream.sql.operators.row_runs import dense_codes
from millstream.sql.types import data_types as t

Filters = list[int | None]

_DENSE = 2  # numbers for each row, up to which those that are not there do not matter


class Groups(NamedTuple):
    """The keys of some rows: the columns of each key once, which key each row has, and how many keys there are."""

    keys: list[pa.Array]
    codes: np.ndarray
    number: int


class Pairs(NamedTuple):
    """Pairs of a key and a value: the key's number, which of the distinct values it is, those, and the mark."""

    owners: np.ndarray
    places: np.ndarray
    distinct: pa.Array
    marks: np.ndarray


class Coded:
    """The columns of rows, and behind them the number of each row's key."""

    def __init__(self, array: pa.Array, width: int, codes: np.ndarray) -> None:
        self._array, self._width, self._codes = array, width, pa.array(codes)

    def __len__(self) -> int:
        return len(self._codes)

    def field(self, index: int) -> pa.Array:
        """A column."""
        return self._codes if index == self._width else self._array.field(index)


def counted_columns(calls: Sequence[AggregateCall]) -> dict[int, Filters]:
    """The columns whose values are counted once, and under which filters."""
    found: dict[int, Filters] = {}
    for call in calls:
        if call.distinct:
            listed = found.setdefault(call.args[0], [])
            if call.filter not in listed:
                listed.append(call.filter)
    return found


def groups_of(keys: Sequence[pa.Array], count: int) -> Groups:
    """The keys of rows, in the order in which they come first."""
    codes, number = dense_codes(keys, count)
    firsts = np.empty(number, dtype=np.int64)
    firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # of rows with one code, the first is written last
    rows = pa.array(firsts)
    return Groups([key.take(rows) for key in keys], codes, number)


def coded_partials(calls: Sequence[AggregateCall], schema: t.RowType) -> Partials:
    """The partial aggregates, of calls that are not distinct, of `Coded` rows."""
    coded = t.row_of([*schema.names, "$code"], [*schema.types, t.BIGINT], null=False)
    return Partials([call for call in calls if not call.distinct], (len(schema),), coded)


def by_code(chunk: pa.RecordBatch) -> list[pa.Array]:
    """The parts of a chunk in the order of the codes that are its key."""
    codes = chunk.column(0).to_numpy()
    if (codes[1:] < codes[:-1]).any():
        chunk = chunk.take(pa.array(np.argsort(codes)))
    return list(chunk.columns[1:])


def conditions_of(array: pa.Array, filters: Filters) -> list[np.ndarray | None]:
    """Which rows each filter lets through; None for all."""
    return [
        None if each is None else pc.fill_null(array.field(each), False).to_numpy(zero_copy_only=False)
        for each in filters
    ]


def marked(marks: pa.Array, filters: Filters) -> list[np.ndarray | None]:
    """The same of rows that have marks."""
    bits = marks.to_numpy()
    return [(bits >> bit) & 1 == 1 for bit in range(len(filters))]


def pairs_of(values: pa.Array, groups: Groups, conditions: Sequence[np.ndarray | None]) -> Pairs:
    """The pairs of rows whose value is not NULL and which some condition lets through."""
    codes = groups.codes
    if values.null_count:
        valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
        values, codes = values.drop_null(), codes[valid]
        conditions = [None if each is None else each[valid] for each in conditions]
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary
    numbers = codes.astype(np.int64) * len(distinct) + encoded.indices.to_numpy()
    which, found = _each_once(numbers, groups.number * len(distinct))
    marks = np.zeros(len(found), dtype=np.int64)
    for bit, condition in enumerate(conditions):
        held = np.zeros(len(found), dtype=bool)
        held[which if condition is None else which[condition]] = True
        marks |= held.astype(np.int64) << bit
    some = np.flatnonzero(marks)
    owners, places = np.divmod(found[some], max(len(distinct), 1))
    return Pairs(owners, places, distinct, marks[some])


def _each_once(numbers: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Which of the numbers that are there each of these is, and those, all below `most`; some may not be there."""
    if most <= _DENSE * len(numbers):
        return numbers, np.arange(most)
    encoded = pa.array(numbers).dictionary_encode()
    return encoded.indices.to_numpy(), encoded.dictionary.to_numpy()


class PairPartials:
    """Chunks of rows that are added up by key, with their pairs."""

    def __init__(self, calls: Sequence[AggregateCall], keys: Sequence[int], schema: t.RowType) -> None:
        self._keys, self._schema = keys, schema
        self._plain = coded_partials(calls, schema)
        self._columns = counted_columns(calls)

    def part_types(self) -> list[t.DataType]:
        """The logical types of the columns behind the keys."""
        counted = [t.plain(self._schema.types[column]).nullable() for column in self._columns]
        return [*self._plain.part_types(), *(kind for value in counted for kind in (value, t.BIGINT))]

    def chunk(self, array: pa.Array) -> pa.RecordBatch:
        """The rows that some rows become."""
        groups = groups_of([array.field(i) for i in self._keys], len(array))
        parts = by_code(self._plain.chunk(Coded(array, len(self._schema), groups.codes)))
        pairs = [
            pairs_of(array.field(column), groups, conditions_of(array, filters))
            for column, filters in self._columns.items()
        ]
        counts = [np.bincount(each.owners, minlength=groups.number) for each in pairs]
        rows = np.maximum.reduce([np.ones(groups.number, dtype=np.int64), *counts])
        begins = np.cumsum(rows) - rows
        total = int(rows.sum())
        owners = pa.array(np.repeat(np.arange(groups.number), rows))
        columns = [key.take(owners) for key in groups.keys]
        firsts = _spread(begins, np.arange(groups.number), total)
        columns += [part.take(firsts) for part in parts]
        for each, count in zip(pairs, counts, strict=True):
            order = np.argsort(each.owners, kind="stable")
            numbers = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
            where = begins[each.owners[order]] + numbers
            marks = np.zeros(total, dtype=np.int64)
            marks[where] = each.marks[order]
            columns += [each.distinct.take(_spread(where, each.places[order], total)), pa.array(marks)]
        return pa.RecordBatch.from_arrays(columns, [str(i) for i in range(len(columns))])

    def singly(self, array: pa.Array) -> list[pa.Array]:
        """The columns of a chunk in which each row stands for itself."""
        parts = self._plain.singly(Coded(array, len(self._schema), np.zeros(len(array), dtype=np.int64)))[1:]
        columns = [*(array.field(i) for i in self._keys), *parts]
        for column, filters in self._columns.items():
            marks = np.zeros(len(array), dtype=np.int64)
            for bit, condition in enumerate(conditions_of(array, filters)):
                marks |= (1 if condition is None else condition.astype(np.int64)) << bit
            columns += [array.field(column), pa.array(marks)]
        return columns


def _spread(places: np.ndarray, what: np.ndarray, count: int) -> Any:
    """Indices to take: at each of these places what stands there, NULL elsewhere."""
    found = np.zeros(count, dtype=np.int64)
    missing = np.ones(count, dtype=bool)
    found[places], missing[places] = what, False
    return pa.array(found, mask=missing)
