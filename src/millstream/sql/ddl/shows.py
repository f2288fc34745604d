"""SHOW: what there is, and the statements that made it.

Promises: Flink's columns; LIKE and ILIKE choose names.
Does not know: how things are made."""

from __future__ import annotations

import re
from dataclasses import replace

from millstream.config.secrets import hidden_in
from millstream.sql.catalog.catalog import Catalogs, TableDefinition, ViewDefinition
from millstream.sql.catalog.partitions import partitions
from millstream.sql.ddl.answers import Answer, table_of
from millstream.sql.ddl.descriptions import Descriptions
from millstream.sql.ddl.partitions import literals, shown
from millstream.sql.ddl.texts import create_text, pairs, quoted, string
from millstream.sql.errors import CatalogError, SqlNotSupported
from millstream.sql.functions.library import built_in_names
from millstream.sql.functions.logic import like_pattern
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t


class Shows:
    """Executes SHOW."""

    def __init__(self, catalogs: Catalogs, descriptions: Descriptions) -> None:
        self._catalogs = catalogs
        self._descriptions = descriptions

    def show(self, node: s.Show) -> Answer:
        """SHOW."""
        c = self._catalogs
        match node.kind:
            case "CATALOGS":
                return self._listed("catalog name", sorted(c.all), node)
            case "CURRENT CATALOG":
                return table_of(["current catalog name"], [(c.current_catalog,)])
            case "CURRENT DATABASE":
                return table_of(["current database name"], [(c.current_database,)])
            case "DATABASES":
                name = node.name[0] if node.name else c.current_catalog
                return self._listed("database name", sorted(c.catalog(name, node.at).databases), node)
            case "TABLES" | "VIEWS":
                catalog, database = c.current_catalog, c.current_database
                if len(node.name) == 1:
                    database = node.name[0]
                elif node.name:
                    catalog, database = node.name[0], node.name[1]
                c.database(catalog, database, node.at)
                found = c.table_names(catalog, database)
                if node.kind == "VIEWS":
                    found = [n for n in found if not isinstance(c.table((catalog, database, n))[1], TableDefinition)]
                return self._listed(f"{node.kind[:-1].lower()} name", found, node)
            case "COLUMNS":
                answer = self._descriptions.describe(s.Describe(node.at, node.name))
                kept = self._matching([row[0] for row in answer.rows], node)
                return replace(answer, rows=tuple(row for row in answer.rows if row[0] in kept))
            case "FUNCTIONS":
                return self._listed("function name", sorted({*built_in_names(), *c.function_names()}), node)
            case "USER FUNCTIONS":
                return self._listed("function name", sorted(set(c.function_names())), node)
            case "MODULES":
                return self._listed("module name", [name for name, used in c.modules.listed() if used], node)
            case "FULL MODULES":
                kinds = t.row_of(["module name", "used"], [t.STRING, t.BOOLEAN], null=False)
                return Answer(kinds, tuple(c.modules.listed()))
            case "PARTITIONS":
                return self._partitions(node)
            case "JARS":
                return table_of(["jars"], [])
            case "CREATE TABLE" | "CREATE VIEW":
                return self._show_create(node)
            case "CREATE CATALOG":
                catalog_found = c.catalog(node.name[0], node.at)
                comment = f" COMMENT {string(catalog_found.comment)}" if catalog_found.comment else ""
                made = f"CREATE CATALOG {quoted(catalog_found.name)}{comment}"
                return table_of(["result"], [(f"{made} WITH (\n  {pairs(catalog_found.options)}\n)\n",)])
        message = f"SHOW {node.kind} is not supported"
        raise SqlNotSupported(message, at=node.at)

    def _listed(self, column: str, names: list[str], node: s.Show) -> Answer:
        kept = self._matching(names, node)
        return table_of([column], [(name,) for name in names if name in kept])

    @staticmethod
    def _matching(names: list[str], node: s.Show) -> set[str]:
        if node.like is None:
            return set(names)
        pattern = like_pattern(node.like)
        if node.ignore_case:
            pattern = re.compile(pattern.pattern, pattern.flags | re.IGNORECASE)
        return {name for name in names if (pattern.fullmatch(name) is not None) != node.negated}

    def _show_create(self, node: s.Show) -> Answer:
        full, found = self._catalogs.table(node.name, node.at)
        if node.kind == "CREATE VIEW":
            if not isinstance(found, ViewDefinition):
                message = f"'{'.'.join(node.name)}' is not a view"
                raise CatalogError(message, at=node.at)
            name = ".".join(map(quoted, full))
            columns = ",\n  ".join(map(quoted, found.schema.names))
            word = "TEMPORARY VIEW" if full in self._catalogs.temporary else "VIEW"
            return table_of(["result"], [(f"CREATE {word} {name} (\n  {columns}\n)\nAS {hidden_in(found.text)[0]}\n",)])
        if not isinstance(found, TableDefinition):
            message = f"'{'.'.join(node.name)}' is not a table"
            raise CatalogError(message, at=node.at, hint="use SHOW CREATE VIEW")
        return table_of(["result"], [(create_text(full, found, temporary=full in self._catalogs.temporary),)])

    def _partitions(self, node: s.Show) -> Answer:
        full, table = self._catalogs.table(node.name, node.at)
        if not isinstance(table, TableDefinition):
            message = f"'{'.'.join(node.name)}' is not a table"
            raise CatalogError(message, at=node.at)
        wanted = literals(node.partition, node.at)
        told = [] if full in self._catalogs.temporary else list(self._catalogs.notes(full).partitions)
        registered = [shown(table, each) for each in told if wanted.items() <= set(each)]
        listed = partitions(".".join(full), table, wanted, node.at, registered)
        return table_of(["partition name"], [(each,) for each in listed])
