"""Windows of tables: rows are put into them, and groups of them are told when they are over.

Promises: TUMBLE, HOP and CUMULATE put each row into its windows at once; SESSION when the session is over. A window
aggregate is told once, when the watermark has passed its window's end; rows that come later are dropped and counted.
Does not know: what is aggregated beyond its accumulators."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.runtime.operators.window import LATE_COUNT
from millstream.runtime.timers import Timers
from millstream.sql.columns import INSERT, UPDATE_AFTER, struct_of
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.expressions.stable_text import call_text, columns_text
from millstream.sql.functions.aggregates import aggregation
from millstream.sql.logical.nodes import WindowSpec
from millstream.sql.operators import moments
from millstream.sql.operators.aggregate.partials import can_aggregate
from millstream.sql.operators.base import TableOperator, key_of, open_ends, rows_with_kinds
from millstream.sql.operators.spec import (
    ColumnTexts,
    PlanContext,
    RowPassingSpec,
    SqlOperatorSpec,
    StateTraits,
    keys_first,
    same_columns,
    window_text,
    yes,
)
from millstream.sql.operators.window.columnar_windows import ColumnarWindowAggregateOperator
from millstream.sql.operators.window.lateness import rows_dropped
from millstream.sql.operators.window.slices import window_times
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types

_ANY = WindowSpec("TUMBLE", 0, 0)


@dataclass(frozen=True)
class WindowTableSpec(RowPassingSpec):
    """Rows with the windows they are in."""

    input: t.RowType
    output: t.RowType
    window: WindowSpec
    zone: str = "UTC"

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        window = window_text(self.window, plan.inputs[0])
        if self.window.kind == "SESSION":
            return StateTraits({"window": window, "rows": plan.rows()})
        return StateTraits(free={"window": window})

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column."""
        (columns,) = plan.inputs
        window = window_text(self.window, columns)
        return [*columns, *(f"{window}.{name}" for name in plan.output.names[len(columns) :])]

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        kind = SessionOperator if self.window.kind == "SESSION" else WindowTableOperator
        return kind(context, self)


