"""Top-N and deduplication with mini-batches: the rows of an epoch are ordered once, and each partition is told once.

Promises: the final rows and ranks of RankOperator and DeduplicateOperator, of rows that are never taken back; what an
epoch has changed and changed again is told as one change.
Does not know: retraction, state that expires, RANK and DENSE_RANK."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, is_nested, tuples_of
from millstream.sql.operators.base import Rows, key_of
from millstream.sql.operators.epochs import EpochOperator
from millstream.sql.operators.rank.ordering import Order, sort_key
from millstream.sql.operators.rank.rank_state import RankState
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT


def can_order(schema: t.RowType, partition: Sequence[int], order: Order) -> bool:
    """Whether columns can be grouped and put in order as such."""
    columns = [*partition, *(column for column, _, _ in order)]
    return not any(is_nested(schema.types[i]) or t.is_approximate(schema.types[i]) for i in columns)


def first_rows(array: pa.Array, partition: Sequence[int], order: Order, limit: int) -> np.ndarray:
    """The places of the first `limit` rows of each partition, partition by partition, each in order.

    Rows of equal order stand as they came."""
    codes = np.zeros(len(array), dtype=np.int64)
    for i in partition:
        found = pc.dictionary_encode(array.field(i), null_encoding="encode")
        codes = codes * len(found.dictionary) + found.indices.to_numpy(zero_copy_only=False)
    columns: dict[str, pa.Array] = {"code": pa.array(codes)}
    keys = [("code", "ascending")]
    for place, (column, ascending, nulls_first) in enumerate(order):
        values = array.field(column)
        way = "ascending" if ascending else "descending"
        if values.null_count:
            nulls = pc.is_null(values).cast(pa.int8())
            columns[f"n{place}"] = pc.negate(nulls) if nulls_first else nulls
            keys.append((f"n{place}", "ascending"))
        columns[f"o{place}"] = values
        keys.append((f"o{place}", way))
    places: np.ndarray = pc.sort_indices(pa.table(columns), sort_keys=keys).to_numpy()
    ordered = codes[places]
    begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    number = np.arange(len(places)) - np.repeat(begins, np.diff(np.append(begins, len(places))))
    return places[number < limit]


class EpochRankOperator(EpochOperator):
    """State: by partition, its first rows in order."""

    def __init__(self, context: OperatorContext, spec: Any) -> None:
        super().__init__(context, spec.output)
        self._spec = spec
        self._sort_key = sort_key(spec.order)
        self._state = RankState(context, spec.input, spec.partition, spec.order)
        self._table = self._state.by_key

    def begin_epoch(self) -> None:
        """Nothing is waiting; all state is by key."""
        super().begin_epoch()
        self._state.keep_by_key()

    def _take(self, array: pa.Array) -> None:
        spec = self._spec
        live, dirty = self._table.by_key()
        chosen = array.take(pa.array(first_rows(array, spec.partition, spec.order, spec.last)))
        for key, group in groupby(tuples_of(chosen, spec.input), lambda row: key_of(row, spec.partition)):
            found = live[key]
            before: Rows = [] if found is ABSENT else found
            new = list(group)
            if len(before) == spec.last and self._sort_key(new[0]) >= self._sort_key(before[-1]):
                continue
            after = sorted([*before, *new], key=self._sort_key)[: spec.last]
            live[key] = after
            dirty.add(key)
            self._compare(before[spec.first - 1 :], after[spec.first - 1 :])

    def _compare(self, before: Rows, after: Rows) -> None:
        spec = self._spec
        if not spec.with_rank and spec.first == 1 and spec.last != 1:
            self._compare_rows(before, after)
            return
        for place, new in enumerate(after):
            tail = (spec.first + place,) if spec.with_rank else ()
            if place >= len(before):
                self.put(INSERT, new + tail)
            elif before[place] != new:
                if spec.before:
                    self.put(UPDATE_BEFORE, before[place] + tail)
                self.put(UPDATE_AFTER, new + tail)

    def _compare_rows(self, before: Rows, after: Rows) -> None:
        left = list(before)
        new: Rows = []
        for row in after:
            if row in left:
                left.remove(row)
            else:
                new.append(row)
        for row in left:
            self.put(DELETE, row)
        for row in new:
            self.put(INSERT, row)


class EpochDeduplicateOperator(EpochOperator):
    """State: by key, the row that is shown."""

    def __init__(self, context: OperatorContext, spec: Any) -> None:
        super().__init__(context, spec.schema)
        self._spec = spec
        self._state = RankState(context, spec.schema, spec.keys, single=True)
        self._table = self._state.by_key

    def begin_epoch(self) -> None:
        """Nothing is waiting; all state is by key."""
        super().begin_epoch()
        self._state.keep_by_key()

    def _take(self, array: pa.Array) -> None:
        spec = self._spec
        live, dirty = self._table.by_key()
        for row in tuples_of(array.take(pa.array(self._candidates(array))), spec.schema):
            key = key_of(row, spec.keys)
            old = live[key]
            if old is ABSENT:
                self.put(INSERT, row)
            elif self._stays(old, row):
                continue
            else:
                if spec.before:
                    self.put(UPDATE_BEFORE, old)
                self.put(UPDATE_AFTER, row)
            live[key] = row
            dirty.add(key)

    def _stays(self, old: tuple[Any, ...], new: tuple[Any, ...]) -> bool:
        spec = self._spec
        if spec.processing:
            return not spec.last or old == new
        return bool(new[spec.time] < old[spec.time]) if spec.last else bool(new[spec.time] >= old[spec.time])

    def _candidates(self, array: pa.Array) -> np.ndarray:
        """The places of the only rows that can be shown after the epoch: of each key, the first or the last."""
        spec = self._spec
        order: Order = () if spec.processing else ((spec.time, True, True),)
        if not spec.last:
            return first_rows(array, spec.keys, order, 1)
        backwards = array.take(pa.array(np.arange(len(array) - 1, -1, -1)))  # of equal times, the later row stays
        turned: Order = () if spec.processing else ((spec.time, False, False),)
        return len(array) - 1 - first_rows(backwards, spec.keys, turned, 1)
