"""Conversion between logical types, Arrow columns and Python values.

Promises: every logical type has one Arrow type. Internal values are hashable, so that rows can be keys: arrays are
tuples, maps tuples of pairs, rows tuples. External values are those that users see: lists, dicts, `Row`.
Does not know: expressions."""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.decimals import fit_decimal
from millstream.serialization import codec
from millstream.sql.syntax import parse_type
from millstream.sql.types import data_types as t
from millstream.sql.types.structured_objects import find_constructor
from millstream.sql.types.variants import Variant
from millstream.times import EPOCH, Instant, to_utc_datetime
from millstream.types.arrow_types import TypeMismatch, to_python_values
from millstream.types.bitmap import Bitmap
from millstream.types.composite_types import KIND_FIELD
from millstream.types.factory import RowTypeInfo, Types
from millstream.types.nanoseconds import add_nanosecond
from millstream.types.row import Row
from millstream.types.type_information import TypeInformation

_UTC = datetime.UTC
INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = 0, 1, 2, 3
_MAX_CACHED = 1000
_cached_fields: dict[int, tuple[t.RowType, list[pa.Field]]] = {}


def arrow_type(data_type: t.DataType) -> pa.DataType:
    """Return the Arrow type of a column of a logical type."""
    match data_type:
        case t.CharType() | t.VarCharType() | t.VariantType():
            return pa.string()
        case t.BooleanType():
            return pa.bool_()
        case t.BinaryType() | t.VarBinaryType() | t.RawType() | t.BitmapType():
            return pa.binary()
        case t.DecimalType():
            return pa.decimal128(data_type.precision, data_type.scale)
        case t.TinyIntType():
            return pa.int8()
        case t.SmallIntType():
            return pa.int16()
        case t.IntType() | t.YearMonthIntervalType():
            return pa.int32()
        case t.BigIntType():
            return pa.int64()
        case t.FloatType():
            return pa.float32()
        case t.DoubleType():
            return pa.float64()
        case t.DateType():
            return pa.date32()
        case t.TimeType():
            return pa.time32("ms")
        case t.TimestampType():
            return pa.timestamp(get_arrow_unit(data_type.precision))
        case t.LocalZonedTimestampType():
            return pa.timestamp(get_arrow_unit(data_type.precision), "UTC")
        case t.DayTimeIntervalType():
            return pa.duration("ms")
        case t.ArrayType():
            return pa.list_(arrow_type(data_type.element))
        case t.MultisetType():
            return pa.map_(arrow_type(data_type.element), pa.int32())
        case t.MapType():
            return pa.map_(arrow_type(data_type.key), arrow_type(data_type.value))
        case t.RowType():
            return pa.struct([(str(i), arrow_type(f.data_type)) for i, f in enumerate(data_type.fields)])
    return pa.null()


def get_arrow_unit(precision: int) -> str:
    """Return the Arrow unit for a number of fractional digits of seconds."""
    return "ms" if precision <= 3 else "us" if precision <= 6 else "ns"


def is_nested(data_type: t.DataType) -> bool:
    """Return whether values of a type contain other values."""
    return isinstance(data_type, t.ArrayType | t.MultisetType | t.MapType | t.RowType)


# ------------------------------------------------------------------------------------------------- internal values


def freeze(value: Any) -> Any:
    """Convert a nested Arrow value to a hashable one."""
    if isinstance(value, list):
        return tuple(map(freeze, value))
    if isinstance(value, dict):
        return tuple(map(freeze, value.values()))
    if isinstance(value, tuple):
        return tuple(map(freeze, value))
    return value


