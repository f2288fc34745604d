"""Window aggregates of rows that are not in windows yet.

Promises: the results of WindowTableOperator and the aggregate behind it, for aggregates that columns can be added up
for; a row is added up once, however many windows it is in.
Does not know: sessions, zones, rows that are taken back.

Rows, or what the first of two phases has made of them, are in slices; a window's chunk is those slices of the epoch
that it is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import arrow_type
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.expressions.stable_text import call_text, columns_text
from millstream.sql.logical.nodes import WindowSpec
from millstream.sql.operators.aggregate.partials import Partials
from millstream.sql.operators.spec import (
    ColumnTexts,
    PlanContext,
    SqlOperatorSpec,
    StateTraits,
    keys_first,
    window_text,
)
from millstream.sql.operators.window.columnar_windows import WindowChunksOperator
from millstream.sql.operators.window.local_windows import Slicing
from millstream.sql.operators.window.slices import last_ends, start_of, window_ends
from millstream.sql.types import data_types as t

_BOUNDS = ("window_start", "window_end", "window_time")


@dataclass(frozen=True)
class SlicedWindowAggregateSpec(SqlOperatorSpec):
    """Aggregates by the columns `partition` and windows. `keys` are columns of the input, or behind its last one the
    start, the end and the time of the window.

    With `partial`, rows are aggregated in part, as LocalWindowAggregateSpec does; `input` and places are those before
    that."""

    input: t.RowType
    output: t.RowType
    keys: tuple[int, ...]
    partition: tuple[int, ...]
    window: WindowSpec
    calls: tuple[AggregateCall, ...]
    partial: bool = False

    @property
    def processing(self) -> bool:
        """Whether windows are of processing time."""
        return self.window.processing

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns,) = plan.inputs
        return StateTraits(
            {
                "key": columns_text(self.partition, columns, self.input),
                "window": window_text(self.window, columns),
                "aggregates": ", ".join(call_text(call, columns) for call in self.calls),
            }
        )

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column."""
        (columns,) = plan.inputs
        window, width = window_text(self.window, columns), len(columns)
        keys = [columns[i] if i < width else f"{window}.{_BOUNDS[i - width]}" for i in self.keys]
        return [*keys, *(call_text(call, columns) for call in self.calls)]

    def kept_columns(self, plan: PlanContext, side: int) -> Mapping[int, tuple[int, ...]]:
        """Return the indexes of input columns in the output."""
        if not self.partial:
            return keys_first(self.keys)
        return {self.partition.index(key): (i,) for i, key in enumerate(self.keys) if key in self.partition}

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return SlicedWindowAggregateOperator(context, self)


class SlicedWindowAggregateOperator(WindowChunksOperator):
    """The keys of a chunk are those by which rows are dealt out; the edges follow from its window."""

    def __init__(self, context: OperatorContext, spec: SlicedWindowAggregateSpec) -> None:
        dealt = [(place, spec.input.types[i]) for place, i in enumerate(spec.partition)]
        super().__init__(context, spec, "windows/slices", Partials(spec.calls, spec.partition, spec.input), dealt)
        self._slicing = Slicing(context, spec.input, spec.partition, spec.calls, spec.window)

    def chunks(self, array: pa.Array) -> Iterator[tuple[int, pa.RecordBatch]]:
        """As WindowChunksOperator promises."""
        window, counted = self._spec.window, self._slicing.partials
        whole = counted.given(array) if self._spec.partial else counted.chunk(self._slicing.rows(array))
        width = len(self._spec.partition)
        slices = whole.column(width).to_numpy()
        if (slices[1:] < slices[:-1]).any():
            order = np.argsort(slices, kind="stable")
            whole, slices = whole.take(pa.array(order)), slices[order]
        late = self.late(last_ends(slices, window))
        if late.any():
            self.dropped(int(counted.rows(whole)[late].sum()))
        parts = whole.columns[width + 1 : width + 1 + len(self._partials.parts)]
        chunk = self._partials.named([*whole.columns[:width], *parts])
        ends = window_ends(slices[np.append(True, slices[1:] != slices[:-1])], window)
        ends = ends[~self.late(ends)]
        begins = [start_of(end, window) for end in ends.tolist()]
        firsts, lasts = np.searchsorted(slices, begins, "right"), np.searchsorted(slices, ends, "right")
        for end, first, last in zip(ends.tolist(), firsts.tolist(), lasts.tolist(), strict=True):
            yield end, chunk.slice(first, last - first)

    def columns(self, chunk: pa.RecordBatch, over: int) -> list[pa.Array]:
        """As WindowChunksOperator promises."""
        spec, width = self._spec, len(self._spec.input)
        edges = (start_of(over + 1, spec.window), over + 1, over)
        made: list[pa.Array] = []
        for place, kind in zip(spec.keys, spec.output.types, strict=False):
            if place < width:
                made.append(chunk.column(spec.partition.index(place)))
            else:
                edge = pa.scalar(edges[place - width], pa.timestamp("ms"))
                made.append(pa.repeat(edge.cast(arrow_type(kind)), chunk.num_rows))
        return made
