"""Window aggregates on whole columns.

Promises: the results of WindowAggregateOperator for aggregates that columns can be added up for, without Python for
each row or key.
Does not know: rows that are taken back, and aggregates with state of their own.

The rows of an epoch are grouped once, before the watermark moves on; a window's chunks wait in state under its end."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.model.types import Types
from millstream.model.watermarks import MAX_WATERMARK
from millstream.runtime.operator import OperatorContext
from millstream.runtime.operators.window import LATE_COUNT
from millstream.runtime.windows import columns
from millstream.sql.columns import internal_values, struct_of
from millstream.sql.functions.aggregates import aggregation
from millstream.sql.operators import moments
from millstream.sql.operators.base import open_ends
from millstream.sql.operators.epochs import EpochOperator
from millstream.sql.operators.lateness import rows_dropped
from millstream.sql.operators.partials import Partials
from millstream.state.deltas import Redistribution
from millstream.state.key_groups import KeyGroupRange
from millstream.state.store import ABSENT

_MERGE_AFTER = 16  # chunks of a window


class ColumnarWindowAggregateOperator(EpochOperator):
    """State: chunks of partial aggregates by the moment a window is over (the namespace)."""

    def __init__(self, context: OperatorContext, spec: Any) -> None:
        super().__init__(context, spec.output, spec.zone)
        self._spec = spec
        self._partials = Partials(spec.calls, spec.keys, spec.input)
        self._functions = [aggregation(call, retracts=False) for call in spec.calls]
        self._table = context.state.table(
            "windows/chunks", Types.PICKLED_BYTE_ARRAY(), Redistribution.CUT, key_type=Types.STRING(), cut=self._cut
        )

    def _cut(self, data: bytes, groups: KeyGroupRange) -> Any:
        """The rows of a chunk whose keys are in some key groups."""
        chunk = columns.unpacked(data)
        places = [self._spec.keys.index(i) for i in self._spec.others]
        if not places:  # all rows are in one subtask, whichever that is
            return data if groups.contains(self.context.state.grouper.of(None)) else ABSENT
        if len(places) == 1:
            found = self.context.state.grouper.of_column(chunk.column(places[0]))
        else:
            kinds = [self._spec.input.types[i] for i in self._spec.others]
            values = [internal_values(chunk.column(i), kind) for i, kind in zip(places, kinds, strict=True)]
            found = self.context.state.grouper.of_many(list(zip(*values, strict=True)))
        mine = np.flatnonzero((found >= groups.start) & (found <= groups.end))
        return columns.packed(chunk.take(pa.array(mine))) if len(mine) else ABSENT

    def begin_epoch(self) -> None:
        """Nothing is waiting; processing time may have passed windows."""
        super().begin_epoch()
        if self._spec.processing:
            self._fire(self.context.now)

    def on_watermark(self, watermark: int) -> None:
        """Group what was gathered, then tell the windows that are over."""
        self._take_waiting()
        if not self._spec.processing or watermark == MAX_WATERMARK:
            self._fire(watermark)
        super().on_watermark(watermark)

    def next_timer(self) -> int | None:
        """When the next window is over."""
        opened = open_ends(self.context, self._table)
        return opened[0] if self._spec.processing and opened else None

    def _take(self, array: pa.Array) -> None:
        ends = moments.column_millis(array.field(self._spec.end))
        opened = open_ends(self.context, self._table)
        distinct = np.unique(ends)
        late = np.zeros(len(ends), dtype=bool)
        for end in distinct.tolist():
            over = (moments.utc_millis(end, self.zone) if self._spec.zoned or self._spec.processing else end) - 1
            rows = array if len(distinct) == 1 else array.take(pa.array(np.flatnonzero(ends == end)))
            if not self._spec.processing and over <= self.watermark:
                late |= ends == end
                continue
            if over not in opened:
                heapq.heappush(opened, over)
            self._keep(over, self._partials.chunk(rows))
        if late.any():
            self.context.metrics.count(LATE_COUNT, rows_dropped(ends, late, self._spec.window))

    def _keep(self, over: int, chunk: pa.RecordBatch) -> None:
        """Add a chunk to a window; many small ones become one."""
        stored = list(self._table.scan(over))
        if len(stored) >= _MERGE_AFTER:
            chunk = self._partials.merged([*(columns.unpacked(data) for _, data in stored), chunk])
            for name, _ in stored:
                self._table.delete(over, name)
        self._table.put(over, f"{self.context.epoch}-{self.context.subtask}-{len(stored)}", columns.packed(chunk))

    def _fire(self, until: int) -> None:
        opened = open_ends(self.context, self._table)
        while opened and opened[0] <= until:
            over = heapq.heappop(opened)
            stored = [columns.unpacked(data) for _, data in sorted(self._table.scan(over))]
            if not stored:
                continue
            self._table.clear_namespace(over)
            merged = self._partials.merged(stored)
            width = len(self._spec.keys)
            keys = [merged.column(i) for i in range(width)]
            parts = [merged.column(i) for i in range(width, merged.num_columns)]
            results = self._partials.finished(parts, self._functions)
            self.emit_array(struct_of([*keys, *results], None, self.output, merged.num_rows))
