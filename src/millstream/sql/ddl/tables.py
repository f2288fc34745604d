"""The tables that CREATE TABLE describes.

Promises: computed columns and the watermark are bound, keys and partitions are columns, before a table is there.
Does not know: catalogs beyond what LIKE names."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from millstream.sql import syntax as s
from millstream.sql import types as t
from millstream.sql.bind.expressions import ExpressionBinder, Session
from millstream.sql.bind.tables import scope_of
from millstream.sql.catalog import ColumnDefinition, TableDefinition
from millstream.sql.ddl.texts import expression_text
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.logical import Scan


class DescribedTables:
    """Makes definitions of tables in one session; `text` is the statement as written."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._catalogs = session.catalogs

    def definition(self, node: s.CreateTable, text: str, extra: tuple[ColumnDefinition, ...] = ()) -> TableDefinition:
        """The table that CREATE TABLE describes; computed columns and the watermark are checked."""
        columns: list[ColumnDefinition] = list(extra)
        base = self._liked(node)
        if base is not None:
            columns = [each for each in base.columns if each.name not in {c.name for c in node.columns}]
        pending: list[s.ColumnDef] = []
        for column in node.columns:
            if any(each.name == column.name for each in columns):
                message = f"column '{column.name}' is there twice"
                raise SqlValidationError(message, at=column.at)
            names = [*(each.name for each in columns), *(each.name for each in node.columns)]
            columns.append(self.column(column, text, names))
            if column.expr is not None:
                pending.append(column)
        options = {**({} if base is None else dict(base.options)), **dict(node.options)}
        key = node.primary_key or (() if base is None else base.primary_key)
        watermark = None if base is None else base.watermark
        made = TableDefinition(
            tuple(columns), options, watermark, key, node.constraint,
            node.partitions or (() if base is None else base.partitions),
            node.comment or (None if base is None else base.comment),
        )  # fmt: skip
        made = self.with_computed(made, pending)
        if node.watermark is not None:
            made = self.with_watermark(made, node.watermark, text)
        names = [each.name for each in made.columns]
        for name in key:
            if name not in names:
                message = f"the primary key names '{name}', which is no column"
                raise SqlValidationError(message, at=node.at, hint=nearest(name, names))
            if not next(each for each in made.columns if each.name == name).is_physical:
                message = f"the primary key names '{name}', which is no physical column"
                raise SqlValidationError(message, at=node.at)
        for name in node.partitions:
            if name not in names:
                message = f"PARTITIONED BY names '{name}', which is no column"
                raise SqlValidationError(message, at=node.at, hint=nearest(name, names))
        return made

    def _liked(self, node: s.CreateTable) -> TableDefinition | None:
        if node.like is None:
            return None
        _, found = self._catalogs.table(node.like.table, node.like.at)
        if not isinstance(found, TableDefinition):
            message = f"'{'.'.join(node.like.table)}' is not a table that LIKE can follow"
            raise SqlValidationError(message, at=node.like.at)
        excluded = {what for how, what in node.like.options if how == "EXCLUDING"}
        included = {what for how, what in node.like.options if how in ("INCLUDING", "OVERWRITING")}
        if "ALL" in excluded:
            excluded |= {"CONSTRAINTS", "OPTIONS", "PARTITIONS", "WATERMARKS", "GENERATED", "METADATA"} - included
        columns = tuple(
            each
            for each in found.columns
            if not ("GENERATED" in excluded and each.expr is not None)
            and not ("METADATA" in excluded and each.metadata_key is not None)
        )
        return replace(
            found,
            columns=columns,
            options={} if "OPTIONS" in excluded else found.options,
            primary_key=() if "CONSTRAINTS" in excluded else found.primary_key,
            partitions=() if "PARTITIONS" in excluded else found.partitions,
            watermark=None if "WATERMARKS" in excluded else found.watermark,
        )

    @staticmethod
    def column(column: s.ColumnDef, text: str, names: Collection[str]) -> ColumnDefinition:
        """A column; the type of a computed one is found later."""
        if column.expr is not None:
            return ColumnDefinition(
                column.name, t.NULL, expression_text(column.expr, text, names), comment=column.comment
            )
        if column.type is None:
            message = f"column '{column.name}' has no type"
            raise SqlValidationError(message, at=column.at)
        key = (column.metadata_key or column.name) if column.metadata else None
        return ColumnDefinition(column.name, column.type, None, key, column.virtual, column.comment)

    def with_computed(self, table: TableDefinition, pending: list[s.ColumnDef]) -> TableDefinition:
        """A table whose computed columns have types."""
        if not pending:
            return table
        read = [each for each in table.columns if each.expr is None]
        scope = scope_of(Scan(t.row_of([c.name for c in read], [c.type for c in read], null=False), None))
        binder = ExpressionBinder(self._session, scope, clause="in a computed column")
        kinds = {column.name: binder.bind(column.expr).type for column in pending if column.expr is not None}
        columns = tuple(replace(each, type=kinds[each.name]) if each.name in kinds else each for each in table.columns)
        return replace(table, columns=columns)

    def with_watermark(self, table: TableDefinition, node: s.WatermarkDef, text: str) -> TableDefinition:
        """A table with a watermark."""
        name = ".".join(node.column)
        names = [each.name for each in table.columns]
        if name not in names:
            message = f"the watermark is for '{name}', which is no column"
            raise SqlValidationError(message, at=node.at, hint=nearest(name, names))
        kind = table.columns[names.index(name)].type
        if not t.is_timestamp(kind) or kind.precision > 3:  # type: ignore[attr-defined]
            message = f"a watermark needs TIMESTAMP(3) or TIMESTAMP_LTZ(3), '{name}' is {kind}"
            raise SqlValidationError(message, at=node.at)
        scope = scope_of(Scan(t.row_of(names, [each.type for each in table.columns], null=False), None))
        found = ExpressionBinder(self._session, scope, clause="in a watermark").bind(node.expr)
        if not t.is_timestamp(found.type):
            message = f"the watermark of '{name}' must be a timestamp, this is {found.type}"
            raise SqlValidationError(message, at=node.expr.at)
        return replace(table, watermark=(name, expression_text(node.expr, text, names)))
