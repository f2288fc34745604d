"""Windows folded before the exchange: what a subtask has of one key and pane leaves it as one record.

Promises: the windows downstream amount to the same, as long as the fold is associative; nothing is held back over a
watermark or the end of an epoch, so lateness is decided downstream as without it.
Does not know: triggers, state. A pane is the longest span of time that no window boundary cuts."""

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

_MOST_HELD = 1 << 17  # keys or records, in a batch job, whose only watermark is the last

Fold = ReduceFunction | AggregateFunction
FixedWindows = TumblingEventTimeWindows | SlidingEventTimeWindows


def has_panes(assigner: object) -> bool:
    """Whether the windows of the assigner consist of panes that do not depend on other records."""
    return type(assigner) in (TumblingEventTimeWindows, SlidingEventTimeWindows)


def _pane_size(assigner: FixedWindows) -> int:
    return math.gcd(assigner.size, getattr(assigner, "slide", assigner.size))


class MergePartials(AggregateFunction):
    """Merges partial results (key, accumulator, records) into the result of the whole aggregation."""

    def __init__(self, fold: Fold) -> None:
        self.fold = fold

    def open(self, runtime_context: Any) -> None:
        """Open the fold."""
        self.fold.open(runtime_context)

    def close(self) -> None:
        """Close the fold."""
        self.fold.close()

    def create_accumulator(self) -> Any:
        """None, until there is a first one."""
        return None

    def add(self, value: Any, accumulator: Any) -> Any:
        """One more partial result."""
        return value[1] if accumulator is None else self.merge(accumulator, value[1])

    def get_result(self, accumulator: Any) -> Any:
        """The result of the fold."""
        return self.fold.get_result(accumulator) if isinstance(self.fold, AggregateFunction) else accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Both."""
        if isinstance(self.fold, AggregateFunction):
            return self.fold.merge(acc_a, acc_b)
        return self.fold.reduce(acc_a, acc_b)


def records_in(partial: Any) -> int:
    """How many records are in a partial result."""
    return int(partial[2])


@dataclass(frozen=True)
class LocalFoldSpec(OperatorSpec):
    """A fold by key and pane; emits (key, accumulator, number of records) at the time the pane starts."""

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
        self._held: dict[tuple[Any, int], list[Any]] = {}

    def begin_epoch(self) -> None:
        """Nothing is held."""
        self._held = {}

    def on_batch(self, batch: Batch, side: int) -> None:
        """Fold every record into its key and pane."""
        keys = self._spec.key.keys(batch.without_keys(), self.context.name)
        rowwise.each_keyed(self.context, self._element, batch, keys, self.context.scope)
        if self.context.batch and len(self._held) >= _MOST_HELD:
            self._flush()

    def _element(self, value: Any, time: int) -> None:
        if time == NO_TIMESTAMP:
            self._spec.assigner.assign_windows(value, time, None)  # type: ignore[arg-type]  # refuses it
        at = (self.context.scope.key, time - (time - self._offset) % self._size)
        held, fold = self._held.get(at), self._spec.fold
        if isinstance(fold, AggregateFunction):
            start = fold.create_accumulator() if held is None else held[0]
            folded = fold.add(value, start)
        else:
            folded = value if held is None else fold.reduce(held[0], value)
        self._held[at] = [folded, 1 if held is None else held[1] + 1]

    def _flush(self) -> None:
        if self._held:
            held, self._held = self._held, {}
            rows = [(key, folded, count) for (key, _), (folded, count) in held.items()]
            times = np.fromiter((pane for _, pane in held), dtype=np.int64, count=len(held))
            kind = self.context.output_type
            self.out.emit(Batch(kind, rows=rowwise.conform(self.context.name, kind, rows), timestamps=times))

    def on_watermark(self, watermark: int) -> None:
        """What is held goes before the watermark."""
        self._flush()
        super().on_watermark(watermark)

    def on_idle(self) -> None:
        """What is held goes first."""
        self._flush()
        super().on_idle()

    def end_epoch(self) -> None:
        """Nothing is in flight between epochs."""
        self._flush()


_MERGED: dict[str, Callable[[str], Aggregate]] = {"count": Sum, "sum": Sum, "min": Min, "max": Max}


def merging(aggregations: Aggregations) -> Aggregations | None:
    """The aggregates of partial aggregates, whose columns are called `part` and the name; None when one cannot be."""
    if any(aggregate.kind not in _MERGED for _, aggregate in aggregations.columns):
        return None
    return Aggregations(**{name: _MERGED[aggregate.kind](f"part {name}") for name, aggregate in aggregations.columns})


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
    """Gathers batches until the next watermark or the end of the epoch, then groups them once."""

    def __init__(self, context: OperatorContext, spec: LocalColumnsSpec) -> None:
        super().__init__(context)
        self._spec = spec
        self._partials = columns.Partials(spec.aggregates)
        self._waiting: list[Batch] = []

    def begin_epoch(self) -> None:
        """Nothing is waiting."""
        self._waiting = []

    def on_batch(self, batch: Batch, side: int) -> None:
        """Gather."""
        if batch.timestamps is None or (batch.timestamps == NO_TIMESTAMP).any():
            raise columns.NeedsTimestamps(self.context.name)
        self._waiting.append(batch)
        if self.context.batch and sum(map(len, self._waiting)) >= _MOST_HELD:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        batches, self._waiting = self._waiting, []
        size = _pane_size(self._spec.assigner)
        times = np.concatenate([batch.timestamps for batch in batches])
        panes = times - np.mod(times - self._spec.assigner.offset, size)
        kind = self.context.output_type
        fields = list(kind.arrow_type)
        wanted = [field.type for field in fields[1 : 1 + len(self._spec.aggregates)]]
        for pane, chunk in self._partials.chunks(batches, self._spec.key, panes, np.arange(len(times))):
            arrays = [chunk.column("key"), *self._partials.finished(chunk, wanted)]
            arrays.extend(pa.nulls(chunk.num_rows, field.type) for field in fields[len(arrays) :])  # row kinds
            array = pa.StructArray.from_arrays(arrays, fields=fields)
            self.out.emit(Batch(kind, array=array, timestamps=np.full(chunk.num_rows, pane, dtype=np.int64)))

    def on_watermark(self, watermark: int) -> None:
        """What is waiting goes before the watermark."""
        self._flush()
        super().on_watermark(watermark)

    def on_idle(self) -> None:
        """What is waiting goes first."""
        self._flush()
        super().on_idle()

    def end_epoch(self) -> None:
        """Nothing is in flight between epochs."""
        self._flush()
