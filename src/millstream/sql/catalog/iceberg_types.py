"""Conversion between the types of Iceberg and of SQL.

Promises: a type without an equivalent is refused by name. Small integers become INT, as in Iceberg's catalog for Flink.
Does not know: catalogs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from millstream.connectors.lakehouse.iceberg_catalog import pyiceberg
from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.errors import CatalogError
from millstream.sql.types import data_types as t


def read_type(iceberg_type: Any, null: bool) -> t.DataType:
    """Return the SQL type of a type of pyiceberg."""
    types = pyiceberg("types")
    match iceberg_type:
        case types.StructType():
            fields = iceberg_type.fields
            data_types = [read_type(field.field_type, not field.required) for field in fields]
            return t.row_of([field.name for field in fields], data_types, null=null)
        case types.ListType():
            return t.ArrayType(read_type(iceberg_type.element_type, not iceberg_type.element_required), null=null)
        case types.MapType():
            value = read_type(iceberg_type.value_type, not iceberg_type.value_required)
            return t.MapType(read_type(iceberg_type.key_type, False), value, null=null)
        case types.DecimalType():
            return t.create_decimal(iceberg_type.precision, iceberg_type.scale, null=null)
        case types.FixedType():
            return t.BinaryType(len(iceberg_type), null=null)
    simple = {
        types.BooleanType: t.BOOLEAN, types.IntegerType: t.INT, types.LongType: t.BIGINT, types.FloatType: t.FLOAT,
        types.DoubleType: t.DOUBLE, types.DateType: t.DATE, types.TimeType: t.TimeType(precision=6),
        types.TimestampType: t.TimestampType(precision=6), types.StringType: t.STRING, types.BinaryType: t.BYTES,
        types.TimestamptzType: t.LocalZonedTimestampType(precision=6), types.UUIDType: t.BinaryType(16),
    }  # fmt: skip
    data_type = simple.get(type(iceberg_type))
    if data_type is None:
        message = f"the Iceberg type {iceberg_type} is not supported"
        raise CatalogError(message)
    return data_type.with_null(null)


def write_schema(name: str, definition: TableDefinition) -> Any:
    """Return the physical columns of a table as a schema of pyiceberg."""
    ids, types = count(1), pyiceberg("types")
    fields = [
        types.NestedField(
            next(ids), field.name, _write_type(f"{name}.{field.name}", field.data_type, ids),
            required=not field.data_type.null, doc=column.comment,
        )
        for field, column in zip(definition.physical.fields, definition.columns, strict=True)
    ]  # fmt: skip
    identifiers = [field.field_id for field in fields if field.name in definition.primary_key]
    return pyiceberg("schema").Schema(*fields, identifier_field_ids=identifiers)


def _write_type(name: str, data_type: t.DataType, ids: Iterator[int]) -> Any:
    types = pyiceberg("types")
    match data_type:
        case t.RowType():
            return types.StructType(
                *(
                    types.NestedField(
                        next(ids),
                        f.name,
                        _write_type(f"{name}.{f.name}", f.data_type, ids),
                        required=not f.data_type.null,
                    )
                    for f in data_type.fields
                )
            )
        case t.ArrayType(element=element):
            return types.ListType(next(ids), _write_type(name, element, ids), element_required=not element.null)
        case t.MapType(key=key, value=value):
            return types.MapType(
                next(ids), _write_type(name, key, ids), next(ids), _write_type(name, value, ids), not value.null
            )
        case t.DecimalType():
            return types.DecimalType(data_type.precision, data_type.scale)
        case t.BinaryType():
            return types.FixedType(data_type.length)
        case t.TimestampType() | t.LocalZonedTimestampType() if data_type.precision > 6:
            message = f"'{name}' is {data_type}, but Iceberg keeps microseconds"
            raise CatalogError(message, hint="use a precision of 6 or less")
    for sql_type, name_in_iceberg in (
        (t.BooleanType, "BooleanType"), (t.TinyIntType, "IntegerType"), (t.SmallIntType, "IntegerType"),
        (t.IntType, "IntegerType"), (t.BigIntType, "LongType"), (t.FloatType, "FloatType"),
        (t.DoubleType, "DoubleType"), (t.CharType, "StringType"), (t.VarCharType, "StringType"),
        (t.VarBinaryType, "BinaryType"),
        (t.DateType, "DateType"), (t.TimeType, "TimeType"), (t.TimestampType, "TimestampType"),
        (t.LocalZonedTimestampType, "TimestamptzType"),
    ):  # fmt: skip
        if isinstance(data_type, sql_type):
            return getattr(types, name_in_iceberg)()
    message = f"'{name}' is {data_type}, which Iceberg does not have"
    raise CatalogError(message)
