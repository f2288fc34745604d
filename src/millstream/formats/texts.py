"""Parsing and formatting of values as text, by Flink's rules for JSON strings and CSV fields.

Promises: text is parsed as Flink's formats do; other text raises a ValueError that says what was expected.
Does not know: quotes, escapes or separators."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import numpy as np

from millstream.connector.serialization_schema import text_of
from millstream.decimals import fit_decimal
from millstream.formats.format_types import BITS, FormatType, TypeRoot
from millstream.times import LOCAL_EPOCH, Instant
from millstream.types.nanoseconds import add_nanosecond

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_LOOSE_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{0,9}))?", re.ASCII)
_ISO_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{0,9}))?)?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_FLOAT = re.compile(
    r"[\x00-\x20]*[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)[\x00-\x20]*", re.ASCII
)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,10})?", re.ASCII)
#: The characters that Java's trim removes.
BLANKS = "".join(map(chr, range(33)))
_WIDE = Context(prec=1000)
_MAX_FLOAT = 3.4028234663852886e38
#: Styles of times and timestamps: SQL's blank, ISO's T, and RFC 3339's T and Z.
SQL, ISO, RFC = "SQL", "ISO-8601", "RFC-3339"
_ONE_SECOND = datetime.timedelta(seconds=1)


class BadText(ValueError):
    """A text is not a value of the type."""

    def __init__(self, text: object, expected: str) -> None:
        super().__init__(f"{text!r:.100} is not a {expected}")


def integer_reader(root: TypeRoot) -> Callable[[str], int]:
    """Return the parser of integers that fit the type."""
    limit = 1 << (BITS[root] - 1)

    def read(text: str) -> int:
        text = text.strip(BLANKS)
        if not _INTEGER.fullmatch(text) or len(text) > 40:
            raise BadText(text, root.value)
        number = int(text)
        if not -limit <= number < limit:
            raise BadText(text, root.value)
        return number

    return read


def read_float(text: str) -> float:
    """Parse a floating-point number as Java does."""
    if not _FLOAT.fullmatch(text):
        raise BadText(text, "number")
    plain = text.strip(BLANKS)
    return float(plain if plain[-1] in "yN" else plain.rstrip("fFdD"))


def read_boolean(text: str) -> bool:
    """Return True for "true" in any case, and False for all other texts."""
    return text.strip(BLANKS).lower() == "true"


def decimal_reader(data_type: FormatType) -> Callable[[str], Decimal | None]:
    """Return the parser of decimals: rounded to the scale, None if there are too many digits, as in Flink."""

    def read(text: str) -> Decimal | None:
        if not _DECIMAL.fullmatch(text):
            raise BadText(text, "decimal")
        return to_decimal_type(Decimal(text), data_type)

    return read


def to_decimal_type(number: Decimal, data_type: FormatType) -> Decimal | None:
    """Return the number with the scale of the type; None if it has too many digits."""
    if data_type.precision is None or data_type.scale is None:
        return number
    if number.is_nan():
        raise BadText(number, "decimal")
    return fit_decimal(number, data_type.precision, data_type.scale)


def read_date(text: str) -> datetime.date:
    """Parse a date such as 2020-12-30, strictly."""
    match = _DATE.fullmatch(text)
    if match is None:
        raise BadText(text, "date")
    return datetime.date(int(match[1]), int(match[2]), int(match[3]))


def read_sql_date(text: str) -> datetime.date:
    """Parse a date as java.sql.Date does: month and day have one or two digits, and days after the end of a month are
    counted into the next month."""
    match = _LOOSE_DATE.fullmatch(text)
    if match is None or not 1 <= int(match[2]) <= 12 or not 1 <= int(match[3]) <= 31:
        raise BadText(text, "date")
    return datetime.date(int(match[1]), int(match[2]), 1) + datetime.timedelta(int(match[3]) - 1)


def iso_time_reader(precision: int | None) -> Callable[[str], datetime.time]:
    """Return the parser of times with or without seconds, truncated to a number of digits."""
    unit = 10 ** (6 - min(precision or 0, 6))

    def read(text: str) -> datetime.time:
        match = _ISO_TIME.fullmatch(text)
        if match is None:
            raise BadText(text, "time of day")
        micros = int((match[4] or "").ljust(9, "0")) // 1000 // unit * unit
        return datetime.time(int(match[1]), int(match[2]), int(match[3] or 0), micros)

    return read


def read_time(text: str) -> datetime.time:
    """Parse a time such as 12:13:14, with up to nine digits of a fractional second."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise BadText(text, "time of day")
    return _time(match)[0]


