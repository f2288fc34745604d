"""Arrow data that is exchanged with other libraries: pandas, Polars, DuckDB, Spark.

Promises: fields of rows have their names. A type of another library becomes the SQL type with the same values, or is
refused; no value is rounded or truncated. Columns whose layout is the same are not copied.
Does not know: tables, jobs, and which library the data comes from."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.errors import UserError
from millstream.sql.columns import arrow_type, to_internal_values
from millstream.sql.types import data_types as t
from millstream.sql.types.variants import Variant


class UnknownArrowType(UserError):
    """An Arrow type that no SQL type can represent."""

    def __init__(self, name: str, data_type: pa.DataType) -> None:
        super().__init__(
            f"column '{name}' has the Arrow type {data_type}, which no SQL type represents exactly",
            hint="cast the column first, or pass a schema with its SQL type",
        )


class UnfitColumn(UserError, TypeError):
    """A column that cannot be converted to the type of the schema without loss."""

    def __init__(self, name: str, given_type: pa.DataType, data_type: t.DataType, problem: str) -> None:
        super().__init__(
            f"column '{name}' of Arrow type {given_type} does not fit {data_type}: {problem}",
            hint="change the schema, or cast the column first",
        )


# --------------------------------------------------------------------------------------------------------------- types

_SIMPLE: dict[pa.DataType, t.DataType] = {
    pa.bool_(): t.BOOLEAN,
    pa.int8(): t.TINYINT,
    pa.int16(): t.SMALLINT,
    pa.int32(): t.INT,
    pa.int64(): t.BIGINT,
    pa.uint8(): t.SMALLINT,
    pa.uint16(): t.INT,
    pa.uint32(): t.BIGINT,
    pa.uint64(): t.DecimalType(20, 0),
    pa.float16(): t.FLOAT,
    pa.float32(): t.FLOAT,
    pa.float64(): t.DOUBLE,
    pa.string(): t.STRING,
    pa.large_string(): t.STRING,
    pa.string_view(): t.STRING,
    pa.binary(): t.BYTES,
    pa.large_binary(): t.BYTES,
    pa.binary_view(): t.BYTES,
    pa.date32(): t.DATE,
    pa.date64(): t.DATE,
}
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_MAX_DECIMAL_PRECISION = 38


def get_exchange_type(data_type: t.DataType) -> pa.DataType:
    """Return the Arrow type of an exported column: that of the engine, with the names of fields of rows."""
    match data_type:
        case t.ArrayType():
            return pa.list_(get_exchange_type(data_type.element))
        case t.MultisetType():
            return pa.map_(get_exchange_type(data_type.element), pa.int32())
        case t.MapType():
            return pa.map_(get_exchange_type(data_type.key), get_exchange_type(data_type.value))
        case t.RowType():
            return pa.struct([pa.field(f.name, get_exchange_type(f.data_type)) for f in data_type.fields])
    return arrow_type(data_type)


def create_exchange_schema(row: t.RowType) -> pa.Schema:
    """Return the Arrow schema of an exported table."""
    return pa.schema([pa.field(f.name, get_exchange_type(f.data_type), nullable=f.data_type.null) for f in row.fields])


def find_sql_type_of_arrow(
    given_type: pa.DataType, name: str = "", *, nullable: bool = True, zones: bool = True
) -> t.DataType:
    """Return the SQL type that has the values of an Arrow type.

    Args:
        given_type: The Arrow type.
        name: The name of the column, for errors.
        nullable: Whether the column can have NULL.
        zones: Whether a timestamp with a time zone is a TIMESTAMP_LTZ; otherwise it is a TIMESTAMP in UTC.

    Returns:
        The SQL type. Unsigned integers become the next wider type.

    Raises:
        UnknownArrowType: If there is none.

    """
    data_type = _SIMPLE.get(given_type) or _find_parameterized_sql_type(given_type, name, zones)
    return data_type if nullable else data_type.not_null()


def _find_parameterized_sql_type(given_type: pa.DataType, name: str, zones: bool) -> t.DataType:
    if pa.types.is_decimal(given_type) and given_type.precision <= _MAX_DECIMAL_PRECISION and given_type.scale >= 0:
        return t.DecimalType(given_type.precision, given_type.scale)
    if pa.types.is_timestamp(given_type):
        digits = _DIGITS[given_type.unit]
        return t.TimestampType(digits) if given_type.tz is None or not zones else t.LocalZonedTimestampType(digits)
    if pa.types.is_time(given_type):
        return t.TimeType(_DIGITS[given_type.unit])
    if pa.types.is_duration(given_type):
        return t.DayTimeIntervalType()
    if pa.types.is_fixed_size_binary(given_type):
        return t.BinaryType(given_type.byte_width)
    if pa.types.is_dictionary(given_type) or pa.types.is_run_end_encoded(given_type):
        return find_sql_type_of_arrow(given_type.value_type, name, zones=zones)
    if pa.types.is_struct(given_type):
        fields = [(f.name, find_sql_type_of_arrow(f.type, name, nullable=f.nullable, zones=zones)) for f in given_type]
        return t.row_of([field_name for field_name, _ in fields], [field_type for _, field_type in fields])
    if pa.types.is_map(given_type):
        value = find_sql_type_of_arrow(given_type.item_type, name, nullable=given_type.item_field.nullable, zones=zones)
        return t.MapType(find_sql_type_of_arrow(given_type.key_type, name, nullable=False, zones=zones), value)
    if _is_list(given_type):
        field = given_type.value_field
        return t.ArrayType(find_sql_type_of_arrow(field.type, name, nullable=field.nullable, zones=zones))
    raise UnknownArrowType(name, given_type)


def _is_list(given_type: pa.DataType) -> bool:
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    views = (pa.types.is_list_view, pa.types.is_large_list_view)
    return any(test(given_type) for test in (*tests, *views))


# ------------------------------------------------------------------------------------------------------------- columns


class _Relabelled:
    """The buffers of an array under another type of the same layout, by Arrow's C data interface."""

    def __init__(self, array: pa.Array, data_type: pa.DataType) -> None:
        self._array, self._type = array, data_type

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        return self._type.__arrow_c_schema__(), self._array.__arrow_c_array__()[1]


def relabel(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return the array with other names of fields, without a copy."""
    return array if array.type.equals(data_type) else pa.array(_Relabelled(array, data_type))


def export_column(array: pa.Array, data_type: t.DataType) -> pa.Array:
    """Convert a column of the engine to its form for other libraries; variants become JSON."""
    if isinstance(data_type, t.VariantType):
        texts = [None if text is None else Variant(text).to_json() for text in to_internal_values(array, data_type)]
        return pa.array(texts, pa.string())
    return relabel(array, get_exchange_type(data_type))


def import_column(column: pa.Array, data_type: t.DataType, name: str) -> pa.Array:
    """Convert a column of another library to a column of the engine.

    Raises:
        UnfitColumn: If a value does not fit the type, or is NULL where the type is NOT NULL.

    """
    target = get_exchange_type(data_type)
    given_type = column.type
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if t.is_text(data_type) and not _is_text(column.type):
        raise UnfitColumn(name, given_type, data_type, "it has no texts")
    if not column.type.equals(target):
        try:
            column = column.cast(target)
        except (pa.ArrowException, NotImplementedError) as problem:
            raise UnfitColumn(name, given_type, data_type, str(problem)) from None
    if column.null_count and not data_type.null:
        raise UnfitColumn(name, given_type, data_type, f"{column.null_count} values are NULL")
    return relabel(column, arrow_type(data_type))


def _is_text(given_type: pa.DataType) -> bool:
    return any(test(given_type) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))
