"""CAST, by Flink's rules.

Promises: integers overflow as in Java, fractions are truncated, decimals are rounded half up and are NULL if they do
not fit; a string that cannot be parsed fails, or is NULL for TRY_CAST.
Does not know: which casts are implicit."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import arrow_type, round_decimal, scalar_value, to_internal_values
from millstream.sql.functions import text
from millstream.sql.types import data_types as t
from millstream.times import EPOCH_DAY, MILLISECOND
from millstream.types.nanoseconds import truncate_fraction

_EXACT_DIGITS = 15  # of an integer that a double represents exactly


def can_cast(source: t.DataType, target: t.DataType) -> bool:
    """Whether CAST from one type to the other exists."""
    if isinstance(source, t.NullType) or source.same(target):
        return True
    if isinstance(source, t.VariantType) or isinstance(target, t.VariantType):
        return False
    match source, target:
        case _, (t.CharType() | t.VarCharType()):
            return not isinstance(source, t.SymbolType | t.DescriptorType)
        case ((t.CharType() | t.VarCharType()), _):
            return not isinstance(target, t.MapType | t.MultisetType | t.NullType | t.StructuredType | t.BitmapType)
        case t.NumericType(), (t.NumericType() | t.BooleanType()):
            return True
        case t.NumericType(), (t.YearMonthIntervalType() | t.DayTimeIntervalType()):
            return isinstance(source, t.IntegerType)
        case t.BooleanType(), t.NumericType():
            return True
        case ((t.BinaryType() | t.VarBinaryType()), (t.BinaryType() | t.VarBinaryType())):
            return True
        case (
            (t.DateType() | t.TimestampType() | t.LocalZonedTimestampType()),
            (t.DateType() | t.TimestampType() | t.LocalZonedTimestampType()),
        ):
            return True
        case ((t.TimestampType() | t.LocalZonedTimestampType() | t.TimeType()), t.TimeType()):
            return True
        case t.TimeType(), (t.TimestampType() | t.LocalZonedTimestampType()):
            return True
        case t.YearMonthIntervalType(), (t.YearMonthIntervalType() | t.IntegerType()):
            return True
        case t.DayTimeIntervalType(), (t.DayTimeIntervalType() | t.IntegerType()):
            return True
        case t.ArrayType(), t.ArrayType():
            return can_cast(source.element, target.element)
        case t.MultisetType(), t.MultisetType():
            return can_cast(source.element, target.element)
        case t.MapType(), t.MapType():
            return can_cast(source.key, target.key) and can_cast(source.value, target.value)
        case t.RowType(), t.RowType():
            return len(source) == len(target) and all(map(can_cast, source.types, target.types))
    return False


def cast(frame: Any, datum: Any, source: t.DataType, target: t.DataType, *, safe: bool = False) -> Any:
    """Cast a column or a scalar."""
    arrow_target = arrow_type(target)
    if isinstance(source, t.NullType):
        return pa.scalar(None, arrow_target)
    result = _cast_with_arrow(datum, source, target, arrow_target)
    if result is not None:
        return result
    convert = create_conversion(source, target, frame.zone, frame.now)
    if isinstance(datum, pa.Scalar):
        if not datum.is_valid:
            return pa.scalar(None, arrow_target)
        (value,) = to_internal_values(pa.repeat(datum, 1), source)
        return pa.scalar(_convert_or_null(convert, value, safe), arrow_target)
    values = to_internal_values(datum, source)
    return pa.array([None if v is None else _convert_or_null(convert, v, safe) for v in values], arrow_target)


def _convert_or_null(convert: Callable[[Any], Any], value: Any, safe: bool) -> Any:
    if not safe:
        return convert(value)
    try:
        return convert(value)
    except (ValueError, ArithmeticError, OverflowError):
        return None


def _cast_with_arrow(datum: Any, source: t.DataType, target: t.DataType, arrow_target: pa.DataType) -> Any:
    """Cast with Arrow if its result is that of Flink, else return None; `arrow_target` is the type of the result."""
    is_same_text = t.is_text(source) and t.is_text(target) and getattr(target, "length", 0) == t.MAX_LENGTH
    if source.same(target) or is_same_text:
        return datum
    match source, target:
        case ((t.CharType() | t.VarCharType()), t.VarCharType()) if isinstance(datum, pa.Array):
            return pc.utf8_slice_codeunits(datum, 0, target.length)
        case t.IntegerType(), t.IntegerType():
            return pc.cast(datum, arrow_target, safe=False)
        case t.IntegerType(), (t.FloatType() | t.DoubleType()):
            return pc.cast(datum, arrow_target, safe=False)
        case ((t.FloatType() | t.DoubleType()), (t.FloatType() | t.DoubleType())):
            return pc.cast(datum, arrow_target, safe=False)
        case ((t.FloatType() | t.DoubleType()), t.IntegerType()):
            return _saturate(datum, target, arrow_target)
        case t.DecimalType(), t.DoubleType() if isinstance(datum, pa.Array) and source.precision <= _EXACT_DIGITS:
            return _find_nearest_doubles(datum, source)
        case t.IntegerType(), t.DecimalType() if target.precision - target.scale >= source.digits:
            return pc.cast(pc.cast(datum, pa.decimal128(max(source.digits, 1), 0)), arrow_target)
        case t.DecimalType(), t.DecimalType() if target.scale >= source.scale:
            with suppress(pa.ArrowInvalid):  # some values do not fit, and are NULL
                return pc.cast(datum, arrow_target)
        case t.IntegerType(), t.VarCharType() if target.length >= 20:
            return pc.cast(datum, arrow_target)
        case t.TimestampType(), t.TimestampType() if target.precision in (3, 6, 9):
            return _cut_fraction(datum, arrow_target)
        case t.LocalZonedTimestampType(), t.LocalZonedTimestampType() if target.precision in (3, 6, 9):
            return _cut_fraction(datum, arrow_target)
        case t.DateType(), t.TimestampType():
            return pc.cast(datum, arrow_target)
        case t.BooleanType(), t.IntegerType():
            return pc.cast(datum, arrow_target)
    return None


_UNITS = {"ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}


def _cut_fraction(datum: Any, arrow_target: pa.TimestampType) -> Any:
    """Cast timestamps to another unit and cut the digits that it does not have; before 1970, Arrow's cast rounds up."""
    if list(_UNITS).index(datum.type.unit) > list(_UNITS).index(arrow_target.unit):
        datum = pc.floor_temporal(datum, unit=_UNITS[arrow_target.unit])
    return pc.cast(datum, arrow_target, safe=False)


