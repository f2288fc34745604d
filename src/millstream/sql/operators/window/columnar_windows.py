"""Window aggregates on whole columns.

Promises: the results of WindowAggregateOperator for aggregates that columns can be added up for, without Python for
each row or key.
Does not know: rows that are taken back, and aggregates with state of their own.

The rows of an epoch are grouped once, before the watermark moves on; what a window has got waits in state under the
moment it is over. A window that is over before the epoch ends leaves nothing there."""

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
from millstream.runtime.windows.columns import packed, unpacked
from millstream.sql.columns import struct_of
from millstream.sql.functions.aggregates import aggregation
from millstream.sql.operators import moments
from millstream.sql.operators.aggregate.partials import ROWS, Partials
from millstream.sql.operators.base import open_ends
from millstream.sql.operators.epochs import EpochOperator
from millstream.sql.operators.row_runs import of_key_groups
from millstream.sql.operators.window.lateness import rows_dropped
from millstream.sql.types import data_types as t
from millstream.state.deltas import Redistribution
from millstream.state.key_groups import KeyGroupRange
from millstream.state.store import ABSENT
from millstream.types.factory import Types

_MERGE_AFTER = 16  # chunks of a window


class WindowChunksOperator(EpochOperator):
    """State: chunks of partial aggregates by the moment a window is over (the namespace)."""

    def __init__(
        self,
        context: OperatorContext,
        spec: Any,
        name: str,
        partials: Partials,
        dealt: Sequence[tuple[int, t.DataType]],
        zone: str = "UTC",
    ) -> None:
        """`dealt` are the key columns of a chunk by which its rows are dealt out, and their types; `zone` is where the
        ends of windows are times of day."""
        super().__init__(context, spec.output, zone)
        self._spec, self._partials = spec, partials
        self._dealt = dealt
        self._functions = [aggregation(call, retracts=False) for call in spec.calls]
        self._fresh: dict[int, list[pa.RecordBatch]] = {}
        self._table = context.state.table(
            name, Types.PICKLED_BYTE_ARRAY(), Redistribution.CUT, key_type=Types.STRING(), restrict=self._cut
        )

    @abstractmethod
    def chunks(self, array: pa.Array) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The end of each window that rows are in, and a chunk of its partial aggregates, in which a key may come more
        than once. Windows that are over are left out, and rows that are in no other are counted."""

    @abstractmethod
    def columns(self, chunk: pa.RecordBatch, over: int) -> list[pa.Array]:
        """What is told of a window, which is over at that moment, before its results."""

    def _cut(self, data: bytes, groups: KeyGroupRange) -> Any:
        """The rows of a chunk whose keys are in some key groups."""
        chunk = unpacked(data)
        keys, kinds = [chunk.column(i) for i, _ in self._dealt], [kind for _, kind in self._dealt]
        mine = of_key_groups(keys, kinds, self.context, groups, len(chunk))
        return packed(chunk.take(pa.array(mine))) if len(mine) else ABSENT

    def _over(self, end: int) -> int:
        """When a window is over."""
        return moments.utc_millis(end, self.zone) - 1

    def late(self, ends: np.ndarray) -> np.ndarray:
        """Which of these windows are over already."""
        if self._spec.processing:
            return np.zeros(len(ends), dtype=bool)
        over = ends - 1 if self.zone == "UTC" else np.array([self._over(end) for end in ends.tolist()])
        return over <= self.watermark

    def dropped(self, rows: int) -> None:
        """Count rows that came too late."""
        if rows:
            self.context.metrics.count(LATE_COUNT, rows)

    def begin_epoch(self) -> None:
        """Nothing is waiting; processing time may have passed windows."""
        super().begin_epoch()
        self._fresh = {}
        if self._spec.processing:
            self._fire(self.context.now)

    def on_watermark(self, watermark: int) -> None:
        """Group what was gathered, then tell the windows that are over."""
        self._take_waiting()
        if not self._spec.processing or watermark == MAX_WATERMARK:
            self._fire(watermark)
        super().on_watermark(watermark)

    def end_epoch(self) -> None:
        """What windows have got that are still open becomes state."""
        super().end_epoch()
        fresh, self._fresh = self._fresh, {}
        for over, chunks in fresh.items():
            self._keep(over, chunks)

    def next_timer(self) -> int | None:
        """When the next window is over."""
        opened = open_ends(self.context, self._table)
        return opened[0] if self._spec.processing and opened else None

    def _take(self, array: pa.Array) -> None:
        opened = open_ends(self.context, self._table)
        known = set(opened)
        for end, chunk in self.chunks(array):
            over = self._over(end)
            if over not in known:
                known.add(over)
                heapq.heappush(opened, over)
            self._fresh.setdefault(over, []).append(chunk)

    def _keep(self, over: int, chunks: list[pa.RecordBatch]) -> None:
        """Add chunks to a window; many small ones become one."""
        stored = list(self._table.scan(over))
        if len(stored) >= _MERGE_AFTER:
            chunks = [*(unpacked(data) for _, data in stored), *chunks]
            for name, _ in stored:
                self._table.delete(over, name)
        chunk = chunks[0] if len(chunks) == 1 else self._partials.merged(chunks)
        self._table.put(over, f"{self.context.epoch}-{self.context.subtask}-{len(stored)}", packed(chunk))

    def _fire(self, until: int) -> None:
        opened = open_ends(self.context, self._table)
        while opened and opened[0] <= until:
            over = heapq.heappop(opened)
            chunks = [unpacked(data) for _, data in sorted(self._table.scan(over))]
            if chunks:
                self._table.clear_namespace(over)
            chunks += self._fresh.pop(over, [])
            if chunks:
                self._tell(over, self._partials.merged(chunks))

    def _tell(self, over: int, chunk: pa.RecordBatch) -> None:
        width = chunk.num_columns - len(self._partials.parts)
        results = self._partials.finished(chunk.columns[width:], self._functions)
        columns = [*self.columns(chunk, over), *results]
        self.emit_array(struct_of(columns, None, self.output, chunk.num_rows))


class ColumnarWindowAggregateOperator(WindowChunksOperator):
    """Rows come with the edges of their windows, which are keys of a chunk like others."""

    def __init__(self, context: OperatorContext, spec: Any) -> None:
        dealt = [(spec.keys.index(i), spec.input.types[i]) for i in spec.others]
        zone = spec.zone if spec.zoned or spec.processing else "UTC"
        super().__init__(context, spec, "windows/chunks", Partials(spec.calls, spec.keys, spec.input), dealt, zone)
        self._counted = Partials((*spec.calls, ROWS), spec.keys, spec.input)

    def chunks(self, array: pa.Array) -> Iterator[tuple[int, pa.RecordBatch]]:
        """As WindowChunksOperator promises."""
        spec, counted = self._spec, self._counted
        whole = counted.given(array) if spec.partial else counted.chunk(array)
        ends = moments.column_millis(whole.column(spec.keys.index(spec.end)))
        found, numbers = np.unique(ends, return_inverse=True)
        late = self.late(found)
        if late.any():
            self.dropped(rows_dropped(ends, late[numbers], spec.window, counted.rows(whole)))
        order = np.argsort(numbers, kind="stable")
        kept = whole.columns[: len(spec.keys) + len(self._partials.parts)]
        chunk = self._partials.named(kept).take(pa.array(order))
        bounds = np.searchsorted(numbers[order], np.arange(len(found) + 1)).tolist()
        for place, end in enumerate(found.tolist()):
            if not late[place]:
                yield end, chunk.slice(bounds[place], bounds[place + 1] - bounds[place])

    def columns(self, chunk: pa.RecordBatch, over: int) -> list[pa.Array]:
        """As WindowChunksOperator promises."""
        return list(chunk.columns[: len(self._spec.keys)])
