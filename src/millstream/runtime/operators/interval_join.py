"""Interval join: joins records of two keyed streams whose timestamps differ by a bounded interval.

Promises: Flink's semantics: a left record with time l and a right record with time r of the same key are joined if
l + lower <= r <= l + upper. A result has the later of both times. A record behind the watermark is late: it is counted,
and emitted to the side output of its side.
Does not know: windows.

Each key has two lists, sorted by time; a record is kept until the watermark reaches the last time at which it can be
joined."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from millstream.errors import UserError
from millstream.event_time.watermarks import MAX_WATERMARK, MIN_WATERMARK
from millstream.functions.join import JoinContext, ProcessJoinFunction
from millstream.runtime import rowwise
from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.runtime.keys import KeySelection
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.operators.map import FunctionOperator
from millstream.runtime.operators.window import LATE_COUNT
from millstream.runtime.timers import Timers
from millstream.state.store import ABSENT
from millstream.types.factory import TypeInformation, Types

_SIDES = ("left", "right")
_time_of = itemgetter(0)


class JoinNeedsTimestamps(UserError):
    """A record of an interval join has no timestamp."""

    def __init__(self) -> None:
        super().__init__(
            "records without a timestamp cannot be joined by time", hint="call assign_timestamps_and_watermarks first"
        )


@dataclass(frozen=True)
class IntervalJoinSpec(OperatorSpec):
    """An interval join; both bounds are inclusive."""

    function: ProcessJoinFunction
    keys: tuple[KeySelection, KeySelection]
    types: tuple[TypeInformation, TypeInformation]
    lower: int
    upper: int
    late_tags: tuple[str | None, str | None] = (None, None)

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return IntervalJoinOperator(context, self)


class _Call(JoinContext):
    """The context of the function for one pair."""

    __slots__ = ("times",)

    def __init__(self) -> None:
        self.times = (NO_TIMESTAMP, NO_TIMESTAMP)

    def get_left_timestamp(self) -> int:
        return self.times[0]

    def get_right_timestamp(self) -> int:
        return self.times[1]

    def get_timestamp(self) -> int:
        return max(self.times)


class IntervalJoinOperator(FunctionOperator):
    """State: by side and key, (time, record) in order of time, and a timer for the removal of the first record."""

    def __init__(self, context: OperatorContext, spec: IntervalJoinSpec) -> None:
        super().__init__(context, spec.function, keyed=True)
        self._spec = spec
        self._timers = Timers(context.state, "event")
        self._tables = [
            context.state.table(f"join/{side}", Types.LIST(Types.TUPLE([Types.LONG(), record_type])))
            for side, record_type in zip(_SIDES, spec.types, strict=True)
        ]
        # the interval of the other side, relative to the time of a record of each side
        self._reach = ((spec.lower, spec.upper), (-spec.upper, -spec.lower))
        self._keep = tuple(max(upper, 0) for _, upper in self._reach)
        self._call = _Call()
        self._side = 0
        self._collector = rowwise.Collector(context)

    def begin_epoch(self) -> None:
        """Discard results that a failed attempt may have left."""
        self._collector = rowwise.Collector(self.context)  # a failed attempt may have left results

    def on_batch(self, batch: Batch, side: int) -> None:
        """Join every record with the stored records of the other side."""
        keys = self._spec.keys[side].keys(batch, self.context.name)
        self._side = side
        rowwise.visit_keyed_rows(self.context, self._element, batch, keys, self.context.scope)
        self._collector.flush()

    def _element(self, value: Any, time: int) -> None:
        side, watermark = self._side, self.watermark
        if time == NO_TIMESTAMP:
            raise JoinNeedsTimestamps
        if watermark != MIN_WATERMARK and time < watermark:
            self.context.metrics.count(LATE_COUNT)
            tag = self._spec.late_tags[side]
            if tag is not None:
                self._collector.side(tag, value, time)
            return
        key = self.context.scope.key
        self._add(side, key, time, value)
        candidates = self._tables[1 - side].get(None, key)
        if candidates is ABSENT:
            return
        lower, upper = self._reach[side]
        first = bisect_left(candidates, time + lower, key=_time_of)
        for candidate_time, candidate in candidates[first : bisect_right(candidates, time + upper, key=_time_of)]:
            self._call.times = (time, candidate_time) if side == 0 else (candidate_time, time)
            pair = (value, candidate) if side == 0 else (candidate, value)
            results = self._spec.function.process_element(*pair, self._call)
            self._collector.take(results, max(time, candidate_time))

    def _add(self, side: int, key: Any, time: int, value: Any) -> None:
        table = self._tables[side]
        records = table.get(None, key)
        if records is ABSENT:
            table.put(None, key, [(time, value)])
            self._timers.register(_SIDES[side], key, self._removal_time(side, time))
            return
        if time < records[0][0]:
            self._timers.delete(_SIDES[side], key, self._removal_time(side, records[0][0]))
            self._timers.register(_SIDES[side], key, self._removal_time(side, time))
        records.insert(bisect_right(records, time, key=_time_of), (time, value))
        table.put(None, key, records)

    def on_watermark(self, watermark: int) -> None:
        """Remove records that can be joined no more, then pass the watermark on."""
        self._remove_expired(self._timers.due(watermark), watermark)
        super().on_watermark(watermark)

    def _remove_expired(self, due: Iterable[tuple[int, Any, Any]], watermark: int) -> None:
        for _, name, key in due:
            side = _SIDES.index(name)
            table = self._tables[side]
            records = table.get(None, key)
            expired = bisect_right(records, watermark, key=lambda entry, side=side: self._removal_time(side, entry[0]))  # type: ignore[misc]
            remaining = records[expired:]
            table.put(None, key, remaining or ABSENT)
            if remaining:
                self._timers.register(name, key, self._removal_time(side, remaining[0][0]))

    def _removal_time(self, side: int, time: int) -> int:
        """Return the watermark at which a record of this time is removed."""
        return min(time + self._keep[side], MAX_WATERMARK)
