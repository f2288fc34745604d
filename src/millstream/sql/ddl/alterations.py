"""ALTER TABLE and ALTER VIEW.

Promises: a table that cannot become what is asked stays as it is; what is asked for must change something, as in Flink.
Does not know: rows; what a table has already is not touched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from millstream.sql.catalog.catalog import TableDefinition, ViewDefinition
from millstream.sql.ddl import partitions
from millstream.sql.ddl.answers import OK, Answer
from millstream.sql.ddl.tables import DescribedTables, checked, distributed
from millstream.sql.errors import CatalogError, nearest
from millstream.sql.logical.bind.expressions import Session
from millstream.sql.logical.bind.queries import QueryBinder
from millstream.sql.syntax import tree as s
from millstream.sql.syntax.lexer import tokenize


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
        if node.action.endswith(" PARTITIONS"):
            return partitions.alter(node, ".".join(full), table, self._catalogs.notes(full, node.at))
        self._catalogs.set_table(full, checked(self._altered(node, table, text), node.at))
        return OK

    def _alter_view(self, node: s.Alter, full: tuple[str, str, str], view: Any) -> Answer:
        if not isinstance(view, ViewDefinition):
            message = f"'{'.'.join(node.name)}' is not a view"
            raise CatalogError(message, at=node.at)
        if node.action == "RENAME":
            return self._rename(node, full, view)
        if node.action == "AS":
            plan = QueryBinder(self._session).query(node.arguments[0])
            made = ViewDefinition(node.arguments[1], plan.schema, view.comment, home=self._catalogs.home())
            self._catalogs.set_table(full, made)
        return OK

    def _rename(self, node: s.Alter, full: tuple[str, str, str], what: Any) -> Answer:
        target = node.arguments[0]
        new = (*full[:2], target[-1]) if len(target) == 1 else self._catalogs.full_name(target, node.at)
        temporary = full in self._catalogs.temporary
        self._catalogs.add_table(new, what, temporary=temporary, at=node.at)
        if temporary:
            del self._catalogs.temporary[full]
        else:
            notes = self._catalogs.database(full[0], full[1]).forget(full[2])
            self._catalogs.database(new[0], new[1]).notes[new[2]] = notes
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
                if new in names:
                    message = f"there is a column '{new}' already"
                    raise CatalogError(message, at=node.at)
                self._unused(table, old, (), node.at)
                columns = tuple(replace(c, name=new) if c.name == old else c for c in table.columns)
                key = tuple(new if k == old else k for k in table.primary_key)
                return replace(table, columns=columns, primary_key=key)
            case "DROP WATERMARK":
                self._there(table.watermark is not None, "watermark", node)
                return replace(table, watermark=None)
            case "DROP KEY":
                self._there(bool(table.primary_key), "primary key", node)
                name = table.constraint or f"PK_{'_'.join(table.primary_key)}"
                if node.arguments and node.arguments[0] != name:
                    message = f"there is no constraint '{node.arguments[0]}'"
                    raise CatalogError(message, at=node.at, hint=f"the primary key is '{name}'")
                return replace(table, primary_key=(), constraint=None)
            case "DROP COLUMNS":
                if len(set(node.arguments)) != len(node.arguments):
                    message = "a column is to be dropped twice"
                    raise CatalogError(message, at=node.at)
                for name in node.arguments:
                    self._known(name, names, node.at)
                    if name in table.primary_key:
                        message = f"column '{name}' is part of the primary key"
                        raise CatalogError(message, at=node.at, hint="ALTER TABLE ... DROP PRIMARY KEY first")
                    self._unused(table, name, node.arguments, node.at)
                return replace(table, columns=tuple(c for c in table.columns if c.name not in node.arguments))
            case "ADD DISTRIBUTION" | "MODIFY DISTRIBUTION":
                self._adds(node, table.distribution is not None, "distribution")
                return replace(table, distribution=distributed(node.arguments[0]))
            case "DROP DISTRIBUTION":
                self._there(table.distribution is not None, "distribution", node)
                return replace(table, distribution=None)
        for part in node.arguments:
            table = self._changed(node, table, part, text)
        return self._tables.bound_again(table, node.at)

    @staticmethod
    def _there(there: bool, what: str, node: s.Alter) -> None:
        if not there:
            message = f"'{'.'.join(node.name)}' has no {what} to drop"
            raise CatalogError(message, at=node.at)

    @staticmethod
    def _adds(node: s.Alter, there: bool, what: str) -> None:
        """ADD is for what is not there yet, MODIFY for what is."""
        word = node.action.split()[0]
        if there and word == "ADD":
            message = f"'{'.'.join(node.name)}' has a {what} already"
            raise CatalogError(message, at=node.at, hint="write MODIFY, or drop it first")
        if not there and word == "MODIFY":
            message = f"'{'.'.join(node.name)}' has no {what} yet"
            raise CatalogError(message, at=node.at, hint="write ADD")

    @staticmethod
    def _unused(table: TableDefinition, name: str, gone: tuple[str, ...], at: int | None) -> None:
        """Refuse to take away a column that others are made of, unless they go too."""
        users = {each.name: each.expr for each in table.columns if each.expr is not None and each.name not in gone}
        used = [f"column '{user}'" for user, text in users.items() if name in _words(text)]
        if table.watermark is not None and (name == table.watermark[0] or name in _words(table.watermark[1])):
            used.append("the watermark")
        if name in table.partitions:
            used.append("PARTITIONED BY")
        if table.distribution is not None and name in table.distribution.columns:
            used.append("DISTRIBUTED BY")
        if used:
            message = f"column '{name}' is used by {' and '.join(used)}"
            raise CatalogError(message, at=at)

    @staticmethod
    def _known(name: str, names: list[str], at: int | None) -> None:
        if name not in names:
            message = f"there is no column '{name}'"
            raise CatalogError(message, at=at, hint=nearest(name, names))

    def _changed(self, node: s.Alter, table: TableDefinition, part: Any, text: str) -> TableDefinition:
        if isinstance(part, s.WatermarkDef):
            self._adds(node, table.watermark is not None, "watermark")
            return self._tables.with_watermark(table, part, text)
        first, second = part
        if not isinstance(first, s.ColumnDef):
            self._adds(node, bool(table.primary_key), "primary key")
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
        if first.primary_key:
            self._adds(node, bool(table.primary_key), "primary key")
            changed = replace(changed, primary_key=(made.name,), constraint=None)
        return self._tables.with_computed(changed, [first]) if first.expr is not None else changed


def _words(text: str | None) -> set[str]:
    return {token.text for token in tokenize(text or "") if token.kind in ("word", "quoted")}
