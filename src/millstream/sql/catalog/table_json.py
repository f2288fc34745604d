"""JSON form of tables and views, as catalogs store them.

Promises: reading returns an equal definition; nothing is executed. A definition that cannot be stored is refused.
Does not know: files."""

from __future__ import annotations

from typing import Any

from millstream.sql.catalog.catalog import (
    CatalogObject,
    ColumnDefinition,
    TableDefinition,
    TableDistribution,
    ViewDefinition,
)
from millstream.sql.errors import CatalogError, SqlError
from millstream.sql.syntax import parse_type
from millstream.sql.types import data_types as t


def to_json(name: str, definition: CatalogObject) -> dict[str, Any]:
    """Return the JSON form of a table or view; errors contain `name`."""
    match definition:
        case TableDefinition():
            return {
                "kind": "TABLE",
                "columns": [_write_column(name, column) for column in definition.columns],
                "options": dict(definition.options),
                "watermark": definition.watermark,
                "primary_key": definition.primary_key,
                "constraint": definition.constraint,
                "partitions": definition.partitions,
                "comment": definition.comment,
                "distribution": None if definition.distribution is None else vars(definition.distribution),
            }
        case ViewDefinition(plan=None):
            return {
                "kind": "VIEW",
                "query": definition.text,
                "expanded_query": definition.expanded,
                "columns": [[field.name, _write_type(name, field.data_type)] for field in definition.schema.fields],
                "home": definition.home,
                "comment": definition.comment,
            }
    message = f"'{name}' refers to objects of this program, which a catalog cannot store"
    raise CatalogError(message, hint="create it as a temporary view, or write its query in SQL")


def from_json(content: dict[str, Any]) -> CatalogObject:
    """Return the table or view of a JSON form; a `ValueError`, `KeyError` or `TypeError` if it is none."""
    try:
        if content["kind"] == "VIEW":
            names, texts = [name for name, _ in content["columns"]], [text for _, text in content["columns"]]
            schema = t.row_of(names, map(parse_type, texts), null=False)
            home = None if content["home"] is None else (content["home"][0], content["home"][1])
            query, expanded = str(content["query"]), str(content["expanded_query"])
            return ViewDefinition(query, schema, content["comment"], expanded=expanded, home=home)
        if content["kind"] != "TABLE":
            raise ValueError(content["kind"])
        watermark, distribution = content["watermark"], content["distribution"]
        return TableDefinition(
            tuple(_read_column(column) for column in content["columns"]),
            {str(key): str(value) for key, value in content["options"].items()},
            None if watermark is None else (watermark[0], watermark[1]),
            tuple(content["primary_key"]),
            content["constraint"],
            tuple(content["partitions"]),
            content["comment"],
            None
            if distribution is None
            else TableDistribution(distribution["kind"], tuple(distribution["columns"]), distribution["buckets"]),
        )
    except SqlError as error:  # the text of a type
        raise ValueError(error.problem) from error


def _write_column(table: str, column: ColumnDefinition) -> dict[str, Any]:
    return {**vars(column), "type": _write_type(f"{table}.{column.name}", column.type)}


def _read_column(content: dict[str, Any]) -> ColumnDefinition:
    return ColumnDefinition(**{**content, "type": parse_type(content["type"])})


def _write_type(name: str, data_type: t.DataType) -> str:
    data_type = t.strip_time_attribute(data_type)
    text = str(data_type)
    try:
        if parse_type(text) == data_type:
            return text
    except SqlError:
        pass
    message = f"'{name}' has the type {text}, which a catalog cannot store"
    raise CatalogError(message, hint="cast it to another type")
