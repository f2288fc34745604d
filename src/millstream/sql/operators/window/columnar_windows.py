"""Window aggregates on columns.

Promises: the results of WindowAggregateOperator for aggregates that can be computed on columns, without Python code for
each row or key.
Does not know: retractions, and user-defined aggregates.

The rows of an epoch are grouped once, before the watermark advances. The chunks of a window are kept in state under the
window's maximum timestamp. A window that fires in the same epoch is never written to state."""

from __future__ import annotations

import heapq
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.runtime.operator import OperatorContext
from millstream.runtime.operators.window import LATE_COUNT
from millstream.runtime.windows.columns import pack_chunk, unpack_chunk
from millstream.sql.columns import combine_columns
from millstream.sql.functions.aggregates import create_aggregation
from millstream.sql.operators import timestamps
from millstream.sql.operators.aggregate.partials import ROWS, Partials
from millstream.sql.operators.base import read_open_window_ends
from millstream.sql.operators.epochs import EpochOperator
from millstream.sql.operators.row_runs import take_rows_of_key_groups
from millstream.sql.operators.window.lateness import count_dropped_rows
from millstream.sql.types import data_types as t
from millstream.state.deltas import Redistribution
from millstream.state.key_groups import KeyGroupRange
from millstream.state.store import ABSENT
from millstream.types.factory import Types

_MERGE_AFTER = 16  # chunks of a window


