"""Local aggregation of windows before the exchange: a subtask sends one record for each key and pane.

A pane is the longest interval of time without a window boundary in it.

Promises: the windows downstream have the same results, if the function is associative. Partial results are sent before
each watermark and the end of the epoch, so late records are the same as without local aggregation.
Does not know: triggers, state."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.functions import AggregateFunction, ReduceFunction
from millstream.functions.aggregations import Aggregate, Aggregations, Max, Min, Sum
from millstream.runtime import rowwise
from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.runtime.keys import KeySelection
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.operators.map import FunctionOperator
from millstream.runtime.windows import columns
from millstream.windows.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows

_MAX_BUFFERED = 1 << 17  # keys or records in a batch job, where the only watermark is the last one

Fold = ReduceFunction | AggregateFunction
FixedWindows = TumblingEventTimeWindows | SlidingEventTimeWindows


def has_panes(assigner: object) -> bool:
    """Whether the windows of the assigner consist of panes that do not depend on other records."""
    return type(assigner) in (TumblingEventTimeWindows, SlidingEventTimeWindows)


def _pane_size(assigner: FixedWindows) -> int:
    return math.gcd(assigner.size, getattr(assigner, "slide", assigner.size))


class MergePartials(AggregateFunction):
    """Merges partial results (key, accumulator, number of records) into the result of the aggregation."""

    def __init__(self, fold: Fold) -> None:
        self.fold = fold

    def open(self, runtime_context: Any) -> None:
        """Open the function."""
        self.fold.open(runtime_context)

    def close(self) -> None:
        """Close the function."""
        self.fold.close()

    def create_accumulator(self) -> Any:
        """Return None: the first partial result becomes the accumulator."""
        return None

    def add(self, value: Any, accumulator: Any) -> Any:
        """Merge one more partial result."""
        return value[1] if accumulator is None else self.merge(accumulator, value[1])

    def get_result(self, accumulator: Any) -> Any:
        """Return the result of the function."""
        return self.fold.get_result(accumulator) if isinstance(self.fold, AggregateFunction) else accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Merge two accumulators."""
        if isinstance(self.fold, AggregateFunction):
            return self.fold.merge(acc_a, acc_b)
        return self.fold.reduce(acc_a, acc_b)


def count_records(partial: Any) -> int:
    """Return how many records a partial result has aggregated."""
    return int(partial[2])


@dataclass(frozen=True)
class LocalFoldSpec(OperatorSpec):
    """A local aggregation by key and pane; emits (key, accumulator, number of records) with the start time of the
    pane."""

    key: KeySelection
    fold: Fold
    assigner: FixedWindows

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return LocalFoldOperator(context, self)


class LocalFoldOperator(FunctionOperator):
    """Accumulators by key and pane, in memory, until the next watermark or the end of the epoch."""

    def __init__(self, context: OperatorContext, spec: LocalFoldSpec) -> None:
        super().__init__(context, spec.fold, keyed=False)
        self._spec = spec
        self._size, self._offset = _pane_size(spec.assigner), spec.assigner.offset
        self._accumulators: dict[tuple[Any, int], list[Any]] = {}

    def begin_epoch(self) -> None:
        """Discard accumulators that a failed attempt may have left."""
        self._accumulators = {}

    def on_batch(self, batch: Batch, side: int) -> None:
        """Add every record to the accumulator of its key and pane."""
        keys = self._spec.key.keys(batch.without_keys(), self.context.name)
        rowwise.visit_keyed_rows(self.context, self._element, batch, keys, self.context.scope)
        if self.context.batch and len(self._accumulators) >= _MAX_BUFFERED:
            self._flush()

    def _element(self, value: Any, time: int) -> None:
        if time == NO_TIMESTAMP:
            self._spec.assigner.assign_windows(value, time, None)  # type: ignore[arg-type]  # refuses it
        key_and_pane = (self.context.scope.key, time - (time - self._offset) % self._size)
        entry, fold = self._accumulators.get(key_and_pane), self._spec.fold
        if isinstance(fold, AggregateFunction):
            start = fold.create_accumulator() if entry is None else entry[0]
            accumulator = fold.add(value, start)
        else:
            accumulator = value if entry is None else fold.reduce(entry[0], value)
        self._accumulators[key_and_pane] = [accumulator, 1 if entry is None else entry[1] + 1]

    def _flush(self) -> None:
        if self._accumulators:
            accumulators, self._accumulators = self._accumulators, {}
            rows = [(key, accumulator, count) for (key, _), (accumulator, count) in accumulators.items()]
            times = np.fromiter((pane for _, pane in accumulators), dtype=np.int64, count=len(accumulators))
            output_type = self.context.output_type
            self.out.emit(
                Batch(output_type, rows=rowwise.conform(self.context.name, output_type, rows), timestamps=times)
            )

    def on_watermark(self, watermark: int) -> None:
        """Emit all partial results before the watermark."""
        self._flush()
        super().on_watermark(watermark)

    def on_idle(self) -> None:
        """Emit all partial results first."""
        self._flush()
        super().on_idle()

    def end_epoch(self) -> None:
        """Emit all partial results: nothing is kept between epochs."""
        self._flush()


