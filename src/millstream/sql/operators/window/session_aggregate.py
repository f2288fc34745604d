"""Session window aggregates, emitted when the gap has passed.

Promises: the results of SessionOperator followed by an aggregate, for aggregates that can be computed on columns. Rows
are aggregated when they arrive, and not kept.
Does not know: processing time, time zones, retractions.

The rows of an epoch are merged into sessions and aggregated on columns; these are then merged with the open sessions of
their keys in state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.runtime.operator import Operator, OperatorContext
from millstream.runtime.operators.window import LATE_COUNT
from millstream.runtime.timers import Timers
from millstream.sql.columns import SqlTypeInfo, arrow_type, combine_columns, to_internal_values
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.expressions.stable_text import format_call, format_columns
from millstream.sql.functions.aggregates import create_aggregation
from millstream.sql.operators.aggregate.distinct_pairs import aggregate_codes
from millstream.sql.operators.base import read_keys
from millstream.sql.operators.epochs import EpochOperator
from millstream.sql.operators.spec import ColumnTexts, PlanContext, SqlOperatorSpec, StateTraits, map_keys_first
from millstream.sql.operators.window.local_sessions import SessionParts, Sessions
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types

_BITS = 64


@dataclass(frozen=True)
class SessionAggregateSpec(SqlOperatorSpec):
    """Aggregates by sessions of the columns `partition`.

    `keys` are columns of the input; indexes after its last column are the start, the end and the time of the session.
    With `partial`, the input rows are sessions of LocalSessionAggregateSpec; `input` and the column indexes describe
    the rows before the local aggregate."""

    input: t.RowType
    output: t.RowType
    keys: tuple[int, ...]
    partition: tuple[int, ...]
    time: int
    gap: int
    calls: tuple[AggregateCall, ...]
    partial: bool = False

    def _format_window(self, columns: ColumnTexts) -> str:
        return f"SESSION({columns[self.time]}, {self.gap})"

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns,) = plan.inputs
        return StateTraits(
            {
                "key": format_columns(self.partition, columns, self.input),
                "window": self._format_window(columns),
                "aggregates": ", ".join(format_call(call, columns) for call in self.calls),
            }
        )

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column."""
        (columns,) = plan.inputs
        window, width = self._format_window(columns), len(columns)
        keys = [columns[i] if i < width else f"{window}.{i - width}" for i in self.keys]
        return [*keys, *(format_call(call, columns) for call in self.calls)]

    def kept_columns(self, plan: PlanContext, side: int) -> Mapping[int, tuple[int, ...]]:
        """Return the indexes of input columns in the output."""
        if not self.partial:
            return map_keys_first(self.keys)
        return {self.partition.index(key): (i,) for i, key in enumerate(self.keys) if key in self.partition}

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return SessionAggregateOperator(context, self)


