"""DESCRIBE for tables, functions, catalogs and databases.

Promises: results have Flink's columns.
Does not know: how objects are created."""

from __future__ import annotations

from typing import Any

from millstream.config.secrets import mask_secrets
from millstream.sql.catalog.catalog import Catalogs, StreamTable, TableDefinition
from millstream.sql.ddl.results import StatementResult, make_string_result
from millstream.sql.errors import CatalogError
from millstream.sql.functions import library
from millstream.sql.functions.aggregates import AGGREGATES
from millstream.sql.functions.user_functions import UserFunction
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t

_DESCRIBE_SCHEMA = t.row_of(
    ["name", "type", "null", "key", "extras", "watermark"],
    [t.STRING, t.STRING, t.BOOLEAN, t.STRING, t.STRING, t.STRING],
    null=False,
)


class DescribeStatements:
    """Executes DESCRIBE."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    def describe(self, node: s.Describe) -> StatementResult:
        """DESCRIBE."""
        if node.object_type == "CATALOG":
            catalog = self._catalogs.catalog(node.name[0], node.at)
            rows = [
                ("name", catalog.name),
                ("type", catalog.options.get("type", "generic_in_memory")),
                ("comment", catalog.comment or ""),
            ]
            if node.extended:
                rows += [(f"option:{k}", v) for k, v in mask_secrets(catalog.options).items() if k != "type"]
            return make_string_result(["info name", "info value"], rows)
        if node.object_type == "DATABASE":
            catalog_name, name = self._catalogs.current_catalog, node.name[-1]
            if len(node.name) > 1:
                catalog_name, name = node.name[:2]
            database = self._catalogs.database(catalog_name, name, node.at)
            rows = [("catalog", catalog_name), ("database", name), ("comment", database.comment or "")]
            if node.extended:
                rows += [(f"option:{k}", v) for k, v in mask_secrets(database.options).items()]
            return make_string_result(["info name", "info value"], rows)
        if node.object_type == "FUNCTION":
            return self._describe_function(node)
        _, table = self._catalogs.table(node.name, node.at)
        column_rows = describe_columns(table)
        comments = [column.comment for column in table.columns] if isinstance(table, TableDefinition) else []
        if not any(comments):
            return StatementResult(_DESCRIBE_SCHEMA, tuple(column_rows))
        schema = t.row_of([*_DESCRIBE_SCHEMA.names, "comment"], [*_DESCRIBE_SCHEMA.types, t.STRING], null=False)
        return StatementResult(
            schema, tuple((*row, comment) for row, comment in zip(column_rows, comments, strict=True))
        )

    def _describe_function(self, node: s.Describe) -> StatementResult:
        user = self._catalogs.function(node.name)
        if user is not None:
            return make_string_result(["info name", "info value"], self._describe_user_function(node, user))
        name = node.name[-1]
        scalar, aggregate = library.find(name), AGGREGATES.get(name.upper())
        if scalar is None and aggregate is None:
            message = f"there is no function '{name}'"
            raise CatalogError(message, at=node.at, hint=library.suggest_name(name))
        rows = [("is system function", "true"), ("is temporary", "false")]
        if aggregate is not None:
            kind, deterministic = "AGGREGATE", True
            signature, doc = aggregate.syntax or f"{name.upper()}(value)", aggregate.doc
        else:
            assert scalar is not None
            kind, deterministic, signature, doc = (
                "SCALAR",
                scalar.deterministic,
                library.describe_usage(scalar),
                scalar.doc,
            )
        rows += _describe_traits(kind, deterministic) if node.extended else []
        return make_string_result(["info name", "info value"], [*rows, ("signature", signature), ("description", doc)])

    def _describe_user_function(self, node: s.Describe, user: UserFunction) -> list[tuple[str, str]]:
        catalog, database, function_name = self._catalogs.full_name(node.name, node.at)
        key = (catalog, database, function_name.lower())
        system = len(node.name) == 1 and node.name[0].lower() in self._catalogs.system_functions
        temporary = system or key in self._catalogs.temporary_functions
        target = user.function if isinstance(user.function, type) or callable(user.function) else type(user.function)
        class_name = ".".join(
            (getattr(target, "__module__", ""), getattr(target, "__qualname__", type(target).__name__))
        )
        rows = [
            ("is system function", str(system).lower()),
            ("is temporary", str(temporary).lower()),
            ("class name", class_name),
            ("function language", "PYTHON"),
        ]
        if node.extended:
            inputs = "..." if user.input_types is None else ", ".join(map(str, user.input_types))
            rows += _describe_traits(user.kind.upper().replace(" ", "_"), user.deterministic)
            rows.append(("signature", f"{user.name}({inputs})"))
        return rows


def _describe_traits(kind: str, deterministic: bool) -> list[tuple[str, str]]:
    """Return the rows that EXTENDED adds for every function."""
    is_deterministic = str(deterministic).lower()
    return [
        ("kind", kind), ("requirements", "[]"), ("is deterministic", is_deterministic),
        ("supports constant folding", is_deterministic),
    ]  # fmt: skip


def describe_columns(table: Any) -> list[tuple[Any, ...]]:
    """Return the rows of DESCRIBE for a table, a view or a stream."""
    if isinstance(table, TableDefinition):
        key = f"PRI({', '.join(table.primary_key)})" if table.primary_key else None
        rows: list[tuple[Any, ...]] = []
        for column, field in zip(table.columns, table.schema.fields, strict=True):
            extras = None
            if column.expr is not None:
                extras = f"AS {column.expr}"
            elif column.metadata_key is not None:
                extras = "METADATA" + (f" FROM '{column.metadata_key}'" if column.metadata_key != column.name else "")
                extras += " VIRTUAL" if column.virtual else ""
            watermark = (
                table.watermark[1] if table.watermark is not None and table.watermark[0] == column.name else None
            )
            data_type = field.data_type
            rows.append(
                (
                    column.name,
                    str(data_type.nullable()),
                    data_type.null,
                    key if column.name in table.primary_key else None,
                    extras,
                    watermark,
                )
            )
        return rows
    schema: t.RowType = table.schema
    primary = getattr(table, "primary_key", ()) if isinstance(table, StreamTable) else ()
    key = f"PRI({', '.join(primary)})" if primary else None
    return [
        (f.name, str(f.data_type.nullable()), f.data_type.null, key if f.name in primary else None, None, None)
        for f in schema.fields
    ]