def to_internal_values(array: pa.Array | pa.ChunkedArray, data_type: t.DataType) -> list[Any]:
    """Convert a column to internal Python values."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    values = to_python_values(array)
    return list(map(freeze, values)) if is_nested(data_type) else values


def column(values: Sequence[Any], data_type: t.DataType) -> pa.Array:
    """Convert internal values to a column."""
    return pa.array(values, arrow_type(data_type))


# ------------------------------------------------------------------------------------------------- external values


def create_external_converter(data_type: t.DataType, *, keep_nanoseconds: bool = False) -> Callable[[Any], Any] | None:
    """Return the conversion from internal to external values; None if they are the same.

    Args:
        data_type: The type of the values.
        keep_nanoseconds: Whether timestamps keep their nanoseconds, as in the streams of a query. What programs get
            are datetimes, as in PyFlink, which have microseconds.

    """
    match data_type:
        case t.ArrayType():
            inner = create_external_converter(data_type.element, keep_nanoseconds=keep_nanoseconds)
            return list if inner is None else lambda value: [None if v is None else inner(v) for v in value]
        case t.MultisetType():
            return _create_external_map_converter(
                create_external_converter(data_type.element, keep_nanoseconds=keep_nanoseconds), None
            )
        case t.MapType():
            return _create_external_map_converter(
                create_external_converter(data_type.key, keep_nanoseconds=keep_nanoseconds),
                create_external_converter(data_type.value, keep_nanoseconds=keep_nanoseconds),
            )
        case t.RowType():
            converters, create_row = (
                [
                    create_external_converter(field_type, keep_nanoseconds=keep_nanoseconds)
                    for field_type in data_type.types
                ],
                find_constructor(data_type),
            )
            return lambda value: create_row(
                [
                    v if convert is None or v is None else convert(v)
                    for convert, v in zip(converters, value, strict=True)
                ]
            )
        case t.RawType():
            return codec.decode
        case t.BitmapType():
            return Bitmap.from_bytes
        case t.VariantType():
            return Variant
        case t.TimestampType() | t.LocalZonedTimestampType() if data_type.precision > 6 and not keep_nanoseconds:
            return to_datetime
    return None


def to_datetime(value: Any) -> Any:
    """Convert a timestamp with nanoseconds to a datetime."""
    return value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value


def _create_external_map_converter(
    key: Callable[[Any], Any] | None, value: Callable[[Any], Any] | None
) -> Callable[[Any], Any]:
    def to_dict(pairs: Any) -> dict[Any, Any]:
        return {(k if key is None else key(k)): (v if value is None or v is None else value(v)) for k, v in pairs}

    return to_dict


def create_internal_converter(data_type: t.DataType) -> Callable[[Any], Any]:
    """Return the conversion from external to internal values, which raises TypeError or ValueError for a wrong
    value."""
    match data_type:
        case t.CharType() | t.VarCharType():
            return _convert_text
        case t.BooleanType():
            return _convert_boolean
        case t.IntegerType():
            return _create_integer_converter(data_type.bits)
        case t.FloatType():
            return lambda value: float(np.float32(value))
        case t.DoubleType():
            return float
        case t.DecimalType():
            return _create_decimal_converter(data_type)
        case t.BinaryType() | t.VarBinaryType():
            return _convert_bytes
        case t.DateType():
            return _convert_date
        case t.TimeType():
            return _convert_time
        case t.TimestampType():
            return _convert_timestamp
        case t.LocalZonedTimestampType():
            return _convert_instant
        case t.DayTimeIntervalType():
            return _convert_duration
        case t.YearMonthIntervalType():
            return int
        case t.ArrayType():
            element = accept_none(create_internal_converter(data_type.element))
            return lambda value: tuple(element(v) for v in value)
        case t.MultisetType():
            element = create_internal_converter(data_type.element)
            return lambda value: tuple((element(k), int(n)) for k, n in dict(value).items())
        case t.MapType():
            key, item = (
                create_internal_converter(data_type.key),
                accept_none(create_internal_converter(data_type.value)),
            )
            return lambda value: tuple((key(k), item(v)) for k, v in dict(value).items())
        case t.RowType():
            return _create_row_converter(data_type)
        case t.RawType():
            return codec.encode
        case t.BitmapType():
            return _convert_bitmap
        case t.VariantType():
            return _convert_variant
    return lambda value: value


def accept_none(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Extend a conversion to convert None to None."""
    return lambda value: None if value is None else convert(value)


def _find_plain_type(data_type: t.DataType) -> type | None:
    """Return the Python type whose values are internal values already; None if each value must be converted."""
    match data_type:
        case t.CharType() | t.VarCharType():
            return str
        case t.BooleanType():
            return bool
        case t.IntegerType():
            return int
        case t.DoubleType():
            return float
    return None


