"""Patterns of Java's DateTimeFormatter, such as yyyy-MM-dd HH:mm:ss.SSS: their elements, and formatting.

Promises: the text that DateTimeFormatter of Java 17 writes for a LocalDateTime in English, with weeks of the United
States: what Flink's processes write by default. A wrong pattern raises ValueError before any value is formatted.
Does not know: time zones, which a LocalDateTime does not have."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from millstream.sql.functions import calendar_fields as c

Formatter = Callable[[datetime.datetime], str]
_ONE_OR_TWO = "dhHkKms"
_ZONE_LETTERS = "VvzOXxZ"
_LETTERS = f"GuyDMLdQqYwWEecFaB{_ONE_OR_TWO}SAnNg{_ZONE_LETTERS}"
_MAX_COUNTS = {"G": 5, "M": 5, "L": 5, "Q": 5, "q": 5, "E": 5, "e": 5, "c": 5, "D": 3, "w": 2, "W": 1, "F": 1, "a": 1}
_ZONE_COUNTS = {"V": (2,), "v": (1, 4), "z": (1, 2, 3, 4), "O": (1, 4)}
_OFFSET_COUNTS = (1, 2, 3, 4, 5)
_MAX_FRACTION = 9


@dataclass(frozen=True, slots=True)
class Literal:
    """Text that is written as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Field:
    """A letter and its number of repetitions; spaces fill the text to the width `pad`, if it is not 0."""

    letter: str
    count: int
    pad: int = 0


@dataclass(frozen=True, slots=True)
class OptionalSection:
    """Elements in brackets: left out if the value does not have one of their fields, or the text does not match."""

    elements: tuple[Element, ...]


Element = Literal | Field | OptionalSection


@lru_cache(maxsize=256)
def parse_pattern(pattern: str) -> tuple[Element, ...]:
    """Return the elements of a pattern; raise ValueError if it is not valid."""
    sections: list[list[Element]] = [[]]
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character.isascii() and character.isalpha():
            field, position = _read_field(pattern, position)
            sections[-1].append(field)
            continue
        position += 1
        if character == "'":
            text, position = _read_quoted(pattern, position)
            sections[-1].append(Literal(text))
        elif character == "[":
            sections.append([])
        elif character == "]":
            if len(sections) == 1:
                raise _create_error(pattern, "it contains ] without a previous [")
            section = OptionalSection(tuple(sections.pop()))
            sections[-1].append(section)
        elif character in "{}#":
            raise _create_error(pattern, f"'{character}' is reserved; write it in quotes")
        else:
            sections[-1].append(Literal(character))
    while len(sections) > 1:  # an optional section ends at the end of the pattern
        section = OptionalSection(tuple(sections.pop()))
        sections[-1].append(section)
    return tuple(sections[0])


def _create_error(pattern: str, problem: str) -> ValueError:
    return ValueError(f"invalid date pattern '{pattern}': {problem}")


def _read_field(pattern: str, start: int) -> tuple[Field, int]:
    letter, end = pattern[start], _find_end_of_run(pattern, start)
    pad = 0
    if letter == "p":
        next_letter = pattern[end : end + 1]
        if not (next_letter.isascii() and next_letter.isalpha()):
            raise _create_error(pattern, "the letter 'p' must be followed by another letter")
        pad, start, letter = end - start, end, next_letter
        end = _find_end_of_run(pattern, start)
    count = end - start
    _check_field(pattern, letter, count)
    return Field(letter, count, pad), end


def _find_end_of_run(pattern: str, start: int) -> int:
    end = start + 1
    while end < len(pattern) and pattern[end] == pattern[start]:
        end += 1
    return end


def _read_quoted(pattern: str, start: int) -> tuple[str, int]:
    position = start
    while position < len(pattern):
        if pattern[position] == "'":
            if pattern[position + 1 : position + 2] != "'":
                return pattern[start:position].replace("''", "'") or "'", position + 1
            position += 1
        position += 1
    raise _create_error(pattern, "a quoted text is not closed")


