"""Group windows of a number of rows: tumbling and sliding count windows of the Table API.

Promises: the rows of a key are counted in the order of their arrival. A window is emitted when its last row arrives,
and a window that is not full at the end of the input is not emitted, as in Flink.
Does not know: time; updating input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import INSERT
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.expressions.stable_text import format_call, format_columns
from millstream.sql.functions.aggregates import create_aggregation
from millstream.sql.operators.base import TableOperator, get_key, read_rows_with_kinds
from millstream.sql.operators.spec import ColumnTexts, PlanContext, SqlOperatorSpec, StateTraits, map_keys_first
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types


@dataclass(frozen=True)
class CountWindowAggregateSpec(SqlOperatorSpec):
    """Aggregates by keys over `size` rows; a new window begins every `slide` rows."""

    input: t.RowType
    output: t.RowType
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    size: int
    slide: int

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns,) = plan.inputs
        return StateTraits(
            {
                "key": format_columns(self.keys, columns, self.input),
                "window": f"{self.size} rows every {self.slide} rows",
                "aggregates": ", ".join(format_call(call, columns) for call in self.calls),
            }
        )

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column."""
        (columns,) = plan.inputs
        return [*(columns[i] for i in self.keys), *(format_call(call, columns) for call in self.calls)]

    def kept_columns(self, plan: PlanContext, side: int) -> Mapping[int, tuple[int, ...]]:
        """Return the indexes of input columns in the output."""
        return map_keys_first(self.keys)

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return CountWindowAggregateOperator(context, self)


class CountWindowAggregateOperator(TableOperator):
    """State: by key, [number of rows, open windows as [number of the first row, accumulators]]."""

    def __init__(self, context: OperatorContext, spec: CountWindowAggregateSpec) -> None:
        super().__init__(context, spec.output, spec=spec)
        self._spec = spec
        self._functions = [create_aggregation(call, retracts=False) for call in spec.calls]
        self._table = context.state.table("count-windows", Types.PICKLED_BYTE_ARRAY())

    def on_batch(self, batch: Batch, side: int) -> None:
        """Add rows to the open windows of their keys, and emit the windows that are full."""
        spec = self._spec
        rows, _ = read_rows_with_kinds(batch, spec.input)
        for row in rows:
            key = get_key(row, spec.keys)
            stored = self._table.get(None, key)
            count, windows = (0, []) if stored is ABSENT else stored
            if count % spec.slide == 0:
                windows.append([count, [function.create() for function in self._functions]])
            for _, accs in windows:
                self._add(accs, row)
            count += 1
            while windows and windows[0][0] + spec.size == count:
                results = [f.value(acc) for f, acc in zip(self._functions, windows.pop(0)[1], strict=True)]
                self.put(INSERT, (*(row[i] for i in spec.keys), *results))
            self._table.put(None, key, [count, windows])
        self.flush()

    def _add(self, accs: list[Any], row: tuple[Any, ...]) -> None:
        for function, call, acc in zip(self._functions, self._spec.calls, accs, strict=True):
            if call.filter is None or row[call.filter] is True:
                function.add(acc, tuple(row[i] for i in call.args))
