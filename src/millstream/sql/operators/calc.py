"""Projection and filter on whole columns.

Promises: a row keeps its row kind; rows for which the condition is not true are dropped.
Does not know: keys, state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.evaluation.evaluate import Condition, EvaluationFailed, Frame, Projection
from millstream.sql.evaluation.repeated import find_repeated
from millstream.sql.expressions.nodes import Expression, FieldRef, Ref
from millstream.sql.expressions.stable_text import format_expression, shorten
from millstream.sql.functions.function_context import ASYNC_DEFAULTS, AsyncOptions
from millstream.sql.operators.base import TableOperator
from millstream.sql.operators.lazy_rows import (
    LazyRows,
    MaterializedRows,
    SelectedColumns,
    SelectedRows,
    get_batch_columns,
    get_batch_row_kinds,
)
from millstream.sql.operators.spec import ColumnTexts, PlanContext, SqlOperatorSpec, StateTraits, map_same_columns
from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class CalcSpec(SqlOperatorSpec):
    """A condition, then a projection; each can be missing."""

    input: t.RowType
    output: t.RowType
    condition: Expression | None
    exprs: tuple[Expression, ...] | None
    zone: str = "UTC"
    asynchronous: AsyncOptions = ASYNC_DEFAULTS

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns, *_) = plan.inputs
        where = "" if self.condition is None else format_expression(self.condition, columns)
        select = "" if self.exprs is None else ", ".join(format_expression(expr, columns) for expr in self.exprs)
        return StateTraits(free={"where": where, "select": select})

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column."""
        first, *others = plan.inputs
        if self.exprs is not None:
            return [format_expression(expr, first) for expr in self.exprs]
        if others:  # a union: a column comes from any of the inputs
            return [shorten(" | ".join(sorted(set(texts)))) for texts in zip(first, *others, strict=True)]
        return first

    def kept_columns(self, plan: PlanContext, side: int) -> Mapping[int, tuple[int, ...]]:
        """Return the indexes of input columns in the output."""
        if self.exprs is None:
            return map_same_columns(len(plan.schemas[0]))
        indexes: dict[int, tuple[int, ...]] = {}
        for index, expr in enumerate(self.exprs):
            if isinstance(expr, Ref):
                indexes[expr.index] = (*indexes.get(expr.index, ()), index)
        return indexes

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return CalcOperator(context, self)


class CalcOperator(TableOperator):
    """Evaluates the condition and the projection on columns."""

    def __init__(self, context: OperatorContext, spec: CalcSpec) -> None:
        super().__init__(context, spec.output, spec.zone, spec, spec.asynchronous)
        exprs, condition = spec.exprs or (), spec.condition
        shared = find_repeated(exprs if condition is None else (condition, *exprs))
        self._width = len(spec.input)
        self._condition = None if condition is None else Condition(condition, shared)
        self._projection = None if spec.exprs is None else Projection(exprs, shared)
        column_indexes = [expr.index for expr in exprs if isinstance(expr, Ref)]
        self._column_indexes = column_indexes if exprs and len(column_indexes) == len(exprs) else None
        self._only_columns = all(map(_is_column, exprs))

    def on_batch(self, batch: Batch, side: int) -> None:
        """Filter and project the rows."""
        columns, row_kinds = get_batch_columns(batch, self._width), get_batch_row_kinds(batch, self._width)
        frame = self.create_frame_of_columns(columns, len(batch))
        try:
            if self._condition is not None:
                holds = self._condition.holds(frame)
                if not holds.all():
                    self._project_selected(frame, columns, row_kinds, np.flatnonzero(holds))
                    return
            if self._projection is None:
                self.emit_lazy(columns, row_kinds)
            elif self._column_indexes is not None:
                self.emit_lazy(SelectedColumns(columns, self._column_indexes), row_kinds)
            else:
                self.emit_lazy(MaterializedRows(self._projection.columns(frame), len(batch)), row_kinds)
        except EvaluationFailed as problem:
            raise self.fail(problem) from None

    def _project_selected(
        self, frame: Frame, columns: LazyRows, row_kinds: pa.Array | None, selected: np.ndarray
    ) -> None:
        """Project the rows that the condition selected, without gathering columns that are not read."""
        if not len(selected):
            return
        row_indexes = pa.array(selected)
        row_kinds = None if row_kinds is None else row_kinds.take(row_indexes)
        if self._projection is None:
            self.emit_lazy(SelectedRows(columns, selected), row_kinds)
        elif self._column_indexes is not None:
            self.emit_lazy(SelectedRows(SelectedColumns(columns, self._column_indexes), selected), row_kinds)
        elif self._only_columns and isinstance(columns, MaterializedRows):
            self.emit_lazy(
                SelectedRows(MaterializedRows(self._projection.columns(frame), frame.count), selected), row_kinds
            )
        else:
            gathered = None if isinstance(columns, MaterializedRows) else SelectedRows(columns, selected)
            self.emit_lazy(
                MaterializedRows(self._projection.columns(frame.some(row_indexes, gathered)), len(selected)), row_kinds
            )


def _is_column(expression: Expression) -> bool:
    """Return whether an expression is a column, or a field of one, so that nothing is computed."""
    return isinstance(expression, Ref) or (isinstance(expression, FieldRef) and _is_column(expression.operand))
