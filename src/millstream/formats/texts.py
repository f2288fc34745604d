"""Values as text, by Flink's rules: what JSON strings and CSV fields mean, and how values are written.

Promises: a text means what it means to Flink's formats; any other text is a ValueError that says what was expected.
Does not know: quotes, escapes or separators."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import numpy as np

from millstream.connector.serialization_schema import text_of
from millstream.formats.shapes import BITS, Kind, Shape
from millstream.times import Instant

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_LOOSE_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{0,9}))?", re.ASCII)
_ISO_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{0,9}))?)?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_FLOAT = re.compile(
    r"[\x00-\x20]*[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)[\x00-\x20]*", re.ASCII
)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,10})?", re.ASCII)
#: What Java's trim removes.
BLANKS = "".join(map(chr, range(33)))
_WIDE = Context(prec=1000)
_GREATEST_FLOAT = 3.4028234663852886e38
#: Styles of times and timestamps: SQL's blank, ISO's T, and RFC 3339's T and Z.
SQL, ISO, RFC = "SQL", "ISO-8601", "RFC-3339"
_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - a timestamp without a zone
_ONE_SECOND = datetime.timedelta(seconds=1)


class BadText(ValueError):
    """A text that is no value of the kind."""

    def __init__(self, text: object, expected: str) -> None:
        super().__init__(f"{text!r:.100} is no {expected}")


def integer_reader(kind: Kind) -> Callable[[str], int]:
    """Reads whole numbers that fit."""
    limit = 1 << (BITS[kind] - 1)

    def read(text: str) -> int:
        text = text.strip(BLANKS)
        if not _INTEGER.fullmatch(text) or len(text) > 40:
            raise BadText(text, kind.value)
        number = int(text)
        if not -limit <= number < limit:
            raise BadText(text, kind.value)
        return number

    return read


def read_float(text: str) -> float:
    """Java's spelling of a floating point number."""
    if not _FLOAT.fullmatch(text):
        raise BadText(text, "number")
    plain = text.strip(BLANKS)
    return float(plain if plain[-1] in "yN" else plain.rstrip("fFdD"))


def read_boolean(text: str) -> bool:
    """True for "true" in any case; everything else is False."""
    return text.strip(BLANKS).lower() == "true"


def decimal_reader(shape: Shape) -> Callable[[str], Decimal | None]:
    """Reads decimals, rounded to the scale; None for one that has too many digits, as in Flink."""

    def read(text: str) -> Decimal | None:
        if not _DECIMAL.fullmatch(text):
            raise BadText(text, "decimal")
        return fitted(Decimal(text), shape)

    return read


def fitted(number: Decimal, shape: Shape) -> Decimal | None:
    """The number with the scale of the shape; None if it has more digits than the shape allows."""
    if shape.precision is None or shape.scale is None:
        return number
    if number.adjusted() > shape.precision:  # a huge exponent must not become digits
        return None
    try:
        rounded = number.quantize(Decimal(1).scaleb(-shape.scale), ROUND_HALF_UP, _WIDE)
    except InvalidOperation:
        return None
    return rounded if len(rounded.as_tuple().digits) <= shape.precision else None


def read_date(text: str) -> datetime.date:
    """A date as 2020-12-30, strictly."""
    found = _DATE.fullmatch(text)
    if found is None:
        raise BadText(text, "date")
    return datetime.date(int(found[1]), int(found[2]), int(found[3]))


def read_sql_date(text: str) -> datetime.date:
    """A date as java.sql.Date reads it: one or two digits for month and day, days behind a month's end go on."""
    found = _LOOSE_DATE.fullmatch(text)
    if found is None or not 1 <= int(found[2]) <= 12 or not 1 <= int(found[3]) <= 31:
        raise BadText(text, "date")
    return datetime.date(int(found[1]), int(found[2]), 1) + datetime.timedelta(int(found[3]) - 1)


def iso_time_reader(precision: int | None) -> Callable[[str], datetime.time]:
    """Reads times of day with or without seconds, cut to a number of digits."""
    unit = 10 ** (6 - min(precision or 0, 6))

    def read(text: str) -> datetime.time:
        found = _ISO_TIME.fullmatch(text)
        if found is None:
            raise BadText(text, "time of day")
        micros = int((found[4] or "").ljust(9, "0")) // 1000 // unit * unit
        return datetime.time(int(found[1]), int(found[2]), int(found[3] or 0), micros)

    return read


