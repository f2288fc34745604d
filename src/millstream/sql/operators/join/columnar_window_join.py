"""Joins inside windows on whole columns.

Promises: what WindowJoinOperator tells, when a window is over; no Python for a row or a key.
Does not know: how rows got into windows.

The rows of an epoch are put under the moment their window is over (the namespace), a chunk for each side and window;
they are looked at when the window is told."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.runtime.batch import Batch
from millstream.runtime.operator import OperatorContext
from millstream.runtime.operators.window import LATE_COUNT
from millstream.runtime.windows.columns import packed, unpacked
from millstream.sql.columns import arrow_type, struct_of
from millstream.sql.evaluation.evaluate import Condition, EvaluationFailed
from millstream.sql.operators import moments
from millstream.sql.operators.base import TableOperator, WindowEnds
from millstream.sql.operators.late_rows import pairs
from millstream.sql.operators.row_runs import KeyColumns, Sorted, of_key_groups, same_keys
from millstream.sql.types import data_types as t
from millstream.state.deltas import Redistribution
from millstream.state.key_groups import KeyGroupRange
from millstream.state.store import ABSENT
from millstream.state.table import StateTable
from millstream.types.factory import Types

_SIDES = ("left", "right")
_MERGE_AFTER = 16  # chunks of a window and side


class ColumnarWindowJoinOperator(TableOperator):
    """State of a side: chunks of rows by the moment their window is over. Memory: these moments."""

    def __init__(self, context: OperatorContext, spec: Any) -> None:
        super().__init__(context, spec.output, spec.zone, spec)
        self._spec = spec
        self._schemas: tuple[t.RowType, t.RowType] = (spec.left, spec.right)
        self._keys = KeyColumns([spec.left.types[i] for i in spec.keys[0]])
        self._tables = [self._table(context, side) for side in (0, 1)]
        self._condition = None if spec.condition is None else Condition(spec.condition)
        self._waiting: tuple[list[pa.Array], list[pa.Array]] = ([], [])

    def _table(self, context: OperatorContext, side: int) -> StateTable:
        def cut(data: bytes, groups: KeyGroupRange) -> Any:
            batch, schema, keys = unpacked(data), self._schemas[side], self._spec.keys[side]
            columns, kinds = [batch.column(i) for i in keys], [schema.types[i] for i in keys]
            mine = of_key_groups(columns, kinds, context, groups, len(batch))
            return packed(batch.take(pa.array(mine))) if len(mine) else ABSENT

        name = f"join/windows/{_SIDES[side]}"
        kind = Types.PICKLED_BYTE_ARRAY()
        return context.state.table(name, kind, Redistribution.CUT, key_type=Types.STRING(), restrict=cut)

    def _ends(self) -> list[int]:
        """The moments at which windows that have rows are over, as a heap; found in state by other subtasks."""
        memory = self.context.memory.part(WindowEnds)
        if memory.ends is None:
            memory.ends = sorted({end for table in self._tables for end in table.namespaces()})
        return memory.ends

    def begin_epoch(self) -> None:
        """Nothing is waiting; processing time may have passed windows."""
        super().begin_epoch()
        self._waiting = ([], [])
        if self._spec.processing:
            self._until(self.context.now)

    def next_timer(self) -> int | None:
        """When the next window is over."""
        ends = self._ends()
        return ends[0] if self._spec.processing and ends else None

    def on_batch(self, batch: Batch, side: int) -> None:
        """Gather."""
        self._waiting[side].append(batch.array())

    def end_epoch(self) -> None:
        """Nothing stays."""
        self._keep_waiting()

    def on_watermark(self, watermark: int) -> None:
        """Tell windows that event time has passed."""
        self._keep_waiting()
        if not self._spec.processing or watermark == MAX_WATERMARK:
            self._until(watermark)
        super().on_watermark(watermark)

    # ----------------------------------------------------------------------------------------------------- rows wait

    def _keep_waiting(self) -> None:
        waiting, self._waiting = self._waiting, ([], [])
        for side, arrays in enumerate(waiting):
            if arrays:
                self._keep(side, pa.concat_arrays(arrays) if len(arrays) > 1 else arrays[0])

    def _keep(self, side: int, array: pa.Array) -> None:
        spec, opened = self._spec, self._ends()
        ends = moments.column_millis(array.field(spec.ends[side]))
        columns = [array.field(i) for i in range(len(self._schemas[side]))]
        for end in np.unique(ends).tolist():
            over = (moments.utc_millis(end, self.zone) if spec.zoned or spec.processing else end) - 1
            rows = np.flatnonzero(ends == end)
            if not spec.processing and over <= self.watermark:
                self.context.metrics.count(LATE_COUNT, len(rows))
                continue
            if over not in opened:
                heapq.heappush(opened, over)
            chosen = pa.array(rows)
            self._add(side, over, [column.take(chosen) for column in columns])

    def _add(self, side: int, over: int, columns: list[pa.Array]) -> None:
        """Put rows into a window; many small chunks become one."""
        table = self._tables[side]
        stored = _in_order(table, over)
        if len(stored) >= _MERGE_AFTER:
            parts = [*(unpacked(data).columns for _, data in stored), columns]
            columns = [pa.concat_arrays(part) for part in zip(*parts, strict=True)]
            for name, _ in stored:
                table.delete(over, name)
        names = [str(i) for i in range(len(columns))]
        name = f"{self.context.epoch}-{self.context.subtask}-{len(stored)}"
        table.put(over, name, packed(pa.RecordBatch.from_arrays(columns, names)))

    # ------------------------------------------------------------------------------------------------ windows are over

    def _until(self, until: int) -> None:
        ends = self._ends()
        while ends and ends[0] <= until:
            over = heapq.heappop(ends)
            sides = [self._stored(side, over) for side in (0, 1)]
            for table in self._tables:
                table.clear_namespace(over)
            self._tell(*sides)

    def _stored(self, side: int, over: int) -> list[pa.Array]:
        parts = [unpacked(data).columns for _, data in _in_order(self._tables[side], over)]
        if not parts:
            return [pa.nulls(0, arrow_type(kind)) for kind in self._schemas[side].types]
        return [pa.concat_arrays(column) for column in zip(*parts, strict=True)]

    def _tell(self, lefts: list[pa.Array], rights: list[pa.Array]) -> None:
        kind = self._spec.kind
        counts = len(lefts[0]), len(rights[0])
        met = [np.zeros(count, dtype=bool) for count in counts]
        for mine, theirs in self._met(lefts, rights):
            met[0][mine] = met[1][theirs] = True
            if kind not in ("semi", "anti"):
                self.emit_late(pairs(lefts, rights, mine, theirs))
        if kind in ("semi", "anti"):
            self._alone(np.flatnonzero(met[0] if kind == "semi" else ~met[0]), lefts, [], 0)
        if kind in ("left", "full"):
            self._alone(np.flatnonzero(~met[0]), lefts, rights, 0)
        if kind in ("right", "full"):
            self._alone(np.flatnonzero(~met[1]), rights, lefts, 1)

    def _met(self, lefts: list[pa.Array], rights: list[pa.Array]) -> Any:
        """(left row, right row) of pairs that meet, in pieces."""
        sides = [[rows[i] for i in keys] for rows, keys in zip((lefts, rights), self._spec.keys, strict=True)]
        own, others = (_with_keys(keys) for keys in sides)
        found = [
            self._keys.hashes([key.take(pa.array(rows)) for key in keys], len(rows))
            for keys, rows in zip(sides, (own, others), strict=True)
        ]
        right = Sorted.of(found[1])
        for mine, places in Sorted.of(found[0]).pairs(right.hashes):
            left_rows, right_rows = own[mine], others[right.order[places]]
            order = np.lexsort((right_rows, left_rows))
            left_rows, right_rows = left_rows[order], right_rows[order]
            if not self._keys.exact:
                one, other = pa.array(left_rows), pa.array(right_rows)
                same = same_keys([key.take(one) for key in sides[0]], [key.take(other) for key in sides[1]])
                left_rows, right_rows = left_rows[same], right_rows[same]
            if self._condition is not None and len(left_rows):
                both = pairs(lefts, rights, left_rows, right_rows)
                frame = self.frame_over(both, len(left_rows))
                try:
                    holds = self._condition.holds(frame)
                except EvaluationFailed as problem:
                    raise self.fail(problem) from None
                left_rows, right_rows = left_rows[holds], right_rows[holds]
            yield left_rows, right_rows

    def _alone(self, rows: np.ndarray, own: list[pa.Array], others: list[pa.Array], side: int) -> None:
        """Tell rows without a partner; where the other side has columns they are NULL."""
        chosen = pa.array(rows)
        mine = [column.take(chosen) for column in own]
        nulls = [pa.nulls(len(rows), column.type) for column in others]
        columns = [*mine, *nulls] if side == 0 else [*nulls, *mine]
        self.emit_array(struct_of(columns, None, self.output, len(rows)))


def _in_order(table: StateTable, over: int) -> list[tuple[str, bytes]]:
    return sorted(table.scan(over))


def _with_keys(keys: list[pa.Array]) -> np.ndarray:
    """The rows whose keys are not NULL."""
    valid = np.ones(len(keys[0]), dtype=bool)
    for key in keys:
        if key.null_count:
            valid &= pc.is_valid(key).to_numpy(zero_copy_only=False)
    return np.flatnonzero(valid)
