"""Projection and filter on whole columns.

Promises: a row keeps its kind of change; a row that the condition does not let through is gone.
Does not know: keys, state."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.sql import types as t
from millstream.sql.columns import struct_of
from millstream.sql.evaluate import Condition, EvaluationFailed, Projection, TakenColumns
from millstream.sql.expressions import Expression, Ref
from millstream.sql.fields import FieldRef
from millstream.sql.function_context import ASYNC_DEFAULTS, AsyncOptions
from millstream.sql.operators.base import TableOperator
from millstream.sql.operators.late_rows import LateBatch, Picked, Plain, Some


@dataclass(frozen=True)
class CalcSpec(OperatorSpec):
    """A condition, then columns; either may be missing."""

    input: t.RowType
    output: t.RowType
    condition: Expression | None
    exprs: tuple[Expression, ...] | None
    zone: str = "UTC"
    asynchronous: AsyncOptions = ASYNC_DEFAULTS

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return CalcOperator(context, self)


class CalcOperator(TableOperator):
    """Stateless."""

    def __init__(self, context: OperatorContext, spec: CalcSpec) -> None:
        super().__init__(context, spec.output, spec.zone, spec, spec.asynchronous)
        self._width = len(spec.input)
        self._condition = None if spec.condition is None else Condition(spec.condition)
        self._projection = None if spec.exprs is None else Projection(spec.exprs)
        self._picked = [each.index for each in spec.exprs or () if isinstance(each, Ref)]
        self._only_picks = self._condition is None and len(self._picked) == len(spec.exprs or ()) > 0
        self._only_reads = all(map(_reads, spec.exprs or ()))

    def on_batch(self, batch: Batch, side: int) -> None:
        """Compute."""
        if self._only_picks and isinstance(batch, LateBatch):
            self.emit_late(Picked(batch.late, self._picked), batch.kinds)
            return
        array = batch.array()
        try:
            if self._condition is not None:
                holds = self._condition.holds(self.frame(array, self._width))
                if not holds.all():
                    self._some(array, np.flatnonzero(holds))
                    return
            if self._projection is not None:
                columns = self._projection.columns(self.frame(array, self._width))
                array = struct_of(columns, array.field(self._width), self.output, len(array))
        except EvaluationFailed as problem:
            raise self.fail(problem) from None
        self.emit_array(array)

    def _some(self, array: pa.Array, places: np.ndarray) -> None:
        """Go on with some of the rows; columns that nobody reads are left alone."""
        if not len(places):
            return
        rows = pa.array(places)
        if self._projection is None:
            self.emit_array(array.take(rows))
            return
        whole = self.frame(array, self._width)
        kinds = array.field(self._width)
        kinds = None if kinds.null_count == len(kinds) else kinds.take(rows)
        if self._only_reads:
            self.emit_late(Some(Plain(self._projection.columns(whole), len(array)), places), kinds)
            return
        frame = replace(whole, columns=TakenColumns(whole.columns, rows), count=len(places))
        self.emit_array(struct_of(self._projection.columns(frame), kinds, self.output, len(places)))


def _reads(expression: Expression) -> bool:
    """Whether it is a column, or a field of one, and nothing has to be computed."""
    return isinstance(expression, Ref) or (isinstance(expression, FieldRef) and _reads(expression.operand))
