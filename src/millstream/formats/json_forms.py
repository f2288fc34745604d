"""The forms that lines of JSON have: what programs write has the same keys in the same order, line after line.

Promises: a form is a line without its values; whatever is put in their place, a number for a number and a text for a
text, the line is JSON again, and has the same fields.
Does not know: how lines are compared with a form."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

Path = tuple[str, ...]

_TOKEN = re.compile(rb'\s*("[^"\\]*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}:,])\s*')
_CONSTANTS = {b"true": True, b"false": False, b"null": None}


class ValueKind(Enum):
    """What stands in a place of a form."""

    WHOLE = "a whole number"
    NUMBER = "a number"
    TEXT = "a text, without its quotes"


@dataclass(frozen=True)
class Place:
    """Where a value stands. `path`: the names of the fields that lead to it."""

    path: Path
    kind: ValueKind


@dataclass(frozen=True)
class Form:
    """The signs before, between and after the places. `objects`: the paths of what is an object; `constants`: those of
    true, false and null, which belong to the form."""

    signs: tuple[bytes, ...]
    places: tuple[Place, ...]
    objects: frozenset[Path]
    constants: tuple[tuple[Path, bool | None], ...]

    @property
    def quotes(self) -> int:
        """How many quotes a line of this form has."""
        return sum(each.count(b'"') for each in self.signs)


def form_of(line: bytes) -> Form | None:
    """The form of a line; None where it is no object, or has arrays, escaped signs or a name twice."""
    reading = _Reading(line)
    try:
        reading.value(())
    except _Unusual:
        return None
    if reading.at != len(line) or () not in reading.objects:
        return None
    signs = (*reading.signs, line[reading.since :])
    return Form(signs, tuple(reading.places), frozenset(reading.objects), tuple(reading.constants))


class _Unusual(Exception):
    """A line that is not told by its form, or is no JSON."""


@dataclass
class _Reading:
    line: bytes
    at: int = 0
    since: int = 0  # the end of the last value
    signs: list[bytes] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    objects: set[Path] = field(default_factory=set)
    constants: list[tuple[Path, bool | None]] = field(default_factory=list)

    def _next(self) -> tuple[bytes, int]:
        """A token and where it begins."""
        found = _TOKEN.match(self.line, self.at)
        if found is None:
            raise _Unusual
        self.at = found.end()
        return found[1], found.start(1)

    def value(self, path: Path) -> None:
        token, start = self._next()
        if token == b"{":
            self._fields(path)
        elif token in _CONSTANTS:
            self.constants.append((path, _CONSTANTS[token]))
        elif token[:1] == b'"':
            self._place(Place(path, ValueKind.TEXT), start + 1, start + len(token) - 1)
        elif token in b"}:,":
            raise _Unusual
        else:
            whole = token.lstrip(b"-").isdigit()
            self._place(Place(path, ValueKind.WHOLE if whole else ValueKind.NUMBER), start, start + len(token))

    def _place(self, place: Place, start: int, end: int) -> None:
        self.signs.append(self.line[self.since : start])
        self.places.append(place)
        self.since = end

    def _fields(self, path: Path) -> None:
        self.objects.add(path)
        names = set()
        after = b","
        while after == b",":
            quoted, _ = self._next()
            name = quoted[1:-1].decode("utf-8", "replace")
            if quoted[:1] != b'"' or name in names or self._next()[0] != b":":
                raise _Unusual
            names.add(name)
            self.value((*path, name))
            after, _ = self._next()
        if after != b"}":
            raise _Unusual
