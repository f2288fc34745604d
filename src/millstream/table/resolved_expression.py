"""ResolvedExpression: an expression with a known data type.

Promises: PyFlink's methods.
Does not know: plans."""

from __future__ import annotations

from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.expression import Expression
from millstream.table.expression.terms import format_expression


class ResolvedExpression(Expression):
    """An expression with its data type."""

    __slots__ = ("_type",)

    def __init__(self, node: s.Expr, data_type: t.DataType) -> None:
        super().__init__(node)
        self._type = data_type

    def get_output_data_type(self) -> t.DataType:
        """Return the data type of the result."""
        return self._type

    def get_resolved_children(self) -> list[Expression]:
        """Return the arguments of the expression."""
        return [Expression(argument) for argument in getattr(self._node, "args", ())]

    def as_summary_string(self) -> str:
        """Return the expression as text for people."""
        return format_expression(self._node)

    def as_serializable_string(self, *args: object) -> str:
        """Return the expression as SQL."""
        return format_expression(self._node)
