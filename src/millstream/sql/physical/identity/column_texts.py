"""The text of each column of an operation: the table and column it comes from, or the expression it is computed by.

Promises: a column that passes an operator keeps its text, whatever its index or name is; so a key stays the same key
when columns are added or removed beside it.
Does not know: state."""

from __future__ import annotations

from millstream.sql.expressions.stable_text import short_name
from millstream.sql.operators.spec import ColumnTexts, PartialAggregateSpec, PlanContext, SqlOperatorSpec, pass_columns
from millstream.sql.physical.nodes import Operation, Origin, ScanOrigin


class ColumnTextsOfPlans:
    """The column texts of operations that share inputs; each operation is visited once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Operation, ColumnTexts]] = {}

    def of(self, operation: Operation) -> ColumnTexts:
        """Return the text of each column of an operation's output."""
        known = self._known.get(id(operation))
        if known is None:
            known = self._known[id(operation)] = (operation, tuple(self._compute(operation)))
        return known[1]

    def context(self, operation: Operation) -> PlanContext:
        """Return where an operation stands. An input that is aggregated before the exchange counts as its own input."""
        origin = operation.origin
        name = short_name(origin.name) if isinstance(origin, Origin) else operation.name
        inputs = tuple(
            self.of(each.inputs[0] if isinstance(each.spec, PartialAggregateSpec) else each)
            for each in operation.inputs
        )
        keys = operation.distributions[0].keys if operation.distributions else ()
        return PlanContext(name, inputs, tuple(each.schema for each in operation.inputs), operation.schema, keys)

    def _compute(self, operation: Operation) -> ColumnTexts:
        context = self.context(operation)
        if not operation.inputs or isinstance(operation.origin, ScanOrigin):
            return [f"{context.name}.{name}" for name in operation.schema.names]
        if isinstance(operation.spec, SqlOperatorSpec):
            return operation.spec.column_texts(context)
        return pass_columns(context)
