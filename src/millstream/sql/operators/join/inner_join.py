"""Inner joins by key, a batch at a time.

Promises: the changelog of JoinOperator for inner joins without a time to live: each row of a batch meets what the
other side has, in the order in which it came.
Does not know: outer joins, time.

Rows of the other side are found by key and made columns once, however many rows they meet; the condition is asked once
for all pairs of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from millstream.runtime.batch import Batch
from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import INSERT, UPDATE_AFTER, array_of, internal_values, struct_of, tuples_of
from millstream.sql.evaluation.evaluate import Condition, EvaluationFailed
from millstream.sql.operators.base import Rows, TableOperator, rows_with_kinds
from millstream.sql.operators.join.join_state import rows_by_key, runs_of_rows
from millstream.state.store import ABSENT


class InnerJoinOperator(TableOperator):
    """State of a side: by key, how often each row is there. What ColumnarJoinOperator kept is taken over."""

    def __init__(self, context: OperatorContext, spec: Any) -> None:
        super().__init__(context, spec.output, spec.zone, spec)
        self._spec = spec
        self._schemas = (spec.left, spec.right)
        self._tables = rows_by_key(context, spec)
        self._runs = runs_of_rows(context, spec)
        self._condition = None if spec.condition is None else Condition(spec.condition)

    def begin_epoch(self) -> None:
        """Take over runs."""
        super().begin_epoch()
        for side, runs in enumerate(self._runs):
            schema = self._schemas[side]
            for run in runs.runs():
                array = struct_of(run.columns, None, schema, len(run.hashes))
                rows = tuples_of(array, schema)
                self._keep(side, rows, [INSERT] * len(rows), *self._keys(side, array))
            runs.clear()

    def on_batch(self, batch: Batch, side: int) -> None:
        """Join the rows with what is there, and keep them."""
        array = batch.array()
        rows, kinds = rows_with_kinds(batch, self._schemas[side])
        keys, absent = self._keys(side, array)
        self._meet(side, array, keys, absent)
        self._keep(side, rows, kinds, keys, absent)

    def _keys(self, side: int, array: pa.Array) -> tuple[list[Any], set[int]]:
        """The keys of rows, and the places of those that have none."""
        columns = [internal_values(array.field(i), self._schemas[side].types[i]) for i in self._spec.keys[side]]
        keys: list[Any] = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        if not columns:
            keys = [None] * len(array)
        return keys, {i for column in columns for i, value in enumerate(column) if value is None}

    def _meet(self, side: int, array: pa.Array, keys: list[Any], absent: set[int]) -> None:
        live, _ = self._tables[1 - side].by_key()
        mine: list[int] = []
        theirs: list[int] = []
        partners: Rows = []
        found: dict[Any, list[int]] = {}  # where the rows of a key are among the partners
        for place, key in enumerate(keys):
            if place in absent:
                continue
            places = found.get(key)
            if places is None:
                stored = live[key]
                places = found[key] = []
                if stored is not ABSENT:
                    for row, count in stored.items():
                        places.extend([len(partners)] * count)
                        partners.append(row)
            if places:
                theirs += places
                mine += [place] * len(places)
        if mine:
            self._emit(side, array, np.array(mine), np.array(theirs), partners)

    def _emit(self, side: int, array: pa.Array, mine: np.ndarray, theirs: np.ndarray, partners: Rows) -> None:
        width = len(self._schemas[side])
        others = array_of(partners, None, self._schemas[1 - side])
        kinds = array.field(width)

        def paired(own: np.ndarray, met: np.ndarray) -> list[pa.Array]:
            first, second = pa.array(own), pa.array(met)
            one = [array.field(i).take(first) for i in range(width)]
            other = [others.field(i).take(second) for i in range(len(self._schemas[1 - side]))]
            return [*one, *other] if side == 0 else [*other, *one]

        columns = paired(mine, theirs)
        if self._condition is not None:
            frame = self.frame_over(columns, len(mine))
            try:
                holds = self._condition.holds(frame)
            except EvaluationFailed as problem:
                raise self.fail(problem) from None
            if not holds.all():
                mine, theirs = mine[holds], theirs[holds]
                columns = paired(mine, theirs)
        self.emit_array(struct_of(columns, kinds.take(pa.array(mine)), self.output, len(mine)))

    def _keep(self, side: int, rows: Rows, kinds: list[int], keys: list[Any], absent: set[int]) -> None:
        table = self._tables[side]
        live, dirty = table.by_key()
        changed: dict[Any, list[tuple[Any, ...]]] = {}
        for place, (key, row, kind) in enumerate(zip(keys, rows, kinds, strict=True)):
            if place in absent:
                continue
            stored = live[key]
            if stored is ABSENT:
                stored = live[key] = {}
            count = stored.get(row, 0) + (1 if kind in (INSERT, UPDATE_AFTER) else -1)
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
