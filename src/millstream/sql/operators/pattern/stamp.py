"""Rows get the timestamps of their time attribute.

Promises: nothing else changes.
Does not know: who needs timestamps."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.operators.moments import column_millis
from millstream.sql.operators.spec import STATELESS, PlanContext, SqlOperatorSpec, StateTraits


@dataclass(frozen=True)
class StampSpec(SqlOperatorSpec):
    """The column that holds the time."""

    column: int

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Declare that no state is kept."""
        return STATELESS

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return StampOperator(context, self.column)


class StampOperator(Operator):
    """Stateless."""

    def __init__(self, context: OperatorContext, column: int) -> None:
        super().__init__(context)
        self._column = column

    def on_batch(self, batch: Batch, side: int) -> None:
        """Give timestamps."""
        self.out.emit(batch.with_timestamps(column_millis(batch.array().field(self._column))))
