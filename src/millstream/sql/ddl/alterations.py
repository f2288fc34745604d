"""ALTER TABLE and ALTER VIEW.

Promises: a table that cannot become what is asked stays as it is.
Does not know: rows; what a table has already is not touched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from millstream.sql import syntax as s
from millstream.sql.bind.expressions import Session
from millstream.sql.bind.queries import QueryBinder
from millstream.sql.catalog import TableDefinition, ViewDefinition
from millstream.sql.ddl.answers import OK, Answer
from millstream.sql.ddl.tables import DescribedTables
from millstream.sql.errors import CatalogError, nearest


class Alterations:
    """Changes definitions in one session; `text` is the statement as written."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._catalogs = session.catalogs
        self._tables = DescribedTables(session)

    def alter(self, node: s.Alter, text: str) -> Answer:
        """ALTER TABLE and ALTER VIEW."""
        found_table = self._catalogs.find(node.name, node.at)
        if found_table is None and node.if_exists:
            return OK
        full, table = self._catalogs.table(node.name, node.at)
        if node.kind == "VIEW":
            return self._alter_view(node, full, table)
        if not isinstance(table, TableDefinition):
            message = f"'{'.'.join(node.name)}' is not a table"
            raise CatalogError(message, at=node.at)
        if node.action == "RENAME":
            return self._rename(node, full, table)
        self._catalogs.set_table(full, self._altered(node, table, text))
        return OK

    def _alter_view(self, node: s.Alter, full: tuple[str, str, str], view: Any) -> Answer:
        if not isinstance(view, ViewDefinition):
            message = f"'{'.'.join(node.name)}' is not a view"
            raise CatalogError(message, at=node.at)
        if node.action == "RENAME":
            return self._rename(node, full, view)
        if node.action == "AS":
            plan = QueryBinder(self._session).query(node.arguments[0])
            self._catalogs.set_table(full, ViewDefinition(node.arguments[1], plan.schema, view.comment))
        return OK

    def _rename(self, node: s.Alter, full: tuple[str, str, str], what: Any) -> Answer:
        target = node.arguments[0]
        new = (*full[:2], target[-1]) if len(target) == 1 else self._catalogs.full_name(target, node.at)
        temporary = full in self._catalogs.temporary
        self._catalogs.add_table(new, what, temporary=temporary, at=node.at)
        if temporary:
            del self._catalogs.temporary[full]
        else:
            del self._catalogs.database(full[0], full[1]).tables[full[2]]
        return OK

    def _altered(self, node: s.Alter, table: TableDefinition, text: str) -> TableDefinition:
        names = [each.name for each in table.columns]
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
                self._known(old, names, node.at)
                columns = tuple(replace(c, name=new) if c.name == old else c for c in table.columns)
                key = tuple(new if k == old else k for k in table.primary_key)
                return replace(table, columns=columns, primary_key=key)
            case "DROP WATERMARK":
                return replace(table, watermark=None)
            case "DROP KEY":
                return replace(table, primary_key=(), constraint=None)
            case "DROP COLUMNS":
                for name in node.arguments:
                    self._known(name, names, node.at)
                    if name in table.primary_key or (table.watermark and table.watermark[0] == name):
                        message = f"column '{name}' is used by the primary key or the watermark"
                        raise CatalogError(message, at=node.at)
                return replace(table, columns=tuple(c for c in table.columns if c.name not in node.arguments))
        for part in node.arguments:
            table = self._changed(node, table, part, text)
        return table

    @staticmethod
    def _known(name: str, names: list[str], at: int | None) -> None:
        if name not in names:
            message = f"there is no column '{name}'"
            raise CatalogError(message, at=at, hint=nearest(name, names))

    def _changed(self, node: s.Alter, table: TableDefinition, part: Any, text: str) -> TableDefinition:
        if isinstance(part, s.WatermarkDef):
            return self._tables.with_watermark(table, part, text)
        first, second = part
        if not isinstance(first, s.ColumnDef):
            return replace(table, constraint=first, primary_key=second)
        names = [each.name for each in table.columns]
        made = self._tables.column(first, text, names)
        if node.action == "ADD" and made.name in names:
            message = f"there is a column '{made.name}' already"
            raise CatalogError(message, at=first.at)
        if node.action == "MODIFY":
            self._known(made.name, names, first.at)
        columns = [each for each in table.columns if each.name != made.name]
        if second == "":
            columns.insert(0, made)
        elif second is not None:
            self._known(second, names, first.at)
            columns.insert([each.name for each in columns].index(second) + 1, made)
        elif node.action == "MODIFY":
            columns.insert(names.index(made.name), made)
        else:
            columns.append(made)
        changed = replace(table, columns=tuple(columns))
        return self._tables.with_computed(changed, [first]) if first.expr is not None else changed
