"""CSV lines made of columns.

Promises: the bytes that are written record by record, or None where that is not certain: for fields that hold others,
and values that have no text.
Does not know: records; which signs mean what is told to it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.formats.shapes import BITS, Kind, Shape
from millstream.types.arrow_types import python_values

#: Texts with more signs than this stand in quotes.
LONG = 24
_PLAIN_SCALE = 6  # decimals with more digits behind the point may have an exponent
_INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_EPOCH = datetime.date(1970, 1, 1)
_FIRST, _LAST = (datetime.date.min - _EPOCH).days, (datetime.date.max - _EPOCH).days  # what Python has words for
_A_DAY = {"ms": 86_400_000, "us": 86_400_000_000}
_BY_VALUE: dict[Kind, tuple[pa.DataType, bool]] = {
    Kind.FLOAT: (pa.float32(), False),
    Kind.DOUBLE: (pa.float64(), False),
    Kind.BYTES: (pa.binary(), True),
}
_DIGITS = {"ms": 3, "us": 6}
_TRUE = pa.scalar(True)

#: What makes the fields of a column.
Texts = Callable[[pa.Array], pa.Array]


class _Unsure(Exception):
    """What the column would be is told by the slower way alone."""


@dataclass(frozen=True)
class Signs:
    """What stands between and around fields, and for null. Texts with a sign up to `greatest` stand in quotes."""

    delimiter: str
    quote: str | None
    escape: str | None
    null: str
    greatest: str


class ColumnWriter:
    """Makes lines of columns. `write` gives what writes a single value of a shape."""

    def __init__(self, shape: Shape, signs: Signs, write: Callable[[Shape], Callable[[Any], str]]) -> None:
        self._signs, self._write = signs, write
        self._columns = [self._column(child) for child in shape.children] if shape.is_flat() else []
        self._low = f"[\\x{{0}}-\\x{{{ord(signs.greatest):x}}}]"

    def lines(self, columns: Sequence[pa.Array], end: bytes) -> memoryview | None:
        """All lines, each with its end; None if they must be written one by one."""
        if not self._columns or len(self._columns) != len(columns) or not len(columns[0]):
            return None
        try:
            texts = [text(column) for text, column in zip(self._columns, columns, strict=True)]
            texts[-1] = self._joined([texts[-1], pa.scalar(end.decode())], "")
            joined = self._joined(texts, self._signs.delimiter)
        except (_Unsure, pa.ArrowException, ValueError, TypeError, OverflowError, ArithmeticError):
            return None
        return _bytes(joined).data

    def _joined(self, parts: Sequence[Any], between: str) -> pa.Array:
        null = self._signs.null
        return pc.binary_join_element_wise(*parts, between, null_handling="replace", null_replacement=null)

    def _column(self, shape: Shape) -> Texts:
        kind, precision = shape.kind, shape.precision
        if kind is Kind.STRING:
            return lambda column: self._quoted(_checked(column, pa.string()))
        if kind in BITS:
            wanted = _INTEGERS[BITS[kind]]
            return lambda column: _checked(column, wanted).cast(pa.string())
        if kind is Kind.BOOLEAN:
            return lambda column: _checked(column, pa.bool_()).cast(pa.string())
        if kind is Kind.DATE:
            return lambda column: self._quoted(_known(_checked(column, pa.date32())).cast(pa.string()), "-")
        if kind is Kind.TIME:
            return lambda column: self._quoted(_time(column, precision), ":")
        if kind is Kind.TIMESTAMP:
            return lambda column: self._quoted(_timestamp(column, precision), " ")
        if kind is Kind.TIMESTAMP_LTZ:
            return lambda column: self._quoted(_instant(column, precision), " ")
        decimal = _decimal(shape)
        if decimal is not None and 0 <= decimal.scale <= _PLAIN_SCALE:
            return lambda column: _checked(column, decimal).cast(pa.string())
        return self._by_value(shape)

    def _by_value(self, shape: Shape) -> Texts:
        """The text of each value, as it is written in a record."""
        known = (_decimal(shape) or pa.null(), False)  # no column of another kind has that type
        wanted, is_text = _BY_VALUE.get(shape.kind, known)
        write = self._write(shape)

        def texts(column: pa.Array) -> pa.Array:
            values = python_values(_checked(column, wanted))
            made = pa.array([None if value is None else write(value) for value in values], pa.string())
            return self._quoted(made) if is_text else made

        return texts

    def _quoted(self, texts: pa.Array, holding: str = "") -> pa.Array:
        """Texts in quotes where they need them; all that are not null have the sign `holding`."""
        quote = self._signs.quote
        if quote is None:
            return texts
        if holding and holding <= self._signs.greatest:
            return self._around(quote, texts)
        needing = self._needing(texts)
        if pc.all(needing) == _TRUE:
            return self._around(quote, texts)
        return pc.if_else(needing, self._around(quote, texts), texts) if pc.any(needing) == _TRUE else texts

    def _needing(self, texts: pa.Array) -> pa.Array:
        """Whether each of the texts needs quotes."""
        data = _bytes(texts)
        plain = not data.size or data.max() < 128
        long = pc.greater(pc.binary_length(texts) if plain else pc.utf8_length(texts), LONG)
        if pc.all(long) == _TRUE:
            return long
        needing = pc.or_(long, pc.match_substring_regex(texts, self._low))
        escape = self._signs.escape
        return needing if escape is None else pc.or_(needing, pc.match_substring(texts, escape))

    def _around(self, quote: str, texts: pa.Array) -> pa.Array:
        for sign in (self._signs.escape, quote):
            if sign is not None and (_bytes(texts) == sign.encode()[0]).any():
                texts = pc.replace_substring(texts, sign, sign + sign)
        return pc.binary_join_element_wise(quote, texts, quote, "")  # null stays null


def _decimal(shape: Shape) -> pa.DataType | None:
    """The type of a column of decimals, if all of the shape fit into one."""
    if shape.kind is not Kind.DECIMAL or shape.precision is None or shape.scale is None:
        return None
    return pa.decimal128(shape.precision, shape.scale) if 0 < shape.precision <= 38 else None


def _bytes(texts: pa.Array) -> np.ndarray:
    """What the texts hold, one behind the other; perhaps more where some are null."""
    _, offsets, data = texts.buffers()
    if not len(texts) or data is None:
        return np.empty(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int32)
    return np.frombuffer(data, np.uint8)[bounds[texts.offset] : bounds[texts.offset + len(texts)]]


def _checked(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if column.type != wanted:
        raise _Unsure
    return column


def _known(column: pa.Array) -> pa.Array:
    """The column, if all of its days and moments have a year of four digits."""
    dates = pa.types.is_date32(column.type)
    unit = 1 if dates else _A_DAY[column.type.unit]
    since = column.view(pa.int32() if dates else pa.int64())
    if pc.any(pc.or_(pc.less(since, _FIRST * unit), pc.greater_equal(since, (_LAST + 1) * unit))) == _TRUE:
        raise _Unsure
    return column


def _time(column: pa.Array, precision: int | None) -> pa.Array:
    wanted = pa.time32("ms") if precision == 3 else pa.time64("us")
    if precision not in _DIGITS.values():
        raise _Unsure
    return _short(_checked(column, wanted).cast(pa.string()))


def _timestamp(column: pa.Array, precision: int | None) -> pa.Array:
    if not pa.types.is_timestamp(column.type) or column.type.tz or _DIGITS.get(column.type.unit) != precision:
        raise _Unsure
    return _short(_known(column).cast(pa.string()))


def _instant(column: pa.Array, precision: int | None) -> pa.Array:
    if not pa.types.is_timestamp(column.type) or column.type.tz != "UTC":
        raise _Unsure
    plain = _timestamp(column.cast(pa.timestamp(column.type.unit)), precision)
    return pc.binary_join_element_wise(plain, "Z", "")


def _short(texts: pa.Array) -> pa.Array:
    """Times, which all have a point, without the zeros at their end."""
    return pc.ascii_rtrim(pc.ascii_rtrim(texts, characters="0"), characters=".")