def _find_nearest_doubles(datum: pa.Array, source: t.DecimalType) -> pa.Array:
    """Return the double nearest to each decimal, as the quotient of two numbers that doubles represent exactly; Arrow's
    own cast rounds twice."""
    words = np.frombuffer(datum.buffers()[1], dtype=np.int64)[2 * datum.offset : 2 * (datum.offset + len(datum)) : 2]
    return pa.array(words / 10.0**source.scale, mask=datum.is_null().to_numpy(zero_copy_only=False))


def _saturate(datum: Any, target: t.IntegerType, arrow_target: pa.DataType) -> Any:
    """Cast floating-point numbers to integers as Java does: truncate, saturate, NaN is 0, small types through int."""
    if isinstance(datum, pa.Scalar):
        if not datum.is_valid:
            return pa.scalar(None, arrow_target)
        return _saturate(pa.array([scalar_value(datum)], datum.type), target, arrow_target)[0]
    bits = max(target.bits, 32)
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    values = np.trunc(np.nan_to_num(datum.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64), nan=0.0))
    result = np.where(values >= high, high, np.where(values <= low, low, np.clip(values, -9e18, 9e18).astype(np.int64)))
    array = pa.array(result.astype(np.int64), mask=datum.is_null().to_numpy(zero_copy_only=False))
    return pc.cast(array, arrow_target, safe=False)


def create_conversion(source: t.DataType, target: t.DataType, zone_name: str, now: int) -> Callable[[Any], Any]:
    """Return a function that casts one internal value."""
    match target:
        case t.CharType() | t.VarCharType():
            return _to_text(source, target, zone_name)
        case t.BooleanType():
            return text.parse_boolean if t.is_text(source) else bool
        case t.IntegerType():
            return _to_integer(source, target)
        case t.FloatType():
            return (lambda v: float(np.float32(text.parse_double(v)))) if t.is_text(source) else _to_single_precision
        case t.DoubleType():
            return text.parse_double if t.is_text(source) else float
        case t.DecimalType():
            return _to_decimal(source, target)
        case t.BinaryType() | t.VarBinaryType():
            return _to_bytes(source, target)
        case t.DateType():
            return _to_date(source, zone_name)
        case t.TimeType():
            return _to_time(source, target.precision, zone_name)
        case t.TimestampType() | t.LocalZonedTimestampType():
            return _to_timestamp(source, target, zone_name)
        case t.YearMonthIntervalType():
            return int
        case t.DayTimeIntervalType():
            return (lambda v: v) if isinstance(source, t.DayTimeIntervalType) else lambda v: v * MILLISECOND
    return _create_nested_conversion(source, target, zone_name, now)


def _to_single_precision(value: Any) -> float:
    return float(np.float32(value))


