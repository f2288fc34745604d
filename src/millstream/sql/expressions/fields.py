"""A field of a row, as an expression.

Promises: NULL when the row is.
Does not know: names; they were resolved to positions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from millstream.sql.expressions.nodes import Expression


@dataclass(frozen=True)
class FieldRef(Expression):
    """The field at a position of a row."""

    operand: Expression
    index: int

    def children(self) -> tuple[Expression, ...]:
        """The row."""
        return (self.operand,)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """As Expression promises."""
        return replace(self, operand=children[0])

    def __str__(self) -> str:
        return f"{self.operand}.{self.index}"
