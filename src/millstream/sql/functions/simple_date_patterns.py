"""Patterns of Java's SimpleDateFormat, which FROM_UNIXTIME, UNIX_TIMESTAMP, TO_DATE and DATE_FORMAT of texts use.

Promises: the text that SimpleDateFormat writes in English, and its lenient parsing: numbers roll over (the 32nd of
January is the first of February), names may be short or long in any case, and text after the match is ignored.
Does not know: long names of time zones, and the Julian calendar before 1582."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from millstream.sql.functions import calendar_fields as c
from millstream.sql.functions.text import find_time_zone

Formatter = Callable[[datetime.datetime], str]
_TOKEN = re.compile(r"'(?:[^']|'')*'|'|([A-Za-z])\1*|[^A-Za-z']+", re.DOTALL)
_LETTERS = "GyYMLwWDdFEuaHkKhmsSzZX"
_NUMBERS: dict[str, Callable[[datetime.datetime], int]] = {
    **{letter: c.NUMBERS[letter] for letter in "yYMLwWDdHkKhms"},
    "F": lambda m: (m.day - 1) // 7 + 1,
    "u": lambda m: m.isoweekday(),
    "S": lambda m: m.microsecond // 1000,
}
_ABBREVIATIONS = {  # of time zones, with their hours east of UTC
    **{"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7},
    **{"WET": 0, "WEST": 1, "BST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "JST": 9},
}
# Java uses the year 80 years before today; with a fixed year, results do not depend on the day.
_EARLIEST_YEAR = 1946


@dataclass(frozen=True, slots=True)
class _Field:
    letter: str
    count: int


@lru_cache(maxsize=256)
def _parse_pattern(pattern: str) -> tuple[str | _Field, ...]:
    """Return the literals and fields of a pattern; raise ValueError if it is not valid."""
    elements: list[str | _Field] = []
    for match in _TOKEN.finditer(pattern):
        token, letter = match.group(), match.group(1)
        if token == "'":
            raise _create_error(pattern, "a quoted text is not closed")
        if letter is None:
            elements.append(token[1:-1].replace("''", "'") or "'" if token.startswith("'") else token)
            continue
        if letter not in _LETTERS:
            raise _create_error(pattern, f"unknown letter '{letter}'; write text in quotes, as in yyyy-MM-dd'T'HH:mm")
        if letter == "X" and len(token) > 3:
            raise _create_error(pattern, "there are too many letters 'X'")
        elements.append(_Field(letter, len(token)))
    return tuple(elements)


def _create_error(pattern: str, problem: str) -> ValueError:
    return ValueError(f"invalid date pattern '{pattern}': {problem}")


def check_simple_pattern(pattern: str) -> None:
    """Raise ValueError if a pattern is not valid."""
    _parse_pattern(pattern)


# ----------------------------------------------------------------------------------------------------------- formatting


@lru_cache(maxsize=256)
def compile_simple_formatter(pattern: str) -> Formatter:
    """Return a function that formats a timestamp by a pattern; raise ValueError if the pattern is not valid."""
    formatters = [_create_element_formatter(element) for element in _parse_pattern(pattern)]
    return lambda timestamp: "".join([format_element(timestamp) for format_element in formatters])


def _create_element_formatter(element: str | _Field) -> Formatter:
    if isinstance(element, str):
        return lambda _: element
    letter, count = element.letter, element.count
    match letter:
        case "G":
            return lambda _: "AD"
        case "M" | "L" if count >= 3:
            months = c.get_texts("M", 4 if count >= 4 else 3)
            return lambda m: months[m.month - 1]
        case "E":
            days = c.get_texts("E", 4 if count >= 4 else 3)
            return lambda m: days[m.weekday()]
        case "a":
            return lambda m: c.HALF_DAYS[m.hour // 12]
        case "z":
            return lambda m: m.tzname() or "UTC"
        case "Z":
            return lambda m: _format_offset(m, "")
        case "X":
            return lambda m: _format_iso_offset(m, count)
    number = _NUMBERS[letter]
    if letter in "yY" and count == 2:
        return lambda m: f"{number(m) % 100:02d}"
    return lambda m: f"{number(m):0{count}d}"


def _format_offset(moment: datetime.datetime, separator: str) -> str:
    minutes = (moment.utcoffset() or datetime.timedelta()) // datetime.timedelta(minutes=1)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}{separator}{abs(minutes) % 60:02d}"


def _format_iso_offset(moment: datetime.datetime, count: int) -> str:
    if not moment.utcoffset():
        return "Z"
    return _format_offset(moment, ":")[:3] if count == 1 else _format_offset(moment, ":" if count == 3 else "")


# -------------------------------------------------------------------------------------------------------------- parsing


@lru_cache(maxsize=256)
def compile_simple_parser(pattern: str) -> Callable[[str, datetime.tzinfo], datetime.datetime]:
    """Return a function that parses a timestamp in a time zone; it raises ValueError for text that does not match."""
    elements = _parse_pattern(pattern)
    fields = [element for element in elements if isinstance(element, _Field)]
    parts = []
    for element, following in zip(elements, (*elements[1:], ""), strict=True):
        if isinstance(element, str):
            parts.append(re.escape(element))
        else:
            parts.append(f"[ \t]*({_create_field_expression(element, is_adjacent=isinstance(following, _Field))})")
    expression = re.compile("".join(parts), re.DOTALL | re.IGNORECASE | re.ASCII)

    def parse(text: str, zone: datetime.tzinfo) -> datetime.datetime:
        match = expression.match(text)
        if match is None:
            msg = f"'{text}' does not match the pattern '{pattern}'"
            raise ValueError(msg)
        return _build(fields, match.groups(), zone)

    return parse


def _create_field_expression(field: _Field, *, is_adjacent: bool) -> str:
    match field.letter:
        case "M" | "L" if field.count >= 3:
            return "|".join([*c.MONTHS, *(name[:3] for name in c.MONTHS)])
        case "E":
            return "|".join([*c.DAYS, *(name[:3] for name in c.DAYS)])
        case "G":
            return "AD|BC"
        case "a":
            return "AM|PM"
        case "z" | "Z":
            return "(?:GMT)?[+-]\\d{1,2}:?\\d{2}|[A-Za-z][A-Za-z/_]*"
        case "X":
            return "Z|[+-]\\d{2}" if field.count == 1 else f"Z|[+-]\\d{{2}}{':' if field.count == 3 else ''}\\d{{2}}"
    return f"\\d{{1,{field.count}}}" if is_adjacent else "-?\\d+"


def _build(fields: Sequence[_Field], texts: Sequence[str], zone: datetime.tzinfo) -> datetime.datetime:
    """Return the timestamp of the texts of fields; missing fields are those of 1970-01-01 00:00:00."""
    numbers: dict[str, int] = {}
    for field, text in zip(fields, texts, strict=True):
        if field.letter in "zZX":
            zone = _parse_zone(text)
        elif field.letter not in "GE":
            numbers[field.letter] = _read_number(field, text)
    day = _compute_day(numbers) + datetime.timedelta(days=numbers.get("d", 1) - 1 if "D" not in numbers else 0)
    hour = numbers.get("H", numbers.get("k", 0) % 24)
    half_day_hour = numbers["h"] % 12 if "h" in numbers else numbers.get("K")
    if half_day_hour is not None:
        hour = half_day_hour + 12 * numbers.get("a", 0)
    time = datetime.timedelta(
        hours=hour, minutes=numbers.get("m", 0), seconds=numbers.get("s", 0), milliseconds=numbers.get("S", 0)
    )
    return (datetime.datetime.combine(day, datetime.time()) + time).replace(tzinfo=zone)


def _compute_day(numbers: dict[str, int]) -> datetime.date:
    """Return the date without the day of the month: the first of a month, or a day of a year or a week."""
    if "Y" in numbers and "w" in numbers and "y" not in numbers:
        weekday = numbers.get("u", 7) % 7
        return c.find_first_day_of_week(numbers["Y"], numbers["w"]) + datetime.timedelta(days=weekday)
    year = numbers.get("y", 1970)
    if "D" in numbers:
        return datetime.date(year, 1, 1) + datetime.timedelta(days=numbers["D"] - 1)
    years, month = divmod(numbers.get("M", numbers.get("L", 1)) - 1, 12)
    return datetime.date(year + years, month + 1, 1)


def _read_number(field: _Field, text: str) -> int:
    match field.letter:
        case "M" | "L" if field.count >= 3:
            return [name[:3].lower() for name in c.MONTHS].index(text[:3].lower()) + 1
        case "a":
            return int(text.lower() == "pm")
        case "y" | "Y" if field.count <= 2 and len(text) == 2:
            return _expand_year(int(text))
    return int(text)


def _expand_year(year_of_century: int) -> int:
    """Return the year from 1946 to 2045 with these two digits."""
    return _EARLIEST_YEAR + (year_of_century - _EARLIEST_YEAR) % 100


def _parse_zone(text: str) -> datetime.tzinfo:
    hours = _ABBREVIATIONS.get(text.upper())
    if hours is not None:
        return datetime.timezone(datetime.timedelta(hours=hours))
    return find_time_zone("UTC" if text.upper() == "Z" else text)