class SessionAggregateOperator(EpochOperator):
    """State: by key, open sessions as (start, end, partial aggregates); a timer at each end."""

    def __init__(self, context: OperatorContext, spec: SessionAggregateSpec) -> None:
        super().__init__(context, spec.output)
        self._spec = spec
        self._sessions = SessionParts(context.name, spec.input, spec.partition, spec.time, spec.gap, spec.calls)
        self._partials = aggregate_codes(spec.calls, spec.input)
        self._functions = [create_aggregation(call, retracts=False) for call in spec.calls]
        self._part_types = self._partials.part_types()
        parts = [SqlTypeInfo(data_type, internal=True) for data_type in self._part_types]
        session = Types.TUPLE([Types.LONG(), Types.LONG(), *parts])
        self._table = context.state.table("sessions/parts", Types.LIST(session))
        self._timers = Timers(context.state, "event")

    def on_watermark(self, watermark: int) -> None:
        """Process the buffer, then emit the sessions that end before the watermark."""
        self._process_buffer()
        self._close(watermark)
        super().on_watermark(watermark)

    def _process(self, array: pa.Array) -> None:
        """Merge rows into sessions, and these with the open ones."""
        sessions = self._sessions.merge_sessions(array) if self._spec.partial else self._sessions.assign_sessions(array)
        parts = [
            to_internal_values(part, data_type)
            for part, data_type in zip(sessions.parts, self._part_types, strict=False)
        ]
        rows = self._sessions.rows(sessions).tolist()
        keys = self._keys(sessions)
        for key, count, *session in zip(
            keys, rows, sessions.starts.tolist(), sessions.ends.tolist(), *parts, strict=True
        ):
            self._add(key, tuple(session), count)

    def _keys(self, sessions: Sessions) -> list[Any]:
        key_types = [self._spec.input.types[i] for i in self._spec.partition]
        return read_keys(sessions.keys, key_types) if key_types else [None] * len(sessions.starts)

    def _add(self, key: Any, session: tuple[Any, ...], rows: int) -> None:
        stored = self._table.get(None, key)
        kept: list[tuple[Any, ...]] = []
        absorbed: list[tuple[Any, ...]] = []
        for open_session in () if stored is ABSENT else stored:
            if open_session[0] <= session[1] and session[0] <= open_session[1]:
                absorbed.append(open_session)
                session = self._merge(open_session, session)
            else:
                kept.append(open_session)
        if session[1] - 1 <= self.watermark:  # late: there is no open session that it belongs to
            self.context.metrics.count(LATE_COUNT, rows)
            return
        for open_session in absorbed:
            if open_session[1] != session[1]:
                self._timers.delete(None, key, open_session[1] - 1)
        self._timers.register(None, key, session[1] - 1)
        self._table.put(None, key, [*kept, session])

    def _merge(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        """Merge two sessions."""
        parts = []
        for (_, _, function), data_type, a, b in zip(
            self._partials.parts, self._part_types, left[2:], right[2:], strict=True
        ):
            if a is None or b is None:
                parts.append(b if a is None else a)
            elif function in ("min", "max"):
                parts.append(min(a, b) if function == "min" else max(a, b))
            else:
                parts.append(_wrap_to_64_bits(a + b) if isinstance(data_type, t.BigIntType) else a + b)
        return (min(left[0], right[0]), max(left[1], right[1]), *parts)

    def _close(self, until: int) -> None:
        keys: list[Any] = []
        ended_sessions: list[tuple[Any, ...]] = []
        for time, _, key in self._timers.due(until):
            stored = self._table.get(None, key)
            if stored is ABSENT:
                continue
            ended = [session for session in stored if session[1] - 1 <= time]
            self._table.put(None, key, [session for session in stored if session[1] - 1 > time] or ABSENT)
            keys += [key] * len(ended)
            ended_sessions += ended
        if ended_sessions:
            self._emit(keys, ended_sessions)

    def _emit(self, keys: list[Any], ended: Sequence[tuple[Any, ...]]) -> None:
        spec, width = self._spec, len(self._spec.input)
        columns = list(zip(*ended, strict=True))
        ends = pa.array(columns[1], pa.int64())
        bounds = (pa.array(columns[0], pa.int64()), ends, pc.subtract(ends, 1))
        parts = [
            pa.array(values, arrow_type(data_type))
            for values, data_type in zip(columns[2:], self._part_types, strict=True)
        ]
        key_columns: list[pa.Array] = []
        for key_index, data_type in zip(spec.keys, spec.output.types, strict=False):
            if key_index >= width:
                bound = bounds[key_index - width].cast(pa.timestamp("ms"))
                key_columns.append(bound if bound.type == arrow_type(data_type) else bound.cast(arrow_type(data_type)))
                continue
            index = spec.partition.index(key_index)
            values = keys if len(spec.partition) == 1 else [key[index] for key in keys]
            key_columns.append(pa.array(values, arrow_type(data_type)))
        results = self._partials.finish(parts, self._functions)
        self.emit_array(combine_columns([*key_columns, *results], None, self.output, len(ended)))


def _wrap_to_64_bits(number: int) -> int:
    """Let a sum overflow as 64-bit integers do."""
    return (number + (1 << (_BITS - 1))) % (1 << _BITS) - (1 << (_BITS - 1))
