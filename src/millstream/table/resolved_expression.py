"""ResolvedExpression: an expression whose type is known.

Promises: PyFlink's methods.
Does not know: plans."""

from __future__ import annotations

from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.expression import Expression
from millstream.table.expression.terms import text_of


class ResolvedExpression(Expression):
    """An expression with its type."""

    __slots__ = ("_type",)

    def __init__(self, node: s.Expr, data_type: t.DataType) -> None:
        super().__init__(node)
        self._type = data_type

    def get_output_data_type(self) -> t.DataType:
        """The type."""
        return self._type

    def get_resolved_children(self) -> list[Expression]:
        """What it is made of."""
        return [Expression(each) for each in getattr(self._node, "args", ())]

    def as_summary_string(self) -> str:
        """The expression as text."""
        return text_of(self._node)

    def as_serializable_string(self, *args: object) -> str:
        """The expression as SQL."""
        return text_of(self._node)
