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

    def __init__(self, name: str, kind: object) -> None:
        self.name, self.kind = name, kind
        super().__init__(f"the field {name} has the type {kind}, which a table cannot hold")


class NotAppended(UserError):
    """An update or deletion reached a sink that only appends."""

    hint = "Delta and Iceberg sinks append; turn changes into rows first, or write to a database with key fields"

    def __init__(self) -> None:
        super().__init__("a record is an update or a deletion, and the table sink can only append")


def _basic(kind: TypeInformation) -> BasicType | None:
    return kind._basic_type if isinstance(kind, BasicTypeInfo) else None


def column_type(name: str, kind: TypeInformation) -> pa.DataType:
    """Return the column type for a type."""
    basic = _basic(kind)
    if basic is BasicType.INSTANT:
        return _INSTANT
    if basic is BasicType.BIG_DEC:
        return DECIMAL
    if not kind.is_columnar or basic is BasicType.BIG_INT:
        raise NoColumn(name, kind)
    if isinstance(kind, StructTypeInfo):
        pairs = zip(kind.field_names, kind.field_types, strict=True)
        return pa.struct([(field, column_type(f"{name}.{field}", inner)) for field, inner in pairs])
    if isinstance(kind, MapTypeInfo):
        arrow = kind.arrow_type
        if _is_plain(arrow.key_type) and _is_plain(arrow.item_type):
            return arrow
        raise NoColumn(name, kind)
    arrow = kind.arrow_type
    if pa.types.is_list(arrow):
        if not _is_plain(arrow.value_type):
            raise NoColumn(name, kind)
        return pa.list_(arrow.value_type)
    if pa.types.is_time(arrow):
        return pa.time64("us")
    if pa.types.is_timestamp(arrow):
        return pa.timestamp("us", arrow.tz)
    return arrow


def _is_plain(kind: pa.DataType) -> bool:
    return bool(not pa.types.is_nested(kind))


def table_schema(row_type: RowTypeInfo) -> pa.Schema:
    """Return the columns for a row type."""
    pairs = zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)
    return pa.schema([(name, column_type(name, kind)) for name, kind in pairs])


def to_table(records: Any, row_type: RowTypeInfo, schema: pa.Schema) -> pa.Table:
    """Records, as an Arrow array of the row type or as Python values, as columns of the schema."""
    array = records if isinstance(records, pa.Array) else row_type.to_arrow(list(records))
    if array.field(len(row_type.get_field_names())).null_count != len(array):
        raise NotAppended
    columns = [
        _out(array.field(place), kind).cast(field.type)
        for place, (kind, field) in enumerate(zip(row_type.get_field_types(), schema, strict=True))
    ]
    return pa.table(columns, schema=schema)


def _out(array: pa.Array, kind: TypeInformation) -> pa.Array:
    basic = _basic(kind)
    if basic is BasicType.INSTANT:
        micros = pc.add(pc.multiply(array.field(0), 1_000_000), pc.divide(array.field(1).cast(pa.int64()), 1000))
        return pc.if_else(array.is_valid(), micros, None).cast(_INSTANT)
    if basic is BasicType.BIG_DEC:
        return array.cast(DECIMAL)
    if isinstance(kind, StructTypeInfo):
        inner = [_out(array.field(place), field) for place, field in enumerate(kind.field_types)]
        return pa.StructArray.from_arrays(inner, names=kind.field_names, mask=array.is_null())
    return array


def type_of(name: str, column: pa.DataType) -> TypeInformation:
    """Return the type of the values of a column."""
    for check, make in _READ:
        if check(column):
            made: TypeInformation = make()
            return made
    if pa.types.is_struct(column):
        fields = [column.field(place) for place in range(column.num_fields)]
        return RowTypeInfo([type_of(f"{name}.{f.name}", f.type) for f in fields], [f.name for f in fields])
    if pa.types.is_list(column) or pa.types.is_large_list(column):
        return Types.LIST(type_of(name, column.value_type))
    if pa.types.is_map(column):
        return Types.MAP(type_of(name, column.key_type), type_of(name, column.item_type))
    raise NoColumn(name, column)


def _local(kind: LocalTimeTypeInfo.TimeType) -> Any:
    return lambda: LocalTimeTypeInfo(kind)


_READ: tuple[tuple[Any, Any], ...] = (
    (pa.types.is_int8, Types.BYTE),
    (pa.types.is_int16, Types.SHORT),
    (pa.types.is_int32, Types.INT),
    (pa.types.is_int64, Types.LONG),
    (pa.types.is_float32, Types.FLOAT),
    (pa.types.is_float64, Types.DOUBLE),
    (pa.types.is_boolean, Types.BOOLEAN),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), Types.STRING),
    (
        lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind),
        lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    ),
    (pa.types.is_decimal, Types.BIG_DEC),
    (pa.types.is_date, Types.SQL_DATE),
    (pa.types.is_time, _local(LocalTimeTypeInfo.TimeType.LOCAL_TIME)),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None, Types.INSTANT),
    (pa.types.is_timestamp, _local(LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME)),
)


def row_type_of(schema: pa.Schema) -> RowTypeInfo:
    """Return the row type for columns."""
    return RowTypeInfo([type_of(field.name, field.type) for field in schema], list(schema.names))


def to_rows(table: pa.RecordBatch, row_type: RowTypeInfo) -> pa.Array:
    """Convert columns, found by name, to an array of the row type."""
    arrays = [
        _in(table.column(name), kind)
        for name, kind in zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)
    ]
    return _rows(arrays, row_type, table.num_rows, None)


def _rows(arrays: Sequence[pa.Array], kind: RowTypeInfo, count: int, mask: pa.Array | None) -> pa.Array:
    return pa.StructArray.from_arrays([*arrays, pa.nulls(count, pa.int8())], fields=list(kind.arrow_type), mask=mask)


def _in(array: pa.Array, kind: TypeInformation) -> pa.Array:
    basic = _basic(kind)
    if basic is BasicType.INSTANT:
        micros = np.asarray(array.cast(_INSTANT).cast(pa.int64()).fill_null(0))
        seconds, rest = np.divmod(micros, 1_000_000)
        parts = [pa.array(seconds), pa.array((rest * 1000).astype(np.int32))]
        return pa.StructArray.from_arrays(parts, fields=list(kind.arrow_type), mask=array.is_null())
    if isinstance(kind, RowTypeInfo):
        inner = [_in(array.field(place), field) for place, field in enumerate(kind.field_types)]
        return _rows(inner, kind, len(array), array.is_null())
    return array.cast(kind.arrow_type)
