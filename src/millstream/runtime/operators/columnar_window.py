"""Tumbling and sliding event-time windows with built-in aggregates, on whole columns.

Promises: the results of the general window operator for the same windows, without Python per record or per key.
Does not know: triggers, merging, lateness beyond zero; for those the general operator is used.

The batches of an epoch are buffered and aggregated once, before the watermark advances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from millstream.functions.aggregations import Aggregations
from millstream.runtime import rowwise
from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.runtime.memory import MemoryPart
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.operators.window import LATE_COUNT
from millstream.runtime.sorted_input import SortedUnit
from millstream.runtime.windows import columns
from millstream.state.deltas import Redistribution
from millstream.state.key_groups import KeyGroupRange
from millstream.state.store import ABSENT
from millstream.types.factory import TypeInformation, Types

_MERGE_AFTER = 16  # chunks of a window


@dataclass(frozen=True)
class ColumnarWindowSpec(OperatorSpec):
    """Fixed windows [start, start + size) every `slide` ms with built-in aggregates by a key field.

    Emits rows of key, window_start, window_end and the aggregates."""

    key: str | int
    key_type: TypeInformation
    size: int
    slide: int
    offset: int
    aggregations: Aggregations
    late_tag: str | None = None

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return ColumnarWindowOperator(context, self)


@dataclass
class OpenWindows(MemoryPart):
    """The starts of the windows that have records, so that a watermark need not look for them in state."""

    part_name: ClassVar[str] = "open_windows"
    unversioned_keys: ClassVar[Mapping[str, str]] = {"panes": "starts"}

    starts: list[int] = field(default_factory=list)

    @classmethod
    def redistribute(cls, parts: Sequence[Self], parallelism: int) -> Sequence[Self] | None:
        """Return all windows for every new subtask, because each may have keys of every window."""
        starts = sorted({start for part in parts for start in part.starts})
        return [cls(list(starts)) for _ in range(parallelism)]


class ColumnarWindowOperator(Operator):
    """State: chunks of partial aggregates by window (the namespace is its start); keys of the table are their names."""

    def __init__(self, context: OperatorContext, spec: ColumnarWindowSpec) -> None:
        super().__init__(context)
        self._spec = spec
        self._partials = columns.WindowPartials([aggregate for _, aggregate in spec.aggregations.columns])
        self._table = context.state.table(
            "window/chunks",
            Types.PICKLED_BYTE_ARRAY(),
            Redistribution.CUT,
            key_type=Types.STRING(),
            restrict=self._cut,
        )
        self._buffer: list[Batch] = []

    def _cut(self, data: bytes, groups: KeyGroupRange) -> Any:
        """Return the rows of a chunk whose keys are in some key groups."""
        chunk = columns.unpack_chunk(data)
        key_groups = self.context.state.grouper.of_column(chunk.column("key"))
        row_indexes = np.flatnonzero((key_groups >= groups.start) & (key_groups <= groups.end))
        return columns.pack_chunk(chunk.take(pa.array(row_indexes))) if len(row_indexes) else ABSENT

    def begin_epoch(self) -> None:
        """Drop batches that a failed attempt may have left."""
        self._buffer = []

    def on_batch(self, batch: Batch, side: int) -> None:
        """Buffer the batch."""
        if batch.timestamps is None or (batch.timestamps == NO_TIMESTAMP).any():
            raise columns.NeedsTimestamps(self.context.name)
        self._buffer.append(batch)

    def on_sorted(self, unit: SortedUnit) -> None:
        """Aggregate whole keys at once: each of their windows is complete, so no state is needed."""
        if not unit.complete or self._buffer or self.context.memory.part(OpenWindows).starts:
            super().on_sorted(unit)
            return
        self.on_batch(unit.batch, unit.side)
        batches, self._buffer = self._buffer, []
        spec = self._spec
        times: Any = batches[0].timestamps
        parts = columns.starts(times, spec.size, spec.slide, spec.offset)
        rows, starts = (np.concatenate(column) for column in zip(*parts, strict=True))
        window_starts, aggregates = self._partials.groups(batches, spec.key, starts, rows)
        if len(parts) > 1:  # windows of a key in the order of time
            order = np.argsort(window_starts, kind="stable")
            window_starts, aggregates = window_starts[order], aggregates.take(pa.array(order))
        for chunk in aggregates.combine_chunks().to_batches():
            self._emit(window_starts, chunk)

    def on_watermark(self, watermark: int) -> None:
        """Aggregate the buffered batches, then fire the windows that end by the watermark."""
        self._aggregate_buffer()
        open_windows = self.context.memory.part(OpenWindows)
        due = sorted(start for start in open_windows.starts if start + self._spec.size - 1 <= watermark)
        for start in due:
            self._fire(start)
        if due:
            fired = set(due)
            open_windows.starts = [start for start in open_windows.starts if start not in fired]
        super().on_watermark(watermark)

    def end_epoch(self) -> None:
        """Aggregate the batches that came after the last watermark."""
        self._aggregate_buffer()

    def _aggregate_buffer(self) -> None:
        if not self._buffer:
            return
        batches, self._buffer = self._buffer, []
        spec, watermark = self._spec, self.watermark
        times = np.concatenate([batch.timestamps for batch in batches])
        is_in_open_window = np.zeros(len(times), dtype=bool)
        for rows, start in columns.starts(times, spec.size, spec.slide, spec.offset):
            if watermark > NO_TIMESTAMP + spec.size:
                is_open = start > watermark - spec.size + 1
                rows, start = (rows, start) if is_open.all() else (rows[is_open], start[is_open])
            is_in_open_window[rows] = True
            for window, chunk in self._partials.chunks(batches, spec.key, start, rows):
                self._keep(window, chunk)
        late = ~is_in_open_window & (
            times <= watermark
        )  # a record between two sliding windows is in none, but not late
        if late.any():
            self._late(batches, np.flatnonzero(late))

    def _keep(self, window: int, chunk: pa.RecordBatch) -> None:
        """Add a chunk to the state of a window; many small chunks are merged."""
        starts = self.context.memory.part(OpenWindows).starts
        if window not in starts:
            starts.append(window)
        stored = list(self._table.scan(window))
        if len(stored) >= _MERGE_AFTER:
            chunk = self._partials.merge([*(columns.unpack_chunk(data) for _, data in stored), chunk])
            for name, _ in stored:
                self._table.delete(window, name)
        self._table.put(window, f"{self.context.epoch}-{len(stored)}", columns.pack_chunk(chunk))

    def _late(self, batches: list[Batch], rows: np.ndarray) -> None:
        self.context.metrics.count(LATE_COUNT, len(rows))
        tag = self._spec.late_tag
        late_type = None if tag is None else self.context.side_types.get(tag)
        if tag is None or late_type is None:
            return
        offset = 0
        for batch in batches:
            batch_rows = rows[(rows >= offset) & (rows < offset + len(batch))] - offset
            offset += len(batch)
            if len(batch_rows):
                late = batch.take(batch_rows)  # the side output has a type of its own
                values = rowwise.conform(self.context.name, late_type, late.rows())
                self.out.emit_side(tag, late.with_rows(late_type, values))

    def _fire(self, start: int) -> None:
        stored = [columns.unpack_chunk(data) for _, data in sorted(self._table.scan(start))]
        if not stored:
            return
        self._table.clear_namespace(start)
        merged = self._partials.merge(stored)
        self._emit(np.full(merged.num_rows, start, dtype=np.int64), merged)

    def _emit(self, starts: np.ndarray, merged: pa.RecordBatch) -> None:
        """Emit the results of a chunk whose rows belong to windows with these starts."""
        ends, output_type, count = starts + self._spec.size, self.context.output_type, merged.num_rows
        fields = list(output_type.arrow_type)
        results = self._partials.finish(
            merged, [field.type for field in fields[3 : 3 + len(self._spec.aggregations.columns)]]
        )
        arrays = [
            merged.column("key"),
            pa.array(starts),
            pa.array(ends),
            *results,
        ]
        arrays.extend(pa.nulls(count, field.type) for field in fields[len(arrays) :])  # row kinds: all inserts
        array = pa.StructArray.from_arrays(arrays, fields=fields)
        self.out.emit(Batch(output_type, array=array, timestamps=ends - 1))
