"""DESCRIBE: what a table, a function, a catalog or a database is.

Promises: Flink's columns.
Does not know: how things are made."""

from __future__ import annotations

from typing import Any

from millstream.config.secrets import shown_all
from millstream.sql.catalog.catalog import Catalogs, StreamTable, TableDefinition
from millstream.sql.ddl.answers import Answer, table_of
from millstream.sql.errors import CatalogError
from millstream.sql.functions import library
from millstream.sql.functions.aggregates import AGGREGATES
from millstream.sql.functions.user_functions import UserFunction
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t

_DESCRIBED = t.row_of(
    ["name", "type", "null", "key", "extras", "watermark"],
    [t.STRING, t.STRING, t.BOOLEAN, t.STRING, t.STRING, t.STRING],
    null=False,
)


class Descriptions:
    """Executes DESCRIBE."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    def describe(self, node: s.Describe) -> Answer:
        """DESCRIBE."""
        if node.kind == "CATALOG":
            found = self._catalogs.catalog(node.name[0], node.at)
            rows = [
                ("name", found.name),
                ("type", found.options.get("type", "generic_in_memory")),
                ("comment", found.comment or ""),
            ]
            if node.extended:
                rows += [(f"option:{k}", v) for k, v in shown_all(found.options).items() if k != "type"]
            return table_of(["info name", "info value"], rows)
        if node.kind == "DATABASE":
            catalog, name = (self._catalogs.current_catalog, node.name[0]) if len(node.name) == 1 else node.name[:2]
            database = self._catalogs.database(catalog, name, node.at)
            rows = [("catalog", catalog), ("database", name), ("comment", database.comment or "")]
            if node.extended:
                rows += [(f"option:{k}", v) for k, v in shown_all(database.options).items()]
            return table_of(["info name", "info value"], rows)
        if node.kind == "FUNCTION":
            return self._describe_function(node)
        _, table = self._catalogs.table(node.name, node.at)
        described = described_columns(table)
        comments = [each.comment for each in table.columns] if isinstance(table, TableDefinition) else []
        if not any(comments):
            return Answer(_DESCRIBED, tuple(described))
        schema = t.row_of([*_DESCRIBED.names, "comment"], [*_DESCRIBED.types, t.STRING], null=False)
        return Answer(schema, tuple((*row, comment) for row, comment in zip(described, comments, strict=True)))

    def _describe_function(self, node: s.Describe) -> Answer:
        user = self._catalogs.function(node.name)
        if user is not None:
            return table_of(["info name", "info value"], self._user_function(node, user))
        name = node.name[-1]
        found, aggregate = library.find(name), AGGREGATES.get(name.upper())
        if found is None and aggregate is None:
            message = f"there is no function '{name}'"
            raise CatalogError(message, at=node.at, hint=library.similar(name))
        rows = [("is system function", "true"), ("is temporary", "false")]
        if aggregate is not None:
            kind, steady = "AGGREGATE", True
            signature, doc = aggregate.syntax or f"{name.upper()}(value)", aggregate.doc
        else:
            assert found is not None
            kind, steady, signature, doc = "SCALAR", found.deterministic, library.usage(found), found.doc
        rows += _traits(kind, steady) if node.extended else []
        return table_of(["info name", "info value"], [*rows, ("signature", signature), ("description", doc)])

    def _user_function(self, node: s.Describe, user: UserFunction) -> list[tuple[str, str]]:
        full = self._catalogs.full_name(node.name, node.at)
        key = (full[0], full[1], full[2].lower())
        system = len(node.name) == 1 and node.name[0].lower() in self._catalogs.system_functions
        temporary = system or key in self._catalogs.temporary_functions
        made = user.function if isinstance(user.function, type) or callable(user.function) else type(user.function)
        class_name = ".".join((getattr(made, "__module__", ""), getattr(made, "__qualname__", type(made).__name__)))
        rows = [
            ("is system function", str(system).lower()),
            ("is temporary", str(temporary).lower()),
            ("class name", class_name),
            ("function language", "PYTHON"),
        ]
        if node.extended:
            inputs = "..." if user.input_types is None else ", ".join(map(str, user.input_types))
            rows += _traits(user.kind.upper().replace(" ", "_"), user.deterministic)
            rows.append(("signature", f"{user.name}({inputs})"))
        return rows


def _traits(kind: str, deterministic: bool) -> list[tuple[str, str]]:
    """What EXTENDED tells of every function."""
    steady = str(deterministic).lower()
    return [
        ("kind", kind), ("requirements", "[]"), ("is deterministic", steady), ("supports constant folding", steady),
    ]  # fmt: skip


def described_columns(table: Any) -> list[tuple[Any, ...]]:
    """The rows of DESCRIBE."""
    if isinstance(table, TableDefinition):
        key = f"PRI({', '.join(table.primary_key)})" if table.primary_key else None
        rows: list[tuple[Any, ...]] = []
        for each, field in zip(table.columns, table.schema.fields, strict=True):
            extras = None
            if each.expr is not None:
                extras = f"AS {each.expr}"
            elif each.metadata_key is not None:
                extras = "METADATA" + (f" FROM '{each.metadata_key}'" if each.metadata_key != each.name else "")
                extras += " VIRTUAL" if each.virtual else ""
            mark = table.watermark[1] if table.watermark is not None and table.watermark[0] == each.name else None
            kind = field.data_type
            rows.append(
                (
                    each.name,
                    str(kind.nullable()),
                    kind.null,
                    key if each.name in table.primary_key else None,
                    extras,
                    mark,
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