def _check_field(pattern: str, letter: str, count: int) -> None:
    if letter not in _LETTERS:
        raise _create_error(pattern, f"unknown letter '{letter}'; write text in quotes, as in yyyy-MM-dd'T'HH:mm")
    too_many = f"there are too many letters '{letter}'"
    if letter in _ZONE_LETTERS:
        if count not in _ZONE_COUNTS.get(letter, _OFFSET_COUNTS):
            raise _create_error(pattern, f"{count} letters '{letter}' have no meaning")
    elif letter == "B":
        if count not in (1, 4, 5):
            raise _create_error(pattern, f"{count} letters 'B' have no meaning")
    elif letter == "c" and count == 2:
        raise _create_error(pattern, "'cc' has no meaning")
    elif letter == "S":
        if count > _MAX_FRACTION:
            raise _create_error(pattern, too_many)
    elif count > (2 if letter in _ONE_OR_TWO else _MAX_COUNTS.get(letter, count)):
        raise _create_error(pattern, too_many)


def check_format_pattern(pattern: str) -> None:
    """Raise ValueError if timestamps cannot be formatted by a pattern: it is not valid, or needs a time zone."""
    for element in parse_pattern(pattern):
        if isinstance(element, Field) and element.letter in _ZONE_LETTERS:
            raise _create_error(pattern, f"'{element.letter}' needs a time zone, which a timestamp does not have")


@lru_cache(maxsize=256)
def compile_formatter(pattern: str) -> Formatter:
    """Return a function that formats a timestamp by a pattern; raise ValueError if the pattern cannot be used."""
    check_format_pattern(pattern)
    return _join(parse_pattern(pattern))


def _join(elements: Sequence[Element]) -> Formatter:
    formatters = [_create_element_formatter(element) for element in elements]
    return lambda timestamp: "".join([format_element(timestamp) for format_element in formatters])


def _create_element_formatter(element: Element) -> Formatter:
    match element:
        case Literal(text):
            return lambda _: text
        case OptionalSection(elements):
            if any(isinstance(inner, Field) and inner.letter in _ZONE_LETTERS for inner in elements):
                return lambda _: ""
            return _join(elements)
        case Field(letter, count, 0):
            return _create_field_formatter(letter, count)
        case Field(letter, count, pad):
            return _create_padding(_create_field_formatter(letter, count), pad)


def _create_padding(format_field: Formatter, width: int) -> Formatter:
    def format_padded(timestamp: datetime.datetime) -> str:
        text = format_field(timestamp)
        if len(text) > width:
            msg = f"'{text}' does not fit the {width} characters that the pattern has for it"
            raise ValueError(msg)
        return text.rjust(width)

    return format_padded


def find_finest_unit(pattern: str) -> str | None:
    """Return the finest unit of a pattern: timestamps that are equal in it have the same text.

    None if the unit is below a second."""
    letters = set(_list_letters(parse_pattern(pattern)))
    for unit_letters, unit in (("SnAN", None), ("s", "second"), ("mB", "minute"), ("HhKka", "hour")):
        if letters & set(unit_letters):
            return unit
    return "day"


def _list_letters(elements: Sequence[Element]) -> list[str]:
    letters: list[str] = []
    for element in elements:
        if isinstance(element, Field):
            letters.append(element.letter)
        elif isinstance(element, OptionalSection):
            letters.extend(_list_letters(element.elements))
    return letters


def _create_field_formatter(letter: str, count: int) -> Formatter:
    number = c.NUMBERS[letter]
    match letter:
        case "y" | "u" | "Y":
            return _create_year_formatter(number, count)
        case "S":
            return lambda m: f"{number(m):09d}"[:count]
        case "a":
            return lambda m: c.HALF_DAYS[number(m)]
        case "B":
            periods = c.NARROW_DAY_PERIODS if count == 5 else c.DAY_PERIODS
            return lambda m: periods[number(m)]
        case "G":
            return lambda _: c.get_texts("G", count)[0]
        case "E":
            texts = c.get_texts("E", max(count, 3))
            return lambda m: texts[m.weekday()]
        case "e" | "c" if count > 2:
            texts = c.get_texts("E", count)
            return lambda m: texts[m.weekday()]
        case "M" | "L" | "Q" | "q" if count > 2:
            texts = c.get_texts(letter, count)
            return lambda m: texts[number(m) - 1]
    return lambda m: f"{number(m):0{count}d}"


def _create_year_formatter(number: Callable[[datetime.datetime], int], count: int) -> Formatter:
    if count == 2:
        return lambda m: f"{number(m) % 100:02d}"
    return lambda m: f"{'+' if count >= 4 and number(m) >= 10**count else ''}{number(m):0{count}d}"
