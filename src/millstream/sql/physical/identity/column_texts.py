"""The text of each column of an operation: the table and column it comes from, or the expression it is computed by.

Promises: a column that passes an operator keeps its text, even if its index or name changes; so a key stays the same
key when columns are added or removed beside it.
Does not know: state."""

from __future__ import annotations

from millstream.sql.expressions.stable_text import shorten_table_name
from millstream.sql.operators.spec import ColumnTexts, PartialAggregateSpec, PlanContext, SqlOperatorSpec, pass_columns
from millstream.sql.physical.nodes import Operation, Origin, ScanOrigin


class ColumnTextsOfPlans:
    """The column texts of operations that share inputs; each operation is visited once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Operation, ColumnTexts]] = {}

    def of(self, operation: Operation) -> ColumnTexts:
        """Return the text of each column of an operation's output."""
        visited = self._known.get(id(operation))
        if visited is None:
            visited = self._known[id(operation)] = (operation, tuple(self._compute(operation)))
        return visited[1]

    def context(self, operation: Operation) -> PlanContext:
        """Return the context of an operation in its plan. Below a local aggregate, the input of that counts as the
        input."""
        origin = operation.origin
        name = shorten_table_name(origin.name) if isinstance(origin, Origin) else operation.name
        inputs = tuple(
            self.of(
                input_operation.inputs[0] if isinstance(input_operation.spec, PartialAggregateSpec) else input_operation
            )
            for input_operation in operation.inputs
        )
        keys = operation.distributions[0].keys if operation.distributions else ()
        return PlanContext(
            name, inputs, tuple(input_operation.schema for input_operation in operation.inputs), operation.schema, keys
        )

    def _compute(self, operation: Operation) -> ColumnTexts:
        context = self.context(operation)
        if not operation.inputs or isinstance(operation.origin, ScanOrigin):
            return [f"{context.name}.{name}" for name in operation.schema.names]
        if isinstance(operation.spec, SqlOperatorSpec):
            return operation.spec.column_texts(context)
        return pass_columns(context)
