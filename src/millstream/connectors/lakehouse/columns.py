"""Conversion between records and the columns of lakehouse tables.

Promises: a type maps to the same column in every table format; a type without a column type is refused by
name; a record that is written and read is equal to the original.
Does not know: files, table formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.errors import UserError
from millstream.types.factory import (
    BasicType,
    BasicTypeInfo,
    LocalTimeTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    StructTypeInfo,
    TypeInformation,
    Types,
)

DECIMAL = pa.decimal128(38, 18)
_INSTANT = pa.timestamp("us", "UTC")


class NoColumn(UserError):
    """A type that has no column type in tables."""

    hint = "map the stream to rows of numbers, text, bytes, dates, timestamps, lists, maps and rows"

    def __init__(self, name: str, type_info: object) -> None:
        self.name, self.type_info = name, type_info
        super().__init__(f"the field {name} has the type {type_info}, which a table cannot hold")


class NotAppended(UserError):
    """An update or deletion reached a sink that only appends."""

    hint = "set a primary key of the sink or the table: updates and deletions are then applied by key"

    def __init__(self) -> None:
        super().__init__("a record is an update or a deletion, and the table sink can only append")


def _basic_type_of(type_info: TypeInformation) -> BasicType | None:
    return type_info.basic_type if isinstance(type_info, BasicTypeInfo) else None


def column_type(name: str, type_info: TypeInformation) -> pa.DataType:
    """Return the column type for a type."""
    basic = _basic_type_of(type_info)
    if basic is BasicType.INSTANT:
        return _INSTANT
    if basic is BasicType.BIG_DEC:
        return DECIMAL
    if not type_info.is_columnar or basic is BasicType.BIG_INT:
        raise NoColumn(name, type_info)
    if isinstance(type_info, StructTypeInfo):
        pairs = zip(type_info.field_names, type_info.field_types, strict=True)
        return pa.struct([(field, column_type(f"{name}.{field}", inner)) for field, inner in pairs])
    if isinstance(type_info, MapTypeInfo):
        arrow = type_info.arrow_type
        if _is_plain(arrow.key_type) and _is_plain(arrow.item_type):
            return arrow
        raise NoColumn(name, type_info)
    arrow = type_info.arrow_type
    if pa.types.is_list(arrow):
        if not _is_plain(arrow.value_type):
            raise NoColumn(name, type_info)
        return pa.list_(arrow.value_type)
    if pa.types.is_time(arrow):
        return pa.time64("us")
    if pa.types.is_timestamp(arrow):
        return pa.timestamp("us", arrow.tz)
    return arrow


def _is_plain(data_type: pa.DataType) -> bool:
    return bool(not pa.types.is_nested(data_type))


def table_schema(row_type: RowTypeInfo) -> pa.Schema:
    """Return the columns for a row type."""
    pairs = zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)
    return pa.schema([(name, column_type(name, type_info)) for name, type_info in pairs])


def to_table(records: Any, row_type: RowTypeInfo, schema: pa.Schema) -> pa.Table:
    """Convert records, an Arrow array of the row type or Python values, to columns of the schema."""
    array = records if isinstance(records, pa.Array) else row_type.to_arrow(list(records))
    if array.field(len(row_type.get_field_names())).null_count != len(array):
        raise NotAppended
    return to_columns(array, row_type, schema)


def to_columns(array: pa.Array, row_type: RowTypeInfo, schema: pa.Schema) -> pa.Table:
    """Convert an Arrow array of the row type to columns of the schema, without the row kind."""
    columns = [
        _to_column(array.field(index), type_info).cast(field.type)
        for index, (type_info, field) in enumerate(zip(row_type.get_field_types(), schema, strict=True))
    ]
    return pa.table(columns, schema=schema)


def _to_column(array: pa.Array, type_info: TypeInformation) -> pa.Array:
    basic = _basic_type_of(type_info)
    if basic is BasicType.INSTANT:
        micros = pc.add(pc.multiply(array.field(0), 1_000_000), pc.divide(array.field(1).cast(pa.int64()), 1000))
        return pc.if_else(array.is_valid(), micros, None).cast(_INSTANT)
    if basic is BasicType.BIG_DEC:
        return array.cast(DECIMAL)
    if isinstance(type_info, StructTypeInfo):
        inner = [_to_column(array.field(index), field) for index, field in enumerate(type_info.field_types)]
        return pa.StructArray.from_arrays(inner, names=type_info.field_names, mask=array.is_null())
    return array


def type_of(name: str, column: pa.DataType) -> TypeInformation:
    """Return the type of the values of a column."""
    for matches, create_type in _TYPES_BY_COLUMN:
        if matches(column):
            type_info: TypeInformation = create_type()
            return type_info
    if pa.types.is_struct(column):
        fields = [column.field(index) for index in range(column.num_fields)]
        return RowTypeInfo([type_of(f"{name}.{f.name}", f.type) for f in fields], [f.name for f in fields])
    if pa.types.is_list(column) or pa.types.is_large_list(column):
        return Types.LIST(type_of(name, column.value_type))
    if pa.types.is_map(column):
        return Types.MAP(type_of(name, column.key_type), type_of(name, column.item_type))
    raise NoColumn(name, column)


def _local_time(time_type: LocalTimeTypeInfo.TimeType) -> Any:
    return lambda: LocalTimeTypeInfo(time_type)


_TYPES_BY_COLUMN: tuple[tuple[Any, Any], ...] = (
    (pa.types.is_int8, Types.BYTE),
    (pa.types.is_int16, Types.SHORT),
    (pa.types.is_int32, Types.INT),
    (pa.types.is_int64, Types.LONG),
    (pa.types.is_float32, Types.FLOAT),
    (pa.types.is_float64, Types.DOUBLE),
    (pa.types.is_boolean, Types.BOOLEAN),
    (lambda data_type: pa.types.is_string(data_type) or pa.types.is_large_string(data_type), Types.STRING),
    (
        lambda data_type: (
            pa.types.is_binary(data_type)
            or pa.types.is_large_binary(data_type)
            or pa.types.is_fixed_size_binary(data_type)
        ),
        lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    ),
    (pa.types.is_decimal, Types.BIG_DEC),
    (pa.types.is_date, Types.SQL_DATE),
    (pa.types.is_time, _local_time(LocalTimeTypeInfo.TimeType.LOCAL_TIME)),
    (lambda data_type: pa.types.is_timestamp(data_type) and data_type.tz is not None, Types.INSTANT),
    (pa.types.is_timestamp, _local_time(LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME)),
)


def row_type_of(schema: pa.Schema) -> RowTypeInfo:
    """Return the row type for columns."""
    return RowTypeInfo([type_of(field.name, field.type) for field in schema], list(schema.names))


def to_rows(table: pa.RecordBatch, row_type: RowTypeInfo) -> pa.Array:
    """Convert columns, found by name, to an array of the row type."""
    arrays = [
        _from_column(table.column(name), type_info)
        for name, type_info in zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)
    ]
    return _row_array(arrays, row_type, table.num_rows, None)


def _row_array(arrays: Sequence[pa.Array], row_type: RowTypeInfo, count: int, mask: pa.Array | None) -> pa.Array:
    return pa.StructArray.from_arrays(
        [*arrays, pa.nulls(count, pa.int8())], fields=list(row_type.arrow_type), mask=mask
    )


def _from_column(array: pa.Array, type_info: TypeInformation) -> pa.Array:
    basic = _basic_type_of(type_info)
    if basic is BasicType.INSTANT:
        micros = np.asarray(array.cast(_INSTANT).cast(pa.int64()).fill_null(0))
        seconds, rest = np.divmod(micros, 1_000_000)
        parts = [pa.array(seconds), pa.array((rest * 1000).astype(np.int32))]
        return pa.StructArray.from_arrays(parts, fields=list(type_info.arrow_type), mask=array.is_null())
    if isinstance(type_info, RowTypeInfo):
        inner = [_from_column(array.field(index), field) for index, field in enumerate(type_info.field_types)]
        return _row_array(inner, type_info, len(array), array.is_null())
    return array.cast(type_info.arrow_type)
