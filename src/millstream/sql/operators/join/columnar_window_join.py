"""Window joins on columns.

Promises: the results of WindowJoinOperator, when a window ends; no Python code for a row or a key.
Does not know: how rows are assigned to windows.

The rows of an epoch are added to state under the maximum timestamp of their window (the namespace), a chunk for each
side and window. They are joined when the window fires."""

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
from millstream.runtime.windows.columns import pack_chunk, unpack_chunk
from millstream.sql.columns import arrow_type, combine_columns
from millstream.sql.evaluation.evaluate import Condition, EvaluationFailed
from millstream.sql.operators import timestamps
from millstream.sql.operators.base import TableOperator, WindowEnds
from millstream.sql.operators.lazy_rows import join_rows
from millstream.sql.operators.row_runs import KeyColumns, SortedHashes, compare_keys, take_rows_of_key_groups
from millstream.sql.types import data_types as t
from millstream.state.deltas import Redistribution
from millstream.state.key_groups import KeyGroupRange
from millstream.state.store import ABSENT
from millstream.state.table import StateTable
from millstream.types.factory import Types

_SIDES = ("left", "right")
_MERGE_AFTER = 16  # chunks of a window and side


class ColumnarWindowJoinOperator(TableOperator):
    """State of a side: chunks of rows by the maximum timestamp of the window. Memory: these timestamps."""

    def __init__(self, context: OperatorContext, spec: Any) -> None:
        super().__init__(context, spec.output, spec.zone, spec)
        self._spec = spec
        self._schemas: tuple[t.RowType, t.RowType] = (spec.left, spec.right)
        self._keys = KeyColumns([spec.left.types[i] for i in spec.keys[0]])
        self._tables = [self._get_table(context, side) for side in (0, 1)]
        self._condition = None if spec.condition is None else Condition(spec.condition)
        self._buffer: tuple[list[pa.Array], list[pa.Array]] = ([], [])

    def _get_table(self, context: OperatorContext, side: int) -> StateTable:
        def restrict(data: bytes, groups: KeyGroupRange) -> Any:
            batch, schema, keys = unpack_chunk(data), self._schemas[side], self._spec.keys[side]
            columns, key_types = [batch.column(i) for i in keys], [schema.types[i] for i in keys]
            row_indexes = take_rows_of_key_groups(columns, key_types, context, groups, len(batch))
            return pack_chunk(batch.take(pa.array(row_indexes))) if len(row_indexes) else ABSENT

        name = f"join/windows/{_SIDES[side]}"
        type_info = Types.PICKLED_BYTE_ARRAY()
        return context.state.table(name, type_info, Redistribution.CUT, key_type=Types.STRING(), restrict=restrict)

    def _ends(self) -> list[int]:
        """Return the maximum timestamps of open windows, as a heap; after a change of parallelism they are read from
        state."""
        memory = self.context.memory.part(WindowEnds)
        if memory.ends is None:
            memory.ends = sorted({end for table in self._tables for end in table.namespaces()})
        return memory.ends

    def begin_epoch(self) -> None:
        """Discard rows of a failed attempt, and fire windows that processing time has passed."""
        super().begin_epoch()
        self._buffer = ([], [])
        if self._spec.processing:
            self._fire(self.context.now)

    def next_timer(self) -> int | None:
        """Return the maximum timestamp of the next window, for processing time."""
        ends = self._ends()
        return ends[0] if self._spec.processing and ends else None

    def on_batch(self, batch: Batch, side: int) -> None:
        """Add the rows to the buffer."""
        self._buffer[side].append(batch.array())

    def end_epoch(self) -> None:
        """Write the buffer to state."""
        self._save_buffer()

    def on_watermark(self, watermark: int) -> None:
        """Write the buffer to state, then fire windows that event time has passed."""
        self._save_buffer()
        if not self._spec.processing or watermark == MAX_WATERMARK:
            self._fire(watermark)
        super().on_watermark(watermark)

    # ----------------------------------------------------------------------------------------------- rows to state

    def _save_buffer(self) -> None:
        buffer, self._buffer = self._buffer, ([], [])
        for side, arrays in enumerate(buffer):
            if arrays:
                self._save(side, pa.concat_arrays(arrays) if len(arrays) > 1 else arrays[0])

    def _save(self, side: int, array: pa.Array) -> None:
        spec, open_windows = self._spec, self._ends()
        ends = timestamps.read_column_millis(array.field(spec.ends[side]))
        columns = [array.field(i) for i in range(len(self._schemas[side]))]
        for end in np.unique(ends).tolist():
            max_timestamp = (timestamps.to_utc_millis(end, self.zone) if spec.zoned or spec.processing else end) - 1
            rows = np.flatnonzero(ends == end)
            if not spec.processing and max_timestamp <= self.watermark:
                self.context.metrics.count(LATE_COUNT, len(rows))
                continue
            if max_timestamp not in open_windows:
                heapq.heappush(open_windows, max_timestamp)
            row_indexes = pa.array(rows)
            self._add(side, max_timestamp, [column.take(row_indexes) for column in columns])

    def _add(self, side: int, max_timestamp: int, columns: list[pa.Array]) -> None:
        """Add rows to a window in state; many small chunks are merged."""
        table = self._tables[side]
        stored = _sort_chunks(table, max_timestamp)
        if len(stored) >= _MERGE_AFTER:
            parts = [*(unpack_chunk(data).columns for _, data in stored), columns]
            columns = [pa.concat_arrays(part) for part in zip(*parts, strict=True)]
            for name, _ in stored:
                table.delete(max_timestamp, name)
        names = [str(i) for i in range(len(columns))]
        name = f"{self.context.epoch}-{self.context.subtask}-{len(stored)}"
        table.put(max_timestamp, name, pack_chunk(pa.RecordBatch.from_arrays(columns, names)))

    # -------------------------------------------------------------------------------------------------- windows fire

    def _fire(self, until: int) -> None:
        ends = self._ends()
        while ends and ends[0] <= until:
            max_timestamp = heapq.heappop(ends)
            sides = [self._read_window(side, max_timestamp) for side in (0, 1)]
            for table in self._tables:
                table.clear_namespace(max_timestamp)
            self._emit_window(*sides)

    def _read_window(self, side: int, max_timestamp: int) -> list[pa.Array]:
        parts = [unpack_chunk(data).columns for _, data in _sort_chunks(self._tables[side], max_timestamp)]
        if not parts:
            return [pa.nulls(0, arrow_type(data_type)) for data_type in self._schemas[side].types]
        return [pa.concat_arrays(column) for column in zip(*parts, strict=True)]

    def _emit_window(self, lefts: list[pa.Array], rights: list[pa.Array]) -> None:
        join_type = self._spec.kind
        counts = len(lefts[0]), len(rights[0])
        has_match = [np.zeros(count, dtype=bool) for count in counts]
        for left_rows, right_rows in self._find_matching_pairs(lefts, rights):
            has_match[0][left_rows] = has_match[1][right_rows] = True
            if join_type not in ("semi", "anti"):
                self.emit_lazy(join_rows(lefts, rights, left_rows, right_rows))
        if join_type in ("semi", "anti"):
            self._emit_unmatched(np.flatnonzero(has_match[0] if join_type == "semi" else ~has_match[0]), lefts, [], 0)
        if join_type in ("left", "full"):
            self._emit_unmatched(np.flatnonzero(~has_match[0]), lefts, rights, 0)
        if join_type in ("right", "full"):
            self._emit_unmatched(np.flatnonzero(~has_match[1]), rights, lefts, 1)

    def _find_matching_pairs(self, lefts: list[pa.Array], rights: list[pa.Array]) -> Any:
        """Iterate over pieces of the matching pairs: (left rows, right rows)."""
        sides = [[rows[i] for i in keys] for rows, keys in zip((lefts, rights), self._spec.keys, strict=True)]
        left_valid, right_valid = (_find_rows_with_keys(keys) for keys in sides)
        hashes = [
            self._keys.hashes([key.take(pa.array(rows)) for key in keys], len(rows))
            for keys, rows in zip(sides, (left_valid, right_valid), strict=True)
        ]
        right = SortedHashes.of(hashes[1])
        for left_positions, right_positions in SortedHashes.of(hashes[0]).pairs(right.hashes):
            left_rows, right_rows = left_valid[left_positions], right_valid[right.order[right_positions]]
            order = np.lexsort((right_rows, left_rows))
            left_rows, right_rows = left_rows[order], right_rows[order]
            if not self._keys.exact:
                left_indexes, right_indexes = pa.array(left_rows), pa.array(right_rows)
                is_equal = compare_keys(
                    [key.take(left_indexes) for key in sides[0]], [key.take(right_indexes) for key in sides[1]]
                )
                left_rows, right_rows = left_rows[is_equal], right_rows[is_equal]
            if self._condition is not None and len(left_rows):
                joined = join_rows(lefts, rights, left_rows, right_rows)
                frame = self.create_frame_of_columns(joined, len(left_rows))
                try:
                    holds = self._condition.holds(frame)
                except EvaluationFailed as problem:
                    raise self.fail(problem) from None
                left_rows, right_rows = left_rows[holds], right_rows[holds]
            yield left_rows, right_rows

    def _emit_unmatched(
        self, rows: np.ndarray, columns: list[pa.Array], other_columns: list[pa.Array], side: int
    ) -> None:
        """Emit rows without a match; columns of the other side are NULL."""
        row_indexes = pa.array(rows)
        taken = [column.take(row_indexes) for column in columns]
        nulls = [pa.nulls(len(rows), column.type) for column in other_columns]
        joined = [*taken, *nulls] if side == 0 else [*nulls, *taken]
        self.emit_array(combine_columns(joined, None, self.output, len(rows)))


def _sort_chunks(table: StateTable, max_timestamp: int) -> list[tuple[str, bytes]]:
    return sorted(table.scan(max_timestamp))


def _find_rows_with_keys(keys: list[pa.Array]) -> np.ndarray:
    """Return the rows whose keys are not NULL."""
    valid = np.ones(len(keys[0]), dtype=bool)
    for key in keys:
        if key.null_count:
            valid &= pc.is_valid(key).to_numpy(zero_copy_only=False)
    return np.flatnonzero(valid)
