"""Formatting and parsing of values as text, as in Java and Flink.

Promises: the results of CAST(x AS STRING) for every type, and what CAST of a string accepts.
Does not know: columns, and patterns of dates and times."""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from millstream.sql.types import data_types as t
from millstream.sql.types.variants import Variant
from millstream.times import MILLISECOND
from millstream.types.bitmap import Bitmap
from millstream.types.java_numbers import format_double
from millstream.types.nanoseconds import add_nanosecond

UTC = datetime.UTC
_OFFSET = re.compile(r"(?:GMT|UTC)?([+-])(\d{1,2})(?::?(\d{2}))?")


def find_time_zone(name: str) -> datetime.tzinfo:
    """Return a time zone by its name or offset."""
    match = _OFFSET.fullmatch(name)
    if match:
        minutes = int(match.group(2)) * 60 + int(match.group(3) or 0)
        return datetime.timezone(datetime.timedelta(minutes=minutes if match.group(1) == "+" else -minutes))
    if name in ("UTC", "GMT", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        msg = f"unknown time zone '{name}'"
        raise ValueError(msg) from None


def format_fraction(microseconds: int, precision: int, nanoseconds: int = 0) -> str:
    """Format the fractional second."""
    if precision <= 0:
        return ""
    return "." + f"{microseconds * 1000 + nanoseconds:09d}"[:precision]


def format_timestamp(value: datetime.datetime, precision: int) -> str:
    """Format a timestamp as 2020-01-01 12:00:00.000."""
    base = f"{value.year:04d}-{value.month:02d}-{value.day:02d} {value.hour:02d}:{value.minute:02d}:{value.second:02d}"
    return base + format_fraction(value.microsecond, precision, getattr(value, "nanosecond", 0))


def format_time(value: datetime.time, precision: int) -> str:
    """Format a time."""
    fraction = format_fraction(value.microsecond, min(precision, 3))
    # trailing zeros are left out, but one digit is written if the type has digits
    shortened = f"{fraction[:2]}{fraction[2:].rstrip('0')}"
    return f"{value.hour:02d}:{value.minute:02d}:{value.second:02d}{shortened}"


def format_months(months: int) -> str:
    """Format an interval of months as +1-02."""
    sign = "-" if months < 0 else "+"
    return f"{sign}{abs(months) // 12}-{abs(months) % 12:02d}"


def format_duration(value: datetime.timedelta) -> str:
    """Format an interval of days and seconds as +1 02:03:04.000."""
    total = value // MILLISECOND
    sign = "-" if total < 0 else "+"
    total = abs(total)
    days, remainder = divmod(total, 86_400_000)
    hours, remainder = divmod(remainder, 3_600_000)
    minutes, remainder = divmod(remainder, 60_000)
    return f"{sign}{days} {hours:02d}:{minutes:02d}:{remainder // 1000:02d}.{remainder % 1000:03d}"


def to_text(value: Any, data_type: t.DataType, session_zone: str = "UTC", *, hex_bytes: bool = False) -> str:
    """Format an internal value as CAST(x AS STRING) does; with `hex_bytes`, bytes are `x'0aff'`, as in a tableau."""

    def nested_text(inner: Any, inner_type: t.DataType) -> str:
        return "NULL" if inner is None else to_text(inner, inner_type, session_zone, hex_bytes=hex_bytes)

    match data_type:
        case t.CharType() | t.VarCharType():
            return str(value)
        case t.BooleanType():
            return "TRUE" if value else "FALSE"
        case t.BinaryType() | t.VarBinaryType():
            return f"x'{bytes(value).hex()}'" if hex_bytes else bytes(value).decode("utf-8", "replace")
        case t.BitmapType():
            return str(Bitmap.from_bytes(value))
        case t.VariantType():
            return Variant(value).to_json()
        case t.DecimalType():
            return f"{value:f}"
        case t.FloatType():
            return format_double(value, single=True)
        case t.DoubleType():
            return format_double(value)
        case t.DateType():
            return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"
        case t.TimeType():
            return format_time(value, data_type.precision)
        case t.TimestampType():
            return format_timestamp(value, data_type.precision)
        case t.LocalZonedTimestampType():
            return format_timestamp(value.astimezone(find_time_zone(session_zone)), data_type.precision)
        case t.YearMonthIntervalType():
            return format_months(value)
        case t.DayTimeIntervalType():
            return format_duration(value)
        case t.ArrayType():
            return f"[{', '.join(nested_text(v, data_type.element) for v in value)}]"
        case t.MultisetType():
            pairs = (f"{nested_text(k, data_type.element)}={n}" for k, n in value)
            return "{" + ", ".join(pairs) + "}"
        case t.MapType():
            pairs = (f"{nested_text(k, data_type.key)}={nested_text(v, data_type.value)}" for k, v in value)
            return "{" + ", ".join(pairs) + "}"
        case t.RowType():
            fields = (nested_text(v, f) for v, f in zip(value, data_type.types, strict=True))
            if isinstance(data_type, t.StructuredType):
                fields = (f"{name}={field}" for name, field in zip(data_type.names, fields, strict=True))
            return f"({', '.join(fields)})"
    return str(value)


_DATE = re.compile(r"(\d{1,6})-(\d{1,2})-(\d{1,2})")
_TIME = re.compile(r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?")
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?|[+-]?\.\d+")
_SCIENTIFIC = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?")


def parse_date(text: str) -> datetime.date:
    """Parse a date such as 2020-01-31; a time after it is ignored."""
    body = text.strip().split(" ")[0].split("T")[0]
    match = _DATE.fullmatch(body)
    if match is None:
        msg = f"'{text}' is not a date"
        raise ValueError(msg)
    return datetime.date(*map(int, match.groups()))


def parse_time(text: str) -> datetime.time:
    """Parse a time such as 12:30:00.5."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        msg = f"'{text}' is not a time"
        raise ValueError(msg)
    hour, minute, second, digits = match.groups()
    micros = int(((digits or "") + "000000")[:6]) // 1000 * 1000
    return datetime.time(int(hour), int(minute or 0), int(second or 0), micros)


def parse_timestamp(text: str) -> datetime.datetime:
    """Parse a timestamp such as 2020-01-31 12:30:00.123, with T or a space; a date is its midnight."""
    body = text.strip()
    date_part, separator, time_part = body.partition("T" if "T" in body else " ")
    date_match = _DATE.fullmatch(date_part)
    if date_match is None:
        msg = f"'{text}' is not a timestamp"
        raise ValueError(msg)
    year, month, day = map(int, date_match.groups())
    if not separator:
        return datetime.datetime(year, month, day)  # noqa: DTZ001
    time_match = _TIME.fullmatch(time_part.strip().removesuffix("Z"))
    if time_match is None:
        msg = f"'{text}' is not a timestamp"
        raise ValueError(msg)
    hour, minute, second, digits = time_match.groups()
    micros, nanosecond = divmod(int(f"{digits or '0':0<9}"), 1000)
    timestamp = datetime.datetime(year, month, day, int(hour), int(minute or 0), int(second or 0), micros)  # noqa: DTZ001
    return add_nanosecond(timestamp, nanosecond)


def parse_boolean(text: str) -> bool:
    """Parse true, t, yes, y, 1 and their opposites."""
    word = text.strip().lower()
    if word in ("true", "t", "yes", "y", "1"):
        return True
    if word in ("false", "f", "no", "n", "0"):
        return False
    msg = f"'{text}' is not a boolean"
    raise ValueError(msg)


def parse_integer(text: str, bits: int) -> int:
    """Parse an integer; a fraction is truncated."""
    body = text.strip()
    if _NUMBER.fullmatch(body) is None:
        msg = f"For input string: '{text}'. Invalid character found."
        raise ValueError(msg)
    number = int(Decimal(body))
    limit = 1 << (bits - 1)
    if not -limit <= number < limit:
        msg = f"For input string: '{text}'. Overflow."
        raise ValueError(msg)
    return number


def parse_double(text: str) -> float:
    """Parse a floating-point number."""
    body = text.strip()
    special = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}.get(body)
    if special is not None:
        return special
    if _SCIENTIFIC.fullmatch(body) is None:
        msg = f"For input string: '{text}'"
        raise ValueError(msg)
    return float(body.rstrip("dDfF"))


def parse_decimal(text: str) -> Decimal:
    """Parse a decimal."""
    body = text.strip()
    if _SCIENTIFIC.fullmatch(body) is None or body[-1] in "dDfF":
        msg = f"'{text}' is not a decimal"
        raise ValueError(msg)
    return Decimal(body)
