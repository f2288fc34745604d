"""Syntax tree of ALTER: the statement and its actions.

Promises: frozen values; each action of ALTER is a class of its own with typed fields.
Does not know: catalogs, and which actions an object supports; the grammar decides that."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.sql.syntax.tree.expressions import Expr
from millstream.sql.syntax.tree.queries import Query
from millstream.sql.syntax.tree.statements import ColumnDef, DistributionDef, PartitionDef, Statement, WatermarkDef


@dataclass(frozen=True)
class Rename:
    """RENAME TO name."""

    target: tuple[str, ...]


@dataclass(frozen=True)
class SetOptions:
    """SET ('key' = 'value', ...)."""

    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ResetOptions:
    """RESET ('key', ...)."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class SetComment:
    """COMMENT 'text'."""

    comment: str


@dataclass(frozen=True)
class SetViewQuery:
    """AS query, for a view or a materialized table; `text` is the query as written."""

    query: Query
    text: str


@dataclass(frozen=True)
class SetFunctionTarget:
    """AS 'module.name' [LANGUAGE name], for a function."""

    target: str
    language: str


@dataclass(frozen=True)
class RenameColumn:
    """RENAME column TO new_name."""

    column: str
    new_name: str


@dataclass(frozen=True)
class PositionedColumn:
    """A column of ADD or MODIFY with its position: FIRST, AFTER a column, or none."""

    column: ColumnDef
    first: bool = False
    after: str | None = None


@dataclass(frozen=True)
class PrimaryKeyDef:
    """[CONSTRAINT name] PRIMARY KEY (column, ...) NOT ENFORCED."""

    constraint: str | None
    columns: tuple[str, ...]


SchemaPart = PositionedColumn | WatermarkDef | PrimaryKeyDef


@dataclass(frozen=True)
class AddSchemaParts:
    """ADD columns, a watermark or a primary key."""

    parts: tuple[SchemaPart, ...]


@dataclass(frozen=True)
class ModifySchemaParts:
    """MODIFY columns, a watermark or a primary key."""

    parts: tuple[SchemaPart, ...]


@dataclass(frozen=True)
class AddDistribution:
    """ADD DISTRIBUTION ..."""

    distribution: DistributionDef


@dataclass(frozen=True)
class ModifyDistribution:
    """MODIFY DISTRIBUTION ..."""

    distribution: DistributionDef


@dataclass(frozen=True)
class DropDistribution:
    """DROP DISTRIBUTION."""


@dataclass(frozen=True)
class DropColumns:
    """DROP column, or DROP (column, ...)."""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class DropWatermark:
    """DROP WATERMARK."""


@dataclass(frozen=True)
class DropPrimaryKey:
    """DROP PRIMARY KEY, or DROP CONSTRAINT name."""

    constraint: str | None = None


@dataclass(frozen=True)
class AddPartitions:
    """ADD [IF NOT EXISTS] PARTITION (...) [WITH (...)] ..."""

    partitions: tuple[PartitionDef, ...]
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropPartitions:
    """DROP [IF EXISTS] PARTITION (...), ..."""

    partitions: tuple[PartitionDef, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class Suspend:
    """SUSPEND, for a materialized table."""


@dataclass(frozen=True)
class Resume:
    """RESUME [WITH (...)], for a materialized table."""

    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Refresh:
    """REFRESH [PARTITION (...)], for a materialized table."""

    partition: tuple[tuple[str, Expr | None], ...] = ()


AlterAction = (
    Rename | SetOptions | ResetOptions | SetComment | SetViewQuery | SetFunctionTarget | RenameColumn
    | AddSchemaParts | ModifySchemaParts | AddDistribution | ModifyDistribution | DropDistribution
    | DropColumns | DropWatermark | DropPrimaryKey | AddPartitions | DropPartitions
    | Suspend | Resume | Refresh
)  # fmt: skip


@dataclass(frozen=True)
class Alter(Statement):
    """ALTER [MATERIALIZED] TABLE, VIEW, DATABASE, CATALOG, FUNCTION or MODEL."""

    object_type: str
    name: tuple[str, ...]
    action: AlterAction
    if_exists: bool = False
    temporary: bool = False
