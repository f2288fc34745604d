"""OVER calls on updating input, or not ordered by time: a row changes the results of the rows after it.

Promises: after every batch, each row of a partition has been emitted with the results of its current frame; unchanged
results are not emitted again. Rows may be ordered by any columns. RANGE treats rows of equal order together.
Does not know: time; RANGE frames with a lower bound."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import DELETE, INSERT, UPDATE_AFTER, create_tuple_type_info
from millstream.sql.functions.aggregates import create_aggregation
from millstream.sql.logical.nodes import OverCall
from millstream.sql.operators.base import Rows, TableOperator, get_key, read_rows_with_kinds
from millstream.sql.operators.over.over_aggregate import describe_over_calls
from millstream.sql.operators.rank.ordering import create_sort_key
from millstream.sql.operators.spec import PlanContext, RowPassingSpec, StateTraits
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types

NUMBERINGS = ("ROW_NUMBER", "RANK", "DENSE_RANK")


@dataclass(frozen=True)
class ChangingOverSpec(RowPassingSpec):
    """Calls that share partition, order and frame."""

    input: t.RowType
    output: t.RowType
    calls: tuple[OverCall, ...]

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        return StateTraits({**describe_over_calls(self.calls, plan.inputs[0]), "rows": plan.rows()})

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return ChangingOverOperator(context, self)


class ChangingOverOperator(TableOperator):
    """State: by partition, its rows in order."""

    def __init__(self, context: OperatorContext, spec: ChangingOverSpec) -> None:
        super().__init__(context, spec.output, spec=spec)
        self._spec = spec
        first = spec.calls[0]
        self._partition, self._rows_frame, self._lower = first.partition, first.rows, first.lower
        self._sort_key = create_sort_key(first.order)
        bounded = first.lower is not None
        self._is_numbering = [over.call.user is None and over.call.function in NUMBERINGS for over in spec.calls]
        self._calls = [
            over for over, is_numbering in zip(spec.calls, self._is_numbering, strict=True) if not is_numbering
        ]
        self._functions = [create_aggregation(over.call, retracts=bounded) for over in self._calls]
        self._table = context.state.table("over/rows", Types.LIST(create_tuple_type_info(spec.input.types)))

    def on_batch(self, batch: Batch, side: int) -> None:
        """Add and remove rows, and emit the changed results."""
        rows, row_kinds = read_rows_with_kinds(batch, self._spec.input)
        changes: dict[Any, list[tuple[tuple[Any, ...], bool]]] = {}
        for row, row_kind in zip(rows, row_kinds, strict=True):
            changes.setdefault(get_key(row, self._partition), []).append((row, row_kind in (INSERT, UPDATE_AFTER)))
        for key, row_changes in changes.items():
            stored = self._table.get(None, key)
            before: Rows = [] if stored is ABSENT else stored
            after = list(before)
            for row, is_insert in row_changes:
                if is_insert:
                    after.insert(bisect_right(after, self._sort_key(row), key=self._sort_key), row)
                elif row in after:
                    after.remove(row)
            self._table.put(None, key, after or ABSENT)
            self._emit_difference(self._compute_results(before), self._compute_results(after))
        self.flush()

    def _emit_difference(self, before: Rows, after: Rows) -> None:
        removed, added = Counter(before), Counter(after)
        for row in (removed - added).elements():
            self.put(DELETE, row)
        for row in (added - removed).elements():
            self.put(INSERT, row)

    def _compute_results(self, rows: Rows) -> Rows:
        """Return the rows of a partition with their results, in the order of the calls."""
        aggregates = self._compute_aggregates(rows)
        if not any(self._is_numbering):
            return [row + values for row, values in zip(rows, aggregates, strict=True)]
        results: Rows = []
        rank = dense_rank = 0
        previous: Any = None
        for number, (row, values) in enumerate(zip(rows, aggregates, strict=True), 1):
            order = self._sort_key(row)
            if number == 1 or order != previous:
                rank, dense_rank, previous = number, dense_rank + 1, order
            numbers = {"ROW_NUMBER": number, "RANK": rank, "DENSE_RANK": dense_rank}
            aggregate = iter(values)
            results.append(
                row
                + tuple(
                    numbers[over.call.function] if is_numbering else next(aggregate)
                    for over, is_numbering in zip(self._spec.calls, self._is_numbering, strict=True)
                )
            )
        return results

    def _compute_aggregates(self, rows: Rows) -> Rows:
        """Return the values of the aggregates for each row of a partition."""
        if not self._functions:
            return [()] * len(rows)
        accs = [function.create() for function in self._functions]
        steps = [[row] for row in rows] if self._rows_frame else [list(g) for _, g in groupby(rows, self._sort_key)]
        results: Rows = []
        for step in steps:
            for row in step:
                self._update_accumulators(accs, row, add=True)
            if self._lower is not None and len(results) > -self._lower:
                self._update_accumulators(accs, rows[len(results) + self._lower - 1], add=False)
            values = tuple(function.value(acc) for function, acc in zip(self._functions, accs, strict=True))
            results += [values] * len(step)
        return results

    def _update_accumulators(self, accs: list[Any], row: tuple[Any, ...], *, add: bool) -> None:
        for function, over, acc in zip(self._functions, self._calls, accs, strict=True):
            if over.call.filter is not None and row[over.call.filter] is not True:
                continue
            values = tuple(row[i] for i in over.call.args)
            if add:
                function.add(acc, values)
            else:
                function.retract(acc, values)
