"""Bound expressions: names and types are resolved, nothing is looked up any more.

Promises: frozen, picklable values; two that are equal always have equal results in one batch.
Does not know: how they are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class Expression:
    """Anything with a value of a type."""

    type: t.DataType

    def children(self) -> tuple[Expression, ...]:
        """What it is made of."""
        return ()

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """The same made of other things."""
        return self


@dataclass(frozen=True)
class Ref(Expression):
    """A column of the input, by position."""

    index: int

    def __str__(self) -> str:
        return f"${self.index}"


@dataclass(frozen=True)
class Lit(Expression):
    """A constant, as an internal value."""

    value: Any

    def __str__(self) -> str:
        return f"'{self.value}'" if isinstance(self.value, str) else str(self.value)


@dataclass(frozen=True)
class Sym(Expression):
    """A word that only a function understands."""

    word: str

    def __str__(self) -> str:
        return self.word


@dataclass(frozen=True)
class Apply(Expression):
    """A function of the registry applied to arguments."""

    function: str
    args: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        """The arguments."""
        return self.args

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """As Expression promises."""
        return replace(self, args=children)

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.args))})"


@dataclass(frozen=True)
class Convert(Expression):
    """CAST; `safe` gives NULL for what cannot be converted."""

    operand: Expression
    safe: bool = False

    def children(self) -> tuple[Expression, ...]:
        """The operand."""
        return (self.operand,)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """As Expression promises."""
        return replace(self, operand=children[0])

    def __str__(self) -> str:
        return f"{'TRY_' if self.safe else ''}CAST({self.operand} AS {self.type})"


@dataclass(frozen=True)
class Choose(Expression):
    """CASE: conditions and results in turn, then the last result."""

    args: tuple[Expression, ...]

    def children(self) -> tuple[Expression, ...]:
        """Conditions and results."""
        return self.args

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """As Expression promises."""
        return replace(self, args=children)

    def __str__(self) -> str:
        return f"CASE({', '.join(map(str, self.args))})"


@dataclass(frozen=True)
class UserCall(Expression):
    """A user's scalar function applied to arguments."""

    name: str
    function: Any = field(compare=False)
    args: tuple[Expression, ...] = ()

    def children(self) -> tuple[Expression, ...]:
        """The arguments."""
        return self.args

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """As Expression promises."""
        return replace(self, args=children)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.args))})"


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate of a group: arguments and filter are columns of the input, by position."""

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
    """The expression and everything in it."""
    yield expression
    for child in expression.children():
        yield from walk(child)


def rewrite(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with everything replaced for which `change` has an answer, from the top down."""
    found = change(expression)
    if found is not None:
        return found
    children = expression.children()
    if not children:
        return expression
    made = tuple(rewrite(child, change) for child in children)
    return expression if made == children else expression.with_children(made)


def shifted(expression: Expression, mapping: Mapping[int, int] | Callable[[int], int]) -> Expression:
    """The expression over other positions of its columns."""
    where = mapping if callable(mapping) else mapping.__getitem__

    def change(each: Expression) -> Expression | None:
        return Ref(each.type, where(each.index)) if isinstance(each, Ref) else None

    return rewrite(expression, change)


def substituted(expression: Expression, columns: tuple[Expression, ...]) -> Expression:
    """The expression with each column replaced by what makes it."""
    return rewrite(expression, lambda each: columns[each.index] if isinstance(each, Ref) else None)


def references(expression: Expression) -> set[int]:
    """The positions of the columns used."""
    return {each.index for each in walk(expression) if isinstance(each, Ref)}


def conjuncts(expression: Expression | None) -> list[Expression]:
    """What is joined by AND."""
    if expression is None:
        return []
    if isinstance(expression, Apply) and expression.function == "AND":
        return [part for arg in expression.args for part in conjuncts(arg)]
    return [expression]


def conjunction(parts: list[Expression]) -> Expression | None:
    """All of these, or None for none."""
    if not parts:
        return None
    found = parts[0]
    for part in parts[1:]:
        found = Apply(t.BooleanType(null=found.type.null or part.type.null), "AND", (found, part))
    return found


TRUE = Lit(t.BooleanType(null=False), True)