def _convert_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _convert_boolean(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(value)
    return bool(value)


def _create_integer_converter(bits: int) -> Callable[[Any], int]:
    limit = 1 << (bits - 1)

    def convert(value: Any) -> int:
        is_integer = hasattr(value, "__index__") or (isinstance(value, float | Decimal) and value == int(value))
        if isinstance(value, bool) or not is_integer:
            raise TypeError(value)
        number = int(value)
        if not -limit <= number < limit:
            raise ValueError(value)
        return number

    return convert


def _create_decimal_converter(data_type: t.DecimalType) -> Callable[[Any], Decimal | None]:
    return lambda value: round_decimal(value if isinstance(value, Decimal) else Decimal(str(value)), data_type)


def round_decimal(value: Decimal, data_type: t.DecimalType) -> Decimal | None:
    """Round a decimal half up to the scale of the type; None if it has too many digits, as in Flink."""
    return fit_decimal(value, data_type.precision, data_type.scale)


def _convert_bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(value)
    return bytes(value)


def _convert_date(value: Any) -> datetime.date:
    if isinstance(value, datetime.datetime):
        return value.date()
    if not isinstance(value, datetime.date):
        raise TypeError(value)
    return value


def _convert_time(value: Any) -> datetime.time:
    if not isinstance(value, datetime.time):
        raise TypeError(value)
    return value.replace(microsecond=value.microsecond // 1000 * 1000, tzinfo=None)


def _convert_timestamp(value: Any) -> datetime.datetime:
    if not isinstance(value, datetime.datetime):
        raise TypeError(value)
    return value.replace(tzinfo=None)


def _convert_instant(value: Any) -> datetime.datetime:
    if isinstance(value, Instant):
        return add_nanosecond(to_utc_datetime(value), value.nanos % 1000)
    if isinstance(value, int) and not isinstance(value, bool):
        return EPOCH + datetime.timedelta(milliseconds=value)
    if not isinstance(value, datetime.datetime):
        raise TypeError(value)
    return value.replace(tzinfo=_UTC) if value.tzinfo is None else value.astimezone(_UTC)


def _convert_variant(value: Any) -> str:
    if not isinstance(value, Variant):
        raise TypeError(value)
    return value.text


def _convert_bitmap(value: Any) -> bytes:
    if not isinstance(value, Bitmap):
        raise TypeError(value)
    return value.to_bytes()


def _convert_duration(value: Any) -> datetime.timedelta:
    if isinstance(value, int) and not isinstance(value, bool):
        return datetime.timedelta(milliseconds=value)
    if not isinstance(value, datetime.timedelta):
        raise TypeError(value)
    return value


def _create_row_converter(row_type: t.RowType) -> Callable[[Any], tuple[Any, ...]]:
    converters = [accept_none(create_internal_converter(field_type)) for field_type in row_type.types]
    names = row_type.names

    def convert(value: Any) -> tuple[Any, ...]:
        if isinstance(value, dict):
            values: Sequence[Any] = [value.get(name) for name in names]
        elif isinstance(value, Row) and getattr(value, "_fields", None) and set(names) <= set(value._fields):
            values = [value[name] for name in names]
        elif isinstance(value, Row | tuple | list):
            values = list(value)
        else:
            values = [getattr(value, name) for name in names]
        if len(values) != len(converters):
            raise ValueError(value)
        return tuple(make(v) for make, v in zip(converters, values, strict=True))

    return convert


# ------------------------------------------------------------------------------------------------------------ types


class SqlTypeInfo(TypeInformation):
    """A logical type as type information of streams and state; with `internal`, values are internal ones."""

    json_tags = ("SQL",)

    def __init__(self, data_type: t.DataType, *, internal: bool = False) -> None:
        self.data_type = t.strip_time_attribute(data_type)
        self.internal = internal
        self._arrow_type = arrow_type(self.data_type)
        self._plain = _find_plain_type(self.data_type)

    @property
    def arrow_type(self) -> pa.DataType:
        """Return the Arrow type of the logical type."""
        return self._arrow_type

    def internals(self, values: Sequence[Any]) -> list[Any]:
        """Convert external values to internal ones; raises `TypeMismatch` for a wrong value."""
        if self._unconverted_column(values) is not None:
            return list(values)
        convert = create_internal_converter(self.data_type)
        converted: list[Any] = []
        for index, value in enumerate(values):
            try:
                converted.append(None if value is None else convert(value))
            except (TypeError, ValueError, AttributeError, OverflowError, InvalidOperation):
                raise TypeMismatch(index, value, str(self.data_type)) from None
        return converted

    def _unconverted_column(self, values: Sequence[Any]) -> pa.Array | None:
        """Return a column of values that are internal already; None if each value must be converted."""
        if self._plain is None or not set(map(type, values)) <= {self._plain, type(None)}:
            return None
        try:
            return pa.array(values, self._arrow_type)
        except (ValueError, OverflowError):
            return None

    def conform(self, values: list[Any]) -> list[Any]:
        """Convert values to the form in which they are read back."""
        internal_form = self.internals(values)
        to_external = None if self.internal else create_external_converter(self.data_type, keep_nanoseconds=True)
        external_form = (
            internal_form if to_external is None else [None if v is None else to_external(v) for v in internal_form]
        )
        # identity: 1 equals 1.0, and 1.5 equals 1.50
        return values if all(map(operator.is_, external_form, values)) else external_form

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Convert values to a column."""
        if self.internal:
            return pa.array(values, self._arrow_type)
        unconverted = self._unconverted_column(values)
        return pa.array(self.internals(values), self._arrow_type) if unconverted is None else unconverted

    def _from_array(self, array: pa.Array) -> list[Any]:
        values = to_internal_values(array, self.data_type)
        to_external = None if self.internal else create_external_converter(self.data_type, keep_nanoseconds=True)
        return values if to_external is None else [None if value is None else to_external(value) for value in values]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of the type."""
        return {"type": "SQL", "sql": str(self.data_type), "internal": self.internal}

    @classmethod
    def _from_json(cls, description: dict[str, Any]) -> SqlTypeInfo:
        return SqlTypeInfo(parse_type(description["sql"]), internal=bool(description["internal"]))

    def __repr__(self) -> str:
        return str(self.data_type)


def create_row_type_info(row: t.RowType) -> RowTypeInfo:
    """Return the type of a table's rows in streams: the columns, then the row kind."""
    return RowTypeInfo([SqlTypeInfo(data_type) for data_type in row.types], row.names)


def create_key_type_info(data_types: Sequence[t.DataType]) -> TypeInformation:
    """Return the type of keys of these columns: one value, or a tuple."""
    type_infos: list[TypeInformation] = [SqlTypeInfo(data_type, internal=True) for data_type in data_types]
    return type_infos[0] if len(type_infos) == 1 else Types.TUPLE(type_infos)


def create_tuple_type_info(data_types: Sequence[t.DataType]) -> TypeInformation:
    """Return the type of rows as internal tuples, for state."""
    return Types.TUPLE([SqlTypeInfo(data_type, internal=True) for data_type in data_types])


# ------------------------------------------------------------------------------------------------------------- rows


def read_row_kinds(array: pa.Array, width: int) -> list[int]:
    """Return the row kinds of rows, as numbers."""
    row_kinds = array.field(width)
    if row_kinds.null_count == len(row_kinds):
        return [INSERT] * len(row_kinds)
    return list(row_kinds.fill_null(0).to_numpy().tolist())


def has_only_inserts(array: pa.Array, width: int) -> bool:
    """Return whether all rows are inserts."""
    row_kinds = array.field(width)
    return bool(row_kinds.null_count == len(row_kinds)) or not np.any(row_kinds.fill_null(0).to_numpy())


def to_tuples(array: pa.Array, row: t.RowType) -> list[tuple[Any, ...]]:
    """Convert rows to tuples of internal values."""
    if not len(row):
        return [()] * len(array)
    return list(
        zip(*(to_internal_values(array.field(i), data_type) for i, data_type in enumerate(row.types)), strict=True)
    )


def combine_columns(arrays: Sequence[pa.Array], row_kinds: pa.Array | None, row: t.RowType, count: int) -> pa.Array:
    """Combine columns and row kinds to the array of a batch."""
    kind_column = pa.nulls(count, pa.int8()) if row_kinds is None else row_kinds
    return pa.StructArray.from_arrays([*arrays, kind_column], fields=_get_fields(row))


def _get_fields(row: t.RowType) -> list[pa.Field]:
    """Return the fields of a batch's array; fields of row types that were used before are cached."""
    cached = _cached_fields.get(id(row))
    if cached is None or cached[0] is not row:
        if len(_cached_fields) >= _MAX_CACHED:
            _cached_fields.clear()
        fields = [pa.field(name, arrow_type(data_type)) for name, data_type in zip(row.names, row.types, strict=True)]
        cached = _cached_fields[id(row)] = (row, [*fields, pa.field(KIND_FIELD, pa.int8())])
    return cached[1]


def create_row_array(rows: Sequence[tuple[Any, ...]], row_kinds: Sequence[int] | None, row: t.RowType) -> pa.Array:
    """Convert tuples of internal values and their row kinds to the array of a batch."""
    columns = list(zip(*rows, strict=True)) if rows else [() for _ in row.types]
    arrays = [pa.array(values, arrow_type(data_type)) for values, data_type in zip(columns, row.types, strict=True)]
    kind_column = None
    if row_kinds is not None and any(row_kinds):
        kind_column = pa.array(row_kinds, pa.int8())
    return combine_columns(arrays, kind_column, row, len(rows))


def scalar_value(scalar: pa.Scalar) -> Any:
    """Return the Python value of an Arrow scalar."""
    return to_python_values(pa.nulls(1, scalar.type) if not scalar.is_valid else pa.repeat(scalar, 1))[0]
