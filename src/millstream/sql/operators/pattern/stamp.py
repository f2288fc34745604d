"""Sets the timestamps of records to a time attribute.

Promises: the rows do not change.
Does not know: who reads the timestamps."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.operators.spec import STATELESS, PlanContext, SqlOperatorSpec, StateTraits
from millstream.sql.operators.timestamps import read_column_millis


@dataclass(frozen=True)
class StampSpec(SqlOperatorSpec):
    """The time attribute, by column index."""

    column: int

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Declare that no state is kept."""
        return STATELESS

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return StampOperator(context, self.column)


class StampOperator(Operator):
    """Sets the timestamps of records."""

    def __init__(self, context: OperatorContext, column: int) -> None:
        super().__init__(context)
        self._column = column

    def on_batch(self, batch: Batch, side: int) -> None:
        """Pass the rows on with timestamps."""
        self.out.emit(batch.with_timestamps(read_column_millis(batch.array().field(self._column))))