_MERGE_FUNCTIONS: dict[str, Callable[[str], Aggregate]] = {"count": Sum, "sum": Sum, "min": Min, "max": Max}


def merging_aggregations(aggregations: Aggregations) -> Aggregations | None:
    """Return the aggregates that merge partial aggregates, from columns named `part <name>`; None if one has none."""
    if any(aggregate.kind not in _MERGE_FUNCTIONS for _, aggregate in aggregations.columns):
        return None
    return Aggregations(
        **{name: _MERGE_FUNCTIONS[aggregate.kind](f"part {name}") for name, aggregate in aggregations.columns}
    )


@dataclass(frozen=True)
class LocalColumnsSpec(OperatorSpec):
    """Built-in aggregates by key field and pane, on columns; emits rows of the key and the aggregates."""

    key: str | int
    aggregates: tuple[Aggregate, ...]
    assigner: FixedWindows

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return LocalColumnsOperator(context, self)


class LocalColumnsOperator(Operator):
    """Buffers batches until the next watermark or the end of the epoch, then aggregates them at once."""

    def __init__(self, context: OperatorContext, spec: LocalColumnsSpec) -> None:
        super().__init__(context)
        self._spec = spec
        self._partials = columns.WindowPartials(spec.aggregates)
        self._buffer: list[Batch] = []

    def begin_epoch(self) -> None:
        """Discard batches that a failed attempt may have left."""
        self._buffer = []

    def on_batch(self, batch: Batch, side: int) -> None:
        """Buffer the batch."""
        if batch.timestamps is None or (batch.timestamps == NO_TIMESTAMP).any():
            raise columns.NeedsTimestamps(self.context.name)
        self._buffer.append(batch)
        if self.context.batch and sum(map(len, self._buffer)) >= _MAX_BUFFERED:
            self._flush()

    def _flush(self) -> None:
        if not self._buffer:
            return
        batches, self._buffer = self._buffer, []
        size = _pane_size(self._spec.assigner)
        times = np.concatenate([batch.timestamps for batch in batches])
        panes = times - np.mod(times - self._spec.assigner.offset, size)
        output_type = self.context.output_type
        fields = list(output_type.arrow_type)
        aggregate_types = [field.type for field in fields[1 : 1 + len(self._spec.aggregates)]]
        for pane, chunk in self._partials.chunks(batches, self._spec.key, panes, np.arange(len(times))):
            arrays = [chunk.column("key"), *self._partials.finish(chunk, aggregate_types)]
            arrays.extend(pa.nulls(chunk.num_rows, field.type) for field in fields[len(arrays) :])  # row kinds
            array = pa.StructArray.from_arrays(arrays, fields=fields)
            self.out.emit(Batch(output_type, array=array, timestamps=np.full(chunk.num_rows, pane, dtype=np.int64)))

    def on_watermark(self, watermark: int) -> None:
        """Emit all partial results before the watermark."""
        self._flush()
        super().on_watermark(watermark)

    def on_idle(self) -> None:
        """Emit all partial results first."""
        self._flush()
        super().on_idle()

    def end_epoch(self) -> None:
        """Emit all partial results: nothing is kept between epochs."""
        self._flush()
