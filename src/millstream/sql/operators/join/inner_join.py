"""Inner joins by key, batch by batch.

Promises: the changelog of JoinOperator for inner joins without state TTL: each row of a batch is joined with the rows
of the other side, in order of arrival.
Does not know: outer joins, time.

Rows of the other side are looked up by key and converted to columns once, however many rows they match; the condition
is evaluated once for all pairs of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from millstream.runtime.batch import Batch
from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import (
    INSERT,
    UPDATE_AFTER,
    combine_columns,
    create_row_array,
    to_internal_values,
    to_tuples,
)
from millstream.sql.evaluation.evaluate import Condition, EvaluationFailed
from millstream.sql.operators.base import Rows, TableOperator, read_rows_with_kinds
from millstream.sql.operators.join.join_state import create_runs, get_row_tables
from millstream.state.store import ABSENT


class InnerJoinOperator(TableOperator):
    """State of a side: by key, the number of occurrences of each row. State of ColumnarJoinOperator is converted."""

    def __init__(self, context: OperatorContext, spec: Any) -> None:
        super().__init__(context, spec.output, spec.zone, spec)
        self._spec = spec
        self._schemas = (spec.left, spec.right)
        self._tables = get_row_tables(context, spec)
        self._runs = create_runs(context, spec)
        self._condition = None if spec.condition is None else Condition(spec.condition)

    def begin_epoch(self) -> None:
        """Convert runs of ColumnarJoinOperator."""
        super().begin_epoch()
        for side, runs in enumerate(self._runs):
            schema = self._schemas[side]
            for run in runs.runs():
                array = combine_columns(run.columns, None, schema, len(run.hashes))
                rows = to_tuples(array, schema)
                self._add_rows(side, rows, [INSERT] * len(rows), *self._compute_keys(side, array))
            runs.clear()

    def on_batch(self, batch: Batch, side: int) -> None:
        """Join the rows with the other side, and add them to state."""
        array = batch.array()
        rows, row_kinds = read_rows_with_kinds(batch, self._schemas[side])
        keys, without_key = self._compute_keys(side, array)
        self._join_rows(side, array, keys, without_key)
        self._add_rows(side, rows, row_kinds, keys, without_key)

    def _compute_keys(self, side: int, array: pa.Array) -> tuple[list[Any], set[int]]:
        """Return the keys of rows, and the indexes of rows whose key has a NULL."""
        columns = [to_internal_values(array.field(i), self._schemas[side].types[i]) for i in self._spec.keys[side]]
        keys: list[Any] = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        if not columns:
            keys = [None] * len(array)
        return keys, {i for column in columns for i, value in enumerate(column) if value is None}

    def _join_rows(self, side: int, array: pa.Array, keys: list[Any], without_key: set[int]) -> None:
        live, _ = self._tables[1 - side].by_key()
        own_rows: list[int] = []
        partner_indexes: list[int] = []
        partners: Rows = []
        partners_by_key: dict[Any, list[int]] = {}  # indexes in `partners`
        for row_index, key in enumerate(keys):
            if row_index in without_key:
                continue
            matching = partners_by_key.get(key)
            if matching is None:
                stored = live[key]
                matching = partners_by_key[key] = []
                if stored is not ABSENT:
                    for row, count in stored.items():
                        matching.extend([len(partners)] * count)
                        partners.append(row)
            if matching:
                partner_indexes += matching
                own_rows += [row_index] * len(matching)
        if own_rows:
            self._emit(side, array, np.array(own_rows), np.array(partner_indexes), partners)

    def _emit(
        self, side: int, array: pa.Array, own_rows: np.ndarray, partner_indexes: np.ndarray, partners: Rows
    ) -> None:
        width = len(self._schemas[side])
        others = create_row_array(partners, None, self._schemas[1 - side])
        row_kinds = array.field(width)

        def pair_columns(left_indexes: np.ndarray, right_indexes: np.ndarray) -> list[pa.Array]:
            first, second = pa.array(left_indexes), pa.array(right_indexes)
            own_columns = [array.field(i).take(first) for i in range(width)]
            other_columns = [others.field(i).take(second) for i in range(len(self._schemas[1 - side]))]
            return [*own_columns, *other_columns] if side == 0 else [*other_columns, *own_columns]

        columns = pair_columns(own_rows, partner_indexes)
        if self._condition is not None:
            frame = self.create_frame_of_columns(columns, len(own_rows))
            try:
                holds = self._condition.holds(frame)
            except EvaluationFailed as problem:
                raise self.fail(problem) from None
            if not holds.all():
                own_rows, partner_indexes = own_rows[holds], partner_indexes[holds]
                columns = pair_columns(own_rows, partner_indexes)
        self.emit_array(combine_columns(columns, row_kinds.take(pa.array(own_rows)), self.output, len(own_rows)))

    def _add_rows(self, side: int, rows: Rows, row_kinds: list[int], keys: list[Any], without_key: set[int]) -> None:
        table = self._tables[side]
        live, dirty = table.by_key()
        changed: dict[Any, list[tuple[Any, ...]]] = {}
        for row_index, (key, row, row_kind) in enumerate(zip(keys, rows, row_kinds, strict=True)):
            if row_index in without_key:
                continue
            stored = live[key]
            if stored is ABSENT:
                stored = live[key] = {}
            count = stored.get(row, 0) + (1 if row_kind in (INSERT, UPDATE_AFTER) else -1)
            if count:
                stored[row] = count
            else:
                del stored[row]
            changed.setdefault(key, []).append(row)
        dirty.update(changed)
        for key, entries in changed.items():
            if live[key]:
                table.touch(None, key, entries)
            else:
                live[key] = ABSENT
