"""Tumbling and sliding event-time windows with built-in aggregates, on whole columns.

Promises: the results of the general window operator for the same windows; work per record is vectorised, Python is paid
per key and window of an epoch.
Does not know: triggers, merging, lateness beyond zero; for those the general operator is used.

The epoch's batches are gathered and grouped once, before the watermark moves on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.model.aggregations import Aggregations
from millstream.model.types import TypeInformation, Types
from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.operators.window import LATE_COUNT
from millstream.runtime.rowwise import UserFunctionFailed
from millstream.runtime.windows import columns
from millstream.state.backend import ABSENT


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
        """The operator."""
        return ColumnarWindowOperator(context, self)


class ColumnarWindowOperator(Operator):
    """Accumulators by window (the namespace is its start) and key."""

    def __init__(self, context: OperatorContext, spec: ColumnarWindowSpec) -> None:
        super().__init__(context)
        self._spec = spec
        self._aggregates = [aggregate for _, aggregate in spec.aggregations.columns]
        self._table = context.state.table("window/columns", Types.PICKLED_BYTE_ARRAY())
        self._waiting: list[Batch] = []

    def begin_epoch(self) -> None:
        """Nothing is waiting."""
        self._waiting = []

    def on_batch(self, batch: Batch, side: int) -> None:
        """Gather."""
        if batch.timestamps is None or (batch.timestamps == NO_TIMESTAMP).any():
            raise UserFunctionFailed(
                self.context.name,
                "records without a timestamp cannot go into event-time windows; call assign_timestamps_and_watermarks",
                "",
            )
        self._waiting.append(batch)

    def on_watermark(self, watermark: int) -> None:
        """Group what was gathered, then fire the windows that end by the watermark."""
        self._group()
        open_windows: list[int] = self.context.memory.get("panes", [])
        due = sorted(start for start in open_windows if start + self._spec.size - 1 <= watermark)
        for start in due:
            self._fire(start)
        if due:
            fired = set(due)
            self.context.memory["panes"] = [start for start in open_windows if start not in fired]
        super().on_watermark(watermark)

    def end_epoch(self) -> None:
        """What came after the last watermark goes into state."""
        self._group()

    def _group(self) -> None:
        if not self._waiting:
            return
        batches, self._waiting = self._waiting, []
        spec, watermark = self._spec, self.watermark
        times = np.concatenate([batch.timestamps for batch in batches])
        living = np.zeros(len(times), dtype=bool)
        for rows, start in columns.starts(times, spec.size, spec.slide, spec.offset):
            alive = (
                start > watermark - spec.size + 1 if watermark > NO_TIMESTAMP + spec.size else np.ones(len(start), bool)
            )
            if not alive.all():
                rows, start = rows[alive], start[alive]
            living[rows] = True
            if len(rows):
                self._merge(*columns.grouped(batches, spec.key, start, rows, self._aggregates))
        late = ~living & (times <= watermark)  # a record between two windows is in none, but not late
        if late.any():
            self._late(batches, np.flatnonzero(late))

    def _merge(self, windows: np.ndarray, keys: pa.Array, partials: list[list[Any]]) -> None:
        names = self._spec.key_type.from_arrow(keys)
        empty = self._spec.aggregations.create_accumulator()
        panes: list[int] = self.context.memory.setdefault("panes", [])
        order = np.argsort(windows, kind="stable")
        bounds = np.flatnonzero(np.diff(windows[order])) + 1
        for part in np.split(order, bounds):
            window = int(windows[part[0]])
            whole = len(part) == len(names)
            chosen = part.tolist()
            its_keys = names if whole else [names[i] for i in chosen]
            its_partials = partials if whole else [[column[i] for i in chosen] for column in partials]
            olds = self._table.get_many(window, its_keys)
            if window in panes:
                before = zip(*(empty if old is ABSENT else old for old in olds), strict=True)
                its_partials = [
                    columns.combined(aggregate, old, new)
                    for aggregate, old, new in zip(self._aggregates, before, its_partials, strict=True)
                ]
            else:
                panes.append(window)
            self._table.put_many(window, its_keys, list(zip(*its_partials, strict=True)))

    def _late(self, batches: list[Batch], rows: np.ndarray) -> None:
        self.context.metrics.count(LATE_COUNT, len(rows))
        if self._spec.late_tag is None:
            return
        offset = 0
        for batch in batches:
            mine = rows[(rows >= offset) & (rows < offset + len(batch))] - offset
            offset += len(batch)
            if len(mine):
                self.out.emit_side(self._spec.late_tag, batch.take(mine))

    def _fire(self, start: int) -> None:
        entries = list(self._table.scan(start))
        if not entries:
            return
        self._table.clear_namespace(start)
        spec, kind = self._spec, self.context.output_type
        keys = [key for key, _ in entries]
        results = [
            [aggregate.result(part) for part in column]
            for aggregate, column in zip(self._aggregates, zip(*(acc for _, acc in entries), strict=True), strict=True)
        ]
        types: list[TypeInformation] = list(kind.field_types)  # type: ignore[attr-defined]
        count = len(entries)
        arrays = [
            types[0].to_arrow(keys),
            pa.array(np.full(count, start, dtype=np.int64)),
            pa.array(np.full(count, start + spec.size, dtype=np.int64)),
            *(each.to_arrow(values) for each, values in zip(types[3:], results, strict=True)),
        ]
        fields = list(kind.arrow_type)
        arrays.extend(pa.nulls(count, field.type) for field in fields[len(arrays) :])  # row kinds: all inserts
        array = pa.StructArray.from_arrays(arrays, fields=fields)
        self.out.emit(Batch(kind, array=array, timestamps=np.full(count, start + spec.size - 1, dtype=np.int64)))
