"""Interval join: each record of one keyed stream meets those of the other whose time is near.

Promises: Flink's semantics: left l and right r of one key meet when l + lower <= r <= l + upper, bounds included; a
result has the later of both times; a record behind the watermark is late: counted, and sent to its side's output.
Does not know: windows.

Each key has two lists, sorted by time; a record is kept until the watermark reaches the last time it can be met at."""

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
    """A record without a timestamp came to an interval join."""

    def __init__(self) -> None:
        super().__init__(
            "records without a timestamp cannot be joined by time", hint="call assign_timestamps_and_watermarks first"
        )


@dataclass(frozen=True)
class IntervalJoinSpec(OperatorSpec):
    """An interval join; both bounds are included."""

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
    """The context of one pair."""

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
    """State: by side and key, (time, record) in order of time, and a timer at the time the first of them goes."""

    def __init__(self, context: OperatorContext, spec: IntervalJoinSpec) -> None:
        super().__init__(context, spec.function, keyed=True)
        self._spec = spec
        self._timers = Timers(context.state, "event")
        self._tables = [
            context.state.table(f"join/{side}", Types.LIST(Types.TUPLE([Types.LONG(), kind])))
            for side, kind in zip(_SIDES, spec.types, strict=True)
        ]
        # what a record of each side can meet on the other one, relative to its time
        self._reach = ((spec.lower, spec.upper), (-spec.upper, -spec.lower))
        self._keep = tuple(max(upper, 0) for _, upper in self._reach)
        self._call = _Call()
        self._side = 0
        self._collector = rowwise.Collector(context.name)

    def begin_epoch(self) -> None:
        """Nothing has been collected."""
        self._collector = rowwise.Collector(self.context.name)  # an attempt that failed may have left results

    def on_batch(self, batch: Batch, side: int) -> None:
        """Join every record with those of the other side that are there already."""
        keys = self._spec.keys[side].keys(batch, self.context.name)
        self._side = side
        rowwise.each_keyed(self.context, self._element, batch, keys, self.context.scope)
        self._collector.flush(self.context)

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
        others = self._tables[1 - side].get(None, key)
        if others is ABSENT:
            return
        lower, upper = self._reach[side]
        first = bisect_left(others, time + lower, key=_time_of)
        for other_time, other in others[first : bisect_right(others, time + upper, key=_time_of)]:
            self._call.times = (time, other_time) if side == 0 else (other_time, time)
            pair = (value, other) if side == 0 else (other, value)
            results = self._spec.function.process_element(*pair, self._call)
            self._collector.take(results, max(time, other_time))

    def _add(self, side: int, key: Any, time: int, value: Any) -> None:
        table = self._tables[side]
        found = table.get(None, key)
        if found is ABSENT:
            table.put(None, key, [(time, value)])
            self._timers.register(_SIDES[side], key, self._last(side, time))
            return
        if time < found[0][0]:
            self._timers.delete(_SIDES[side], key, self._last(side, found[0][0]))
            self._timers.register(_SIDES[side], key, self._last(side, time))
        found.insert(bisect_right(found, time, key=_time_of), (time, value))
        table.put(None, key, found)

    def on_watermark(self, watermark: int) -> None:
        """Forget what can meet nothing any more, then pass the watermark on."""
        self._forget(self._timers.due(watermark), watermark)
        super().on_watermark(watermark)

    def _forget(self, due: Iterable[tuple[int, Any, Any]], watermark: int) -> None:
        for _, name, key in due:
            side = _SIDES.index(name)
            table = self._tables[side]
            found = table.get(None, key)
            gone = bisect_right(found, watermark, key=lambda entry, side=side: self._last(side, entry[0]))  # type: ignore[misc]
            left = found[gone:]
            table.put(None, key, left or ABSENT)
            if left:
                self._timers.register(name, key, self._last(side, left[0][0]))

    def _last(self, side: int, time: int) -> int:
        """The watermark up to which a record of that time is kept."""
        return min(time + self._keep[side], MAX_WATERMARK)
