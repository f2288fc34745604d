"""The syntax tree: what a statement says, before any name in it means anything.

Promises: frozen values; every node knows the offset in the text at which it begins, which takes no part in equality.
Does not know: catalogs, types of expressions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from millstream.sql.types.data_types import DataType


@dataclass(frozen=True)
class Node:
    """Anything with a place in the text."""

    at: int = field(compare=False)


# ------------------------------------------------------------------------------------------------------ expressions


class Expr(Node):
    """Anything that has a value."""


@dataclass(frozen=True)
class Name(Expr):
    """A column, perhaps qualified, perhaps with fields of it."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class Star(Expr):
    """All columns, of one table where it is qualified."""

    qualifier: tuple[str, ...] = ()


@dataclass(frozen=True)
class Constant(Expr):
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
    """A word that only a function understands."""

    word: str


@dataclass(frozen=True)
class OrderItem(Node):
    """An expression to order by."""

    expr: Expr
    ascending: bool = True
    nulls_first: bool | None = None


@dataclass(frozen=True)
class Bound(Node):
    """An end of a frame: UNBOUNDED, CURRENT or an offset, before (-1) or after (1) the row."""

    kind: str
    side: int = 0
    offset: Expr | None = None


@dataclass(frozen=True)
class WindowSpec(Node):
    """OVER (...), or the name of one."""

    name: str | None = None
    partition: tuple[Expr, ...] = ()
    order: tuple[OrderItem, ...] = ()
    rows: bool = False
    lower: Bound | None = None
    upper: Bound | None = None


@dataclass(frozen=True)
class Call(Expr):
    """A function or an operator applied to arguments."""

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
    """CASE; with an operand it is compared with each WHEN."""

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
    """A query that stands for one value."""

    query: Query


@dataclass(frozen=True)
class Access(Expr):
    """array[1] or map['k']."""

    operand: Expr
    index: Expr


@dataclass(frozen=True)
class FieldOf(Expr):
    """(expression).field."""

    operand: Expr
    name: str


@dataclass(frozen=True)
class Descriptor(Expr):
    """DESCRIPTOR(column, ...)."""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class TableArgument(Expr):
    """TABLE t, or a query, as an argument of a table function."""

    table: Source
    partition: tuple[Expr, ...] = ()


# ---------------------------------------------------------------------------------------------------------- queries


@dataclass(frozen=True)
class Hint(Node):
    """One hint with its options: words, or keys with values."""

    name: str
    words: tuple[str, ...]
    options: tuple[tuple[str, str], ...]


class Source(Node):
    """Anything that can stand in FROM."""


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
    """A plan that is bound already: a Table of the Table API."""

    plan: Any
    alias: str | None = None


@dataclass(frozen=True)
class Derived(Source):
    """A query in FROM."""

    query: Query
    alias: str | None = None
    columns: tuple[str, ...] = ()
    lateral: bool = False


@dataclass(frozen=True)
class TableCall(Source):
    """TABLE(f(...)), LATERAL TABLE(f(...)) or UNNEST(...)."""

    call: Call
    alias: str | None = None
    columns: tuple[str, ...] = ()
    ordinality: bool = False


@dataclass(frozen=True)
class Joined(Source):
    """Two sources side by side: kind is INNER, LEFT, RIGHT, FULL or CROSS."""

    kind: str
    left: Source
    right: Source
    condition: Expr | None = None
    using: tuple[str, ...] = ()
    natural: bool = False


@dataclass(frozen=True)
class PatternNode(Node):
    """A piece of a row pattern: a variable, a sequence, a choice, or a piece with a quantifier."""

    kind: str
    name: str = ""
    parts: tuple[PatternNode, ...] = ()
    least: int = 1
    most: int | None = 1
    greedy: bool = True


@dataclass(frozen=True)
class Matched(Source):
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
    """One element of GROUP BY: kind is plain, SETS, ROLLUP or CUBE; `sets` holds lists of expressions."""

    kind: str
    sets: tuple[tuple[Expr, ...], ...]


class Body(Node):
    """What a query is made of: SELECT, VALUES, or two of them with a set operation."""


@dataclass(frozen=True)
class Select(Body):
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
class ValuesList(Body):
    """VALUES (1, 'a'), (2, 'b')."""

    rows: tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True)
class SetOperation(Body):
    """UNION, INTERSECT, EXCEPT."""

    operator: str
    all: bool
    left: Query
    right: Query


@dataclass(frozen=True)
class Query(Node):
    """A whole query."""

    body: Body
    ctes: tuple[tuple[str, tuple[str, ...], Query], ...] = ()
    order: tuple[OrderItem, ...] = ()
    limit: int | None = None
    offset: int | None = None


# ------------------------------------------------------------------------------------------------------- statements


class Statement(Node):
    """Anything that can be executed."""


@dataclass(frozen=True)
class SelectStatement(Statement):
    """A query on its own."""

    query: Query


