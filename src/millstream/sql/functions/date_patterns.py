"""Java's date and time patterns, such as yyyy-MM-dd HH:mm:ss.SSS.

Promises: the results of SimpleDateFormat and DateTimeFormatter for the letters that SQL programs use.
Does not know: time zones, except that of the formatted value."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from functools import lru_cache

_TOKEN = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|.", re.DOTALL)
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_ANY = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - literals do not depend on it
Formatter = Callable[[datetime.datetime], str]


@lru_cache(maxsize=256)
def formatter(pattern: str) -> Formatter:
    """Return a function that formats a timestamp by a pattern."""
    parts: list[Formatter] = []
    for match in _TOKEN.finditer(pattern):
        piece = match.group()
        parts.append(_literal(piece) if not match.group(1) else _field(match.group(1), len(piece)))
    return lambda timestamp: "".join(part(timestamp) for part in parts)


_UNITS_OF_LETTERS = (("Sn", None), ("s", "second"), ("m", "minute"), ("HhKka", "hour"))


def finest_unit(pattern: str, *, zoned: bool) -> str | None:
    """Return the finest unit of a pattern: timestamps that are equal in it have the same text.

    None if the unit is below a second.
    Offsets of time zones have minutes, and historical ones seconds, so the unit of a zoned timestamp is never above a
    second."""
    letters = {match.group(1) for match in _TOKEN.finditer(pattern) if match.group(1)}
    for some, unit in _UNITS_OF_LETTERS:
        if letters & set(some):
            return "second" if zoned and unit is not None else unit
    return "second" if zoned else "day"


def _literal(piece: str) -> Formatter:
    if piece == "''":
        shown = "'"
    elif piece.startswith("'") and len(piece) > 1:
        shown = piece[1:-1].replace("''", "'")
    else:
        shown = piece
    return lambda _: shown


_NUMBERS: dict[str, Callable[[datetime.datetime], int]] = {
    "y": lambda m: m.year,
    "u": lambda m: m.year,
    "M": lambda m: m.month,
    "L": lambda m: m.month,
    "d": lambda m: m.day,
    "D": lambda m: m.timetuple().tm_yday,
    "H": lambda m: m.hour,
    "k": lambda m: m.hour or 24,
    "h": lambda m: m.hour % 12 or 12,
    "K": lambda m: m.hour % 12,
    "m": lambda m: m.minute,
    "s": lambda m: m.second,
    "e": lambda m: m.isoweekday() % 7 + 1,
    "w": lambda m: m.isocalendar().week,
    "Q": lambda m: (m.month + 2) // 3,
    "q": lambda m: (m.month + 2) // 3,
}


def _field(letter: str, count: int) -> Formatter:
    match letter:
        case "y" | "u" if count == 2:
            return lambda m: f"{m.year % 100:02d}"
        case "M" | "L" if count >= 4:
            return lambda m: _MONTHS[m.month - 1]
        case "M" | "L" if count == 3:
            return lambda m: _MONTHS[m.month - 1][:3]
        case "S" | "n":
            return lambda m: f"{m.microsecond * 1000:09d}"[:count]
        case "a":
            return lambda m: "AM" if m.hour < 12 else "PM"
        case "E":
            return (lambda m: _DAYS[m.weekday()]) if count >= 4 else lambda m: _DAYS[m.weekday()][:3]
        case "z" | "V":
            return lambda m: m.tzname() or "UTC"
        case "Z" | "X" | "x":
            return lambda m: (m.strftime("%z") or "+0000") if letter != "X" or m.utcoffset() else "Z"
        case "G":
            return lambda _m: "AD"
        case _ if letter in _NUMBERS:
            number = _NUMBERS[letter]
            return lambda m: f"{number(m):0{count}d}"
    raise _unknown(letter)


def _unknown(letter: str) -> ValueError:
    return ValueError(f"unknown letter '{letter}' in a date pattern")


Parser = Callable[[str], datetime.datetime]


@lru_cache(maxsize=256)
def parser(pattern: str) -> Parser:
    """Return a function that parses a timestamp by a pattern; it raises ValueError for text that does not match."""
    expression, names = ["\\s*"], []
    for match in _TOKEN.finditer(pattern):
        piece, letter = match.group(), match.group(1)
        if not letter:
            expression.append(re.escape(_literal(piece)(_ANY)))
            continue
        names.append(letter)
        expression.append(_group(letter, len(piece)))
    compiled = re.compile("".join(expression) + ".*", re.DOTALL | re.IGNORECASE)

    def read(text: str) -> datetime.datetime:
        result = compiled.match(text)
        if result is None:
            msg = f"'{text}' does not follow the pattern '{pattern}'"
            raise ValueError(msg)
        return _moment(dict(zip(names, result.groups(), strict=True)))

    return read


def _group(letter: str, count: int) -> str:
    match letter:
        case "M" | "L" if count >= 3:
            return "(" + "|".join(_MONTHS if count >= 4 else [m[:3] for m in _MONTHS]) + ")"
        case "E":
            return "(" + "|".join([*_DAYS, *(d[:3] for d in _DAYS)]) + ")"
        case "a":
            return "(am|pm)"
        case "y" | "u":
            return "(\\d{2})" if count == 2 else "(\\d{1,6})" if count != 4 else "(\\d{4})"
        case "S" | "n":
            return f"(\\d{{1,{max(count, 1)}}})"
        case "z" | "V":
            return "([A-Za-z/_]+)"
        case "Z" | "X" | "x":
            return "(Z|[+-]\\d{2}:?\\d{2})"
        case _ if letter in _NUMBERS:
            return f"(\\d{{{count}}})" if count > 1 else "(\\d{1,2})"
    raise _unknown(letter)


def _moment(result: dict[str, str]) -> datetime.datetime:
    year = int(result.get("y") or result.get("u") or 1970)
    if len(result.get("y") or result.get("u") or "1970") == 2:
        year += 2000 if year < 70 else 1900
    month_text = result.get("M") or result.get("L") or "1"
    if month_text.isdigit():
        month = int(month_text)
    else:
        month = next(i for i, name in enumerate(_MONTHS, 1) if name.lower().startswith(month_text.lower()[:3]))
    hour = int(result.get("H") or result.get("k") or result.get("h") or result.get("K") or 0)
    half = (result.get("a") or "").lower()
    if half == "pm" and hour < 12:
        hour += 12
    elif half == "am" and hour == 12:
        hour = 0
    digits = result.get("S") or result.get("n") or "0"
    micros = int((digits + "000000")[:6])
    return datetime.datetime(  # noqa: DTZ001 - a timestamp without a zone
        year, month, int(result.get("d") or 1), hour % 24, int(result.get("m") or 0), int(result.get("s") or 0), micros
    )
