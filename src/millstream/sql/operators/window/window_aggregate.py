"""Window table functions and window aggregates.

Promises: TUMBLE, HOP and CUMULATE assign each row to its windows when it arrives; SESSION when the session has ended. A
window aggregate is emitted once, when the watermark passes the end of its window; late rows are dropped and counted.
Does not know: how accumulators work."""

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
from millstream.sql.columns import INSERT, UPDATE_AFTER, combine_columns
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.expressions.stable_text import format_call, format_columns
from millstream.sql.functions.aggregates import create_aggregation
from millstream.sql.logical.nodes import WindowSpec
from millstream.sql.operators import timestamps
from millstream.sql.operators.aggregate.partials import can_aggregate
from millstream.sql.operators.base import TableOperator, get_key, read_open_window_ends, read_rows_with_kinds
from millstream.sql.operators.spec import (
    ColumnTexts,
    PlanContext,
    RowPassingSpec,
    SqlOperatorSpec,
    StateTraits,
    format_flag,
    format_window,
    map_keys_first,
    map_same_columns,
)
from millstream.sql.operators.window.columnar_windows import ColumnarWindowAggregateOperator
from millstream.sql.operators.window.lateness import count_dropped_rows
from millstream.sql.operators.window.slices import compute_window_times
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types

_ANY = WindowSpec("TUMBLE", 0, 0)


@dataclass(frozen=True)
class WindowTableSpec(RowPassingSpec):
    """Rows with the columns of their windows."""

    input: t.RowType
    output: t.RowType
    window: WindowSpec
    zone: str = "UTC"

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        window = format_window(self.window, plan.inputs[0])
        if self.window.kind == "SESSION":
            return StateTraits({"window": window, "rows": plan.rows()})
        return StateTraits(free={"window": window})

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column."""
        (columns,) = plan.inputs
        window = format_window(self.window, columns)
        return [*columns, *(f"{window}.{name}" for name in plan.output.names[len(columns) :])]

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        operator_type = SessionOperator if self.window.kind == "SESSION" else WindowTableOperator
        return operator_type(context, self)


class WindowTableOperator(TableOperator):
    """Assigns rows to windows."""

    def __init__(self, context: OperatorContext, spec: WindowTableSpec) -> None:
        super().__init__(context, spec.output, spec.zone)
        self._spec = spec
        self._zoned = isinstance(spec.input.types[spec.window.time], t.LocalZonedTimestampType)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Assign rows to windows; the windows of a row are adjacent."""
        array, width = batch.array(), len(self._spec.input)
        times = self._times(array)
        rows, starts, ends = assign_windows(times, self._spec.window)
        latest_first = -starts if self._spec.window.kind == "HOP" else ends  # the order of Flink
        order = np.lexsort((latest_first, rows))
        rows, starts, ends = rows[order], starts[order], ends[order]
        row_indexes = pa.array(rows)
        repeated = (
            array if len(rows) == len(array) and (rows == np.arange(len(rows))).all() else array.take(row_indexes)
        )
        columns = [repeated.field(i) for i in range(width)]
        columns += create_window_columns(starts, ends, self._spec, self.zone)
        self.emit_array(combine_columns(columns, repeated.field(width), self.output, len(rows)))

    def _times(self, array: pa.Array) -> np.ndarray:
        times = compute_window_times(array, self._spec.window, self.context)
        return timestamps.to_local_millis(times, self.zone) if self._zoned or self._spec.window.processing else times


