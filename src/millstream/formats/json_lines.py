"""Lines of JSON read by columns: each line is compared with the forms that lines had before, and its values are taken
from where the form says that they are.

Promises: what is read equals what a parser reads: every sign of a line is one of its form's or of a value's. Where that
is not so, for whatever reason, nothing is read, and the parser is to be asked. What was learned from earlier lines
makes reading faster, and changes nothing else.
Does not know: the types of Flink beyond numbers and texts.

The lines of a form are walked through together, eight signs at a time. A text ends at the next quote; from the second
time on it is sought behind the shortest text so far. Quotes that this leaps over are found by their number: all lines
together must have as many as their forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.formats.json_forms import Form, Path, ValueKind, form_of
from millstream.formats.shapes import BITS, Kind, Shape
from millstream.formats.signs import QUOTE, Signs, valid
from millstream.formats.vectors import arrow_leaf

LEAST = 3000  # lines; fewer are read faster by a parser
_FORMS = 16  # more of them, and lines have no form
_REACH = 256  # more signs between two values, and lines have no form
_LEEWAY = 7  # by which a text may be shorter than those that were seen first
_PATIENCE = 4  # how often in a row nothing can be read before it is not tried any more
_NUMBER = r"^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$"
_NUMBERS = (Kind.FLOAT, Kind.DOUBLE)
_Ints = np.ndarray


@dataclass
class _Learned:
    """A form, the places whose values are wanted, and the lengths that texts have at least."""

    form: Form
    wanted: frozenset[int]
    least: dict[int, int] = field(default_factory=dict)


class FormReader:
    """Reads lines into the columns of a row's fields. `convert` makes values of texts, for kinds that are not read
    from text by Arrow."""

    def __init__(self, shape: Shape, convert: Callable[[Shape, pa.Array], pa.Array]) -> None:
        self._shape, self._convert = shape, convert
        self._learned: list[_Learned] = []
        self._patience = _PATIENCE

    def columns(self, text: bytes, feeds: _Ints) -> list[pa.Array] | None:
        """The fields of all lines. `feeds` are the places of the line feeds between lines; another one may be at the
        end."""
        if not self._patience or len(feeds) < LEAST or b"\\" in text:
            return None
        end = len(text) - text.endswith(b"\n")
        lines = _Lines(Signs(text, _REACH), np.append(0, feeds + 1), np.append(feeds, end))
        parts = self._parts(lines)
        self._patience = _PATIENCE if parts is not None else self._patience - 1
        return None if parts is None else _Columns(lines, parts, self._convert).fields(self._shape)

    def _parts(self, lines: _Lines) -> list[_Part] | None:
        """Every line in one part; None if some line has no form."""
        parts: list[_Part] = []
        rest = np.arange(len(lines.starts))
        known = iter(list(self._learned))
        while len(rest):
            learned = next(known, None)
            is_new = learned is None
            learned = learned or self._learn(lines.line(int(rest[0])))
            if learned is None:
                return None
            part, rest = lines.part(learned, rest)
            if len(part.rows):
                parts.append(part)
            elif is_new:
                return None
        if sum(len(part.rows) * part.form.quotes for part in parts) != lines.signs.count(QUOTE):
            return None
        most = {id(part.form): len(part.rows) for part in parts}
        self._learned.sort(key=lambda each: -most.get(id(each.form), 0))
        return parts

    def _learn(self, line: bytes) -> _Learned | None:
        """The form of this line; or one that is known, whose texts may be shorter than was thought."""
        form = form_of(line)
        if form is None or max(map(len, form.signs)) > _REACH - 8 or not _fits(form, self._shape, ()):
            return None
        for known in self._learned:
            if known.form == form:
                known.least = dict.fromkeys(range(len(form.places)), 0)
                return known
        if len(self._learned) == _FORMS:
            return None
        wanted = set(_leaves(self._shape, ()))
        places = frozenset(at for at, place in enumerate(form.places) if place.path in wanted)
        self._learned.append(_Learned(form, places))
        return self._learned[-1]


def _leaves(shape: Shape, path: Path) -> Iterator[Path]:
    for name, child in shape.fields():
        if child.kind is Kind.ROW:
            yield from _leaves(child, (*path, name))
        else:
            yield (*path, name)


def _fits(form: Form, shape: Shape, path: Path) -> bool:
    """Whether the values of a form are such that a row has them without being asked what they mean."""
    kinds = {place.path: place.kind for place in form.places}
    constants = dict(form.constants)

    def fits(child: Shape, here: Path) -> bool:
        if here in form.objects:
            return child.kind is Kind.ROW and _fits(form, child, here)
        if here in kinds:
            return kinds[here] in _readable(child.kind)
        return constants.get(here) is None or child.kind is Kind.BOOLEAN

    return all(fits(child, (*path, name)) for name, child in shape.fields())


def _readable(kind: Kind) -> tuple[ValueKind, ...]:
    if kind in BITS:
        return (ValueKind.WHOLE,)
    if kind in _NUMBERS:
        return (ValueKind.WHOLE, ValueKind.NUMBER)
    return () if kind in (Kind.BOOLEAN, Kind.ROW) else (ValueKind.TEXT,)


@dataclass(frozen=True)
class _Lines:
    """A text and where its lines begin and end."""

    signs: Signs
    starts: _Ints
    ends: _Ints

    def line(self, row: int) -> bytes:
        """One line."""
        return self.signs.text[self.starts[row] : self.ends[row]]

    def part(self, learned: _Learned, rows: _Ints) -> tuple[_Part, _Ints]:
        """Those of the rows that have the form, and the others."""
        part = self._walk(learned, rows)
        others = np.ones(len(self.starts), bool)
        others[part.rows] = False
        return part, rows[others[rows]]

    def _walk(self, learned: _Learned, rows: _Ints) -> _Part:
        """Through the lines that have a form, from value to value."""
        form, signs, least = learned.form, self.signs, learned.least
        walk = _Part(form, rows, self.starts[rows], self.ends[rows])
        for number, place in enumerate(form.places):
            if not len(walk.rows):
                return walk
            before, after = form.signs[number : number + 2]
            found = signs.windows(walk.at, len(before) + 8)
            if walk.keep(found.begin_with(before)):
                found = signs.windows(walk.at, len(before) + 8)
            start = walk.at + len(before)
            if place.kind is ValueKind.WHOLE:
                walk.at, value, good = self._wholes(start, found.words(len(before)))
                if number in learned.wanted:
                    walk.wholes[number], walk.starts[number], walk.ends[number] = value, start, walk.at
            else:
                if number == len(form.places) - 1:
                    walk.at = walk.limit - len(after)
                else:
                    walk.at = signs.until(after[0], start + least.get(number, 0), walk.limit)
                    if number not in least:
                        least[number] = max(0, int((walk.at - start).min()) - _LEEWAY)
                good = walk.at >= start
                if place.kind is ValueKind.NUMBER:
                    texts = signs.texts(start, np.maximum(start, walk.at))
                    good &= np.asarray(pc.match_substring_regex(texts, _NUMBER))
                if number in learned.wanted:
                    walk.starts[number], walk.ends[number] = start, walk.at
            walk.keep(good)
        last = form.signs[-1]
        walk.keep(signs.windows(walk.at, len(last)).begin_with(last))
        walk.keep(walk.at + len(last) == walk.limit)
        return walk

    def _wholes(self, start: _Ints, begin: np.ndarray) -> tuple[_Ints, _Ints, np.ndarray]:
        """Whole numbers, some with a minus: where they end, which they are, and where there is one."""
        end, value, good = self.signs.whole_numbers(start, begin)
        below = np.flatnonzero(~good & (begin & np.uint64(0xFF) == ord("-")))
        if len(below):
            digits = start[below] + 1
            end[below], value[below], good[below] = self.signs.whole_numbers(digits, self.signs.words(digits))
            value[below] *= -1
        return end, value, good


@dataclass
class _Part:
    """Lines that have one form as far as one has come in them, and what was found at wanted places: where values begin
    and end, and which whole numbers they are."""

    form: Form
    rows: _Ints
    at: _Ints
    limit: _Ints
    starts: dict[int, _Ints] = field(default_factory=dict)
    ends: dict[int, _Ints] = field(default_factory=dict)
    wholes: dict[int, _Ints] = field(default_factory=dict)

    def keep(self, good: np.ndarray) -> bool:
        """Go on with these lines only; True if that leaves any behind."""
        if good.all():
            return False
        self.rows, self.at, self.limit = self.rows[good], self.at[good], self.limit[good]
        for found in (self.starts, self.ends, self.wholes):
            found.update({number: each[good] for number, each in found.items()})
        return True

    def place(self, path: Path) -> int | None:
        """Which place has the value of a field."""
        return next((at for at, each in enumerate(self.form.places) if each.path == path), None)


@dataclass(frozen=True)
class _Columns:
    """The values of all lines."""

    lines: _Lines
    parts: Sequence[_Part]
    convert: Callable[[Shape, pa.Array], pa.Array]

    def fields(self, shape: Shape, path: Path = ()) -> list[pa.Array]:
        """The columns of a row's fields. Raises where a whole number has too many bits."""
        return [self._column(child, (*path, name)) for name, child in shape.fields()]

    def _column(self, shape: Shape, path: Path) -> pa.Array:
        if shape.kind is Kind.ROW:
            there = self._where(lambda part: path in part.form.objects)
            mask = None if there is None else pa.array(~there)
            return pa.StructArray.from_arrays(self.fields(shape, path), list(shape.names), mask=mask)
        if shape.kind is Kind.BOOLEAN:
            return self._constants(path)
        having = [(part, place) for part in self.parts if (place := part.place(path)) is not None]
        there = self._where(lambda part: part.place(path) is not None)
        if shape.kind in BITS:
            values = np.zeros(len(self.lines.starts), np.int64)
            for part, place in having:
                values[part.rows] = part.wholes[place]
            return _with_nulls(values, there).cast(arrow_leaf(shape))
        if shape.kind is Kind.STRING:
            starts, ends = self.lines.starts.copy(), self.lines.starts.copy()
            for part, place in having:
                starts[part.rows], ends[part.rows] = part.starts[place], part.ends[place]
            return self.lines.signs.texts(starts, ends, there)
        return self._converted(shape, having, there)

    def _converted(self, shape: Shape, having: Sequence[tuple[_Part, int]], there: np.ndarray | None) -> pa.Array:
        """What texts mean, of the lines that have one; and where they belong."""
        found = [self.lines.signs.texts(part.starts[place], part.ends[place]) for part, place in having]
        texts = pa.concat_arrays([*found, pa.array([], pa.string())])
        values = texts.cast(arrow_leaf(shape)) if shape.kind in _NUMBERS else self.convert(shape, texts)
        index = np.zeros(len(self.lines.starts), np.int64)
        rows = [part.rows for part, _ in having]
        index[np.concatenate([*rows, np.empty(0, np.intp)])] = np.arange(len(values))
        return values.take(_with_nulls(index, there))

    def _constants(self, path: Path) -> pa.Array:
        values = np.zeros(len(self.lines.starts), bool)
        for part in self.parts:
            values[part.rows] = bool(dict(part.form.constants).get(path))
        there = self._where(lambda part: dict(part.form.constants).get(path) is not None)
        return pa.array(values, mask=None if there is None else ~there)

    def _where(self, has: Callable[[_Part], bool]) -> np.ndarray | None:
        """Which lines have something; None for all."""
        if all(map(has, self.parts)):
            return None
        there = np.zeros(len(self.lines.starts), bool)
        for part in filter(has, self.parts):
            there[part.rows] = True
        return there


def _with_nulls(values: np.ndarray, there: np.ndarray | None) -> pa.Array:
    """Numbers as they are, and null where there is none."""
    return pa.Array.from_buffers(pa.int64(), len(values), [valid(there), pa.py_buffer(values)])
