"""SHOW: lists of objects, and the statements that create them.

Promises: results have Flink's columns; LIKE and ILIKE filter by name.
Does not know: how objects are created."""

from __future__ import annotations

import re
from dataclasses import replace

from millstream.config.secrets import mask_statement
from millstream.sql.catalog.catalog import Catalogs, TableDefinition, ViewDefinition
from millstream.sql.catalog.partitions import list_partitions
from millstream.sql.ddl.describe import DescribeStatements
from millstream.sql.ddl.formatting import (
    format_create_table,
    format_materialized_table,
    format_options,
    quote_name,
    quote_string,
)
from millstream.sql.ddl.partitions import format_partition, read_literals
from millstream.sql.ddl.results import StatementResult, make_string_result
from millstream.sql.errors import CatalogError, SqlNotSupported
from millstream.sql.functions.library import list_built_in_names
from millstream.sql.functions.logic import compile_like_pattern
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t


class ShowStatements:
    """Executes SHOW."""

    def __init__(self, catalogs: Catalogs, descriptions: DescribeStatements) -> None:
        self._catalogs = catalogs
        self._descriptions = descriptions

    def show(self, node: s.Show) -> StatementResult:
        """SHOW."""
        catalogs = self._catalogs
        match node.subject:
            case "CATALOGS":
                return self._list_names("catalog name", sorted(catalogs.all), node)
            case "CURRENT CATALOG":
                return make_string_result(["current catalog name"], [(catalogs.current_catalog,)])
            case "CURRENT DATABASE":
                return make_string_result(["current database name"], [(catalogs.current_database,)])
            case "DATABASES":
                if len(node.name) > 1:
                    message = f"'{'.'.join(node.name)}' is not the name of a catalog, which has one part"
                    raise CatalogError(message, at=node.at, hint=f"write SHOW DATABASES IN {node.name[0]}")
                name = node.name[0] if node.name else catalogs.current_catalog
                return self._list_names("database name", sorted(catalogs.catalog(name, node.at).databases), node)
            case "TABLES" | "VIEWS":
                catalog, database = self._find_database(node)
                names = catalogs.table_names(catalog, database)
                if node.subject == "VIEWS":
                    names = [
                        n for n in names if not isinstance(catalogs.table((catalog, database, n))[1], TableDefinition)
                    ]
                return self._list_names(f"{node.subject[:-1].lower()} name", names, node)
            case "MATERIALIZED TABLES":
                catalog, database = self._find_database(node)
                names = [
                    name
                    for name in catalogs.table_names(catalog, database)
                    if catalogs.materialization((catalog, database, name)) is not None
                ]
                return self._list_names("materialized table name", names, node)
            case "MODELS":
                return self._list_names("model name", catalogs.models.names(*self._find_database(node)), node)
            case "PROCEDURES":
                procedures = catalogs.database(*self._find_database(node)).procedures
                return self._list_names("procedure name", sorted(procedures), node)
            case "COLUMNS":
                result = self._descriptions.describe(s.Describe(node.at, node.name))
                matching = self._match_names([row[0] for row in result.rows], node)
                return replace(result, rows=tuple(row for row in result.rows if row[0] in matching))
            case "FUNCTIONS":
                return self._list_names(
                    "function name", sorted({*list_built_in_names(), *catalogs.function_names()}), node
                )
            case "USER FUNCTIONS":
                return self._list_names("function name", sorted(set(catalogs.function_names())), node)
            case "MODULES":
                return self._list_names(
                    "module name", [name for name, used in catalogs.modules.list_modules() if used], node
                )
            case "FULL MODULES":
                schema = t.row_of(["module name", "used"], [t.STRING, t.BOOLEAN], null=False)
                return StatementResult(schema, tuple(catalogs.modules.list_modules()))
            case "PARTITIONS":
                return self._show_partitions(node)
            case "JARS":
                return make_string_result(["jars"], [])
            case "CREATE TABLE" | "CREATE VIEW":
                return self._show_create(node)
            case "CREATE MATERIALIZED TABLE" | "CREATE OR ALTER MATERIALIZED TABLE":
                return self._show_create_materialized(node)
            case "CREATE CATALOG":
                existing = catalogs.catalog(node.name[0], node.at)
                comment = f"COMMENT {quote_string(existing.comment)}\n" if existing.comment else ""
                statement = f"CREATE CATALOG {quote_name(existing.name)}\n{comment}"
                return make_string_result(
                    ["result"], [(f"{statement}WITH (\n  {format_options(existing.options)}\n)\n",)]
                )
        message = f"SHOW {node.subject} is not supported"
        raise SqlNotSupported(message, at=node.at)

    def _find_database(self, node: s.Show) -> tuple[str, str]:
        """Return the catalog and the database after IN or FROM; by default the current ones."""
        catalog, database = self._catalogs.current_catalog, self._catalogs.current_database
        if len(node.name) == 1:
            database = node.name[0]
        elif node.name:
            catalog, database = node.name[0], node.name[1]
        self._catalogs.database(catalog, database, node.at)
        return catalog, database

    def _list_names(self, column: str, names: list[str], node: s.Show) -> StatementResult:
        matching = self._match_names(names, node)
        return make_string_result([column], [(name,) for name in names if name in matching])

    @staticmethod
    def _match_names(names: list[str], node: s.Show) -> set[str]:
        if node.like is None:
            return set(names)
        pattern = compile_like_pattern(node.like)
        if node.ignore_case:
            pattern = re.compile(pattern.pattern, pattern.flags | re.IGNORECASE)
        return {name for name in names if (pattern.fullmatch(name) is not None) != node.negated}

    def _show_create(self, node: s.Show) -> StatementResult:
        full_name, table = self._catalogs.table(node.name, node.at)
        if node.subject == "CREATE VIEW":
            if not isinstance(table, ViewDefinition):
                message = f"'{'.'.join(node.name)}' is not a view"
                raise CatalogError(message, at=node.at)
            name = ".".join(map(quote_name, full_name))
            columns = ",\n  ".join(map(quote_name, table.schema.names))
            object_type = "TEMPORARY VIEW" if full_name in self._catalogs.temporary else "VIEW"
            return make_string_result(
                ["result"], [(f"CREATE {object_type} {name} (\n  {columns}\n)\nAS {mask_statement(table.text)[0]}\n",)]
            )
        if not isinstance(table, TableDefinition):
            message = f"'{'.'.join(node.name)}' is not a table"
            raise CatalogError(message, at=node.at, hint="use SHOW CREATE VIEW")
        return make_string_result(
            ["result"], [(format_create_table(full_name, table, temporary=full_name in self._catalogs.temporary),)]
        )

    def _show_create_materialized(self, node: s.Show) -> StatementResult:
        full_name, table = self._catalogs.table(node.name, node.at)
        materialization = self._catalogs.materialization(full_name)
        if materialization is None or not isinstance(table, TableDefinition):
            message = f"'{'.'.join(node.name)}' is not a materialized table"
            raise CatalogError(message, at=node.at)
        statement = format_materialized_table(full_name, table, materialization)
        word = node.subject.removesuffix(" MATERIALIZED TABLE")
        return make_string_result(["result"], [(statement.replace("CREATE", word, 1),)])

    def _show_partitions(self, node: s.Show) -> StatementResult:
        full_name, table = self._catalogs.table(node.name, node.at)
        if not isinstance(table, TableDefinition):
            message = f"'{'.'.join(node.name)}' is not a table"
            raise CatalogError(message, at=node.at)
        prefix = read_literals(node.partition, node.at)
        specs = [] if full_name in self._catalogs.temporary else list(self._catalogs.notes(full_name).partitions)
        registered = [format_partition(table, spec) for spec in specs if prefix.items() <= set(spec)]
        names = list_partitions(".".join(full_name), table, prefix, node.at, registered)
        return make_string_result(["partition name"], [(name,) for name in names])
