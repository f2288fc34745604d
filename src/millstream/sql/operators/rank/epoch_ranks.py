"""Top-N and deduplication with mini-batches: the rows of an epoch are sorted once, and each partition emits once.

Promises: the final rows and ranks of RankOperator and DeduplicateOperator, for insert-only input; several changes of
one epoch are emitted as one.
Does not know: retractions, state TTL, RANK and DENSE_RANK."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, is_nested, to_tuples
from millstream.sql.operators.base import Rows, get_key
from millstream.sql.operators.epochs import EpochOperator
from millstream.sql.operators.rank.ordering import Order, create_sort_key
from millstream.sql.operators.rank.rank_state import RankState
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT


def can_order(schema: t.RowType, partition: Sequence[int], order: Order) -> bool:
    """Return whether the columns can be grouped and sorted by Arrow."""
    columns = [*partition, *(column for column, _, _ in order)]
    return not any(is_nested(schema.types[i]) or t.is_approximate(schema.types[i]) for i in columns)


def find_first_rows(array: pa.Array, partition: Sequence[int], order: Order, limit: int) -> np.ndarray:
    """Return the indexes of the first `limit` rows of each partition, partition by partition, each in order.

    Rows of equal order keep the order of their arrival."""
    codes = np.zeros(len(array), dtype=np.int64)
    for i in partition:
        encoded = pc.dictionary_encode(array.field(i), null_encoding="encode")
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy(zero_copy_only=False)
    columns: dict[str, pa.Array] = {"code": pa.array(codes)}
    keys = [("code", "ascending")]
    for index, (column, ascending, nulls_first) in enumerate(order):
        values = array.field(column)
        direction = "ascending" if ascending else "descending"
        if values.null_count:
            nulls = pc.is_null(values).cast(pa.int8())
            columns[f"n{index}"] = pc.negate(nulls) if nulls_first else nulls
            keys.append((f"n{index}", "ascending"))
        columns[f"o{index}"] = values
        keys.append((f"o{index}", direction))
    row_indexes: np.ndarray = pc.sort_indices(pa.table(columns), sort_keys=keys).to_numpy()
    ordered = codes[row_indexes]
    begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    rank_indexes = np.arange(len(row_indexes)) - np.repeat(begins, np.diff(np.append(begins, len(row_indexes))))
    return row_indexes[rank_indexes < limit]


class EpochRankOperator(EpochOperator):
    """State: by partition, its first rows in order."""

    def __init__(self, context: OperatorContext, spec: Any) -> None:
        super().__init__(context, spec.output, limit=spec.mini_batch_size)
        self._spec = spec
        self._sort_key = create_sort_key(spec.order)
        self._state = RankState(context, spec.input, spec.partition, spec.order)
        self._table = self._state.by_key

    def begin_epoch(self) -> None:
        """Discard rows of a failed attempt, and convert state that is stored in runs."""
        super().begin_epoch()
        self._state.convert_to_keys()

    def _process(self, array: pa.Array) -> None:
        spec = self._spec
        live, dirty = self._table.by_key()
        candidates = array.take(pa.array(find_first_rows(array, spec.partition, spec.order, spec.last)))
        for key, group in groupby(to_tuples(candidates, spec.input), lambda row: get_key(row, spec.partition)):
            stored = live[key]
            before: Rows = [] if stored is ABSENT else stored
            new = list(group)
            if len(before) == spec.last and self._sort_key(new[0]) >= self._sort_key(before[-1]):
                continue
            after = sorted([*before, *new], key=self._sort_key)[: spec.last]
            live[key] = after
            dirty.add(key)
            self._emit_changes(before[spec.first - 1 :], after[spec.first - 1 :])

    def _emit_changes(self, before: Rows, after: Rows) -> None:
        spec = self._spec
        if not spec.with_rank and spec.first == 1 and spec.last != 1:
            self._emit_row_changes(before, after)
            return
        for index, new in enumerate(after):
            rank = (spec.first + index,) if spec.with_rank else ()
            if index >= len(before):
                self.put(INSERT, new + rank)
            elif before[index] != new:
                if spec.before:
                    self.put(UPDATE_BEFORE, before[index] + rank)
                self.put(UPDATE_AFTER, new + rank)

    def _emit_row_changes(self, before: Rows, after: Rows) -> None:
        removed = list(before)
        added: Rows = []
        for row in after:
            if row in removed:
                removed.remove(row)
            else:
                added.append(row)
        for row in removed:
            self.put(DELETE, row)
        for row in added:
            self.put(INSERT, row)


class EpochDeduplicateOperator(EpochOperator):
    """State: by key, the emitted row."""

    def __init__(self, context: OperatorContext, spec: Any) -> None:
        super().__init__(context, spec.schema, limit=spec.mini_batch_size)
        self._spec = spec
        self._state = RankState(context, spec.schema, spec.keys, single=True)
        self._table = self._state.by_key

    def begin_epoch(self) -> None:
        """Discard rows of a failed attempt, and convert state that is stored in runs."""
        super().begin_epoch()
        self._state.convert_to_keys()

    def _process(self, array: pa.Array) -> None:
        spec = self._spec
        live, dirty = self._table.by_key()
        for row in to_tuples(array.take(pa.array(self._find_candidates(array))), spec.schema):
            key = get_key(row, spec.keys)
            old = live[key]
            if old is ABSENT:
                self.put(INSERT, row)
            elif self._keeps_old(old, row):
                continue
            else:
                if spec.before:
                    self.put(UPDATE_BEFORE, old)
                self.put(UPDATE_AFTER, row)
            live[key] = row
            dirty.add(key)

    def _keeps_old(self, old: tuple[Any, ...], new: tuple[Any, ...]) -> bool:
        spec = self._spec
        if spec.processing:
            return not spec.last or old == new
        return bool(new[spec.time] < old[spec.time]) if spec.last else bool(new[spec.time] >= old[spec.time])

    def _find_candidates(self, array: pa.Array) -> np.ndarray:
        """Return the indexes of the only rows that can be in the result after the epoch: the first or last of each
        key."""
        spec = self._spec
        order: Order = () if spec.processing else ((spec.time, True, True),)
        if not spec.last:
            return find_first_rows(array, spec.keys, order, 1)
        reversed_rows = array.take(pa.array(np.arange(len(array) - 1, -1, -1)))  # of equal times, the later row is kept
        reversed_order: Order = () if spec.processing else ((spec.time, False, False),)
        return len(array) - 1 - find_first_rows(reversed_rows, spec.keys, reversed_order, 1)
