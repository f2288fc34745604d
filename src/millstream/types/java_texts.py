"""Text of values as Java's toString writes it.

Promises: the text of a typed record is what Flink prints for it: `1.1` for a FLOAT, `2024-01-02T03:04:05.678` for a
LocalDateTime, `[10, -1]` for bytes.
Does not know: SQL types."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from millstream.times import LOCAL_EPOCH, Instant
from millstream.types.basic_types import BasicType, BasicTypeInfo, LocalTimeTypeInfo, TimestampTypeInfo, TimeTypeInfo
from millstream.types.collection_types import ByteArrayTypeInfo, MapTypeInfo, SequenceTypeInfo
from millstream.types.composite_types import RowTypeInfo, TupleTypeInfo
from millstream.types.java_numbers import format_double
from millstream.types.row import Row
from millstream.types.type_information import TypeInformation

Format = Callable[[Any], str]


def format_boolean(value: Any) -> str:
    """Format a boolean as `true` or `false`."""
    return "true" if value else "false"


def format_bytes(value: Any) -> str:
    """Format bytes as an array of signed numbers."""
    return f"[{', '.join(str(byte - 256 if byte > 127 else byte) for byte in bytes(value))}]"


def format_local_time(value: datetime.time | datetime.datetime, nanosecond: int = 0) -> str:
    """Format a time as LocalTime.toString: seconds if there are any, and a fraction of 3, 6 or 9 digits.

    Args:
        value: The time, with a precision of microseconds.
        nanosecond: The nanoseconds that exceed the microseconds.

    """
    nanos = value.microsecond * 1000 + nanosecond
    if not value.second and not nanos:
        return f"{value.hour:02d}:{value.minute:02d}"
    return f"{value.hour:02d}:{value.minute:02d}:{value.second:02d}{_format_fraction(nanos)}"


def format_local_date(value: datetime.date) -> str:
    """Format a date as LocalDate.toString."""
    return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"


def format_local_date_time(value: datetime.datetime) -> str:
    """Format a timestamp as LocalDateTime.toString."""
    return f"{format_local_date(value)}T{format_local_time(value, getattr(value, 'nanosecond', 0))}"


def format_instant(value: datetime.datetime | Instant) -> str:
    """Format a point in time, which is in UTC, as Instant.toString: always with seconds."""
    if isinstance(value, Instant):
        moment, nanos = LOCAL_EPOCH + datetime.timedelta(seconds=value.seconds), value.nanos
    else:
        moment, nanos = value, value.microsecond * 1000 + getattr(value, "nanosecond", 0)
    return (
        f"{format_local_date(moment)}T{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d}"
        f"{_format_fraction(nanos)}Z"
    )


def _format_fraction(nanos: int) -> str:
    if not nanos:
        return ""
    digits = f"{nanos:09d}"
    return f".{digits[:3] if digits.endswith('000000') else digits[:6] if digits.endswith('000') else digits}"


def format_period(months: int, *, has_years: bool = True) -> str:
    """Format months as Period.toString: of years and months, or of months only."""
    years = int(months / 12) if has_years else 0
    rest = months - years * 12
    text = f"{f'{years}Y' if years else ''}{f'{rest}M' if rest else ''}"
    return f"P{text or '0D'}"


def format_java_duration(value: datetime.timedelta) -> str:
    """Format a length of time as Duration.toString: hours, minutes and seconds."""
    micros = value // datetime.timedelta(microseconds=1)
    if not micros:
        return "PT0S"
    sign = -1 if micros < 0 else 1
    seconds, fraction = divmod(abs(micros), 1_000_000)
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    text = f"{f'{sign * hours}H' if hours else ''}{f'{sign * minutes}M' if minutes else ''}"
    if seconds or fraction:
        digits = f"{fraction:06d}".rstrip("0")
        text += f"{'-' if sign < 0 else ''}{seconds}{f'.{digits}' if digits else ''}S"
    return f"PT{text}"


def _format_sql_timestamp(value: datetime.datetime) -> str:
    """Format a timestamp as java.sql.Timestamp.toString: a fraction of at least one digit."""
    time = f"{value.hour:02d}:{value.minute:02d}:{value.second:02d}"
    return f"{format_local_date(value)} {time}.{f'{value.microsecond:06d}'.rstrip('0') or '0'}"


def _format_sql_time(value: datetime.time) -> str:
    return f"{value.hour:02d}:{value.minute:02d}:{value.second:02d}"


def format_or_null(format_value: Format) -> Format:
    """Extend a format to write None as `null`."""
    return lambda value: "null" if value is None else format_value(value)


_BASIC_FORMATS: dict[BasicType, Format] = {
    BasicType.BOOLEAN: format_boolean,
    BasicType.FLOAT: lambda value: format_double(value, single=True),
    BasicType.DOUBLE: format_double,
    BasicType.INSTANT: format_instant,
}
_LOCAL_FORMATS: dict[LocalTimeTypeInfo.TimeType, Format] = {
    LocalTimeTypeInfo.TimeType.LOCAL_DATE: format_local_date,
    LocalTimeTypeInfo.TimeType.LOCAL_TIME: format_local_time,
    LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME: format_local_date_time,
}


def create_text_format(type_info: TypeInformation) -> Format:
    """Return the function that formats values of a type; None is `null`."""
    return format_or_null(_format_of(type_info))


def _format_of(type_info: TypeInformation) -> Format:
    match type_info:
        case BasicTypeInfo():
            return _BASIC_FORMATS.get(type_info.basic_type, str)
        case TimestampTypeInfo():
            return _format_sql_timestamp
        case TimeTypeInfo():
            return _format_sql_time
        case LocalTimeTypeInfo():
            return _LOCAL_FORMATS[type_info.time_type]
        case ByteArrayTypeInfo():
            return format_bytes
        case SequenceTypeInfo():
            element = create_text_format(type_info.elem_type)
            return lambda values: f"[{', '.join(map(element, values))}]"
        case MapTypeInfo():
            key, item = create_text_format(type_info.key_type), create_text_format(type_info.value_type)
            return lambda pairs: f"{{{', '.join(f'{key(k)}={item(v)}' for k, v in pairs.items())}}}"
        case TupleTypeInfo():
            fields = [create_text_format(field_type) for field_type in type_info.field_types]
            return lambda values: f"({','.join(f(v) for f, v in zip(fields, values, strict=True))})"
        case RowTypeInfo():
            return _create_row_format([create_text_format(field_type) for field_type in type_info.field_types])
    return str


def _create_row_format(fields: list[Format]) -> Format:
    def format_row(row: Row) -> str:
        return f"{row.get_row_kind()}[{', '.join(f(v) for f, v in zip(fields, row, strict=True))}]"

    return format_row