def _to_text(source: t.DataType, target: t.CharType | t.VarCharType, zone_name: str) -> Callable[[Any], str]:
    length, is_fixed = target.length, isinstance(target, t.CharType)

    def convert(value: Any) -> str:
        result = text.to_text(value, source, zone_name)
        if len(result) > length:
            return result[:length]
        return result.ljust(length) if is_fixed else result

    return convert


def _to_integer(source: t.DataType, target: t.IntegerType) -> Callable[[Any], int]:
    bits = target.bits
    if t.is_text(source):
        return lambda value: text.parse_integer(value, bits)
    if isinstance(source, t.DayTimeIntervalType):
        return lambda value: value // MILLISECOND
    span = 1 << bits

    def wrap(value: Any) -> int:
        number = int(value) % span
        return number - span if number >= span >> 1 else number

    return wrap


def _to_decimal(source: t.DataType, target: t.DecimalType) -> Callable[[Any], Decimal | None]:
    def convert(value: Any) -> Decimal | None:
        if t.is_text(source):
            return round_decimal(text.parse_decimal(value), target)
        if isinstance(value, float):
            return round_decimal(Decimal(repr(value)), target)
        return round_decimal(Decimal(int(value)) if isinstance(value, bool) else Decimal(value), target)

    return convert


def _to_bytes(_source: t.DataType, target: t.BinaryType | t.VarBinaryType) -> Callable[[Any], bytes]:
    def convert(value: Any) -> bytes:
        result = value.encode() if isinstance(value, str) else bytes(value)
        result = result[: target.length]
        return result.ljust(target.length, b"\0") if isinstance(target, t.BinaryType) else result

    return convert


def _to_local(value: datetime.datetime, zone_name: str) -> datetime.datetime:
    return value.astimezone(text.find_time_zone(zone_name)).replace(tzinfo=None)


def _to_date(source: t.DataType, zone_name: str) -> Callable[[Any], datetime.date]:
    if t.is_text(source):
        return text.parse_date
    if isinstance(source, t.LocalZonedTimestampType):
        return lambda value: _to_local(value, zone_name).date()
    return lambda value: value.date()


def _to_time(source: t.DataType, precision: int, zone_name: str) -> Callable[[Any], datetime.time]:
    unit = 10 ** (6 - min(precision, 3))  # a time has at most milliseconds

    def convert(value: Any) -> datetime.time:
        if isinstance(value, str):
            time = text.parse_time(value)
        elif isinstance(value, datetime.time):
            time = value
        else:
            time = (_to_local(value, zone_name) if isinstance(source, t.LocalZonedTimestampType) else value).time()
        return time.replace(microsecond=time.microsecond // unit * unit)

    return convert


def _to_timestamp(
    _source: t.DataType, target: t.TimestampType | t.LocalZonedTimestampType, zone_name: str
) -> Callable[[Any], datetime.datetime]:
    is_zoned = isinstance(target, t.LocalZonedTimestampType)

    def convert(value: Any) -> datetime.datetime:
        if isinstance(value, str):
            timestamp = text.parse_timestamp(value)
        elif isinstance(value, datetime.datetime):
            timestamp = _to_local(value, zone_name) if value.tzinfo is not None and not is_zoned else value
        elif isinstance(value, datetime.time):
            timestamp = datetime.datetime.combine(EPOCH_DAY, value)
        else:
            timestamp = datetime.datetime.combine(value, datetime.time())
        if is_zoned and timestamp.tzinfo is None:
            timestamp = timestamp.replace(tzinfo=text.find_time_zone(zone_name)).astimezone(text.UTC)
        return truncate_fraction(timestamp, target.precision)

    return convert


def _create_nested_conversion(source: t.DataType, target: t.DataType, zone_name: str, now: int) -> Callable[[Any], Any]:
    def inner(inner_source: t.DataType, inner_target: t.DataType) -> Callable[[Any], Any]:
        if inner_source.same(inner_target):
            return lambda value: value
        convert = create_conversion(inner_source, inner_target, zone_name, now)
        return lambda value: None if value is None else convert(value)

    match source, target:
        case t.ArrayType(), t.ArrayType():
            convert_element = inner(source.element, target.element)
            return lambda value: tuple(convert_element(v) for v in value)
        case t.MultisetType(), t.MultisetType():
            convert_element = inner(source.element, target.element)
            return lambda value: tuple((convert_element(k), n) for k, n in value)
        case t.MapType(), t.MapType():
            convert_key, convert_value = inner(source.key, target.key), inner(source.value, target.value)
            return lambda value: tuple((convert_key(k), convert_value(v)) for k, v in value)
        case t.RowType(), t.RowType():
            converters = [inner(a, b) for a, b in zip(source.types, target.types, strict=True)]
            return lambda value: tuple(convert(v) for convert, v in zip(converters, value, strict=True))
    return lambda value: value
