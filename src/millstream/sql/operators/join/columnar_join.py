"""Inner joins of insert-only tables, on columns.

Promises: each pair of matching rows is emitted once, before the next watermark after the later of them; no Python code
for a row or a key.
Does not know: retractions, outer joins, time; whether state is in memory or on disk.

The rows of an epoch are joined with the state of the other side by the hashes of their keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.runtime.batch import Batch
from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import arrow_type, create_row_array
from millstream.sql.evaluation.evaluate import Condition, EvaluationFailed
from millstream.sql.operators.base import TableOperator
from millstream.sql.operators.join.join_state import create_runs, get_row_tables
from millstream.sql.operators.lazy_rows import SelectedRows, join_rows
from millstream.sql.operators.row_runs import KeyColumns, Run, SortedHashes, can_be_hashed, compare_keys
from millstream.sql.types import data_types as t


def can_compare_keys(left: t.RowType, right: t.RowType, keys: tuple[tuple[int, ...], tuple[int, ...]]) -> bool:
    """Return whether keys of both sides can be compared as columns."""
    left_types, right_types = (
        [schema.types[i] for i in indexes] for schema, indexes in zip((left, right), keys, strict=True)
    )
    return can_be_hashed(left_types) and list(map(arrow_type, left_types)) == list(map(arrow_type, right_types))


class ColumnarJoinOperator(TableOperator):
    """State of a side: its rows in runs. State of InnerJoinOperator is converted."""

    def __init__(self, context: OperatorContext, spec: Any) -> None:
        super().__init__(context, spec.output, spec.zone, spec)
        self._spec = spec
        self._schemas = (spec.left, spec.right)
        self._keys = KeyColumns([spec.left.types[i] for i in spec.keys[0]])
        self._runs = create_runs(context, spec)
        self._tables = get_row_tables(context, spec)
        self._condition = None if spec.condition is None else Condition(spec.condition)
        self._buffer: tuple[list[pa.Array], list[pa.Array]] = ([], [])

    def begin_epoch(self) -> None:
        """Discard rows of a failed attempt, and convert state of InnerJoinOperator."""
        super().begin_epoch()
        self._buffer = ([], [])
        for side, table in enumerate(self._tables):
            stored = list(table.scan(None))
            rows = [row for _, counts in stored for row, count in counts.items() for _ in range(count)]
            if rows:
                self._add_rows(side, create_row_array(rows, None, self._schemas[side]))
                for key, _ in stored:
                    table.delete(None, key)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Add the rows to the buffer."""
        self._buffer[side].append(batch.array())

    def on_watermark(self, watermark: int) -> None:
        """Join the buffer, so that results are emitted before the watermark."""
        self._join_buffer()
        super().on_watermark(watermark)

    def end_epoch(self) -> None:
        """Join the buffer."""
        self._join_buffer()

    def _join_buffer(self) -> None:
        buffer, self._buffer = self._buffer, ([], [])
        for side, arrays in enumerate(buffer):
            if arrays:
                array = pa.concat_arrays(arrays) if len(arrays) > 1 else arrays[0]
                self._add_rows(side, _drop_null_keys(array, self._spec.keys[side]), emits=True)

    def _add_rows(self, side: int, array: pa.Array, *, emits: bool = False) -> None:
        columns = [array.field(i) for i in range(len(self._schemas[side]))]
        hashes = SortedHashes.of(self._keys.hashes([columns[i] for i in self._spec.keys[side]], len(array)))
        if emits:
            self._join_other_side(side, columns, hashes)
        self._runs[side].add(columns, hashes)

    def _join_other_side(self, side: int, columns: list[pa.Array], hashes: SortedHashes) -> None:
        for run in self._runs[1 - side].runs():
            for own_rows, other_rows in run.pairs(hashes):
                self._emit_pairs(side, columns, run, own_rows, other_rows)

    def _emit_pairs(
        self, side: int, columns: list[pa.Array], run: Run, own_rows: np.ndarray, other_rows: np.ndarray
    ) -> None:
        if not self._keys.exact:
            own_keys, other_keys = self._spec.keys[side], self._spec.keys[1 - side]
            keys = [columns[i].take(pa.array(own_rows)) for i in own_keys]
            is_equal = compare_keys(keys, [run.columns[i].take(pa.array(other_rows)) for i in other_keys])
            own_rows, other_rows = own_rows[is_equal], other_rows[is_equal]
        joined = (
            join_rows(columns, run.columns, own_rows, other_rows)
            if side == 0
            else join_rows(run.columns, columns, other_rows, own_rows)
        )
        if self._condition is not None and len(own_rows):
            frame = self.create_frame_of_columns(joined, len(own_rows))
            try:
                holds = self._condition.holds(frame)
            except EvaluationFailed as problem:
                raise self.fail(problem) from None
            if not holds.all():
                joined = SelectedRows(joined, np.flatnonzero(holds))
        self.emit_lazy(joined)


def _drop_null_keys(array: pa.Array, keys: tuple[int, ...]) -> pa.Array:
    """Drop the rows whose keys are NULL, which match nothing."""
    for i in keys:
        column = array.field(i)
        if column.null_count:
            array = array.filter(pc.is_valid(column))
    return array
