"""map, filter, flat_map: one record in, one, none or many out.

Promises: order and timestamps are kept; on a keyed stream the function may use keyed state.
Does not know: what the functions do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.functions import FilterFunction, FlatMapFunction, IterationListener, MapFunction
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.checkpointed import Functions
from millstream.runtime.iteration_listeners import Listener
from millstream.runtime.keys import KeySelection
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec


class FunctionOperator(Operator):
    """An operator with one or more user functions: opens and closes them, and takes their snapshots."""

    def __init__(self, context: OperatorContext, function: Any, *other_functions: Any, keyed: bool) -> None:
        super().__init__(context)
        self.function = function
        self._functions = Functions(context, [function, *other_functions], keyed=keyed)
        self._listener = Listener(context, function) if isinstance(function, IterationListener) else None

    def open(self) -> None:
        """Open the functions with their runtime context."""
        self._functions.open()

    def initialize(self) -> None:
        """Initialize functions that keep operator state from the state before the epoch."""
        self._functions.initialize()

    def end_round(self) -> None:
        """Notify a function that listens to an iteration that a round has ended."""
        if self._listener is not None:
            self._listener.end_round()

    def on_watermark(self, watermark: int) -> None:
        """Notify a function that listens to an iteration that it terminates, then pass the watermark on."""
        if watermark == MAX_WATERMARK and self._listener is not None:
            self._listener.terminate()
        super().on_watermark(watermark)

    def snapshot(self) -> None:
        """Call the functions that keep operator state for their snapshot."""
        self._functions.snapshot()

    def close(self) -> None:
        """Close the functions."""
        self._functions.close()


@dataclass(frozen=True)
class ElementwiseSpec(OperatorSpec):
    """map, filter or flat_map; `key` when the stream is keyed."""

    function: MapFunction | FilterFunction | FlatMapFunction
    key: KeySelection | None = None

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator for the type of the function."""
        if isinstance(self.function, MapFunction):
            return MapOperator(context, self.function, self.key)
        if isinstance(self.function, FilterFunction):
            return FilterOperator(context, self.function, self.key)
        return FlatMapOperator(context, self.function, self.key)


class _Elementwise(FunctionOperator):
    def __init__(self, context: OperatorContext, function: Any, key: KeySelection | None) -> None:
        super().__init__(context, function, keyed=key is not None)
        self._key = key

    def _calls(self, call: Any, batch: Batch, keyed_call: Callable[..., Any] = rowwise.keyed_call) -> Any:
        """Return `call` with the scope moved to the key of each record."""
        if self._key is None:
            return call
        return keyed_call(self.context, call, self._key.keys(batch, self.context.name))


class MapOperator(_Elementwise):
    """Emits one record for each record."""

    def on_batch(self, batch: Batch, side: int) -> None:
        """Map every record."""
        name, output_type = self.context.name, self.context.output_type
        call = self._calls(self.function.map, batch)
        rows = rowwise.map_rows(name, call, batch.rows(), self.context.copier())
        self.out.emit(batch.with_rows(output_type, rowwise.conform(name, output_type, rows)))


class FilterOperator(_Elementwise):
    """Keeps the records for which the function returns true."""

    def on_batch(self, batch: Batch, side: int) -> None:
        """Emit the records for which the function returns true."""
        name = self.context.name
        results = rowwise.map_rows(name, self._calls(self.function.filter, batch), batch.rows())
        keep = np.fromiter(map(bool, results), dtype=bool, count=len(results))
        self.out.emit(batch if keep.all() else batch.take(np.flatnonzero(keep)))


class FlatMapOperator(_Elementwise):
    """Emits any number of records for each record."""

    def on_batch(self, batch: Batch, side: int) -> None:
        """Emit all results, each with its record's timestamp."""
        name, output_type = self.context.name, self.context.output_type
        call = self._calls(self.function.flat_map, batch, rowwise.keyed_flat_call)
        rows, counts = rowwise.flat_map_rows(name, call, batch.rows(), self.context.copier())
        times = rowwise.repeat_timestamps(batch.timestamps, counts)
        self.out.emit(Batch(output_type, rows=rowwise.conform(name, output_type, rows), timestamps=times))
