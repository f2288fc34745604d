"""Syntax tree of expressions.

Promises: frozen values; names are as written, and an operator is a call whose name is the operator.
Does not know: what names refer to, and the types of expressions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.sql.syntax.tree.node import Node
from millstream.sql.types.data_types import DataType

if TYPE_CHECKING:  # expressions contain queries, and queries contain expressions
    from millstream.sql.syntax.tree.queries import Query, Source


class Expr(Node):
    """An expression."""


@dataclass(frozen=True)
class Name(Expr):
    """A column by name: [table.]column[.field ...]."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class Star(Expr):
    """`*` or `table.*`: all columns, or those of one table."""

    qualifier: tuple[str, ...] = ()


@dataclass(frozen=True)
class Literal(Expr):
    """A literal; a number is an int, a Decimal or a float."""

    value: Any
    type: DataType | None = None


@dataclass(frozen=True)
class IntervalLiteral(Expr):
    """INTERVAL '1 10:00' DAY TO MINUTE."""

    value: str
    unit: str
    to: str | None
    negative: bool = False
    precision: int | None = None


@dataclass(frozen=True)
class Symbol(Expr):
    """A keyword that is an argument of a function, such as a unit of time."""

    word: str


@dataclass(frozen=True)
class OrderItem(Node):
    """One expression of ORDER BY; `nulls_first` is None where it is not given."""

    expr: Expr
    ascending: bool = True
    nulls_first: bool | None = None


@dataclass(frozen=True)
class FrameBound(Node):
    """A bound of a window frame: type is UNBOUNDED, CURRENT or OFFSET; side is -1 for PRECEDING, 1 for FOLLOWING."""

    type: str
    side: int = 0
    offset: Expr | None = None


@dataclass(frozen=True)
class WindowSpec(Node):
    """A window specification, as in OVER (...), or the name of one; `rows` is False for RANGE."""

    name: str | None = None
    partition: tuple[Expr, ...] = ()
    order: tuple[OrderItem, ...] = ()
    rows: bool = False
    lower: FrameBound | None = None
    upper: FrameBound | None = None


@dataclass(frozen=True)
class Call(Expr):
    """A call of a function or an operator; `nulls` is IGNORE or RESPECT, `user` a Python function of the Table API."""

    name: str
    args: tuple[Expr, ...]
    distinct: bool = False
    filter: Expr | None = None
    over: WindowSpec | None = None
    order: tuple[OrderItem, ...] = ()
    nulls: str | None = None
    star: bool = False
    path: tuple[str, ...] = ()
    user: Any = field(default=None, compare=False)


@dataclass(frozen=True)
class NamedArgument(Expr):
    """name => value."""

    name: str
    value: Expr


@dataclass(frozen=True)
class Cast(Expr):
    """CAST and TRY_CAST."""

    operand: Expr
    type: DataType
    safe: bool = False


@dataclass(frozen=True)
class Case(Expr):
    """CASE; an operand is compared with the value of each WHEN."""

    operand: Expr | None
    whens: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None


@dataclass(frozen=True)
class In(Expr):
    """x IN (1, 2) or x IN (SELECT ...)."""

    operand: Expr
    items: tuple[Expr, ...]
    query: Query | None
    negated: bool


@dataclass(frozen=True)
class Exists(Expr):
    """EXISTS (SELECT ...)."""

    query: Query


@dataclass(frozen=True)
class Subquery(Expr):
    """A scalar subquery."""

    query: Query


@dataclass(frozen=True)
class ElementAccess(Expr):
    """array[1] or map['k']."""

    operand: Expr
    index: Expr


@dataclass(frozen=True)
class FieldAccess(Expr):
    """(expression).field; in the Table API, the field can also be given by its index."""

    operand: Expr
    name: str | int


@dataclass(frozen=True)
class Descriptor(Expr):
    """DESCRIPTOR(column, ...)."""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class ModelArgument(Expr):
    """MODEL name, as an argument of a table function."""

    path: tuple[str, ...]


@dataclass(frozen=True)
class TableArgument(Expr):
    """TABLE t, or a query, as an argument of a table function."""

    table: Source
    partition: tuple[Expr, ...] = ()
