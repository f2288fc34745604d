"""Parsing of timestamps by patterns of Java's DateTimeFormatter.

Promises: text is accepted as by DateTimeFormatter in smart mode: the whole text must match, names are case-sensitive,
fields that contradict each other are refused, and the 30th of February is the last day of February. Fields that the
pattern does not have are those of 1970-01-01 00:00:00.
Does not know: how columns are converted."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from millstream.sql.functions import calendar_fields as c
from millstream.sql.functions.date_patterns import Element, Field, Literal, OptionalSection, parse_pattern

_OFFSETS = {
    "X": ("Z|[+-]\\d{2}(?:\\d{2})?", "Z|[+-]\\d{4}", "Z|[+-]\\d{2}:\\d{2}", "Z|[+-]\\d{4}(?:\\d{2})?"),
    "x": ("[+-]\\d{2}(?:\\d{2})?", "[+-]\\d{4}", "[+-]\\d{2}:\\d{2}", "[+-]\\d{4}(?:\\d{2})?"),
    "Z": ("[+-]\\d{4}", "[+-]\\d{4}", "[+-]\\d{4}", "GMT(?:[+-]\\d{2}:\\d{2})?"),
}
_LONG_OFFSETS = {
    "X": "Z|[+-]\\d{2}:\\d{2}(?::\\d{2})?",
    "x": "[+-]\\d{2}:\\d{2}(?::\\d{2})?",
    "Z": "Z|[+-]\\d{2}:\\d{2}(?::\\d{2})?",
}
_ZONE = "[A-Za-z+-][A-Za-z0-9/_:+-]*"
_RANGES = {
    "M": (1, 12),
    "L": (1, 12),
    "Q": (1, 4),
    "q": (1, 4),
    "d": (1, 31),
    "D": (1, 366),
    "w": (1, 54),
    "W": (0, 6),
    "e": (1, 7),
    "c": (1, 7),
    "F": (1, 7),
    "H": (0, 24),
    "k": (1, 24),
    "h": (1, 12),
    "K": (0, 11),
    "m": (0, 59),
    "s": (0, 59),
    "n": (0, 999_999_999),
    "A": (0, 86_399_999),
    "N": (0, 86_399_999_999_999),
}
_SAME_FIELDS = {"u": "y", "L": "M", "q": "Q", "c": "e", "n": "S"}
_FALLBACK_TIMESTAMP = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2}) +(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?")
_FALLBACK_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_NANOS_PER_DAY = 86_400_000_000_000


@dataclass(frozen=True, slots=True)
class ParsedTimestamp:
    """A timestamp with the nanoseconds that `datetime` does not hold."""

    timestamp: datetime.datetime
    nanosecond: int


@lru_cache(maxsize=256)
def compile_parser(pattern: str) -> Callable[[str], ParsedTimestamp]:
    """Return a function that parses a timestamp by a pattern; it raises ValueError for text that does not match.

    As in Flink, text that does not match the pattern is accepted if it is a timestamp or a date such as 2024-1-31."""
    captured: list[Field] = []
    expression = re.compile(_create_expression(parse_pattern(pattern), captured), re.DOTALL | re.ASCII)

    def parse(text: str) -> ParsedTimestamp:
        match = expression.fullmatch(text)
        try:
            if match is not None:
                return _resolve(_read_fields(captured, match.groups()))
        except ValueError:
            pass
        return _parse_default(text, pattern)

    return parse


def _create_expression(elements: Sequence[Element], captured: list[Field]) -> str:
    """Return the regular expression of elements; the field of each group is appended to `captured`."""
    parts: list[str] = []
    for element in elements:
        match element:
            case Literal(text):
                parts.append(re.escape(text))
            case OptionalSection(inner):
                parts.append(f"(?:{_create_expression(inner, captured)})?")
            case Field(_, _, 0):
                captured.append(element)
                parts.append(f"({_create_field_expression(element)})")
            case Field(_, _, pad):
                captured.append(element)
                parts.append(f"(.{{{pad}}})")
    return "".join(parts)


def _create_field_expression(field: Field) -> str:
    letter, count = field.letter, field.count
    texts = _list_texts(field)
    if texts:
        return "|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True))
    if letter in _OFFSETS:
        return _LONG_OFFSETS[letter] if count == 5 else _OFFSETS[letter][count - 1]
    match letter:
        case "V" | "v" | "z":
            return _ZONE
        case "O":
            return "GMT(?:[+-]\\d{1,2}(?::\\d{2})?)?"
        case "y" | "u" | "Y" if count == 2:
            return "\\d{2}"
        case "y" | "u" | "Y" if count >= 4:
            return f"\\d{{{count}}}|\\+\\d{{{count + 1},19}}|-\\d{{{count},19}}"
        case "y" | "u" | "Y" | "g":
            return f"-?\\d{{{count},19}}"
        case "S":
            return f"\\d{{{count}}}"
        case "A" | "n" | "N":
            return f"\\d{{{count},19}}"
        case "D" if count > 1:
            return f"\\d{{{count},3}}"
    return "-?\\d{1,19}" if count == 1 else f"\\d{{{count}}}"


def _list_texts(field: Field) -> Sequence[str]:
    """Return the texts of a field in the order of its values; none if it is a number."""
    letter, count = field.letter, field.count
    if letter == "a":
        return c.HALF_DAYS
    if letter == "B":
        return c.NARROW_DAY_PERIODS if count == 5 else c.DAY_PERIODS
    if letter == "G":
        return c.get_texts("G", count)
    if letter == "E":
        return c.get_texts("E", max(count, 3))
    return c.get_texts("E" if letter in "ec" else letter, count) if letter in "MLQqec" and count > 2 else ()


def _read_fields(fields: Sequence[Field], texts: Sequence[str | None]) -> dict[str, int]:
    """Return the numbers of fields by their letters; raise ValueError if one is out of range or has two values."""
    numbers: dict[str, int] = {}
    for field, text in zip(fields, texts, strict=True):
        if text is None or field.letter in "VvzOXxZ":
            continue
        letter, number = _read_field(field, text)
        if numbers.setdefault(letter, number) != number:
            msg = f"the field '{letter}' has two values"
            raise ValueError(msg)
    return numbers


def _read_field(field: Field, text: str) -> tuple[str, int]:
    letter = field.letter
    if field.pad:
        text = text.lstrip(" ")
        if re.fullmatch(_create_field_expression(field), text, re.ASCII) is None:
            raise ValueError(text)
    texts = _list_texts(field)
    if texts:
        is_weekday = letter in "Eec"
        first = 0 if letter in "aB" else 1
        return "E" if is_weekday else _SAME_FIELDS.get(letter, letter), texts.index(text) + first
    number = int(text)
    if letter in "yuY" and field.count == 2:
        number += 2000
    if letter == "S":
        number *= 10 ** (9 - field.count)
    low, high = _RANGES.get(letter, (number, number))
    if not low <= number <= high:
        raise ValueError(text)
    return _SAME_FIELDS.get(letter, letter), number


def _resolve(fields: dict[str, int]) -> ParsedTimestamp:
    """Return the timestamp of fields, as Java resolves them in smart mode."""
    day = _complete_date(fields)
    if day is None:
        day = datetime.date(fields.get("y", 1970), fields.get("M", 1), fields.get("d", 1))
    else:
        _check_date(fields, day)
    nanos = _compute_nanos_of_day(fields)
    if nanos == _NANOS_PER_DAY:
        day, nanos = day + datetime.timedelta(days=1), 0
    micros, nanosecond = divmod(nanos, 1000)
    timestamp = datetime.datetime.combine(day, datetime.time()) + datetime.timedelta(microseconds=micros)
    return ParsedTimestamp(timestamp, nanosecond)


def _complete_date(fields: dict[str, int]) -> datetime.date | None:
    if "g" in fields:
        return datetime.date(1858, 11, 17) + datetime.timedelta(days=fields["g"])
    if {"y", "M", "d"} <= fields.keys():
        return _create_date(fields["y"], fields["M"], fields["d"])
    if {"y", "D"} <= fields.keys():
        return datetime.date(fields["y"], 1, 1) + datetime.timedelta(days=fields["D"] - 1)
    weekday = fields.get("e", fields["E"] % 7 + 1 if "E" in fields else None)
    if {"Y", "w"} <= fields.keys() and weekday is not None:
        return c.find_first_day_of_week(fields["Y"], fields["w"]) + datetime.timedelta(days=weekday - 1)
    return None


def _create_date(year: int, month: int, day: int) -> datetime.date:
    """Return a date; a day that the month does not have is its last day."""
    try:
        return datetime.date(year, month, day)
    except ValueError:
        if not 28 < day <= 31:
            raise
        return _create_date(year, month, day - 1)


def _check_date(fields: dict[str, int], day: datetime.date) -> None:
    """Raise ValueError if a field contradicts the date."""
    moment = datetime.datetime.combine(day, datetime.time())
    for letter in fields.keys() & set("yYwWeEDQ"):
        if c.NUMBERS[letter](moment) != fields[letter]:
            msg = f"the field '{letter}' contradicts the date {day}"
            raise ValueError(msg)


def _compute_nanos_of_day(fields: dict[str, int]) -> int:
    if "N" in fields:
        return fields["N"]
    if "A" in fields:
        return fields["A"] * 1_000_000 + fields.get("S", 0)
    hour = _compute_hour(fields)
    minute, second, nanos = fields.get("m", 0), fields.get("s", 0), fields.get("S", 0)
    if hour == 24 and (minute or second or nanos):
        msg = "hour 24 is midnight, and has no minutes"
        raise ValueError(msg)
    return (hour * 3600 + minute * 60 + second) * 1_000_000_000 + nanos


def _compute_hour(fields: dict[str, int]) -> int:
    if "H" in fields:
        return fields["H"]
    if "k" in fields:
        return fields["k"] % 24
    half_day_hour = fields["h"] % 12 if "h" in fields else fields.get("K")
    if half_day_hour is None:
        return 0
    if "a" in fields:
        return fields["a"] * 12 + half_day_hour
    if "B" in fields:
        is_afternoon = fields["B"] in (1, 3, 4) or (fields["B"] == 5 and half_day_hour >= 9)
        return half_day_hour + 12 * is_afternoon
    return 0  # without AM or PM, Java leaves the hour undefined, and Flink uses 0


def _parse_default(text: str, pattern: str) -> ParsedTimestamp:
    """Parse a timestamp or date with Java's SQL classes, which Flink tries for text that does not match a pattern."""
    body = text.strip()
    match = (_FALLBACK_TIMESTAMP if " " in body else _FALLBACK_DATE).fullmatch(body)
    if match is None:
        msg = f"'{text}' does not match the pattern '{pattern}'"
        raise ValueError(msg)
    digits = match.groups("0")
    year, month, day = map(int, digits[:3])
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        raise ValueError(text)
    hour, minute, second = map(int, digits[3:6]) if len(digits) > 3 else (0, 0, 0)
    nanos = int(f"{digits[6]:0<9}") if len(digits) > 6 else 0
    # Numbers that are too large roll over.
    time = datetime.timedelta(days=day - 1, hours=hour, minutes=minute, seconds=second, microseconds=nanos // 1000)
    return ParsedTimestamp(datetime.datetime(year, month, 1) + time, nanos % 1000)  # noqa: DTZ001
