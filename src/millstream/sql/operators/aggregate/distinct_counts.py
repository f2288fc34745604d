"""How many values each key has seen for the first time: COUNT(DISTINCT ...) with and without FILTER, on columns.

Promises: a value counts once for a key and a filter, however often and in whichever batch it comes. In memory all
pairs of an epoch are looked up with whole arrays; on disk each key has the values it has seen. State that is found in
the other form is taken over.
Does not know: what is done with the counts; rows that are taken back.

Rows come reduced to pairs of key and value, or are first. A mark has one bit for each filter under which a pair was
seen."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import SqlTypeInfo, array_of, internal_values, tuples_of
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.operators.aggregate.distinct_pairs import (
    Filters,
    Groups,
    Pairs,
    conditions_of,
    counted_columns,
    marked,
    pairs_of,
)
from millstream.sql.operators.base import key_of
from millstream.sql.operators.row_runs import KeyColumns, RowRuns, Sorted
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types

Counted = tuple[int, int | None]  # the column of the values, and that of the filter

MOST_FILTERS = 62
_MIX = np.int64(-7046029254386353131)  # the golden ratio as a number of 64 bits
_SHIFT = np.int64(29)


class DistinctCounts:
    """How many values of each of some columns are new to their keys."""

    def __init__(
        self, context: OperatorContext, calls: Sequence[AggregateCall], keys: Sequence[int], schema: t.RowType
    ) -> None:
        kinds = [schema.types[i] for i in keys]
        self._numbers = KeyColumns(kinds)
        self._seen = {
            column: _Seen(context, place, schema.types[column], filters, kinds)
            for place, (column, filters) in enumerate(counted_columns(calls).items())
        }

    def settle(self) -> None:
        """Take over what is kept in the other form."""
        for each in self._seen.values():
            each.settle()

    def fresh(self, array: pa.Array, groups: Groups) -> dict[Counted, np.ndarray]:
        """For each key, how many values of its rows it had not seen before."""
        return self._counted(
            {
                column: pairs_of(array.field(column), groups, conditions_of(array, seen.filters))
                for column, seen in self._seen.items()
            },
            groups,
        )

    def fresh_of_pairs(self, array: pa.Array, first: int, groups: Groups) -> dict[Counted, np.ndarray]:
        """The same of rows that have pairs from column `first` on."""
        return self._counted(
            {
                column: pairs_of(array.field(place), groups, marked(array.field(place + 1), seen.filters))
                for place, (column, seen) in zip(itertools.count(first, 2), self._seen.items(), strict=False)
            },
            groups,
        )

    def _counted(self, pairs: dict[int, Pairs], groups: Groups) -> dict[Counted, np.ndarray]:
        made: dict[Counted, np.ndarray] = {}
        numbers = self._numbers.hashes(groups.keys, groups.number)
        for column, seen in self._seen.items():
            owners, bits = seen.new(pairs[column], groups, numbers)
            for bit, condition in enumerate(seen.filters):
                held = owners[(bits >> bit) & 1 == 1]
                made[column, condition] = np.bincount(held, minlength=groups.number)
        return made


class _Spread:
    """A column of which only those rows are made that are taken: values, and which of them each row has."""

    def __init__(self, values: pa.Array, rows: np.ndarray) -> None:
        self._values, self._rows = values, rows

    def take(self, places: pa.Array) -> pa.Array:
        """Some rows."""
        return self._values.take(pa.array(self._rows[places.to_numpy()]))


class _Seen:
    """State: the marks of the pairs seen, as runs of rows or by key."""

    def __init__(
        self,
        context: OperatorContext,
        place: int,
        kind: t.DataType,
        filters: Filters,
        keys: Sequence[t.DataType],
    ) -> None:
        self.filters = filters
        self._width, self._kinds = len(keys), [*keys, kind, t.BIGINT]
        self._schema = t.row_of([f"c{i}" for i in range(len(keys) + 2)], self._kinds, null=False)
        self._key_numbers, self._value_numbers = KeyColumns(keys), KeyColumns([kind])
        self._both = KeyColumns([*keys, kind])
        pair = tuple(range(len(keys) + 1))
        self._runs = RowRuns(context, f"groups/seen/{place}", self._schema, pair, newest=True, dealt=pair[:-1])
        self._table = context.state.table(
            f"groups/distinct/{place}", Types.MAP(SqlTypeInfo(kind, internal=True), Types.LONG()), kind="map"
        )
        self._in_runs = context.state.is_in_memory

    def settle(self) -> None:
        """Take over what is kept in the other form."""
        keys = tuple(range(self._width))
        if not self._in_runs:
            array = self._runs.rows()
            if array is not None:
                self._runs.clear()
                known: dict[Any, dict[Any, int]] = {}
                for row in tuples_of(array, self._schema):
                    known.setdefault(key_of(row, keys), {})[row[-2]] = row[-1]
                for key, marks in known.items():
                    self._table.put(None, key, marks)
            return
        stored = list(self._table.scan(None))
        if stored:
            for key, _ in stored:
                self._table.delete(None, key)
            heads = [((key,) if self._width == 1 else key, marks) for key, marks in stored]
            rows = [(*key, value, mark) for key, marks in heads for value, mark in marks.items()]
            array = array_of(rows, None, self._schema)
            columns = [array.field(i) for i in range(len(self._schema))]
            own = self._key_numbers.hashes(columns[: self._width], len(rows))
            hashes = _mixed(own, self._value_numbers.hashes([columns[-2]], len(rows)))
            self._runs.add(columns, Sorted.of(hashes))

    def new(self, pairs: Pairs, groups: Groups, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Note what was seen; the number of the key and the bits that are new, of each pair that has some. `numbers`
        are hashes of the keys."""
        if not self._in_runs:
            return self._new_by_key(pairs, groups)
        values = self._value_numbers.hashes([pairs.distinct], len(pairs.distinct))
        hashes = _mixed(numbers[pairs.owners], values[pairs.places])
        columns = [*(_Spread(key, pairs.owners) for key in groups.keys), _Spread(pairs.distinct, pairs.places)]
        before = np.zeros(len(hashes), dtype=np.int64)
        for found in self._runs.find(columns, hashes, self._both):
            before[found.mine] = found.run.columns[-1].to_numpy()[found.places]
        bits = pairs.marks & ~before
        some = np.flatnonzero(bits)
        marks = pa.array((before | bits)[some])
        self._runs.add([*(column.take(pa.array(some)) for column in columns), marks], Sorted.of(hashes[some]))
        return pairs.owners[some], bits[some]

    def _new_by_key(self, pairs: Pairs, groups: Groups) -> tuple[np.ndarray, np.ndarray]:
        live, dirty = self._table.by_key()
        parts = [internal_values(key, kind) for key, kind in zip(groups.keys, self._kinds, strict=False)]
        keys = parts[0] if self._width == 1 else list(zip(*parts, strict=True))
        distinct = internal_values(pairs.distinct, self._kinds[self._width])
        values = [distinct[place] for place in pairs.places.tolist()]
        bits = np.zeros(len(values), dtype=np.int64)
        changed: dict[Any, list[Any]] = {}
        looked_at = zip(pairs.owners.tolist(), values, pairs.marks.tolist(), strict=True)
        for place, (group, value, mark) in enumerate(looked_at):
            key = keys[group]
            seen = live[key]
            if seen is ABSENT:
                seen = live[key] = {}
            before = seen.get(value, 0)
            if mark & ~before:
                bits[place] = mark & ~before
                seen[value] = before | mark
                changed.setdefault(key, []).append(value)
        dirty.update(changed)
        for key, entries in changed.items():
            self._table.touch(None, key, entries)
        some = np.flatnonzero(bits)
        return pairs.owners[some], bits[some]


def _mixed(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The hash of pairs, of those of their parts."""
    mixed = (keys ^ (keys >> _SHIFT)) * _MIX + values
    return mixed ^ (mixed >> _SHIFT)  # type: ignore[no-any-return]