class WindowChunksOperator(EpochOperator):
    """State: chunks of partial aggregates by the maximum timestamp of the window (the namespace)."""

    def __init__(
        self,
        context: OperatorContext,
        spec: Any,
        name: str,
        partials: Partials,
        partition_columns: Sequence[tuple[int, t.DataType]],
        zone: str = "UTC",
    ) -> None:
        """Create the state.

        `partition_columns` are the key columns of a chunk by which rows are partitioned, with their types. `zone` is
        the time zone of the window ends."""
        super().__init__(context, spec.output, zone)
        self._spec, self._partials = spec, partials
        self._partition_columns = partition_columns
        self._functions = [create_aggregation(call, retracts=False) for call in spec.calls]
        self._unsaved_chunks: dict[int, list[pa.RecordBatch]] = {}
        self._table = context.state.table(
            name, Types.PICKLED_BYTE_ARRAY(), Redistribution.CUT, key_type=Types.STRING(), restrict=self._restrict
        )

    @abstractmethod
    def chunks(self, array: pa.Array) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Aggregate rows, and yield the end of each window with a chunk of its partial aggregates.

        A key may occur several times in a chunk. Windows that have fired are left out, and rows without another window
        are counted as dropped."""

    @abstractmethod
    def columns(self, chunk: pa.RecordBatch, max_timestamp: int) -> list[pa.Array]:
        """Return the key columns of the output of a window, given its maximum timestamp."""

    def _restrict(self, data: bytes, groups: KeyGroupRange) -> Any:
        """Return the rows of a chunk whose keys are in some key groups, for a change of parallelism."""
        chunk = unpack_chunk(data)
        keys, key_types = (
            [chunk.column(i) for i, _ in self._partition_columns],
            [data_type for _, data_type in self._partition_columns],
        )
        row_indexes = take_rows_of_key_groups(keys, key_types, self.context, groups, len(chunk))
        return pack_chunk(chunk.take(pa.array(row_indexes))) if len(row_indexes) else ABSENT

    def _compute_max_timestamp(self, end: int) -> int:
        """Return the maximum timestamp of a window: it fires when the watermark reaches it."""
        return timestamps.to_utc_millis(end, self.zone) - 1

    def find_late(self, ends: np.ndarray) -> np.ndarray:
        """Return which of these windows have fired already."""
        if self._spec.processing:
            return np.zeros(len(ends), dtype=bool)
        max_timestamps = (
            ends - 1 if self.zone == "UTC" else np.array([self._compute_max_timestamp(end) for end in ends.tolist()])
        )
        return max_timestamps <= self.watermark

    def count_dropped(self, rows: int) -> None:
        """Count rows that were dropped because they are late."""
        if rows:
            self.context.metrics.count(LATE_COUNT, rows)

    def begin_epoch(self) -> None:
        """Discard rows of a failed attempt, and fire windows that processing time has passed."""
        super().begin_epoch()
        self._unsaved_chunks = {}
        if self._spec.processing:
            self._fire(self.context.now)

    def on_watermark(self, watermark: int) -> None:
        """Aggregate the buffer, then fire the windows that end before the watermark."""
        self._process_buffer()
        if not self._spec.processing or watermark == MAX_WATERMARK:
            self._fire(watermark)
        super().on_watermark(watermark)

    def end_epoch(self) -> None:
        """Write the chunks of windows that have not fired to state."""
        super().end_epoch()
        unsaved, self._unsaved_chunks = self._unsaved_chunks, {}
        for max_timestamp, chunks in unsaved.items():
            self._save(max_timestamp, chunks)

    def next_timer(self) -> int | None:
        """Return the maximum timestamp of the next window, for processing time."""
        open_windows = read_open_window_ends(self.context, self._table)
        return open_windows[0] if self._spec.processing and open_windows else None

    def _process(self, array: pa.Array) -> None:
        open_windows = read_open_window_ends(self.context, self._table)
        known_windows = set(open_windows)
        for end, chunk in self.chunks(array):
            max_timestamp = self._compute_max_timestamp(end)
            if max_timestamp not in known_windows:
                known_windows.add(max_timestamp)
                heapq.heappush(open_windows, max_timestamp)
            self._unsaved_chunks.setdefault(max_timestamp, []).append(chunk)

    def _save(self, max_timestamp: int, chunks: list[pa.RecordBatch]) -> None:
        """Add chunks to a window in state; many small ones are merged."""
        stored = list(self._table.scan(max_timestamp))
        if len(stored) >= _MERGE_AFTER:
            chunks = [*(unpack_chunk(data) for _, data in stored), *chunks]
            for name, _ in stored:
                self._table.delete(max_timestamp, name)
        chunk = chunks[0] if len(chunks) == 1 else self._partials.merge(chunks)
        self._table.put(max_timestamp, f"{self.context.epoch}-{self.context.subtask}-{len(stored)}", pack_chunk(chunk))

    def _fire(self, until: int) -> None:
        open_windows = read_open_window_ends(self.context, self._table)
        while open_windows and open_windows[0] <= until:
            max_timestamp = heapq.heappop(open_windows)
            chunks = [unpack_chunk(data) for _, data in sorted(self._table.scan(max_timestamp))]
            if chunks:
                self._table.clear_namespace(max_timestamp)
            chunks += self._unsaved_chunks.pop(max_timestamp, [])
            if chunks:
                self._emit_window(max_timestamp, self._partials.merge(chunks))

    def _emit_window(self, max_timestamp: int, chunk: pa.RecordBatch) -> None:
        width = chunk.num_columns - len(self._partials.parts)
        results = self._partials.finish(chunk.columns[width:], self._functions)
        columns = [*self.columns(chunk, max_timestamp), *results]
        self.emit_array(combine_columns(columns, None, self.output, chunk.num_rows))


class ColumnarWindowAggregateOperator(WindowChunksOperator):
    """The rows have window columns, which are keys of a chunk like others."""

    def __init__(self, context: OperatorContext, spec: Any) -> None:
        partition_columns = [(spec.keys.index(i), spec.input.types[i]) for i in spec.others]
        zone = spec.zone if spec.zoned or spec.processing else "UTC"
        super().__init__(
            context, spec, "windows/chunks", Partials(spec.calls, spec.keys, spec.input), partition_columns, zone
        )
        self._counted = Partials((*spec.calls, ROWS), spec.keys, spec.input)

    def chunks(self, array: pa.Array) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Aggregate rows by key, and yield the chunk of each window."""
        spec, counted = self._spec, self._counted
        grouped = counted.from_rows(array) if spec.partial else counted.chunk(array)
        ends = timestamps.read_column_millis(grouped.column(spec.keys.index(spec.end)))
        distinct_ends, end_indexes = np.unique(ends, return_inverse=True)
        is_late = self.find_late(distinct_ends)
        if is_late.any():
            self.count_dropped(count_dropped_rows(ends, is_late[end_indexes], spec.window, counted.rows(grouped)))
        order = np.argsort(end_indexes, kind="stable")
        kept = grouped.columns[: len(spec.keys) + len(self._partials.parts)]
        chunk = self._partials.to_chunk(kept).take(pa.array(order))
        bounds = np.searchsorted(end_indexes[order], np.arange(len(distinct_ends) + 1)).tolist()
        for index, end in enumerate(distinct_ends.tolist()):
            if not is_late[index]:
                yield end, chunk.slice(bounds[index], bounds[index + 1] - bounds[index])

    def columns(self, chunk: pa.RecordBatch, max_timestamp: int) -> list[pa.Array]:
        """Return the key columns of a window's output."""
        return list(chunk.columns[: len(self._spec.keys)])
