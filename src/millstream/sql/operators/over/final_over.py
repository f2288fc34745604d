"""OVER aggregates of a batch job: each row with aggregates over any frame of its partition.

Promises: rows may be ordered by any columns, and a frame may end after the current row. Rows are emitted at the end of
the input. RANGE treats rows of equal order together.
Does not know: watermarks; functions without accumulators, such as ROW_NUMBER."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import INSERT, create_tuple_type_info
from millstream.sql.expressions.stable_text import format_call
from millstream.sql.functions.aggregates import create_aggregation
from millstream.sql.logical.nodes import OverCall
from millstream.sql.operators.base import Rows, TableOperator, get_key, read_rows_with_kinds
from millstream.sql.operators.over.over_aggregate import describe_over_calls
from millstream.sql.operators.rank.ordering import create_sort_key
from millstream.sql.operators.spec import ColumnTexts, PlanContext, RowPassingSpec, StateTraits
from millstream.sql.operators.timestamps import to_millis
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types


@dataclass(frozen=True)
class FinalOverSpec(RowPassingSpec):
    """Calls that share partition, order and frame."""

    input: t.RowType
    output: t.RowType
    calls: tuple[OverCall, ...]

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        return StateTraits({**describe_over_calls(self.calls, plan.inputs[0]), "rows": plan.rows()})

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column."""
        (columns,) = plan.inputs
        return [*columns, *(format_call(over.call, columns) for over in self.calls)]

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return FinalOverOperator(context, self)


class FinalOverOperator(TableOperator):
    """State: by partition, its rows in the order of arrival."""

    def __init__(self, context: OperatorContext, spec: FinalOverSpec) -> None:
        super().__init__(context, spec.output, spec=spec)
        self._spec, self._first = spec, spec.calls[0]
        self._sort_key = create_sort_key(self._first.order)
        self._functions = [create_aggregation(over.call, retracts=False) for over in spec.calls]
        self._table = context.state.table("over/rows", Types.LIST(create_tuple_type_info(spec.input.types)))

    def on_batch(self, batch: Batch, side: int) -> None:
        """Keep the rows until the end of the input."""
        rows, _ = read_rows_with_kinds(batch, self._spec.input)
        rows_by_key: dict[Any, Rows] = {}
        for row in rows:
            rows_by_key.setdefault(get_key(row, self._first.partition), []).append(row)
        for key, new_rows in rows_by_key.items():
            stored = self._table.get(None, key)
            self._table.put(None, key, new_rows if stored is ABSENT else [*stored, *new_rows])

    def on_watermark(self, watermark: int) -> None:
        """Emit all rows at the end of the input."""
        if watermark == MAX_WATERMARK:
            for key, rows in list(self._table.scan(None)):
                self._emit_partition(sorted(map(tuple, rows), key=self._sort_key))
                self._table.delete(None, key)
            self.flush()
        super().on_watermark(watermark)

    def _emit_partition(self, rows: Rows) -> None:
        """Emit the rows of one partition, which are sorted."""
        accs: list[Any] = []
        current: tuple[int, int] | None = None
        results: tuple[Any, ...] = ()
        for row, (start, end) in zip(rows, self._create_frames(rows), strict=True):
            if current != (start, end):
                is_extended = current is not None and start == current[0] and end >= current[1]
                if not is_extended:
                    accs = [function.create() for function in self._functions]
                added = rows[current[1] : end] if is_extended and current is not None else rows[start:end]
                self._add(accs, added)
                results = tuple(function.value(acc) for function, acc in zip(self._functions, accs, strict=True))
                current = (start, end)
            self.put(INSERT, row + results)

    def _add(self, accs: list[Any], rows: Rows) -> None:
        for function, over, acc in zip(self._functions, self._spec.calls, accs, strict=True):
            for row in rows:
                if over.call.filter is None or row[over.call.filter] is True:
                    function.add(acc, tuple(row[i] for i in over.call.args))

    def _create_frames(self, rows: Rows) -> list[tuple[int, int]]:
        """Return the frame of each row: the index of its first row, and the index after its last row."""
        lower, upper, count = self._first.lower, self._first.upper, len(rows)
        if self._first.rows:
            starts = [0 if lower is None else min(max(i + lower, 0), count) for i in range(count)]
            ends = [count if upper is None else min(max(i + upper + 1, 0), count) for i in range(count)]
        else:
            starts = [0] * count if lower is None else self._compute_range_bounds(rows, lower, is_end=False)
            ends = [count] * count if upper is None else self._compute_range_bounds(rows, upper, is_end=True)
        return [(start, max(start, end)) for start, end in zip(starts, ends, strict=True)]

    def _compute_range_bounds(self, rows: Rows, offset: int, *, is_end: bool) -> list[int]:
        """Return a bound of RANGE for each row: that of the rows of equal order, or in an interval of time."""
        values: Sequence[Any] = [self._sort_key(row) for row in rows]
        sought: Sequence[Any] = values
        if offset:
            (column, is_ascending, _), *_ = self._first.order
            times = [to_millis(row[column], self._spec.input.types[column]) for row in rows]
            values = times if is_ascending else [-time for time in times]
            sought = [value + offset for value in values]
        bisect = bisect_right if is_end else bisect_left
        return [bisect(values, value) for value in sought]