def _time(match: re.Match[str]) -> tuple[datetime.time, int]:
    """Parse a time; return it and the number of days to add for 24:00:00."""
    hour, minute, second, fraction = match.groups()
    micros = int((fraction or "").ljust(9, "0")) // 1000
    if hour == "24" and int(minute) == int(second or 0) == micros == 0:
        return datetime.time(), 1
    return datetime.time(int(hour), int(minute), int(second or 0), micros), 0


def time_reader(style: str) -> Callable[[str], datetime.time]:
    """Return the parser of times; in the RFC 3339 style they end with Z."""
    if style != RFC:
        return read_time

    def read(text: str) -> datetime.time:
        if text[-1:] != "Z":
            raise BadText(text, "time of day")
        return read_time(text[:-1])

    return read


def timestamp_reader(style: str, zoned: bool) -> Callable[[str], Any]:
    """Return the parser of timestamps in a style. Instants end with Z; in the RFC 3339 style, all do."""
    between, times = (" " if style == SQL else "T"), (_ISO_TIME if style == ISO else _TIME)
    ends_with_z = zoned or style == RFC

    def read(text: str) -> Any:
        date, time = _DATE.match(text), times.fullmatch(text, 11, len(text) - ends_with_z)
        if date is None or time is None or text[10:11] != between or (ends_with_z and text[-1] != "Z"):
            raise BadText(text, "timestamp")
        day = _smart_date(int(date[1]), int(date[2]), int(date[3]))
        time_of_day, days = _time(time)
        result = datetime.datetime.combine(day, time_of_day) + datetime.timedelta(days)
        nanos = int((time[4] or "").ljust(9, "0"))
        if not zoned:
            return add_nanosecond(result, nanos % 1000)
        return Instant((result - LOCAL_EPOCH) // _ONE_SECOND, nanos)

    return read


def _smart_date(year: int, month: int, day: int) -> datetime.date:
    """Return a date; a day up to 31 that the month does not have is its last day, as in Java's smart mode."""
    if 28 < day <= 31 and 1 <= month <= 12 and 1 <= year <= 9999:
        after = datetime.date(year + month // 12, month % 12 + 1, 1) if (year, month) != (9999, 12) else None
        last = 31 if after is None else (after - datetime.timedelta(1)).day
        day = min(day, last)
    return datetime.date(year, month, day)


def write_float(value: float, root: TypeRoot) -> str:
    """Format a floating-point number as Java does; FLOAT needs fewer digits than DOUBLE."""
    narrow = root is TypeRoot.FLOAT and abs(value) <= _MAX_FLOAT
    return text_of(float(str(np.float32(value))) if narrow else float(value))


def write_decimal(value: Decimal, data_type: FormatType, plain: bool, short: bool = False) -> str:
    """Format a decimal, with an exponent where Java has one unless `plain`; `short` drops trailing zeros."""
    number = value if data_type.scale is None else to_decimal_type(Decimal(value), data_type)
    if number is None:
        raise BadText(value, f"decimal of {data_type.precision} digits")
    if short and not plain:
        number = number.normalize(_WIDE) if number else Decimal(0)
    return f"{number:f}" if plain else _java_decimal(number)


def _java_decimal(number: Decimal) -> str:
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    adjusted = exponent + len(text) - 1
    if exponent <= 0 and adjusted >= -6:
        return f"{number:f}"
    body = text if len(text) == 1 else f"{text[0]}.{text[1:]}"
    return f"{'-' * sign}{body}E{adjusted:+d}"


def write_time(value: datetime.time, precision: int | None) -> str:
    """Format a time such as 12:13:14.5, without trailing zeros."""
    return _write_time(value, value.microsecond * 1000, precision)


def _write_time(value: datetime.time | datetime.datetime, nanos: int, precision: int | None) -> str:
    return f"{value.hour:02d}:{value.minute:02d}:{value.second:02d}{_fraction(nanos, precision)}"


def write_timestamp(value: datetime.datetime, style: str, precision: int | None) -> str:
    """Format a timestamp in a style."""
    between, end = (" " if style == SQL else "T"), ("Z" if style == RFC else "")
    nanos = value.microsecond * 1000 + getattr(value, "nanosecond", 0)
    return f"{value.date().isoformat()}{between}{_write_time(value, nanos, precision)}{end}"


def write_instant(value: Instant, style: str, precision: int | None) -> str:
    """Format an instant in a style, with Z."""
    timestamp = LOCAL_EPOCH + datetime.timedelta(seconds=value.seconds)
    head = f"{timestamp.date().isoformat()}{' ' if style == SQL else 'T'}{timestamp.time().isoformat()}"
    return f"{head}{_fraction(value.nanos, precision)}Z"


def _fraction(nanos: int, precision: int | None) -> str:
    digits = f"{nanos:09d}"[: 9 if precision is None else precision].rstrip("0")
    return f".{digits}" if digits else ""
