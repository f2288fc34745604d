"""Process functions, with state and timers.

Promises: Flink's order: processing-time timers at the start of the epoch, records, then event-time timers with the
watermark; a timer sees the new watermark; results of an event-time timer carry its time, those of the others none.
Does not know: windows, joins; they have operators of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.event_time.timers import TimeDomain
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from millstream.runtime import rowwise
from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.runtime.context import Call, KeyedTimerService, TimeOnly
from millstream.runtime.keys import KeySelection
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.operators.map import FunctionOperator
from millstream.runtime.sorted_input import SortedUnit


@dataclass(frozen=True)
class ProcessSpec(OperatorSpec):
    """A process function of one or two inputs; `keys` has one selection per input if they are keyed."""

    function: ProcessFunction | KeyedProcessFunction | CoProcessFunction | KeyedCoProcessFunction
    keys: tuple[KeySelection, ...] = ()

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator, keyed or not."""
        if self.keys:
            return KeyedProcessOperator(context, self.function, self.keys)
        return ProcessOperator(context, self.function)


class ProcessOperator(FunctionOperator):
    """A process function on a stream without keys."""

    def __init__(self, context: OperatorContext, function: Any) -> None:
        super().__init__(context, function, keyed=False)
        self._call = Call(context.scope, TimeOnly(context))
        self._methods = _methods(function)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Process every record."""
        rowwise.process_rows(self.context, self._methods[side], batch, self._call)


class TimedOperator(FunctionOperator):
    """An operator whose function has timers by key."""

    def __init__(self, context: OperatorContext, function: Any) -> None:
        super().__init__(context, function, keyed=True)
        self.timers = KeyedTimerService(context, context.scope)
        self.call = Call(context.scope, self.timers)

    def begin_epoch(self) -> None:
        """Fire the processing-time timers that are due."""
        self._fire(TimeDomain.PROCESSING_TIME, self.timers.processing.due(self.context.now))

    def on_watermark(self, watermark: int) -> None:
        """Fire the event-time timers that are due, then pass the watermark on."""
        self.context.memory.watermark = watermark
        self._fire(TimeDomain.EVENT_TIME, self.timers.event.due(watermark))
        super().on_watermark(watermark)

    def finish_keys(self) -> None:
        """Fire all timers of the keys that end, those of processing time last."""
        super().finish_keys()
        self._fire(TimeDomain.PROCESSING_TIME, self.timers.processing.due(MAX_WATERMARK))

    def _fire(self, domain: TimeDomain, due: Any) -> None:
        collector = rowwise.Collector(self.context)
        self.call.domain = domain
        fired = 0
        for time, _, key in due:
            fired += 1
            self.context.scope.key = key
            self.call.time = time
            stamp = time if domain is TimeDomain.EVENT_TIME else NO_TIMESTAMP
            rowwise.call_user_code(self.context, self._timer, collector, time, stamp, key=key)
        self.call.domain = None
        if fired:
            self.context.metrics.count("numFiredTimers", fired)
        collector.flush()

    def _timer(self, collector: rowwise.Collector, time: int, stamp: int) -> None:
        function: Any = self.function
        collector.take(function.on_timer(time, self.call), stamp)

    def next_timer(self) -> int | None:
        """Return the time of the next processing-time timer."""
        return self.timers.processing.next()


class KeyedProcessOperator(TimedOperator):
    """A process function on one or two keyed streams."""

    def __init__(self, context: OperatorContext, function: Any, keys: tuple[KeySelection, ...]) -> None:
        super().__init__(context, function)
        self._keys = keys
        self._methods = _methods(function)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Process every record in the scope of its key."""
        keys = self._keys[side].keys(batch, self.context.name)
        rowwise.process_keyed_rows(self.context, self._methods[side], batch, keys, self.call)

    def on_sorted(self, unit: SortedUnit) -> None:
        """Process records of both inputs in their sorted order."""
        if unit.sides is None:
            self.on_batch(unit.batch, unit.side)
            return
        assert unit.batch.keys is not None
        method = rowwise.dispatch_by_side(self._methods, unit.sides)
        rowwise.process_keyed_rows(self.context, method, unit.batch, unit.batch.keys, self.call)


def _methods(function: Any) -> tuple[Any, ...]:
    if hasattr(function, "process_element1"):
        return function.process_element1, function.process_element2
    return (function.process_element,)


@dataclass(frozen=True)
class CoElementwiseSpec(OperatorSpec):
    """map or flat_map of two connected streams."""

    function: CoMapFunction | CoFlatMapFunction
    keys: tuple[KeySelection, ...] = ()

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return CoElementwiseOperator(context, self.function, self.keys)


class CoElementwiseOperator(FunctionOperator):
    """CoMapFunction and CoFlatMapFunction; results of None are not emitted, as in PyFlink."""

    def __init__(self, context: OperatorContext, function: Any, keys: tuple[KeySelection, ...]) -> None:
        super().__init__(context, function, keyed=bool(keys))
        self._keys = keys
        if isinstance(function, CoMapFunction):
            self._methods = (_single(function.map1), _single(function.map2))
        else:
            self._methods = (function.flat_map1, function.flat_map2)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Call the method of the side for every record."""
        name, output_type, method = self.context.name, self.context.output_type, self._methods[side]
        if self._keys:
            method = rowwise.keyed_flat_call(self.context, method, self._keys[side].keys(batch, name))
        rows, counts = rowwise.flat_map_rows(name, method, batch.rows(), self.context.copier())
        times = rowwise.repeat_timestamps(batch.timestamps, counts)
        self.out.emit(Batch(output_type, rows=rowwise.conform(name, output_type, rows), timestamps=times))


def _single(method: Any) -> Any:
    def call(value: Any) -> tuple[Any, ...]:
        result = method(value)
        return () if result is None else (result,)

    return call
