"""The resolved schema of a table that CREATE TABLE or a descriptor has declared.

Promises: computed and metadata columns, comments, the watermark and the primary key are as they were declared.
Does not know: where the declaration is stored, or which tables read it."""

from __future__ import annotations

from millstream.sql.catalog.catalog import ColumnDefinition, TableDefinition
from millstream.sql.types import data_types as t
from millstream.table.catalog.columns import Column, ComputedColumn, MetadataColumn, PhysicalColumn
from millstream.table.catalog.resolved_schema import ResolvedSchema, UniqueConstraint, WatermarkSpec


def resolve_schema(definition: TableDefinition) -> ResolvedSchema:
    """Return the schema of a declared table."""
    data_types = definition.schema.types
    columns = [
        _resolve_column(column, data_type) for column, data_type in zip(definition.columns, data_types, strict=True)
    ]
    watermarks = []
    if definition.watermark is not None:
        name, expression = definition.watermark
        data_type = t.strip_time_attribute(data_types[definition.schema.names.index(name)])
        watermarks.append(WatermarkSpec(name, expression, data_type))
    key = None
    if definition.primary_key:
        name = definition.constraint or f"PK_{'_'.join(definition.primary_key)}"
        key = UniqueConstraint(name, definition.primary_key)
    return ResolvedSchema(columns, watermarks, key)


def _resolve_column(column: ColumnDefinition, data_type: t.DataType) -> Column:
    if column.expr is not None:
        return ComputedColumn(column.name, data_type, column.comment, column.expr)
    if column.metadata_key is not None:
        key = None if column.metadata_key == column.name else column.metadata_key
        return MetadataColumn(column.name, data_type, column.comment, key, column.virtual)
    return PhysicalColumn(column.name, data_type, column.comment)
