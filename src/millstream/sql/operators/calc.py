"""Projection and filter on whole columns.

Promises: a row keeps its kind of change; a row that the condition does not let through is gone.
Does not know: keys, state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.evaluation.evaluate import Condition, EvaluationFailed, Frame, Projection
from millstream.sql.evaluation.repeated import repeated
from millstream.sql.expressions.fields import FieldRef
from millstream.sql.expressions.nodes import Expression, Ref
from millstream.sql.expressions.stable_text import expression_text, shorten
from millstream.sql.functions.function_context import ASYNC_DEFAULTS, AsyncOptions
from millstream.sql.operators.base import TableOperator
from millstream.sql.operators.late_rows import LateRows, Picked, Plain, Some, columns_of, kinds_in
from millstream.sql.operators.spec import ColumnTexts, PlanContext, SqlOperatorSpec, StateTraits, same_columns
from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class CalcSpec(SqlOperatorSpec):
    """A condition, then columns; either may be missing."""

    input: t.RowType
    output: t.RowType
    condition: Expression | None
    exprs: tuple[Expression, ...] | None
    zone: str = "UTC"
    asynchronous: AsyncOptions = ASYNC_DEFAULTS

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns, *_) = plan.inputs
        where = "" if self.condition is None else expression_text(self.condition, columns)
        select = "" if self.exprs is None else ", ".join(expression_text(expr, columns) for expr in self.exprs)
        return StateTraits(free={"where": where, "select": select})

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column."""
        first, *others = plan.inputs
        if self.exprs is not None:
            return [expression_text(expr, first) for expr in self.exprs]
        if others:  # a union: a column comes from any of the inputs
            return [shorten(" | ".join(sorted(set(texts)))) for texts in zip(first, *others, strict=True)]
        return first

    def kept_columns(self, plan: PlanContext, side: int) -> Mapping[int, tuple[int, ...]]:
        """Return the indexes of input columns in the output."""
        if self.exprs is None:
            return same_columns(len(plan.schemas[0]))
        indexes: dict[int, tuple[int, ...]] = {}
        for index, expr in enumerate(self.exprs):
            if isinstance(expr, Ref):
                indexes[expr.index] = (*indexes.get(expr.index, ()), index)
        return indexes

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return CalcOperator(context, self)


class CalcOperator(TableOperator):
    """Stateless."""

    def __init__(self, context: OperatorContext, spec: CalcSpec) -> None:
        super().__init__(context, spec.output, spec.zone, spec, spec.asynchronous)
        exprs, condition = spec.exprs or (), spec.condition
        shared = repeated(exprs if condition is None else (condition, *exprs))
        self._width = len(spec.input)
        self._condition = None if condition is None else Condition(condition, shared)
        self._projection = None if spec.exprs is None else Projection(exprs, shared)
        picked = [each.index for each in exprs if isinstance(each, Ref)]
        self._picked = picked if exprs and len(picked) == len(exprs) else None
        self._only_reads = all(map(_reads, exprs))

    def on_batch(self, batch: Batch, side: int) -> None:
        """Compute."""
        columns, kinds = columns_of(batch, self._width), kinds_in(batch, self._width)
        frame = self.frame_over(columns, len(batch))
        try:
            if self._condition is not None:
                holds = self._condition.holds(frame)
                if not holds.all():
                    self._some(frame, columns, kinds, np.flatnonzero(holds))
                    return
            if self._projection is None:
                self.emit_late(columns, kinds)
            elif self._picked is not None:
                self.emit_late(Picked(columns, self._picked), kinds)
            else:
                self.emit_late(Plain(self._projection.columns(frame), len(batch)), kinds)
        except EvaluationFailed as problem:
            raise self.fail(problem) from None

    def _some(self, frame: Frame, columns: LateRows, kinds: pa.Array | None, places: np.ndarray) -> None:
        """Go on with some of the rows; columns that nobody reads are left alone."""
        if not len(places):
            return
        rows = pa.array(places)
        kinds = None if kinds is None else kinds.take(rows)
        if self._projection is None:
            self.emit_late(Some(columns, places), kinds)
        elif self._picked is not None:
            self.emit_late(Some(Picked(columns, self._picked), places), kinds)
        elif self._only_reads and isinstance(columns, Plain):
            self.emit_late(Some(Plain(self._projection.columns(frame), frame.count), places), kinds)
        else:
            gathered = None if isinstance(columns, Plain) else Some(columns, places)
            self.emit_late(Plain(self._projection.columns(frame.some(rows, gathered)), len(places)), kinds)


def _reads(expression: Expression) -> bool:
    """Whether it is a column, or a field of one, and nothing has to be computed."""
    return isinstance(expression, Ref) or (isinstance(expression, FieldRef) and _reads(expression.operand))
