"""Window aggregates by slices, without assigning rows to windows.

Promises: the results of WindowTableOperator followed by an aggregate, for aggregates that can be computed on columns; a
row is aggregated once, in however many windows it is.
Does not know: sessions, time zones, retractions.

Rows, or the partial aggregates of the local phase, are aggregated by slice; the chunk of a window consists of its
slices of the epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import arrow_type
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.expressions.stable_text import format_call, format_columns
from millstream.sql.logical.nodes import WindowSpec
from millstream.sql.operators.aggregate.partials import Partials
from millstream.sql.operators.spec import (
    ColumnTexts,
    PlanContext,
    SqlOperatorSpec,
    StateTraits,
    format_window,
    map_keys_first,
)
from millstream.sql.operators.window.columnar_windows import WindowChunksOperator
from millstream.sql.operators.window.local_windows import SliceAggregation
from millstream.sql.operators.window.slices import compute_last_ends, compute_start, compute_window_ends
from millstream.sql.types import data_types as t

_BOUNDS = ("window_start", "window_end", "window_time")


@dataclass(frozen=True)
class SlicedWindowAggregateSpec(SqlOperatorSpec):
    """Aggregates by the columns `partition` and windows.

    `keys` are columns of the input; indexes after its last column are the start, the end and the time of the window.
    With `partial`, the input rows are partial aggregates of LocalWindowAggregateSpec; `input` and the column indexes
    describe the rows before the local aggregate."""

    input: t.RowType
    output: t.RowType
    keys: tuple[int, ...]
    partition: tuple[int, ...]
    window: WindowSpec
    calls: tuple[AggregateCall, ...]
    partial: bool = False

    @property
    def processing(self) -> bool:
        """Return whether windows are of processing time."""
        return self.window.processing

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns,) = plan.inputs
        return StateTraits(
            {
                "key": format_columns(self.partition, columns, self.input),
                "window": format_window(self.window, columns),
                "aggregates": ", ".join(format_call(call, columns) for call in self.calls),
            }
        )

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column."""
        (columns,) = plan.inputs
        window, width = format_window(self.window, columns), len(columns)
        keys = [columns[i] if i < width else f"{window}.{_BOUNDS[i - width]}" for i in self.keys]
        return [*keys, *(format_call(call, columns) for call in self.calls)]

    def kept_columns(self, plan: PlanContext, side: int) -> Mapping[int, tuple[int, ...]]:
        """Return the indexes of input columns in the output."""
        if not self.partial:
            return map_keys_first(self.keys)
        return {self.partition.index(key): (i,) for i, key in enumerate(self.keys) if key in self.partition}

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return SlicedWindowAggregateOperator(context, self)


class SlicedWindowAggregateOperator(WindowChunksOperator):
    """The keys of a chunk are the partition columns; the window bounds are computed from its end."""

    def __init__(self, context: OperatorContext, spec: SlicedWindowAggregateSpec) -> None:
        partition_columns = [(index, spec.input.types[i]) for index, i in enumerate(spec.partition)]
        super().__init__(
            context, spec, "windows/slices", Partials(spec.calls, spec.partition, spec.input), partition_columns
        )
        self._slicing = SliceAggregation(context, spec.input, spec.partition, spec.calls, spec.window)

    def chunks(self, array: pa.Array) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Aggregate rows by slice, and yield the chunk of each window."""
        window, counted = self._spec.window, self._slicing.partials
        sliced = counted.from_rows(array) if self._spec.partial else counted.chunk(self._slicing.rows(array))
        width = len(self._spec.partition)
        slices = sliced.column(width).to_numpy()
        if (slices[1:] < slices[:-1]).any():
            order = np.argsort(slices, kind="stable")
            sliced, slices = sliced.take(pa.array(order)), slices[order]
        is_late = self.find_late(compute_last_ends(slices, window))
        if is_late.any():
            self.count_dropped(int(counted.rows(sliced)[is_late].sum()))
        parts = sliced.columns[width + 1 : width + 1 + len(self._partials.parts)]
        chunk = self._partials.to_chunk([*sliced.columns[:width], *parts])
        ends = compute_window_ends(slices[np.append(True, slices[1:] != slices[:-1])], window)
        ends = ends[~self.find_late(ends)]
        begins = [compute_start(end, window) for end in ends.tolist()]
        firsts, lasts = np.searchsorted(slices, begins, "right"), np.searchsorted(slices, ends, "right")
        for end, first, last in zip(ends.tolist(), firsts.tolist(), lasts.tolist(), strict=True):
            yield end, chunk.slice(first, last - first)

    def columns(self, chunk: pa.RecordBatch, max_timestamp: int) -> list[pa.Array]:
        """Return the key columns of a window's output."""
        spec, width = self._spec, len(self._spec.input)
        bounds = (compute_start(max_timestamp + 1, spec.window), max_timestamp + 1, max_timestamp)
        columns: list[pa.Array] = []
        for key, data_type in zip(spec.keys, spec.output.types, strict=False):
            if key < width:
                columns.append(chunk.column(spec.partition.index(key)))
            else:
                bound = pa.scalar(bounds[key - width], pa.timestamp("ms"))
                columns.append(pa.repeat(bound.cast(arrow_type(data_type)), chunk.num_rows))
        return columns
