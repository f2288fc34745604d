"""Syntax tree of queries: SELECT, set operations, and table expressions.

Promises: frozen values that contain the expressions and names of a query as written.
Does not know: catalogs, and what names refer to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.sql.syntax.tree.expressions import Call, Expr, OrderItem, WindowSpec
from millstream.sql.syntax.tree.node import Node


@dataclass(frozen=True)
class Hint(Node):
    """One hint with its arguments: words, or keys with values."""

    name: str
    words: tuple[str, ...]
    options: tuple[tuple[str, str], ...]


class Source(Node):
    """A table expression: an element of FROM."""


@dataclass(frozen=True)
class TableName(Source):
    """A table or view by name; `as_of` for FOR SYSTEM_TIME AS OF."""

    parts: tuple[str, ...]
    alias: str | None = None
    columns: tuple[str, ...] = ()
    hints: tuple[Hint, ...] = ()
    as_of: Expr | None = None


@dataclass(frozen=True)
class PlanSource(Source):
    """A logical plan instead of a name: a Table of the Table API."""

    plan: Any
    alias: str | None = None


@dataclass(frozen=True)
class DerivedTable(Source):
    """A query in FROM."""

    query: Query
    alias: str | None = None
    columns: tuple[str, ...] = ()
    lateral: bool = False


@dataclass(frozen=True)
class TableFunctionCall(Source):
    """TABLE(f(...)), LATERAL TABLE(f(...)) or UNNEST(...)."""

    call: Call
    alias: str | None = None
    columns: tuple[str, ...] = ()
    ordinality: bool = False


@dataclass(frozen=True)
class Join(Source):
    """A join; join_type is INNER, LEFT, RIGHT, FULL or CROSS."""

    join_type: str
    left: Source
    right: Source
    condition: Expr | None = None
    using: tuple[str, ...] = ()
    natural: bool = False


@dataclass(frozen=True)
class PatternNode(Node):
    """A part of a row pattern; type is variable, sequence, choice or quantified."""

    type: str
    name: str = ""
    parts: tuple[PatternNode, ...] = ()
    least: int = 1
    most: int | None = 1
    greedy: bool = True


@dataclass(frozen=True)
class MatchRecognize(Source):
    """MATCH_RECOGNIZE."""

    input: Source
    partition: tuple[Expr, ...]
    order: tuple[OrderItem, ...]
    measures: tuple[tuple[Expr, str], ...]
    all_rows: bool
    skip: tuple[str, str | None]
    pattern: PatternNode
    within: Expr | None
    define: tuple[tuple[str, Expr], ...]
    subsets: tuple[tuple[str, tuple[str, ...]], ...] = ()
    alias: str | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class GroupItem(Node):
    """One element of GROUP BY; type is PLAIN, SETS, ROLLUP or CUBE, and `sets` are its grouping sets."""

    type: str
    sets: tuple[tuple[Expr, ...], ...]


class QueryBody(Node):
    """A query without WITH, ORDER BY and LIMIT: SELECT, VALUES or a set operation."""


@dataclass(frozen=True)
class Select(QueryBody):
    """SELECT ... FROM ... WHERE ... GROUP BY ... HAVING ..."""

    items: tuple[tuple[Expr, str | None], ...]
    source: Source | None = None
    where: Expr | None = None
    group: tuple[GroupItem, ...] | None = None
    having: Expr | None = None
    windows: tuple[tuple[str, WindowSpec], ...] = ()
    qualify: Expr | None = None
    distinct: bool = False
    hints: tuple[Hint, ...] = ()


@dataclass(frozen=True)
class Values(QueryBody):
    """VALUES (1, 'a'), (2, 'b')."""

    rows: tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True)
class SetOperation(QueryBody):
    """UNION, INTERSECT, EXCEPT."""

    operator: str
    all: bool
    left: Query
    right: Query


@dataclass(frozen=True)
class Query(Node):
    """A query: a body with WITH, ORDER BY and LIMIT."""

    body: QueryBody
    ctes: tuple[tuple[str, tuple[str, ...], Query], ...] = ()
    order: tuple[OrderItem, ...] = ()
    limit: int | None = None
    offset: int | None = None
