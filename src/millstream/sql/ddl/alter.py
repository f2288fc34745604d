"""ALTER TABLE and ALTER VIEW.

Promises: a statement that fails changes nothing; a statement that would change nothing is an error, as in Flink.
Does not know: rows; the data of a table is not changed."""

from __future__ import annotations

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
        full, table = self._catalogs.table(node.name, node.at)
        if node.kind == "VIEW":
            return self._alter_view(node, full, table)
        if not isinstance(table, TableDefinition):
            message = f"'{'.'.join(node.name)}' is not a table"
            raise CatalogError(message, at=node.at)
        if node.action == "RENAME":
            return self._rename(node, full, table)
        if node.action.endswith(" PARTITIONS"):
            return partitions.alter_partitions(node, ".".join(full), table, self._catalogs.notes(full, node.at))
        self._catalogs.set_table(full, validate_table(self._apply(node, table, text), node.at))
        return OK

    def _alter_view(self, node: s.Alter, full: tuple[str, str, str], view: Any) -> StatementResult:
        if not isinstance(view, ViewDefinition):
            message = f"'{'.'.join(node.name)}' is not a view"
            raise CatalogError(message, at=node.at)
        if node.action == "RENAME":
            return self._rename(node, full, view)
        if node.action == "AS":
            plan = QueryBinder(self._session).query(node.arguments[0])
            changed = ViewDefinition(node.arguments[1], plan.schema, view.comment, home=self._catalogs.home())
            self._catalogs.set_table(full, changed)
        return OK

    def _rename(self, node: s.Alter, full: tuple[str, str, str], table: Any) -> StatementResult:
        target = node.arguments[0]
        new = (*full[:2], target[-1]) if len(target) == 1 else self._catalogs.full_name(target, node.at)
        temporary = full in self._catalogs.temporary
        self._catalogs.add_table(new, table, temporary=temporary, at=node.at)
        if temporary:
            del self._catalogs.temporary[full]
        else:
            notes = self._catalogs.database(full[0], full[1]).forget(full[2])
            self._catalogs.database(new[0], new[1]).notes[new[2]] = notes
        return OK

    def _apply(self, node: s.Alter, table: TableDefinition, text: str) -> TableDefinition:
        names = [column.name for column in table.columns]
        match node.action:
            case "SET":
                return replace(table, options={**table.options, **dict(node.arguments[0])})
            case "RESET":
                if "connector" in node.arguments[0]:
                    message = "the option 'connector' cannot be reset"
                    raise CatalogError(message, at=node.at)
                return replace(table, options={k: v for k, v in table.options.items() if k not in node.arguments[0]})
            case "RENAME COLUMN":
                old, new = node.arguments
                self._check_column_exists(old, names, node.at)
                if new in names:
                    message = f"column '{new}' already exists"
                    raise CatalogError(message, at=node.at)
                self._check_unused(table, old, (), node.at)
                columns = tuple(replace(c, name=new) if c.name == old else c for c in table.columns)
                key = tuple(new if k == old else k for k in table.primary_key)
                return replace(table, columns=columns, primary_key=key)
            case "DROP WATERMARK":
                self._check_exists(table.watermark is not None, "watermark", node)
                return replace(table, watermark=None)
            case "DROP KEY":
                self._check_exists(bool(table.primary_key), "primary key", node)
                name = table.constraint or f"PK_{'_'.join(table.primary_key)}"
                if node.arguments and node.arguments[0] != name:
                    message = f"there is no constraint '{node.arguments[0]}'"
                    raise CatalogError(message, at=node.at, hint=f"the primary key is '{name}'")
                return replace(table, primary_key=(), constraint=None)
            case "DROP COLUMNS":
                if len(set(node.arguments)) != len(node.arguments):
                    message = f"a column is listed twice: {', '.join(node.arguments)}"
                    raise CatalogError(message, at=node.at)
                for name in node.arguments:
                    self._check_column_exists(name, names, node.at)
                    if name in table.primary_key:
                        message = f"column '{name}' is part of the primary key"
                        raise CatalogError(message, at=node.at, hint="ALTER TABLE ... DROP PRIMARY KEY first")
                    self._check_unused(table, name, node.arguments, node.at)
                return replace(table, columns=tuple(c for c in table.columns if c.name not in node.arguments))
            case "ADD DISTRIBUTION" | "MODIFY DISTRIBUTION":
                self._check_add_or_modify(node, table.distribution is not None, "distribution")
                return replace(table, distribution=build_distribution(node.arguments[0]))
            case "DROP DISTRIBUTION":
                self._check_exists(table.distribution is not None, "distribution", node)
                return replace(table, distribution=None)
        for part in node.arguments:
            table = self._apply_part(node, table, part, text)
        return self._tables.rebind(table, node.at)

    @staticmethod
    def _check_exists(exists: bool, what: str, node: s.Alter) -> None:
        if not exists:
            message = f"'{'.'.join(node.name)}' has no {what} to drop"
            raise CatalogError(message, at=node.at)

    @staticmethod
    def _check_add_or_modify(node: s.Alter, exists: bool, what: str) -> None:
        """Check that ADD does not replace anything, and that MODIFY does."""
        word = node.action.split()[0]
        if exists and word == "ADD":
            message = f"'{'.'.join(node.name)}' already has a {what}"
            raise CatalogError(message, at=node.at, hint="write MODIFY, or drop it first")
        if not exists and word == "MODIFY":
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

    def _apply_part(self, node: s.Alter, table: TableDefinition, part: Any, text: str) -> TableDefinition:
        if isinstance(part, s.WatermarkDef):
            self._check_add_or_modify(node, table.watermark is not None, "watermark")
            return self._tables.set_watermark(table, part, text)
        first, second = part
        if not isinstance(first, s.ColumnDef):
            self._check_add_or_modify(node, bool(table.primary_key), "primary key")
            return replace(table, constraint=first, primary_key=second)
        names = [other.name for other in table.columns]
        column = self._tables.build_column(first, text, names)
        if node.action == "ADD" and column.name in names:
            message = f"column '{column.name}' already exists"
            raise CatalogError(message, at=first.at)
        if node.action == "MODIFY":
            self._check_column_exists(column.name, names, first.at)
        columns = [other for other in table.columns if other.name != column.name]
        if second == "":
            columns.insert(0, column)
        elif second is not None:
            self._check_column_exists(second, names, first.at)
            columns.insert([other.name for other in columns].index(second) + 1, column)
        elif node.action == "MODIFY":
            columns.insert(names.index(column.name), column)
        else:
            columns.append(column)
        changed = replace(table, columns=tuple(columns))
        if first.primary_key:
            self._check_add_or_modify(node, bool(table.primary_key), "primary key")
            changed = replace(changed, primary_key=(column.name,), constraint=None)
        return self._tables.bind_computed_columns(changed, [first]) if first.expr is not None else changed


def _find_names(text: str | None) -> set[str]:
    return {token.text for token in tokenize(text or "") if token.kind in ("word", "quoted")}
