"""Aggregates of sessions: what a key does without a pause, told when the pause is long enough.

Promises: the results of SessionOperator and the aggregate behind it, for aggregates that columns can be added up for.
Rows of a session are added up as they come, and not kept.
Does not know: processing time, zones, rows that are taken back.

The rows of an epoch are put into sessions and added up on columns; each of those then meets the open sessions of its
key in state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.runtime.operator import Operator, OperatorContext
from millstream.runtime.operators.window import LATE_COUNT
from millstream.runtime.timers import Timers
from millstream.sql.columns import SqlTypeInfo, arrow_type, internal_values, struct_of
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.expressions.stable_text import call_text, columns_text
from millstream.sql.functions.aggregates import aggregation
from millstream.sql.operators.aggregate.distinct_pairs import coded_partials
from millstream.sql.operators.base import key_values
from millstream.sql.operators.epochs import EpochOperator
from millstream.sql.operators.spec import ColumnTexts, PlanContext, SqlOperatorSpec, StateTraits, keys_first
from millstream.sql.operators.window.local_sessions import SessionParts, Sessions
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types

_BITS = 64


@dataclass(frozen=True)
class SessionAggregateSpec(SqlOperatorSpec):
    """Aggregates by sessions of the columns `partition`. `keys` are columns of the input, or behind its last one the
    start, the end and the time of the session.

    With `partial`, rows are sessions, as LocalSessionAggregateSpec makes them; `input` and places are those before
    that."""

    input: t.RowType
    output: t.RowType
    keys: tuple[int, ...]
    partition: tuple[int, ...]
    time: int
    gap: int
    calls: tuple[AggregateCall, ...]
    partial: bool = False

    def _window_text(self, columns: ColumnTexts) -> str:
        return f"SESSION({columns[self.time]}, {self.gap})"

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns,) = plan.inputs
        return StateTraits(
            {
                "key": columns_text(self.partition, columns, self.input),
                "window": self._window_text(columns),
                "aggregates": ", ".join(call_text(call, columns) for call in self.calls),
            }
        )

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column."""
        (columns,) = plan.inputs
        window, width = self._window_text(columns), len(columns)
        keys = [columns[i] if i < width else f"{window}.{i - width}" for i in self.keys]
        return [*keys, *(call_text(call, columns) for call in self.calls)]

    def kept_columns(self, plan: PlanContext, side: int) -> Mapping[int, tuple[int, ...]]:
        """Return the indexes of input columns in the output."""
        if not self.partial:
            return keys_first(self.keys)
        return {self.partition.index(key): (i,) for i, key in enumerate(self.keys) if key in self.partition}

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return SessionAggregateOperator(context, self)


class SessionAggregateOperator(EpochOperator):
    """State: by key, open sessions as (start, end, parts); a timer at each end."""

    def __init__(self, context: OperatorContext, spec: SessionAggregateSpec) -> None:
        super().__init__(context, spec.output)
        self._spec = spec
        self._sessions = SessionParts(context.name, spec.input, spec.partition, spec.time, spec.gap, spec.calls)
        self._partials = coded_partials(spec.calls, spec.input)
        self._functions = [aggregation(call, retracts=False) for call in spec.calls]
        self._part_kinds = self._partials.part_types()
        parts = [SqlTypeInfo(kind, internal=True) for kind in self._part_kinds]
        session = Types.TUPLE([Types.LONG(), Types.LONG(), *parts])
        self._table = context.state.table("sessions/parts", Types.LIST(session))
        self._timers = Timers(context.state, "event")

    def on_watermark(self, watermark: int) -> None:
        """Tell the sessions that are over."""
        self._take_waiting()
        self._close(watermark)
        super().on_watermark(watermark)

    def _take(self, array: pa.Array) -> None:
        """Put rows into sessions of their own, and these together with those that are open."""
        found = self._sessions.of_sessions(array) if self._spec.partial else self._sessions.of_rows(array)
        parts = [internal_values(part, kind) for part, kind in zip(found.parts, self._part_kinds, strict=False)]
        rows = self._sessions.rows(found).tolist()
        keys = self._keys(found)
        for key, count, *session in zip(keys, rows, found.starts.tolist(), found.ends.tolist(), *parts, strict=True):
            self._add(key, tuple(session), count)

    def _keys(self, found: Sessions) -> list[Any]:
        kinds = [self._spec.input.types[i] for i in self._spec.partition]
        return key_values(found.keys, kinds) if kinds else [None] * len(found.starts)

    def _add(self, key: Any, session: tuple[Any, ...], rows: int) -> None:
        stored = self._table.get(None, key)
        kept: list[tuple[Any, ...]] = []
        met: list[tuple[Any, ...]] = []
        for other in () if stored is ABSENT else stored:
            if other[0] <= session[1] and session[0] <= other[1]:
                met.append(other)
                session = self._both(other, session)
            else:
                kept.append(other)
        if session[1] - 1 <= self.watermark:  # and no session that is still open takes it in
            self.context.metrics.count(LATE_COUNT, rows)
            return
        for other in met:
            if other[1] != session[1]:
                self._timers.delete(None, key, other[1] - 1)
        self._timers.register(None, key, session[1] - 1)
        self._table.put(None, key, [*kept, session])

    def _both(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        """Two sessions as one."""
        parts = []
        for (_, _, how), kind, a, b in zip(self._partials.parts, self._part_kinds, one[2:], other[2:], strict=True):
            if a is None or b is None:
                parts.append(b if a is None else a)
            elif how in ("min", "max"):
                parts.append(min(a, b) if how == "min" else max(a, b))
            else:
                parts.append(_wrapped(a + b) if isinstance(kind, t.BigIntType) else a + b)
        return (min(one[0], other[0]), max(one[1], other[1]), *parts)

    def _close(self, until: int) -> None:
        keys: list[Any] = []
        over: list[tuple[Any, ...]] = []
        for time, _, key in self._timers.due(until):
            stored = self._table.get(None, key)
            if stored is ABSENT:
                continue
            ended = [session for session in stored if session[1] - 1 <= time]
            self._table.put(None, key, [session for session in stored if session[1] - 1 > time] or ABSENT)
            keys += [key] * len(ended)
            over += ended
        if over:
            self._emit(keys, over)

    def _emit(self, keys: list[Any], over: Sequence[tuple[Any, ...]]) -> None:
        spec, width = self._spec, len(self._spec.input)
        columns = list(zip(*over, strict=True))
        ends = pa.array(columns[1], pa.int64())
        edges = (pa.array(columns[0], pa.int64()), ends, pc.subtract(ends, 1))
        parts = [pa.array(values, arrow_type(kind)) for values, kind in zip(columns[2:], self._part_kinds, strict=True)]
        made: list[pa.Array] = []
        for place, wanted in zip(spec.keys, spec.output.types, strict=False):
            if place >= width:
                edge = edges[place - width].cast(pa.timestamp("ms"))
                made.append(edge if edge.type == arrow_type(wanted) else edge.cast(arrow_type(wanted)))
                continue
            which = spec.partition.index(place)
            values = keys if len(spec.partition) == 1 else [key[which] for key in keys]
            made.append(pa.array(values, arrow_type(wanted)))
        results = self._partials.finished(parts, self._functions)
        self.emit_array(struct_of([*made, *results], None, self.output, len(over)))


def _wrapped(number: int) -> int:
    """A sum as 64 bits hold it."""
    return (number + (1 << (_BITS - 1))) % (1 << _BITS) - (1 << (_BITS - 1))
