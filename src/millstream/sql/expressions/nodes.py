"""Bound expressions: all names and types are resolved.

Promises: frozen, picklable values; equal expressions have equal results on the same batch.
Does not know: how they are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class Expression:
    """A node of an expression tree, with the type of its value."""

    type: t.DataType

    def children(self) -> tuple[Expression, ...]:
        """Return the operands."""
        return ()

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """Return the same expression with other operands."""
        return self


@dataclass(frozen=True)
class Ref(Expression):
    """A column of the input, by column index."""

    index: int

    def __str__(self) -> str:
        return f"${self.index}"


@dataclass(frozen=True)
class Lit(Expression):
    """A literal, as a value in internal representation."""

    value: Any

    def __str__(self) -> str:
        return f"'{self.value}'" if isinstance(self.value, str) else str(self.value)


@dataclass(frozen=True)
class Sym(Expression):
    """A keyword argument of a function, such as a time unit."""

    word: str

    def __str__(self) -> str:
        return self.word


@dataclass(frozen=True)
class FieldRef(Expression):
    """A field of a row, by field index; NULL if the row is NULL."""

    operand: Expression
    index: int

    def children(self) -> tuple[Expression, ...]:
        """Return the row."""
        return (self.operand,)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """Return the same field of another row."""
        return replace(self, operand=children[0])

    def __str__(self) -> str:
        return f"{self.operand}.{self.index}"


@dataclass(frozen=True)
class Apply(Expression):
    """A call of a built-in function."""

    function: str
    args: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        """Return the arguments."""
        return self.args

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """Return the same call with other arguments."""
        return replace(self, args=children)

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.args))})"


@dataclass(frozen=True)
class Convert(Expression):
    """CAST; with `safe`, TRY_CAST: NULL for values that cannot be converted."""

    operand: Expression
    safe: bool = False

    def children(self) -> tuple[Expression, ...]:
        """Return the operand."""
        return (self.operand,)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """Return the same cast of another operand."""
        return replace(self, operand=children[0])

    def __str__(self) -> str:
        return f"{'TRY_' if self.safe else ''}CAST({self.operand} AS {self.type})"


@dataclass(frozen=True)
class Choose(Expression):
    """CASE: conditions and results in turn, then the result of ELSE."""

    args: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        """Return conditions and results."""
        return self.args

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """Return a CASE of other conditions and results."""
        return replace(self, args=children)

    def __str__(self) -> str:
        return f"CASE({', '.join(map(str, self.args))})"


@dataclass(frozen=True)
class UserCall(Expression):
    """A call of a user-defined scalar function."""

    name: str
    function: Any = field(compare=False)
    args: tuple[Expression, ...] = ()

    def children(self) -> tuple[Expression, ...]:
        """Return the arguments."""
        return self.args

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """Return the same call with other arguments."""
        return replace(self, args=children)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.args))})"


@dataclass(frozen=True)
class AggregateCall:
    """A call of an aggregate function; arguments and filter are column indexes of the input."""

    function: str
    args: tuple[int, ...]
    type: t.DataType
    arg_types: tuple[t.DataType, ...]
    distinct: bool = False
    filter: int | None = None
    order: tuple[tuple[int, bool, bool], ...] = ()
    options: tuple[Any, ...] = ()
    user: Any = field(default=None, compare=False)

    def __str__(self) -> str:
        inside = ", ".join(f"${i}" for i in self.args) or "*"
        tail = "" if self.filter is None else f" FILTER ${self.filter}"
        return f"{self.function}({'DISTINCT ' if self.distinct else ''}{inside}){tail}"


def walk(expression: Expression) -> Iterator[Expression]:
    """Iterate over an expression and all expressions in it, the parent first."""
    yield expression
    for child in expression.children():
        yield from walk(child)


def rewrite(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """Replace every subexpression for which `change` returns another one, from the top down."""
    replacement = change(expression)
    if replacement is not None:
        return replacement
    children = expression.children()
    if not children:
        return expression
    rewritten_children = tuple(rewrite(child, change) for child in children)
    return expression if rewritten_children == children else expression.with_children(rewritten_children)


def shift_references(expression: Expression, mapping: Mapping[int, int] | Callable[[int], int]) -> Expression:
    """Map the column indexes of an expression."""
    map_index = mapping if callable(mapping) else mapping.__getitem__

    def change(node: Expression) -> Expression | None:
        return Ref(node.type, map_index(node.index)) if isinstance(node, Ref) else None

    return rewrite(expression, change)


def substitute(expression: Expression, columns: tuple[Expression, ...]) -> Expression:
    """Replace each column reference by the expression that computes the column."""
    return rewrite(expression, lambda node: columns[node.index] if isinstance(node, Ref) else None)


def find_references(expression: Expression) -> set[int]:
    """Return the indexes of the columns that an expression reads."""
    return {node.index for node in walk(expression) if isinstance(node, Ref)}


def split_conjuncts(expression: Expression | None) -> list[Expression]:
    """Split a condition at AND."""
    if expression is None:
        return []
    if isinstance(expression, Apply) and expression.function == "AND":
        return [part for arg in expression.args for part in split_conjuncts(arg)]
    return [expression]


def combine_conjuncts(parts: list[Expression]) -> Expression | None:
    """Connect conditions by AND; None if there are none."""
    if not parts:
        return None
    condition = parts[0]
    for part in parts[1:]:
        condition = Apply(t.BooleanType(null=condition.type.null or part.type.null), "AND", (condition, part))
    return condition


TRUE = Lit(t.BooleanType(null=False), True)
