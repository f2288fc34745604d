"""Templates of JSON lines: programs write lines with the same keys in the same order, so lines differ in values only.

Promises: a template is a line without its values. With any number for a number and any string for a string, the line is
valid JSON with the same fields.
Does not know: how lines are matched with a template."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

Path = tuple[str, ...]

_TOKEN = re.compile(rb'\s*("[^"\\]*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}:,])\s*')
_CONSTANTS = {b"true": True, b"false": False, b"null": None}


class ValueType(Enum):
    """The type of a value of a template."""

    INTEGER = "an integer"
    NUMBER = "a number"
    TEXT = "a string, without its quotes"


@dataclass(frozen=True)
class Placeholder:
    """A value of a template. `path` is the names of the fields that lead to it."""

    path: Path
    type: ValueType


@dataclass(frozen=True)
class LineTemplate:
    """The text before, between and after the values of a line. `objects` are the paths of objects; `constants` those of
    true, false and null, which are part of the template."""

    texts: tuple[bytes, ...]
    placeholders: tuple[Placeholder, ...]
    objects: frozenset[Path]
    constants: tuple[tuple[Path, bool | None], ...]

    @property
    def quotes(self) -> int:
        """The number of quotes of a line."""
        return sum(text.count(b'"') for text in self.texts)


def parse_template(line: bytes) -> LineTemplate | None:
    """Return the template of a line; None if it is not an object, or has arrays, escapes or duplicate keys."""
    parser = _TemplateParser(line)
    try:
        parser.value(())
    except _NoTemplate:
        return None
    if parser.at != len(line) or () not in parser.objects:
        return None
    texts = (*parser.texts, line[parser.value_end :])
    return LineTemplate(texts, tuple(parser.placeholders), frozenset(parser.objects), tuple(parser.constants))


class _NoTemplate(Exception):
    """The line has no template, or is not valid JSON."""


@dataclass
class _TemplateParser:
    line: bytes
    at: int = 0
    value_end: int = 0  # the end of the last value
    texts: list[bytes] = field(default_factory=list)
    placeholders: list[Placeholder] = field(default_factory=list)
    objects: set[Path] = field(default_factory=set)
    constants: list[tuple[Path, bool | None]] = field(default_factory=list)

    def _next_token(self) -> tuple[bytes, int]:
        """Return a token and its offset."""
        match = _TOKEN.match(self.line, self.at)
        if match is None:
            raise _NoTemplate
        self.at = match.end()
        return match[1], match.start(1)

    def value(self, path: Path) -> None:
        token, start = self._next_token()
        if token == b"{":
            self._fields(path)
        elif token in _CONSTANTS:
            self.constants.append((path, _CONSTANTS[token]))
        elif token[:1] == b'"':
            self._add(Placeholder(path, ValueType.TEXT), start + 1, start + len(token) - 1)
        elif token in b"}:,":
            raise _NoTemplate
        else:
            is_integer = token.lstrip(b"-").isdigit()
            self._add(
                Placeholder(path, ValueType.INTEGER if is_integer else ValueType.NUMBER), start, start + len(token)
            )

    def _add(self, placeholder: Placeholder, start: int, end: int) -> None:
        self.texts.append(self.line[self.value_end : start])
        self.placeholders.append(placeholder)
        self.value_end = end

    def _fields(self, path: Path) -> None:
        self.objects.add(path)
        names = set()
        after = b","
        while after == b",":
            quoted, _ = self._next_token()
            name = quoted[1:-1].decode("utf-8", "replace")
            if quoted[:1] != b'"' or name in names or self._next_token()[0] != b":":
                raise _NoTemplate
            names.add(name)
            self.value((*path, name))
            after, _ = self._next_token()
        if after != b"}":
            raise _NoTemplate