def assign_windows(times: np.ndarray, window: WindowSpec) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (row index, start, end) of every window of every row."""
    size, slide, offset = window.size, window.slide or window.size, window.offset
    row_indexes = np.arange(len(times))
    if window.kind == "TUMBLE":
        starts = times - np.mod(times - offset, size)
        return row_indexes, starts, starts + size
    windows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    if window.kind == "HOP":
        last = times - np.mod(times - offset, slide)
        for step in range(-(-size // slide)):
            starts = last - step * slide
            is_inside = starts + size > times
            windows.append((row_indexes[is_inside], starts[is_inside], starts[is_inside] + size))
    else:
        starts = times - np.mod(times - offset, size)
        for step in range(1, size // slide + 1):
            ends = starts + step * slide
            is_inside = ends > times
            windows.append((row_indexes[is_inside], starts[is_inside], ends[is_inside]))
    return tuple(np.concatenate(parts) for parts in zip(*windows, strict=True))  # type: ignore[return-value]


def create_window_columns(starts: np.ndarray, ends: np.ndarray, spec: WindowTableSpec, zone: str) -> list[pa.Array]:
    """Return the columns window_start, window_end and window_time."""
    timestamp_type = pa.timestamp("ms")
    last = ends - 1
    time_type = spec.output.types[-1]
    if isinstance(time_type, t.LocalZonedTimestampType):
        if zone != "UTC":
            last = np.array([timestamps.to_utc_millis(int(local), zone) for local in last], dtype=np.int64)
        time = pa.array(last).cast(timestamp_type).cast(pa.timestamp("ms", "UTC"))
    else:
        time = pa.array(last).cast(timestamp_type)
    return [pa.array(starts).cast(timestamp_type), pa.array(ends).cast(timestamp_type), time]


class SessionOperator(WindowTableOperator):
    """State: by key, the open sessions as [start, end, rows]; a timer at each end."""

    def __init__(self, context: OperatorContext, spec: WindowTableSpec) -> None:
        super().__init__(context, spec)
        self._sessions = context.state.table("sessions", Types.PICKLED_BYTE_ARRAY())
        self._timers = Timers(context.state, "processing" if spec.window.processing else "event")

    def on_batch(self, batch: Batch, side: int) -> None:
        """Let each row open, extend or merge sessions."""
        window = self._spec.window
        rows, row_kinds = read_rows_with_kinds(batch, self._spec.input)
        times = self._times(batch.array()).tolist()
        for row, row_kind, time in zip(rows, row_kinds, times, strict=True):
            key = get_key(row, window.partition)
            stored = self._sessions.get(None, key)
            sessions: list[list[Any]] = [] if stored is ABSENT else stored
            merged: list[Any] = [time, time + window.size, [(row_kind, row)]]
            kept, absorbed = [], []
            for session in sessions:
                if session[0] <= merged[1] and merged[0] <= session[1]:
                    absorbed.append(session)
                    merged = [min(session[0], merged[0]), max(session[1], merged[1]), session[2] + merged[2]]
                else:
                    kept.append(session)
            if not window.processing and self.watermark >= self._to_utc(merged[1]) - 1:
                self.context.metrics.count(LATE_COUNT)  # late: there is no open session that it belongs to
                continue
            for session in absorbed:
                self._timers.delete(None, key, self._to_utc(session[1]) - 1)
            kept.append(merged)
            for session in kept:
                self._timers.register(None, key, self._to_utc(session[1]) - 1)
            self._sessions.put(None, key, kept)

    def _to_utc(self, local: int) -> int:
        return timestamps.to_utc_millis(local, self.zone) if self._zoned else local

    def begin_epoch(self) -> None:
        """Emit the sessions that processing time has passed."""
        super().begin_epoch()
        if self._spec.window.processing:
            self._close(self.context.now)

    def next_timer(self) -> int | None:
        """Return when the next session ends, for processing time."""
        return self._timers.next() if self._spec.window.processing else None

    def on_watermark(self, watermark: int) -> None:
        """Emit the sessions that end before the watermark."""
        if not self._spec.window.processing or watermark == MAX_WATERMARK:
            self._close(watermark)
        Operator.on_watermark(self, watermark)

    def _close(self, until: int) -> None:
        for _, _, key in self._timers.due(until):
            stored = self._sessions.get(None, key)
            if stored is ABSENT:
                continue
            ended = sorted((s for s in stored if self._to_utc(s[1]) - 1 <= until), key=lambda s: (s[0], s[1]))
            open_sessions = [s for s in stored if self._to_utc(s[1]) - 1 > until]
            self._sessions.put(None, key, open_sessions or ABSENT)
            for start, end, rows in ended:
                bounds = (timestamps.to_timestamp(start), timestamps.to_timestamp(end))
                time = timestamps.to_timestamp_type(self._to_utc(end) - 1, self.output.types[-1])
                for row_kind, row in rows:
                    self.put(row_kind, (*row, *bounds, time))
        self.flush()


@dataclass(frozen=True)
class WindowAggregateSpec(SqlOperatorSpec):
    """Aggregates by window and keys, emitted when the window ends.

    `keys` are the window columns, of which `end` is the window's end, and `others`. With `partial`, the input rows are
    partial aggregates: the keys, then the partial columns; `input` and the column indexes describe the rows before the
    local aggregate."""

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
        """Return whether the operator works on columns."""
        return not self.retracts and can_aggregate(self.calls, [self.input.types[i] for i in self.keys])

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns,) = plan.inputs
        return StateTraits(
            {
                "key": format_columns(self.others, columns, self.input),
                "window": columns[self.end],
                "aggregates": ", ".join(format_call(call, columns) for call in self.calls),
                "retracts": format_flag(self.retracts),
                "zone": self.zone if self.zoned or self.processing else "",
            }
        )

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column."""
        (columns,) = plan.inputs
        return [*(columns[i] for i in self.keys), *(format_call(call, columns) for call in self.calls)]

    def kept_columns(self, plan: PlanContext, side: int) -> Mapping[int, tuple[int, ...]]:
        """Return the indexes of input columns in the output."""
        return map_same_columns(len(self.keys)) if self.partial else map_keys_first(self.keys)

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator, the columnar one if possible."""
        if self.columnar:
            return ColumnarWindowAggregateOperator(context, self)
        return WindowAggregateOperator(context, self)


class WindowAggregateOperator(TableOperator):
    """State: by window (the namespace) and key, [row count, accumulators, key columns]. Memory: the open windows."""

    def __init__(self, context: OperatorContext, spec: WindowAggregateSpec) -> None:
        super().__init__(context, spec.output, spec.zone, spec)
        self._spec = spec
        self._functions = [create_aggregation(call, retracts=spec.retracts) for call in spec.calls]
        self._table = context.state.table("windows", Types.PICKLED_BYTE_ARRAY())

    def _compute_max_timestamp(self, row: tuple[Any, ...]) -> int:
        """Return the maximum timestamp of a row's window."""
        end = timestamps.to_millis(row[self._spec.end], t.TimestampType(3))
        return (timestamps.to_utc_millis(end, self.zone) if self._spec.zoned or self._spec.processing else end) - 1

    def on_batch(self, batch: Batch, side: int) -> None:
        """Add rows to the groups of their windows."""
        spec, watermark = self._spec, self.watermark
        open_windows = read_open_window_ends(self.context, self._table)
        known_windows = set(open_windows)
        rows, row_kinds = read_rows_with_kinds(batch, spec.input)
        late = np.zeros(len(rows), dtype=bool)
        for row_index, (row, row_kind) in enumerate(zip(rows, row_kinds, strict=True)):
            max_timestamp = self._compute_max_timestamp(row)
            if not spec.processing and max_timestamp <= watermark:
                late[row_index] = True
                continue
            if max_timestamp not in known_windows:
                known_windows.add(max_timestamp)
                heapq.heappush(open_windows, max_timestamp)
            key = get_key(row, spec.others)
            group = self._table.get(max_timestamp, key)
            if group is ABSENT:
                prefix = tuple(row[i] for i in spec.keys)
                group = [0, [function.create() for function in self._functions], prefix]
            is_insert = row_kind in (INSERT, UPDATE_AFTER)
            group[0] += 1 if is_insert else -1
            for function, call, acc in zip(self._functions, spec.calls, group[1], strict=True):
                if call.filter is not None and row[call.filter] is not True:
                    continue
                values = tuple([row[i] for i in call.args])
                if is_insert:
                    function.add(acc, values)
                else:
                    function.retract(acc, values)
            self._table.put(max_timestamp, key, group)
        if late.any():
            ends = timestamps.read_column_millis(batch.array().field(spec.end))
            self.context.metrics.count(LATE_COUNT, count_dropped_rows(ends, late, spec.window))

    def begin_epoch(self) -> None:
        """Fire windows that processing time has passed."""
        super().begin_epoch()
        if self._spec.processing:
            self._fire(self.context.now)

    def next_timer(self) -> int | None:
        """Return the maximum timestamp of the next window, for processing time."""
        open_windows = read_open_window_ends(self.context, self._table)
        return open_windows[0] if self._spec.processing and open_windows else None

    def on_watermark(self, watermark: int) -> None:
        """Fire windows that event time has passed; at the end of the input, all of them."""
        if not self._spec.processing or watermark == MAX_WATERMARK:
            self._fire(watermark)
        super().on_watermark(watermark)

    def _fire(self, until: int) -> None:
        open_windows = read_open_window_ends(self.context, self._table)
        while open_windows and open_windows[0] <= until:
            max_timestamp = heapq.heappop(open_windows)
            for _, group in list(self._table.scan(max_timestamp)):
                if group[0] > 0:
                    values = [f.value(a) for f, a in zip(self._functions, group[1], strict=True)]
                    self.put(INSERT, (*group[2], *values))
            self._table.clear_namespace(max_timestamp)
        self.flush()