def read_time(text: str) -> datetime.time:
    """A time of day as 12:13:14, with up to nine digits behind the seconds."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise BadText(text, "time of day")
    return _time(found)[0]


def _time(found: re.Match[str]) -> tuple[datetime.time, int]:
    """The time, and the days that 24:00:00 stands for."""
    hour, minute, second, fraction = found.groups()
    micros = int((fraction or "").ljust(9, "0")) // 1000
    if hour == "24" and int(minute) == int(second or 0) == micros == 0:
        return datetime.time(), 1
    return datetime.time(int(hour), int(minute), int(second or 0), micros), 0


def time_reader(style: str) -> Callable[[str], datetime.time]:
    """Reads times of day; in RFC 3339's style they end with Z."""
    if style != RFC:
        return read_time

    def read(text: str) -> datetime.time:
        if text[-1:] != "Z":
            raise BadText(text, "time of day")
        return read_time(text[:-1])

    return read


def timestamp_reader(style: str, zoned: bool) -> Callable[[str], Any]:
    """Reads timestamps in a style; those with a zone become instants, and end with Z as all of RFC 3339's do."""
    between, times = (" " if style == SQL else "T"), (_ISO_TIME if style == ISO else _TIME)
    marked = zoned or style == RFC

    def read(text: str) -> Any:
        date, time = _DATE.match(text), times.fullmatch(text, 11, len(text) - marked)
        if date is None or time is None or text[10:11] != between or (marked and text[-1] != "Z"):
            raise BadText(text, "timestamp")
        moment = _smart_date(int(date[1]), int(date[2]), int(date[3]))
        of_day, days = _time(time)
        found = datetime.datetime.combine(moment, of_day) + datetime.timedelta(days)
        if not zoned:
            return found
        nanos = int((time[4] or "").ljust(9, "0"))
        return Instant((found - _EPOCH) // _ONE_SECOND, nanos)

    return read


def _smart_date(year: int, month: int, day: int) -> datetime.date:
    """The date; a day that its month does not have, up to 31, is the month's last, as Java's smart mode has it."""
    if 28 < day <= 31 and 1 <= month <= 12 and 1 <= year <= 9999:
        after = datetime.date(year + month // 12, month % 12 + 1, 1) if (year, month) != (9999, 12) else None
        last = 31 if after is None else (after - datetime.timedelta(1)).day
        day = min(day, last)
    return datetime.date(year, month, day)


def write_float(value: float, kind: Kind) -> str:
    """The shortest text that Java writes for the number; the narrow kind needs fewer digits."""
    narrow = kind is Kind.FLOAT and abs(value) <= _GREATEST_FLOAT
    return text_of(float(str(np.float32(value))) if narrow else float(value))


def write_decimal(value: Decimal, shape: Shape, plain: bool, short: bool = False) -> str:
    """A decimal with its scale, with an exponent where Java has one unless `plain`; `short` drops zeros at its end."""
    number = value if shape.scale is None else fitted(Decimal(value), shape)
    if number is None:
        raise BadText(value, f"decimal of {shape.precision} digits")
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
    """A time of day as 12:13:14 with the digits behind the seconds that it has."""
    return f"{value.hour:02d}:{value.minute:02d}:{value.second:02d}{_fraction(value.microsecond * 1000, precision)}"


def write_timestamp(value: datetime.datetime, style: str, precision: int | None) -> str:
    """A timestamp in a style."""
    between, end = (" " if style == SQL else "T"), ("Z" if style == RFC else "")
    return f"{value.date().isoformat()}{between}{write_time(value.time(), precision)}{end}"


def write_instant(value: Instant, style: str, precision: int | None) -> str:
    """An instant in a style, with Z."""
    moment = _EPOCH + datetime.timedelta(seconds=value.seconds)
    head = f"{moment.date().isoformat()}{' ' if style == SQL else 'T'}{moment.time().isoformat()}"
    return f"{head}{_fraction(value.nanos, precision)}Z"


def _fraction(nanos: int, precision: int | None) -> str:
    digits = f"{nanos:09d}"[: 9 if precision is None else precision].rstrip("0")
    return f".{digits}" if digits else ""
