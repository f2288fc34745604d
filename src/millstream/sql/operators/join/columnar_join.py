"""Inner joins of tables that only grow, on whole columns.

Promises: each pair of rows that meets is told once, before the watermark that comes after the later of them; no Python
for a row or a key.
Does not know: rows that are taken back, outer joins, time; whether state is in memory or on disk.

The rows of an epoch meet what the other side has, and then those of the same epoch, by the hashes of their keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.runtime.batch import Batch
from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import array_of, arrow_type
from millstream.sql.evaluation.evaluate import Condition, EvaluationFailed
from millstream.sql.operators.base import TableOperator
from millstream.sql.operators.join.join_state import rows_by_key, runs_of_rows
from millstream.sql.operators.late_rows import Some, pairs
from millstream.sql.operators.row_runs import KeyColumns, Run, Sorted, can_be_hashed, same_keys
from millstream.sql.types import data_types as t


def can_meet(left: t.RowType, right: t.RowType, keys: tuple[tuple[int, ...], tuple[int, ...]]) -> bool:
    """Whether keys of both sides can be compared as columns."""
    own, others = ([schema.types[i] for i in places] for schema, places in zip((left, right), keys, strict=True))
    return can_be_hashed(own) and list(map(arrow_type, own)) == list(map(arrow_type, others))


class ColumnarJoinOperator(TableOperator):
    """State of a side: its rows. What InnerJoinOperator kept is taken over."""

    def __init__(self, context: OperatorContext, spec: Any) -> None:
        super().__init__(context, spec.output, spec.zone, spec)
        self._spec = spec
        self._schemas = (spec.left, spec.right)
        self._keys = KeyColumns([spec.left.types[i] for i in spec.keys[0]])
        self._runs = runs_of_rows(context, spec)
        self._tables = rows_by_key(context, spec)
        self._condition = None if spec.condition is None else Condition(spec.condition)
        self._waiting: tuple[list[pa.Array], list[pa.Array]] = ([], [])

    def begin_epoch(self) -> None:
        """Nothing is waiting."""
        super().begin_epoch()
        self._waiting = ([], [])
        for side, table in enumerate(self._tables):
            stored = list(table.scan(None))
            rows = [row for _, counts in stored for row, count in counts.items() for _ in range(count)]
            if rows:
                self._keep(side, array_of(rows, None, self._schemas[side]))
                for key, _ in stored:
                    table.delete(None, key)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Gather."""
        self._waiting[side].append(batch.array())

    def on_watermark(self, watermark: int) -> None:
        """What has met comes before the watermark."""
        self._meet()
        super().on_watermark(watermark)

    def end_epoch(self) -> None:
        """Nothing stays."""
        self._meet()

    def _meet(self) -> None:
        waiting, self._waiting = self._waiting, ([], [])
        for side, arrays in enumerate(waiting):
            if arrays:
                array = pa.concat_arrays(arrays) if len(arrays) > 1 else arrays[0]
                self._keep(side, _with_keys(array, self._spec.keys[side]), meeting=True)

    def _keep(self, side: int, array: pa.Array, *, meeting: bool = False) -> None:
        columns = [array.field(i) for i in range(len(self._schemas[side]))]
        rows = Sorted.of(self._keys.hashes([columns[i] for i in self._spec.keys[side]], len(array)))
        if meeting:
            self._meet_others(side, columns, rows)
        self._runs[side].add(columns, rows)

    def _meet_others(self, side: int, columns: list[pa.Array], rows: Sorted) -> None:
        for run in self._runs[1 - side].runs():
            for mine, theirs in run.pairs(rows):
                self._tell(side, columns, run, mine, theirs)

    def _tell(self, side: int, columns: list[pa.Array], run: Run, mine: np.ndarray, theirs: np.ndarray) -> None:
        if not self._keys.exact:
            own, other = self._spec.keys[side], self._spec.keys[1 - side]
            keys = [columns[i].take(pa.array(mine)) for i in own]
            same = same_keys(keys, [run.columns[i].take(pa.array(theirs)) for i in other])
            mine, theirs = mine[same], theirs[same]
        both = pairs(columns, run.columns, mine, theirs) if side == 0 else pairs(run.columns, columns, theirs, mine)
        if self._condition is not None and len(mine):
            frame = self.frame_over(both, len(mine))
            try:
                holds = self._condition.holds(frame)
            except EvaluationFailed as problem:
                raise self.fail(problem) from None
            if not holds.all():
                both = Some(both, np.flatnonzero(holds))
        self.emit_late(both)


def _with_keys(array: pa.Array, keys: tuple[int, ...]) -> pa.Array:
    """The rows whose keys are not NULL: others meet nothing."""
    for i in keys:
        column = array.field(i)
        if column.null_count:
            array = array.filter(pc.is_valid(column))
    return array
