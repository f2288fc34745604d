"""ALTER TABLE and ALTER VIEW.

Promises: a statement that fails changes nothing; a statement that would change nothing is an error, as in Flink.
Does not know: rows; the data of a table is not changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from millstream.sql.catalog.catalog import TableDefinition, ViewDefinition
from millstream.sql.ddl import partitions
from millstream.sql.ddl.results import OK, StatementResult
from millstream.sql.ddl.tables import TableBuilder, build_distribution, validate_table
from millstream.sql.errors import CatalogError, nearest
from millstream.sql.logical.bind.expressions import Session
from millstream.sql.logical.bind.queries import QueryBinder
from millstream.sql.syntax import tree as s
from millstream.sql.syntax.lexer import tokenize

_Check = Callable[[s.Alter, bool, str], None]


class AlterStatements:
    """Changes definitions in one session; `text` is the statement as written."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._catalogs = session.catalogs
        self._tables = TableBuilder(session)

    def alter(self, node: s.Alter, text: str) -> StatementResult:
        """ALTER TABLE and ALTER VIEW."""
        if node.if_exists and self._catalogs.find(node.name, node.at) is None:
            return OK
        full_name, table = self._catalogs.table(node.name, node.at)
        if node.object_type == "VIEW":
            return self._alter_view(node, full_name, table)
        if not isinstance(table, TableDefinition):
            message = f"'{'.'.join(node.name)}' is not a table"
            raise CatalogError(message, at=node.at)
        self._catalogs.check_not_materialized(full_name, "ALTER", node.at)
        match node.action:
            case s.Rename() as rename:
                return self._rename(node, rename, full_name, table)
            case s.AddPartitions() | s.DropPartitions() as action:
                notes = self._catalogs.notes(full_name, node.at)
                return partitions.alter_partitions(action, ".".join(full_name), table, notes)
        self._catalogs.set_table(full_name, self.change(node, table, text))
        return OK

    def change(self, node: s.Alter, table: TableDefinition, text: str) -> TableDefinition:
        """Return the definition of a table after a statement other than RENAME."""
        return validate_table(self._apply(node, table, text), node.at)

    def _alter_view(self, node: s.Alter, full_name: tuple[str, str, str], view: Any) -> StatementResult:
        if not isinstance(view, ViewDefinition):
            message = f"'{'.'.join(node.name)}' is not a view"
            raise CatalogError(message, at=node.at)
        match node.action:
            case s.Rename() as rename:
                return self._rename(node, rename, full_name, view)
            case s.SetViewQuery(query, query_text):
                plan = QueryBinder(self._session).query(query)
                changed = ViewDefinition(query_text, plan.schema, view.comment, home=self._catalogs.home())
                self._catalogs.set_table(full_name, changed)
        return OK

    def _rename(
        self, node: s.Alter, rename: s.Rename, full_name: tuple[str, str, str], table: TableDefinition | ViewDefinition
    ) -> StatementResult:
        target = rename.target
        new_name = (*full_name[:2], target[-1]) if len(target) == 1 else self._catalogs.full_name(target, node.at)
        temporary = full_name in self._catalogs.temporary
        self._catalogs.add_table(new_name, table, temporary=temporary, at=node.at)
        if temporary:
            del self._catalogs.temporary[full_name]
        else:
            notes = self._catalogs.database(full_name[0], full_name[1]).forget(full_name[2])
            self._catalogs.database(new_name[0], new_name[1]).notes[new_name[2]] = notes
        return OK

    def _apply(self, node: s.Alter, table: TableDefinition, text: str) -> TableDefinition:
        match node.action:
            case s.SetOptions(options):
                return replace(table, options={**table.options, **dict(options)})
            case s.ResetOptions(keys):
                if "connector" in keys:
                    message = "the option 'connector' cannot be reset"
                    raise CatalogError(message, at=node.at)
                return replace(table, options={k: v for k, v in table.options.items() if k not in keys})
            case s.RenameColumn() as action:
                return self._rename_column(node, table, action)
            case s.DropWatermark():
                self._check_exists(table.watermark is not None, "watermark", node)
                return replace(table, watermark=None)
            case s.DropPrimaryKey(constraint):
                self._check_exists(bool(table.primary_key), "primary key", node)
                name = table.constraint or f"PK_{'_'.join(table.primary_key)}"
                if constraint is not None and constraint != name:
                    message = f"there is no constraint '{constraint}'"
                    raise CatalogError(message, at=node.at, hint=f"the primary key is '{name}'")
                return replace(table, primary_key=(), constraint=None)
            case s.DropColumns(dropped):
                return self._drop_columns(node, table, dropped)
            case s.AddDistribution(distribution):
                self._check_add(node, table.distribution is not None, "distribution")
                return replace(table, distribution=build_distribution(distribution))
            case s.ModifyDistribution(distribution):
                self._check_modify(node, table.distribution is not None, "distribution")
                return replace(table, distribution=build_distribution(distribution))
            case s.DropDistribution():
                self._check_exists(table.distribution is not None, "distribution", node)
                return replace(table, distribution=None)
            case s.AddSchemaParts(parts):
                for part in parts:
                    table = self._apply_part(node, table, part, text, self._check_add)
                return self._tables.rebind(table, node.at)
            case s.ModifySchemaParts(parts):
                for part in parts:
                    table = self._apply_part(node, table, part, text, self._check_modify)
                return self._tables.rebind(table, node.at)
        msg = f"the grammar has no such action of ALTER TABLE: {node.action}"
        raise AssertionError(msg)

    def _rename_column(self, node: s.Alter, table: TableDefinition, action: s.RenameColumn) -> TableDefinition:
        old, new = action.column, action.new_name
        names = [column.name for column in table.columns]
        self._check_column_exists(old, names, node.at)
        if new in names:
            message = f"column '{new}' already exists"
            raise CatalogError(message, at=node.at)
        self._check_unused(table, old, (), node.at)
        columns = tuple(replace(column, name=new) if column.name == old else column for column in table.columns)
        primary_key = tuple(new if name == old else name for name in table.primary_key)
        return replace(table, columns=columns, primary_key=primary_key)

    def _drop_columns(self, node: s.Alter, table: TableDefinition, dropped: tuple[str, ...]) -> TableDefinition:
        if len(set(dropped)) != len(dropped):
            message = f"a column is listed twice: {', '.join(dropped)}"
            raise CatalogError(message, at=node.at)
        names = [column.name for column in table.columns]
        for name in dropped:
            self._check_column_exists(name, names, node.at)
            if name in table.primary_key:
                message = f"column '{name}' is part of the primary key"
                raise CatalogError(message, at=node.at, hint="ALTER TABLE ... DROP PRIMARY KEY first")
            self._check_unused(table, name, dropped, node.at)
        return replace(table, columns=tuple(column for column in table.columns if column.name not in dropped))

    @staticmethod
    def _check_exists(exists: bool, what: str, node: s.Alter) -> None:
        if not exists:
            message = f"'{'.'.join(node.name)}' has no {what} to drop"
            raise CatalogError(message, at=node.at)

    @staticmethod
    def _check_add(node: s.Alter, exists: bool, what: str) -> None:
        if exists:
            message = f"'{'.'.join(node.name)}' already has a {what}"
            raise CatalogError(message, at=node.at, hint="write MODIFY, or drop it first")

    @staticmethod
    def _check_modify(node: s.Alter, exists: bool, what: str) -> None:
        if not exists:
            message = f"'{'.'.join(node.name)}' has no {what} to modify"
            raise CatalogError(message, at=node.at, hint="write ADD")

    @staticmethod
    def _check_unused(table: TableDefinition, name: str, dropped: tuple[str, ...], at: int | None) -> None:
        """Check that a column is not used by other columns, unless they are dropped too, or by clauses of the table."""
        computed = [column for column in table.columns if column.expr is not None and column.name not in dropped]
        users = [f"column '{column.name}'" for column in computed if name in _find_names(column.expr)]
        if table.watermark is not None and (name == table.watermark[0] or name in _find_names(table.watermark[1])):
            users.append("the watermark")
        if name in table.partitions:
            users.append("PARTITIONED BY")
        if table.distribution is not None and name in table.distribution.columns:
            users.append("DISTRIBUTED BY")
        if users:
            message = f"column '{name}' is used by {' and '.join(users)}"
            raise CatalogError(message, at=at)

    @staticmethod
    def _check_column_exists(name: str, names: list[str], at: int | None) -> None:
        if name not in names:
            message = f"there is no column '{name}'"
            raise CatalogError(message, at=at, hint=nearest(name, names))

    def _apply_part(
        self, node: s.Alter, table: TableDefinition, part: s.SchemaPart, text: str, check: _Check
    ) -> TableDefinition:
        """Add or modify a part of the schema; `check` raises if a part to add exists, or a part to modify does not."""
        match part:
            case s.WatermarkDef():
                check(node, table.watermark is not None, "watermark")
                return self._tables.set_watermark(table, part, text)
            case s.PrimaryKeyDef(constraint, columns):
                check(node, bool(table.primary_key), "primary key")
                return replace(table, constraint=constraint, primary_key=columns)
        changed = self._place_column(node, table, part, text)
        definition = part.column
        if definition.primary_key:
            check(node, bool(table.primary_key), "primary key")
            changed = replace(changed, primary_key=(definition.name,), constraint=None)
        return self._tables.bind_computed_columns(changed, [definition]) if definition.expr is not None else changed

    def _place_column(
        self, node: s.Alter, table: TableDefinition, part: s.PositionedColumn, text: str
    ) -> TableDefinition:
        definition, is_modify = part.column, isinstance(node.action, s.ModifySchemaParts)
        names = [other.name for other in table.columns]
        column = self._tables.build_column(definition, text, names)
        if is_modify:
            self._check_column_exists(column.name, names, definition.at)
        elif column.name in names:
            message = f"column '{column.name}' already exists"
            raise CatalogError(message, at=definition.at)
        columns = [other for other in table.columns if other.name != column.name]
        if part.first:
            columns.insert(0, column)
        elif part.after is not None:
            self._check_column_exists(part.after, names, definition.at)
            columns.insert([other.name for other in columns].index(part.after) + 1, column)
        elif is_modify:
            columns.insert(names.index(column.name), column)
        else:
            columns.append(column)
        return replace(table, columns=tuple(columns))


def _find_names(text: str | None) -> set[str]:
    return {token.text for token in tokenize(text or "") if token.type in ("word", "quoted")}
