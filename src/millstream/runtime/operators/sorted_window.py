"""Event-time windows of a batch job, evaluated once each on ranges of sorted records.

Promises: the results of the general window operator for the same windows, without state, timers or a protocol per
record, for keys whose records come in one unit; larger ones go through the general operator.
Does not know: triggers, evictors; windows that have any are evaluated by the general operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.functions import AggregateFunction, ReduceFunction
from millstream.runtime import rowwise
from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.operators.window import WindowOperator, WindowSpec
from millstream.runtime.sorted_input import SortedUnit
from millstream.runtime.sorted_runs import key_starts
from millstream.runtime.windows.sorted_ranges import Ranges, has_ranges, window_ranges
from millstream.windows.triggers import EventTimeTrigger
from millstream.windows.window import TimeWindow


def can_be_sorted(spec: WindowSpec) -> bool:
    """Whether each window fires once, at its end, and its records are a range of the sorted records."""
    return has_ranges(spec.assigner) and type(spec.trigger) is EventTimeTrigger and spec.evictor is None


@dataclass(frozen=True)
class SortedWindowSpec(OperatorSpec):
    """Windows over sorted records."""

    window: WindowSpec

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return SortedWindowOperator(context, self.window)


class SortedWindowOperator(WindowOperator):
    """Finds windows in columns of times, and calls functions with ranges of records."""

    def __init__(self, context: OperatorContext, spec: WindowSpec) -> None:
        super().__init__(context, spec)
        self._within_key = False
        self._function = spec.function

    def on_sorted(self, unit: SortedUnit) -> None:
        """Evaluate the windows of complete keys; a key that comes in several units is evaluated with state."""
        batch, times = unit.batch, unit.batch.timestamps
        has_complete_keys = unit.complete and not self._within_key
        self._within_key = not unit.complete
        if not has_complete_keys or times is None or (times == NO_TIMESTAMP).any():
            self.on_batch(batch, unit.side)
            return
        keys = self.spec.key.keys(batch, self.context.name)
        starts = key_starts(unit.hashes, keys)
        if starts is None:
            self.on_batch(batch, unit.side)
            return
        self.context.memory.watermark = MAX_WATERMARK
        self._evaluate_all(batch, keys, window_ranges(self.spec.assigner, times, starts))
        self.context.memory.watermark = None

    def _evaluate_all(self, batch: Batch, keys: list[Any], ranges: Ranges) -> None:
        spec, name = self.spec, self.context.name
        rows, starts, stops = batch.rows(), ranges.starts.tolist(), ranges.stops.tolist()
        function = spec.function
        match spec.fold:
            case ReduceFunction() as reduce:
                values = rowwise.fold_ranges(name, reduce.reduce, rows, starts, stops, keys)
            case AggregateFunction() as aggregate:
                values = rowwise.aggregate_ranges(name, aggregate, rows, starts, stops, keys)
            case None:
                values = rowwise.slice_ranges(rows, starts, stops)
        if function is None:
            output_type = self.context.output_type
            self.out.emit(
                Batch(output_type, rows=rowwise.conform(name, output_type, values), timestamps=ranges.closes - 1)
            )
            return
        owners = [keys[start] for start in starts]
        contents = values if spec.fold is None else rowwise.slice_ranges(values, range(len(values)), None)
        windows = list(map(TimeWindow, ranges.opens.tolist(), ranges.closes.tolist()))
        self.scope.now = self.context.now
        rowwise.visit_windows(self.context, self._call, zip(owners, windows, contents, strict=True))
        self._collector.flush()

    def _call(self, key: Any, window: TimeWindow, elements: list[Any]) -> None:
        self.scope.key = self.context.scope.key = key
        self.scope.namespace = self._calling.current = window
        self._collector.take(self._function(key, self._calling, elements), window.end - 1)
        if self._clear_window is not None:
            self._clear_window(self._calling)
