"""The local phase of window aggregates: aggregates the rows of an epoch by slice before they are partitioned.

Promises: one row of partial aggregates for each key and slice of the rows, emitted before the next watermark. If nearly
every row has a key of its own, rows pass as partial aggregates of one row each. No state.
Does not know: windows; `sliced_windows` merges slices to windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.logical.nodes import WindowSpec
from millstream.sql.operators.aggregate.local_aggregate import LocalAggregateOperator, create_partial_schema
from millstream.sql.operators.aggregate.partials import ROWS, Partials
from millstream.sql.operators.spec import PartialAggregateSpec
from millstream.sql.operators.window.slices import compute_slice_ends, compute_window_times
from millstream.sql.types import data_types as t


class SlicedRows:
    """The columns of rows, followed by the slice of each row."""

    def __init__(self, array: pa.Array, width: int, slices: pa.Array) -> None:
        self._array, self._width, self._slices = array, width, slices

    def __len__(self) -> int:
        return len(self._slices)

    def field(self, index: int) -> pa.Array:
        """Return a column."""
        return self._slices if index == self._width else self._array.field(index)


class SliceAggregation:
    """Aggregates rows by key columns and slice, and counts them."""

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
        """Return rows with their slices."""
        times = compute_window_times(array, self._window, self._context)
        return SlicedRows(array, self._width, pa.array(compute_slice_ends(times, self._window)))


def with_slices(schema: t.RowType) -> t.RowType:
    """Return the row type with the end of the slice appended."""
    return t.row_of([*schema.names, "$slice_end"], [*schema.types, t.BIGINT.not_null()], null=False)


def create_sliced_schema(schema: t.RowType, keys: Sequence[int], calls: Sequence[AggregateCall]) -> t.RowType:
    """Return the row type of partial aggregates by slice: the keys, the slice's end, then the partial columns."""
    return create_partial_schema(with_slices(schema), (*keys, len(schema)), (*calls, ROWS))


@dataclass(frozen=True)
class LocalWindowAggregateSpec(PartialAggregateSpec):
    """Partial aggregates by key columns and slices of windows."""

    input: t.RowType
    output: t.RowType
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    window: WindowSpec

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return LocalWindowAggregateOperator(context, self)


class LocalWindowAggregateOperator(LocalAggregateOperator):
    """A local aggregate by keys and slice."""

    def __init__(self, context: OperatorContext, spec: LocalWindowAggregateSpec) -> None:
        self._slicing = SliceAggregation(context, spec.input, spec.keys, spec.calls, spec.window)
        super().__init__(context, spec.output, self._slicing.partials)

    def _process(self, array: pa.Array) -> None:
        super()._process(self._slicing.rows(array))
