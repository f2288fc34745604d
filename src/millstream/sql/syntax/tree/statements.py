"""Syntax tree of statements, except ALTER.

Promises: frozen values; every statement of Flink SQL has a node, and those that are not supported are `Unsupported`.
Does not know: catalogs, and what a statement does."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.sql.syntax.tree.expressions import Expr, IntervalLiteral
from millstream.sql.syntax.tree.node import Node
from millstream.sql.syntax.tree.queries import Hint, Query
from millstream.sql.types.data_types import DataType


class Statement(Node):
    """A statement."""


@dataclass(frozen=True)
class SelectStatement(Statement):
    """A query that is a statement."""

    query: Query


@dataclass(frozen=True)
class ColumnDef(Node):
    """A column of CREATE TABLE: physical, computed (`expr`) or read from the metadata of records."""

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
    """CREATE TABLE, also with AS or LIKE, and REPLACE TABLE (`must_exist`)."""

    name: tuple[str, ...]
    columns: tuple[ColumnDef, ...] = ()
    watermark: WatermarkDef | None = None
    primary_key: tuple[str, ...] = ()
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
class CreateMaterializedTable(Statement):
    """CREATE [OR ALTER] MATERIALIZED TABLE; `table` has the query, `text` is the query as written."""

    table: CreateTable
    text: str
    freshness: IntervalLiteral | None = None
    refresh_mode: str | None = None
    or_alter: bool = False


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

    object_type: str
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
class CreateModel(Statement):
    """CREATE MODEL name INPUT (...) OUTPUT (...) WITH (...)."""

    name: tuple[str, ...]
    input: tuple[ColumnDef, ...] = ()
    output: tuple[ColumnDef, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    comment: str | None = None
    temporary: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class Drop(Statement):
    """DROP [MATERIALIZED] TABLE, VIEW, DATABASE, CATALOG, FUNCTION or MODEL."""

    object_type: str
    name: tuple[str, ...]
    if_exists: bool = False
    temporary: bool = False
    system: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Show(Statement):
    """SHOW TABLES and other SHOW statements; `subject` is what follows SHOW, in upper case."""

    subject: str
    name: tuple[str, ...] = ()
    like: str | None = None
    negated: bool = False
    ignore_case: bool = False
    partition: tuple[tuple[str, Expr | None], ...] = ()


@dataclass(frozen=True)
class Describe(Statement):
    """DESCRIBE a table, a catalog, a database, a function, a model or a job."""

    name: tuple[str, ...]
    object_type: str = "TABLE"
    extended: bool = False


@dataclass(frozen=True)
class Use(Statement):
    """USE [CATALOG | MODULES]; `object_type` is CATALOG, DATABASE or MODULES."""

    object_type: str
    name: tuple[str, ...]


@dataclass(frozen=True)
class Insert(Statement):
    """INSERT INTO or OVERWRITE. `conflict` is the action of ON CONFLICT DO."""

    table: tuple[str, ...]
    query: Query
    columns: tuple[str, ...] = ()
    partition: tuple[tuple[str, Expr | None], ...] = ()
    overwrite: bool = False
    hints: tuple[Hint, ...] = ()
    conflict: str | None = None
    table_at: int = 0


@dataclass(frozen=True)
class Delete(Statement):
    """DELETE FROM table [WHERE condition]."""

    table: tuple[str, ...]
    condition: Expr | None = None
    alias: str | None = None
    table_at: int = 0


@dataclass(frozen=True)
class Update(Statement):
    """UPDATE table SET column = expression, ... [WHERE condition]."""

    table: tuple[str, ...]
    assignments: tuple[tuple[str, Expr], ...]
    condition: Expr | None = None
    alias: str | None = None
    table_at: int = 0


@dataclass(frozen=True)
class Truncate(Statement):
    """TRUNCATE TABLE table."""

    table: tuple[str, ...]
    table_at: int = 0


@dataclass(frozen=True)
class Analyze(Statement):
    """ANALYZE TABLE table [PARTITION (...)] COMPUTE STATISTICS [FOR ...]; `columns` is None for all columns."""

    table: tuple[str, ...]
    partition: tuple[tuple[str, Expr | None], ...] = ()
    columns: tuple[str, ...] | None = ()
    table_at: int = 0


@dataclass(frozen=True)
class CallProcedure(Statement):
    """CALL procedure(argument, name => argument, ...)."""

    name: tuple[str, ...]
    arguments: tuple[Expr, ...] = ()


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
    """SET 'key' = 'value'; without key and value it shows all options."""

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
    """A statement that Flink has and this project does not support."""

    what: str
    reason: str
