"""Columnar parser of JSON lines.

Each line is matched with the templates of earlier lines, and its values are taken from the placeholders. All lines of
a template are scanned together, eight characters at a time. A string ends at the next quote. From the second batch on,
the search for that quote starts after the length of the shortest string so far. Quotes that this skips are detected,
because the number of quotes of all lines must be that of their templates.

Promises: the result is that of a JSON parser: every character of a line belongs to its template or to a value. If some
line does not match, nothing is returned, and the caller must use a parser. Templates only change the speed.
Does not know: types of Flink other than numbers and strings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.formats.format_types import BITS, FormatType, TypeRoot
from millstream.formats.line_templates import LineTemplate, Path, ValueType, parse_template
from millstream.formats.text_search import QUOTE, SearchableText, validity
from millstream.formats.vectors import arrow_leaf

MIN_LINES = 3000  # for fewer lines, a parser is faster
_MAX_TEMPLATES = 16  # lines with more templates than this are parsed by the parser
_MAX_GAP = 256  # lines with more characters than this between two values are parsed by the parser, too
_LEEWAY = 7  # later strings may be this much shorter than the shortest one so far
_MAX_FAILURES = 4  # after this many consecutive batches without a result, only the parser is used
_NUMBER = r"^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$"
_NUMBERS = (TypeRoot.FLOAT, TypeRoot.DOUBLE)
_Ints = np.ndarray


@dataclass
class _Learned:
    """A template, the placeholders that are read, and the minimum lengths of strings."""

    template: LineTemplate
    read_placeholders: frozenset[int]
    least: dict[int, int] = field(default_factory=dict)


class JsonLinesParser:
    """Parses lines to the columns of a row type. `convert` parses strings of types that Arrow does not parse."""

    def __init__(self, data_type: FormatType, convert: Callable[[FormatType, pa.Array], pa.Array]) -> None:
        self._row_type, self._convert = data_type, convert
        self._learned: list[_Learned] = []
        self._failures_left = _MAX_FAILURES

    def columns(self, text: bytes, feeds: _Ints) -> list[pa.Array] | None:
        """Return the fields of all lines. `feeds` are the offsets of the line feeds between lines; there can be another
        one at the end."""
        if not self._failures_left or len(feeds) < MIN_LINES or b"\\" in text:
            return None
        end = len(text) - text.endswith(b"\n")
        lines = _Lines(SearchableText(text, _MAX_GAP), np.append(0, feeds + 1), np.append(feeds, end))
        parts = self._parts(lines)
        self._failures_left = _MAX_FAILURES if parts is not None else self._failures_left - 1
        return None if parts is None else _Columns(lines, parts, self._convert).fields(self._row_type)

    def _parts(self, lines: _Lines) -> list[_Part] | None:
        """Assign every line to a part; None if some line has no template."""
        parts: list[_Part] = []
        rest = np.arange(len(lines.starts))
        templates = iter(list(self._learned))
        while len(rest):
            learned = next(templates, None)
            is_new = learned is None
            learned = learned or self._learn(lines.line(int(rest[0])))
            if learned is None:
                return None
            part, rest = lines.part(learned, rest)
            if len(part.rows):
                parts.append(part)
            elif is_new:
                return None
        if sum(len(part.rows) * part.template.quotes for part in parts) != lines.text.count(QUOTE):
            return None
        counts = {id(part.template): len(part.rows) for part in parts}
        self._learned.sort(key=lambda learned: -counts.get(id(learned.template), 0))
        return parts

    def _learn(self, line: bytes) -> _Learned | None:
        """Add the template of a line; if it is known already, reset the minimum lengths of its strings."""
        template = parse_template(line)
        if template is None or max(map(len, template.texts)) > _MAX_GAP - 8 or not _fits(template, self._row_type, ()):
            return None
        for known in self._learned:
            if known.template == template:
                known.least = dict.fromkeys(range(len(template.placeholders)), 0)
                return known
        if len(self._learned) == _MAX_TEMPLATES:
            return None
        paths = set(_leaves(self._row_type, ()))
        placeholders = frozenset(
            at for at, placeholder in enumerate(template.placeholders) if placeholder.path in paths
        )
        self._learned.append(_Learned(template, placeholders))
        return self._learned[-1]


def _leaves(data_type: FormatType, path: Path) -> Iterator[Path]:
    for name, child in data_type.fields():
        if child.root is TypeRoot.ROW:
            yield from _leaves(child, (*path, name))
        else:
            yield (*path, name)


def _fits(template: LineTemplate, data_type: FormatType, path: Path) -> bool:
    """Whether the values of a template have the types of the row, so that they need no conversion rules."""
    types = {placeholder.path: placeholder.type for placeholder in template.placeholders}
    constants = dict(template.constants)

    def fits(child: FormatType, child_path: Path) -> bool:
        if child_path in template.objects:
            return child.root is TypeRoot.ROW and _fits(template, child, child_path)
        if child_path in types:
            return types[child_path] in _readable(child.root)
        return constants.get(child_path) is None or child.root is TypeRoot.BOOLEAN

    return all(fits(child, (*path, name)) for name, child in data_type.fields())


def _readable(root: TypeRoot) -> tuple[ValueType, ...]:
    if root in BITS:
        return (ValueType.INTEGER,)
    if root in _NUMBERS:
        return (ValueType.INTEGER, ValueType.NUMBER)
    return () if root in (TypeRoot.BOOLEAN, TypeRoot.ROW) else (ValueType.TEXT,)


@dataclass(frozen=True)
class _Lines:
    """A text and the offsets of its lines."""

    text: SearchableText
    starts: _Ints
    ends: _Ints

    def line(self, row: int) -> bytes:
        """Return a line."""
        return self.text.text[self.starts[row] : self.ends[row]]

    def part(self, learned: _Learned, rows: _Ints) -> tuple[_Part, _Ints]:
        """Separate the rows that match a template from the others."""
        part = self._walk(learned, rows)
        is_other = np.ones(len(self.starts), bool)
        is_other[part.rows] = False
        return part, rows[is_other[rows]]

    def _walk(self, learned: _Learned, rows: _Ints) -> _Part:
        """Scan the lines that match a template, from value to value."""
        template, text, least = learned.template, self.text, learned.least
        walk = _Part(template, rows, self.starts[rows], self.ends[rows])
        for number, placeholder in enumerate(template.placeholders):
            if not len(walk.rows):
                return walk
            before, after = template.texts[number : number + 2]
            windows = text.windows(walk.at, len(before) + 8)
            if walk.keep(windows.begin_with(before)):
                windows = text.windows(walk.at, len(before) + 8)
            start = walk.at + len(before)
            if placeholder.type is ValueType.INTEGER:
                walk.at, value, good = self._parse_integers(start, windows.words(len(before)))
                if number in learned.read_placeholders:
                    walk.wholes[number], walk.starts[number], walk.ends[number] = value, start, walk.at
            else:
                if number == len(template.placeholders) - 1:
                    walk.at = walk.limit - len(after)
                else:
                    walk.at = text.find_next(after[0], start + least.get(number, 0), walk.limit)
                    if number not in least:
                        least[number] = max(0, int((walk.at - start).min()) - _LEEWAY)
                good = walk.at >= start
                if placeholder.type is ValueType.NUMBER:
                    texts = text.texts(start, np.maximum(start, walk.at))
                    good &= np.asarray(pc.match_substring_regex(texts, _NUMBER))
                if number in learned.read_placeholders:
                    walk.starts[number], walk.ends[number] = start, walk.at
            walk.keep(good)
        last = template.texts[-1]
        walk.keep(text.windows(walk.at, len(last)).begin_with(last))
        walk.keep(walk.at + len(last) == walk.limit)
        return walk

    def _parse_integers(self, start: _Ints, begin: np.ndarray) -> tuple[_Ints, _Ints, np.ndarray]:
        """Parse integers, some with a minus sign: return their ends, their values, and where there is one."""
        end, value, good = self.text.parse_integers(start, begin)
        below = np.flatnonzero(~good & (begin & np.uint64(0xFF) == ord("-")))
        if len(below):
            digits = start[below] + 1
            end[below], value[below], good[below] = self.text.parse_integers(digits, self.text.words(digits))
            value[below] *= -1
        return end, value, good


@dataclass
class _Part:
    """Lines that match a template up to an offset, with the starts and ends of their values, and the values of
    integers."""

    template: LineTemplate
    rows: _Ints
    at: _Ints
    limit: _Ints
    starts: dict[int, _Ints] = field(default_factory=dict)
    ends: dict[int, _Ints] = field(default_factory=dict)
    wholes: dict[int, _Ints] = field(default_factory=dict)

    def keep(self, good: np.ndarray) -> bool:
        """Keep only some of the lines; return whether any were dropped."""
        if good.all():
            return False
        self.rows, self.at, self.limit = self.rows[good], self.at[good], self.limit[good]
        for columns in (self.starts, self.ends, self.wholes):
            columns.update({number: column[good] for number, column in columns.items()})
        return True

    def index_of(self, path: Path) -> int | None:
        """Return the index of the placeholder of a field."""
        return next((i for i, placeholder in enumerate(self.template.placeholders) if placeholder.path == path), None)


@dataclass(frozen=True)
class _Columns:
    """The values of all lines, by template."""

    lines: _Lines
    parts: Sequence[_Part]
    convert: Callable[[FormatType, pa.Array], pa.Array]

    def fields(self, data_type: FormatType, path: Path = ()) -> list[pa.Array]:
        """Return the columns of a row type. Raises if an integer has too many bits."""
        return [self._column(child, (*path, name)) for name, child in data_type.fields()]

    def _column(self, data_type: FormatType, path: Path) -> pa.Array:
        if data_type.root is TypeRoot.ROW:
            present = self._where(lambda part: path in part.template.objects)
            mask = None if present is None else pa.array(~present)
            return pa.StructArray.from_arrays(self.fields(data_type, path), list(data_type.names), mask=mask)
        if data_type.root is TypeRoot.BOOLEAN:
            return self._constants(path)
        parts_with_value = [
            (part, placeholder) for part in self.parts if (placeholder := part.index_of(path)) is not None
        ]
        present = self._where(lambda part: part.index_of(path) is not None)
        if data_type.root in BITS:
            values = np.zeros(len(self.lines.starts), np.int64)
            for part, placeholder in parts_with_value:
                values[part.rows] = part.wholes[placeholder]
            return _with_nulls(values, present).cast(arrow_leaf(data_type))
        if data_type.root is TypeRoot.STRING:
            starts, ends = self.lines.starts.copy(), self.lines.starts.copy()
            for part, placeholder in parts_with_value:
                starts[part.rows], ends[part.rows] = part.starts[placeholder], part.ends[placeholder]
            return self.lines.text.texts(starts, ends, present)
        return self._convert_strings(data_type, parts_with_value, present)

    def _convert_strings(
        self, data_type: FormatType, parts_with_value: Sequence[tuple[_Part, int]], present: np.ndarray | None
    ) -> pa.Array:
        """Convert the strings of the lines that have one."""
        strings = [
            self.lines.text.texts(part.starts[placeholder], part.ends[placeholder])
            for part, placeholder in parts_with_value
        ]
        texts = pa.concat_arrays([*strings, pa.array([], pa.string())])
        values = texts.cast(arrow_leaf(data_type)) if data_type.root in _NUMBERS else self.convert(data_type, texts)
        index = np.zeros(len(self.lines.starts), np.int64)
        rows = [part.rows for part, _ in parts_with_value]
        index[np.concatenate([*rows, np.empty(0, np.intp)])] = np.arange(len(values))
        return values.take(_with_nulls(index, present))

    def _constants(self, path: Path) -> pa.Array:
        values = np.zeros(len(self.lines.starts), bool)
        for part in self.parts:
            values[part.rows] = bool(dict(part.template.constants).get(path))
        present = self._where(lambda part: dict(part.template.constants).get(path) is not None)
        return pa.array(values, mask=None if present is None else ~present)

    def _where(self, has: Callable[[_Part], bool]) -> np.ndarray | None:
        """Return which lines have a value; None if all have."""
        if all(map(has, self.parts)):
            return None
        present = np.zeros(len(self.lines.starts), bool)
        for part in filter(has, self.parts):
            present[part.rows] = True
        return present


def _with_nulls(values: np.ndarray, present: np.ndarray | None) -> pa.Array:
    """Return numbers as an array, null where a line has none."""
    return pa.Array.from_buffers(pa.int64(), len(values), [validity(present), pa.py_buffer(values)])