class WindowTableOperator(TableOperator):
    """Stateless."""

    def __init__(self, context: OperatorContext, spec: WindowTableSpec) -> None:
        super().__init__(context, spec.output, spec.zone)
        self._spec = spec
        self._zoned = isinstance(spec.input.types[spec.window.time], t.LocalZonedTimestampType)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Put rows into windows; the windows of one row stand together."""
        array, width = batch.array(), len(self._spec.input)
        times = self._times(array)
        rows, starts, ends = assigned(times, self._spec.window)
        latest_first = -starts if self._spec.window.kind == "HOP" else ends  # as Flink deals them out
        order = np.lexsort((latest_first, rows))
        rows, starts, ends = rows[order], starts[order], ends[order]
        chosen = pa.array(rows)
        taken = array if len(rows) == len(array) and (rows == np.arange(len(rows))).all() else array.take(chosen)
        columns = [taken.field(i) for i in range(width)]
        columns += window_columns(starts, ends, self._spec, self.zone)
        self.emit_array(struct_of(columns, taken.field(width), self.output, len(rows)))

    def _times(self, array: pa.Array) -> np.ndarray:
        times = window_times(array, self._spec.window, self.context)
        return moments.local_millis(times, self.zone) if self._zoned or self._spec.window.processing else times


def assigned(times: np.ndarray, window: WindowSpec) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(row, start, end) of every window that every row is in."""
    size, slide, offset = window.size, window.slide or window.size, window.offset
    places = np.arange(len(times))
    if window.kind == "TUMBLE":
        starts = times - np.mod(times - offset, size)
        return places, starts, starts + size
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    if window.kind == "HOP":
        last = times - np.mod(times - offset, slide)
        for step in range(-(-size // slide)):
            starts = last - step * slide
            inside = starts + size > times
            found.append((places[inside], starts[inside], starts[inside] + size))
    else:
        starts = times - np.mod(times - offset, size)
        for step in range(1, size // slide + 1):
            ends = starts + step * slide
            inside = ends > times
            found.append((places[inside], starts[inside], ends[inside]))
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))  # type: ignore[return-value]


def window_columns(starts: np.ndarray, ends: np.ndarray, spec: WindowTableSpec, zone: str) -> list[pa.Array]:
    """window_start, window_end and window_time."""
    edge = pa.timestamp("ms")
    last = ends - 1
    kind = spec.output.types[-1]
    if isinstance(kind, t.LocalZonedTimestampType):
        if zone != "UTC":
            last = np.array([moments.utc_millis(int(each), zone) for each in last], dtype=np.int64)
        time = pa.array(last).cast(edge).cast(pa.timestamp("ms", "UTC"))
    else:
        time = pa.array(last).cast(edge)
    return [pa.array(starts).cast(edge), pa.array(ends).cast(edge), time]


class SessionOperator(WindowTableOperator):
    """State: by key, the open sessions as [start, end, rows]; a timer at each end."""

    def __init__(self, context: OperatorContext, spec: WindowTableSpec) -> None:
        super().__init__(context, spec)
        self._sessions = context.state.table("sessions", Types.PICKLED_BYTE_ARRAY())
        self._timers = Timers(context.state, "processing" if spec.window.processing else "event")

    def on_batch(self, batch: Batch, side: int) -> None:
        """Let each row open, extend or merge sessions."""
        window = self._spec.window
        rows, kinds = rows_with_kinds(batch, self._spec.input)
        times = self._times(batch.array()).tolist()
        for row, kind, time in zip(rows, kinds, times, strict=True):
            key = key_of(row, window.partition)
            found = self._sessions.get(None, key)
            sessions: list[list[Any]] = [] if found is ABSENT else found
            merged: list[Any] = [time, time + window.size, [(kind, row)]]
            kept, taken = [], []
            for session in sessions:
                if session[0] <= merged[1] and merged[0] <= session[1]:
                    taken.append(session)
                    merged = [min(session[0], merged[0]), max(session[1], merged[1]), session[2] + merged[2]]
                else:
                    kept.append(session)
            if not window.processing and self.watermark >= self._real(merged[1]) - 1:
                self.context.metrics.count(LATE_COUNT)  # no session that is still open takes it in
                continue
            for session in taken:
                self._timers.delete(None, key, self._real(session[1]) - 1)
            kept.append(merged)
            for session in kept:
                self._timers.register(None, key, self._real(session[1]) - 1)
            self._sessions.put(None, key, kept)

    def _real(self, local: int) -> int:
        return moments.utc_millis(local, self.zone) if self._zoned else local

    def begin_epoch(self) -> None:
        """Close the sessions that processing time has passed."""
        super().begin_epoch()
        if self._spec.window.processing:
            self._close(self.context.now)

    def next_timer(self) -> int | None:
        """When the next session is over."""
        return self._timers.next() if self._spec.window.processing else None

    def on_watermark(self, watermark: int) -> None:
        """Close the sessions that event time has passed."""
        if not self._spec.window.processing or watermark == MAX_WATERMARK:
            self._close(watermark)
        Operator.on_watermark(self, watermark)

    def _close(self, until: int) -> None:
        for _, _, key in self._timers.due(until):
            found = self._sessions.get(None, key)
            if found is ABSENT:
                continue
            over = sorted((s for s in found if self._real(s[1]) - 1 <= until), key=lambda s: (s[0], s[1]))
            left = [s for s in found if self._real(s[1]) - 1 > until]
            self._sessions.put(None, key, left or ABSENT)
            for start, end, rows in over:
                edge = (moments.timestamp(start), moments.timestamp(end))
                time = moments.moment(self._real(end) - 1, self.output.types[-1])
                for kind, row in rows:
                    self.put(kind, (*row, *edge, time))
        self.flush()


@dataclass(frozen=True)
class WindowAggregateSpec(SqlOperatorSpec):
    """Aggregates by keys: the edges of a window, of which `end` is its end, and `others`; told when it is over.

    With `partial`, rows are aggregated in part: the keys, then the parts; `input` and places are those before that."""

    input: t.RowType
    output: t.RowType
    keys: tuple[int, ...]
    others: tuple[int, ...]
    end: int
    calls: tuple[AggregateCall, ...]
    retracts: bool
    processing: bool = False
    zoned: bool = False
    zone: str = "UTC"
    window: WindowSpec = _ANY
    partial: bool = False

    @property
    def columnar(self) -> bool:
        """Whether whole columns are added up."""
        return not self.retracts and can_aggregate(self.calls, [self.input.types[i] for i in self.keys])

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns,) = plan.inputs
        return StateTraits(
            {
                "key": columns_text(self.others, columns, self.input),
                "window": columns[self.end],
                "aggregates": ", ".join(call_text(call, columns) for call in self.calls),
                "retracts": yes(self.retracts),
                "zone": self.zone if self.zoned or self.processing else "",
            }
        )

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column."""
        (columns,) = plan.inputs
        return [*(columns[i] for i in self.keys), *(call_text(call, columns) for call in self.calls)]

    def kept_columns(self, plan: PlanContext, side: int) -> Mapping[int, tuple[int, ...]]:
        """Return the indexes of input columns in the output."""
        return same_columns(len(self.keys)) if self.partial else keys_first(self.keys)

    def build(self, context: OperatorContext) -> Operator:
        """The operator, on columns where it can be."""
        if self.columnar:
            return ColumnarWindowAggregateOperator(context, self)
        return WindowAggregateOperator(context, self)


class WindowAggregateOperator(TableOperator):
    """State: by window end (the namespace) and key, [rows, accumulators]; memory: the ends that are open."""

    def __init__(self, context: OperatorContext, spec: WindowAggregateSpec) -> None:
        super().__init__(context, spec.output, spec.zone, spec)
        self._spec = spec
        self._functions = [aggregation(call, retracts=spec.retracts) for call in spec.calls]
        self._table = context.state.table("windows", Types.PICKLED_BYTE_ARRAY())

    def _over(self, row: tuple[Any, ...]) -> int:
        """When the window of a row is over."""
        end = moments.millis_of(row[self._spec.end], t.TimestampType(3))
        return (moments.utc_millis(end, self.zone) if self._spec.zoned or self._spec.processing else end) - 1

    def on_batch(self, batch: Batch, side: int) -> None:
        """Take rows into their windows."""
        spec, watermark = self._spec, self.watermark
        opened = open_ends(self.context, self._table)
        known = set(opened)
        rows, kinds = rows_with_kinds(batch, spec.input)
        late = np.zeros(len(rows), dtype=bool)
        for place, (row, kind) in enumerate(zip(rows, kinds, strict=True)):
            over = self._over(row)
            if not spec.processing and over <= watermark:
                late[place] = True
                continue
            if over not in known:
                known.add(over)
                heapq.heappush(opened, over)
            key = key_of(row, spec.others)
            group = self._table.get(over, key)
            if group is ABSENT:
                prefix = tuple(row[i] for i in spec.keys)
                group = [0, [function.create() for function in self._functions], prefix]
            adding = kind in (INSERT, UPDATE_AFTER)
            group[0] += 1 if adding else -1
            for function, call, acc in zip(self._functions, spec.calls, group[1], strict=True):
                if call.filter is not None and row[call.filter] is not True:
                    continue
                values = tuple([row[i] for i in call.args])
                if adding:
                    function.add(acc, values)
                else:
                    function.retract(acc, values)
            self._table.put(over, key, group)
        if late.any():
            ends = moments.column_millis(batch.array().field(spec.end))
            self.context.metrics.count(LATE_COUNT, rows_dropped(ends, late, spec.window))

    def begin_epoch(self) -> None:
        """Tell windows that processing time has passed."""
        super().begin_epoch()
        if self._spec.processing:
            self._fire(self.context.now)

    def next_timer(self) -> int | None:
        """When the next window is over."""
        opened = open_ends(self.context, self._table)
        return opened[0] if self._spec.processing and opened else None

    def on_watermark(self, watermark: int) -> None:
        """Tell windows that event time has passed; all of them at the end."""
        if not self._spec.processing or watermark == MAX_WATERMARK:
            self._fire(watermark)
        super().on_watermark(watermark)

    def _fire(self, until: int) -> None:
        opened = open_ends(self.context, self._table)
        while opened and opened[0] <= until:
            over = heapq.heappop(opened)
            for _, group in list(self._table.scan(over)):
                if group[0] > 0:
                    values = [f.value(a) for f, a in zip(self._functions, group[1], strict=True)]
                    self.put(INSERT, (*group[2], *values))
            self._table.clear_namespace(over)
        self.flush()
