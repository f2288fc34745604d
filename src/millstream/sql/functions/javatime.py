"""Java's date patterns: yyyy-MM-dd HH:mm:ss.SSS and their kin.

Promises: what SimpleDateFormat and DateTimeFormatter write and read for the letters that SQL programs use.
Does not know: time zones beyond the one it is given."""

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

_ANY = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - never looked at
Writer = Callable[[datetime.datetime], str]


@lru_cache(maxsize=256)
def writer(pattern: str) -> Writer:
    """A function that writes a moment by a pattern."""
    parts: list[Writer] = []
    for match in _TOKEN.finditer(pattern):
        piece = match.group()
        parts.append(_literal(piece) if not match.group(1) else _field(match.group(1), len(piece)))
    return lambda moment: "".join(part(moment) for part in parts)


_GRAINS = (("Sn", None), ("s", "second"), ("m", "minute"), ("HhKka", "hour"))


def grain(pattern: str, *, zoned: bool) -> str | None:
    """The unit below which moments look the same by a pattern; None where there is none.

    Zones differ by minutes, and long ago by seconds, so a day or an hour of one of them is no unit of moments."""
    letters = {match.group(1) for match in _TOKEN.finditer(pattern) if match.group(1)}
    for some, unit in _GRAINS:
        if letters & set(some):
            return "second" if zoned and unit is not None else unit
    return "second" if zoned else "day"


def _literal(piece: str) -> Writer:
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


def _field(letter: str, count: int) -> Writer:
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


Reader = Callable[[str], datetime.datetime]


@lru_cache(maxsize=256)
def reader(pattern: str) -> Reader:
    """A function that reads a moment by a pattern; raises ValueError for what does not match."""
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
        found = compiled.match(text)
        if found is None:
            msg = f"'{text}' does not follow the pattern '{pattern}'"
            raise ValueError(msg)
        return _moment(dict(zip(names, found.groups(), strict=True)))

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


def _moment(found: dict[str, str]) -> datetime.datetime:
    year = int(found.get("y") or found.get("u") or 1970)
    if len(found.get("y") or found.get("u") or "1970") == 2:
        year += 2000 if year < 70 else 1900
    month_text = found.get("M") or found.get("L") or "1"
    if month_text.isdigit():
        month = int(month_text)
    else:
        month = next(i for i, name in enumerate(_MONTHS, 1) if name.lower().startswith(month_text.lower()[:3]))
    hour = int(found.get("H") or found.get("k") or found.get("h") or found.get("K") or 0)
    half = (found.get("a") or "").lower()
    if half == "pm" and hour < 12:
        hour += 12
    elif half == "am" and hour == 12:
        hour = 0
    digits = found.get("S") or found.get("n") or "0"
    micros = int((digits + "000000")[:6])
    return datetime.datetime(  # noqa: DTZ001 - a moment without a zone
        year, month, int(found.get("d") or 1), hour % 24, int(found.get("m") or 0), int(found.get("s") or 0), micros
    )
