"""The first of two phases of window aggregates: the rows of an epoch are aggregated by slice before they are dealt out.

Promises: one row of partial aggregates for each key and slice that came, before the watermark that follows it; where
nearly every row has a key of its own, one for each row. No state.
Does not know: windows beyond their slices; `sliced_windows` puts slices together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.logical.nodes import WindowSpec
from millstream.sql.operators.aggregate.local_aggregate import LocalAggregateOperator, partial_schema
from millstream.sql.operators.aggregate.partials import ROWS, Partials
from millstream.sql.operators.spec import PartialAggregateSpec
from millstream.sql.operators.window.slices import slice_ends, window_times
from millstream.sql.types import data_types as t


class SlicedRows:
    """The columns of rows, and behind them the slice of each row."""

    def __init__(self, array: pa.Array, width: int, slices: pa.Array) -> None:
        self._array, self._width, self._slices = array, width, slices

    def __len__(self) -> int:
        return len(self._slices)

    def field(self, index: int) -> pa.Array:
        """A column."""
        return self._slices if index == self._width else self._array.field(index)


class Slicing:
    """How rows of a table are added up by key columns and slice, and counted."""

    def __init__(
        self,
        context: OperatorContext,
        schema: t.RowType,
        keys: Sequence[int],
        calls: Sequence[AggregateCall],
        window: WindowSpec,
    ) -> None:
        self._context, self._window, self._width = context, window, len(schema)
        self.partials = Partials((*calls, ROWS), (*keys, self._width), with_slices(schema))

    def rows(self, array: pa.Array) -> SlicedRows:
        """Rows with their slices."""
        times = window_times(array, self._window, self._context)
        return SlicedRows(array, self._width, pa.array(slice_ends(times, self._window)))


def with_slices(schema: t.RowType) -> t.RowType:
    """The columns of rows and the end of their slice."""
    return t.row_of([*schema.names, "$slice_end"], [*schema.types, t.BIGINT.not_null()], null=False)


def sliced_schema(schema: t.RowType, keys: Sequence[int], calls: Sequence[AggregateCall]) -> t.RowType:
    """The columns of partial aggregates by slice: the keys, the slice's end, then the parts."""
    return partial_schema(with_slices(schema), (*keys, len(schema)), (*calls, ROWS))


@dataclass(frozen=True)
class LocalWindowAggregateSpec(PartialAggregateSpec):
    """Partial aggregates by key columns and slices of windows."""

    input: t.RowType
    output: t.RowType
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    window: WindowSpec

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return LocalWindowAggregateOperator(context, self)


class LocalWindowAggregateOperator(LocalAggregateOperator):
    """As its base; rows are told apart by their slice, too."""

    def __init__(self, context: OperatorContext, spec: LocalWindowAggregateSpec) -> None:
        self._slicing = Slicing(context, spec.input, spec.keys, spec.calls, spec.window)
        super().__init__(context, spec.output, self._slicing.partials)

    def _take(self, array: pa.Array) -> None:
        super()._take(self._slicing.rows(array))