@dataclass(frozen=True)
class ColumnDef(Node):
    """A column of CREATE TABLE: physical, computed (`expr`) or of the record's metadata."""

    name: str
    type: DataType | None = None
    expr: Expr | None = None
    metadata: bool = False
    metadata_key: str | None = None
    virtual: bool = False
    comment: str | None = None
    primary_key: bool = False


@dataclass(frozen=True)
class WatermarkDef(Node):
    """WATERMARK FOR column AS expression."""

    column: tuple[str, ...]
    expr: Expr


@dataclass(frozen=True)
class DistributionDef(Node):
    """DISTRIBUTED BY [HASH | RANGE] (column, ...) INTO n BUCKETS."""

    kind: str | None
    columns: tuple[str, ...]
    buckets: int | None


@dataclass(frozen=True)
class PartitionDef(Node):
    """PARTITION (key = value, ...) WITH (...)."""

    spec: tuple[tuple[str, Expr | None], ...]
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class LikeClause(Node):
    """LIKE table (INCLUDING OPTIONS ...)."""

    table: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class CreateTable(Statement):
    """CREATE TABLE, with AS or LIKE perhaps."""

    name: tuple[str, ...]
    columns: tuple[ColumnDef, ...] = ()
    watermark: WatermarkDef | None = None
    primary_key: tuple[str, ...] = ()
    enforced: bool = False
    partitions: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    comment: str | None = None
    temporary: bool = False
    if_not_exists: bool = False
    or_replace: bool = False
    like: LikeClause | None = None
    query: Query | None = None
    constraint: str | None = None
    distribution: DistributionDef | None = None
    must_exist: bool = False


@dataclass(frozen=True)
class CreateView(Statement):
    """CREATE VIEW; `text` is the query as written."""

    name: tuple[str, ...]
    query: Query
    text: str
    columns: tuple[str, ...] = ()
    comment: str | None = None
    temporary: bool = False
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True)
class CreateNamespace(Statement):
    """CREATE DATABASE or CATALOG."""

    kind: str
    name: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    comment: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateFunction(Statement):
    """CREATE FUNCTION ... AS 'module.name' LANGUAGE PYTHON."""

    name: tuple[str, ...]
    target: str
    language: str
    temporary: bool = False
    system: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class Drop(Statement):
    """DROP anything."""

    kind: str
    name: tuple[str, ...]
    if_exists: bool = False
    temporary: bool = False
    system: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Alter(Statement):
    """ALTER anything: `action` names what, `arguments` hold its parts."""

    kind: str
    name: tuple[str, ...]
    action: str
    arguments: tuple[Any, ...] = ()
    if_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True)
class Show(Statement):
    """SHOW TABLES and its kin; `kind` in upper case without SHOW."""

    kind: str
    name: tuple[str, ...] = ()
    like: str | None = None
    negated: bool = False
    ignore_case: bool = False
    partition: tuple[tuple[str, Expr | None], ...] = ()


@dataclass(frozen=True)
class Describe(Statement):
    """DESCRIBE a table, a catalog, a database or a function."""

    name: tuple[str, ...]
    kind: str = "TABLE"
    extended: bool = False


@dataclass(frozen=True)
class Use(Statement):
    """USE [CATALOG | MODULES]."""

    kind: str
    name: tuple[str, ...]


@dataclass(frozen=True)
class Insert(Statement):
    """INSERT INTO or OVERWRITE. `conflict` is what ON CONFLICT DO says."""

    table: tuple[str, ...]
    query: Query
    columns: tuple[str, ...] = ()
    partition: tuple[tuple[str, Expr | None], ...] = ()
    overwrite: bool = False
    hints: tuple[Hint, ...] = ()
    conflict: str | None = None
    table_at: int = 0


@dataclass(frozen=True)
class StatementSet(Statement):
    """EXECUTE STATEMENT SET BEGIN ... END."""

    inserts: tuple[Insert, ...]


@dataclass(frozen=True)
class Explain(Statement):
    """EXPLAIN [details] statement."""

    statement: Statement
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class SetOption(Statement):
    """SET 'key' = 'value', or without both to show all."""

    key: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class ResetOption(Statement):
    """RESET ['key']."""

    key: str | None = None


@dataclass(frozen=True)
class Module(Statement):
    """LOAD or UNLOAD MODULE."""

    action: str
    name: str
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class StopJob(Statement):
    """STOP JOB 'id' [WITH SAVEPOINT] [WITH DRAIN]."""

    job: str
    savepoint: bool = False
    drain: bool = False


@dataclass(frozen=True)
class PlanFile(Statement):
    """COMPILE PLAN 'file' FOR statement, or EXECUTE PLAN 'file'."""

    action: str
    path: str
    statement: Statement | None = None
    if_not_exists: bool = False


@dataclass(frozen=True)
class Unsupported(Statement):
    """A statement of Flink's that is understood and refused."""

    what: str
    reason: str
