"""Columnar CSV writer.

Promises: the bytes of the row writer, or None if that is not certain: for nested fields, and for values without text.
Does not know: records; the special characters are arguments."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.formats.format_types import BITS, FormatType, TypeRoot
from millstream.times import EPOCH_DAY
from millstream.types.arrow_types import to_python_values

#: Texts with more characters than this are quoted.
LONG = 24
_PLAIN_SCALE = 6  # decimals with more digits after the point may have an exponent
_INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
# the days that Python's dates can represent
_FIRST, _LAST = (datetime.date.min - EPOCH_DAY).days, (datetime.date.max - EPOCH_DAY).days
_DAY_LENGTH = {"ms": 86_400_000, "us": 86_400_000_000}  # of nanoseconds, every year has four digits
_BY_VALUE: dict[TypeRoot, tuple[pa.DataType, bool]] = {
    TypeRoot.FLOAT: (pa.float32(), False),
    TypeRoot.DOUBLE: (pa.float64(), False),
    TypeRoot.BYTES: (pa.binary(), True),
}
_DIGITS = {"ms": 3, "us": 6, "ns": 9}
_TRUE = pa.scalar(True)

#: Converts a column to the texts of its fields.
Texts = Callable[[pa.Array], pa.Array]


class _NeedsRowWriter(Exception):
    """The column must be written by the row writer."""


@dataclass(frozen=True)
class SpecialCharacters:
    """The delimiter, quote and escape characters, and the text of null. Texts with a character up to `greatest` are
    quoted."""

    delimiter: str
    quote: str | None
    escape: str | None
    null: str
    greatest: str


class ColumnWriter:
    """Converts columns to lines. `write` returns the formatter of a single value of a type."""

    def __init__(
        self, data_type: FormatType, special: SpecialCharacters, write: Callable[[FormatType], Callable[[Any], str]]
    ) -> None:
        self._special, self._write = special, write
        self._columns = [self._column(child) for child in data_type.children] if data_type.is_flat() else []
        self._low = f"[\\x{{0}}-\\x{{{ord(special.greatest):x}}}]"

    def lines(self, columns: Sequence[pa.Array], end: bytes) -> memoryview | None:
        """Return all lines with their line ends; None if the row writer must write them."""
        if not self._columns or len(self._columns) != len(columns) or not len(columns[0]):
            return None
        try:
            texts = [text(column) for text, column in zip(self._columns, columns, strict=True)]
            texts[-1] = self._join([texts[-1], pa.scalar(end.decode())], "")
            joined = self._join(texts, self._special.delimiter)
        except (_NeedsRowWriter, pa.ArrowException, ValueError, TypeError, OverflowError, ArithmeticError):
            return None
        return _bytes(joined).data

    def _join(self, parts: Sequence[Any], between: str) -> pa.Array:
        null = self._special.null
        return pc.binary_join_element_wise(*parts, between, null_handling="replace", null_replacement=null)

    def _column(self, data_type: FormatType) -> Texts:
        root, precision = data_type.root, data_type.precision
        if root is TypeRoot.STRING:
            return lambda column: self._quote_texts(_require_type(column, pa.string()))
        if root in BITS:
            integer_type = _INTEGERS[BITS[root]]
            return lambda column: _require_type(column, integer_type).cast(pa.string())
        if root is TypeRoot.BOOLEAN:
            return lambda column: _require_type(column, pa.bool_()).cast(pa.string())
        if root is TypeRoot.DATE:
            return lambda column: self._quote_texts(
                _require_four_digit_years(_require_type(column, pa.date32())).cast(pa.string()), "-"
            )
        if root is TypeRoot.TIME:
            return lambda column: self._quote_texts(_time(column, precision), ":")
        if root is TypeRoot.TIMESTAMP:
            return lambda column: self._quote_texts(_timestamp(column, precision), " ")
        if root is TypeRoot.TIMESTAMP_LTZ:
            return lambda column: self._quote_texts(_instant(column, precision), " ")
        decimal = _decimal(data_type)
        if decimal is not None and 0 <= decimal.scale <= _PLAIN_SCALE:
            return lambda column: _require_type(column, decimal).cast(pa.string())
        return self._format_values(data_type)

    def _format_values(self, data_type: FormatType) -> Texts:
        """Return the text of each value, as in a record."""
        default = (_decimal(data_type) or pa.null(), False)  # a column of null type: the row writer writes it
        arrow_type, is_text = _BY_VALUE.get(data_type.root, default)
        write = self._write(data_type)

        def texts(column: pa.Array) -> pa.Array:
            values = to_python_values(_require_type(column, arrow_type))
            result = pa.array([None if value is None else write(value) for value in values], pa.string())
            return self._quote_texts(result) if is_text else result

        return texts

    def _quote_texts(self, texts: pa.Array, contained: str = "") -> pa.Array:
        """Quote the texts that need quotes; all but nulls contain the character `contained`, if given."""
        quote = self._special.quote
        if quote is None:
            return texts
        if contained and contained <= self._special.greatest:
            return self._enclose(quote, texts)
        needs_quotes = self._need_quotes(texts)
        if pc.all(needs_quotes) == _TRUE:
            return self._enclose(quote, texts)
        return pc.if_else(needs_quotes, self._enclose(quote, texts), texts) if pc.any(needs_quotes) == _TRUE else texts

    def _need_quotes(self, texts: pa.Array) -> pa.Array:
        """Whether each of the texts needs quotes."""
        data = _bytes(texts)
        plain = not data.size or data.max() < 128
        long = pc.greater(pc.binary_length(texts) if plain else pc.utf8_length(texts), LONG)
        if pc.all(long) == _TRUE:
            return long
        needs_quotes = pc.or_(long, pc.match_substring_regex(texts, self._low))
        escape = self._special.escape
        return needs_quotes if escape is None else pc.or_(needs_quotes, pc.match_substring(texts, escape))

    def _enclose(self, quote: str, texts: pa.Array) -> pa.Array:
        for character in (self._special.escape, quote):
            if character is not None and (_bytes(texts) == character.encode()[0]).any():
                texts = pc.replace_substring(texts, character, character + character)
        return pc.binary_join_element_wise(quote, texts, quote, "")  # null stays null


def _decimal(data_type: FormatType) -> pa.DataType | None:
    """Return the Arrow type of a column of decimals; None if they do not fit into one."""
    if data_type.root is not TypeRoot.DECIMAL or data_type.precision is None or data_type.scale is None:
        return None
    return pa.decimal128(data_type.precision, data_type.scale) if 0 < data_type.precision <= 38 else None


def _bytes(texts: pa.Array) -> np.ndarray:
    """Return the bytes of all texts; where some are null, there can be more bytes."""
    _, offsets, data = texts.buffers()
    if not len(texts) or data is None:
        return np.empty(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int32)
    return np.frombuffer(data, np.uint8)[bounds[texts.offset] : bounds[texts.offset + len(texts)]]


def _require_type(column: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    if column.type != arrow_type:
        raise _NeedsRowWriter
    return column


def _require_four_digit_years(column: pa.Array) -> pa.Array:
    """Return the column if all of its dates and timestamps have years of four digits."""
    dates = pa.types.is_date32(column.type)
    if not dates and column.type.unit == "ns":
        return column
    unit = 1 if dates else _DAY_LENGTH[column.type.unit]
    since = column.view(pa.int32() if dates else pa.int64())
    if pc.any(pc.or_(pc.less(since, _FIRST * unit), pc.greater_equal(since, (_LAST + 1) * unit))) == _TRUE:
        raise _NeedsRowWriter
    return column


def _time(column: pa.Array, precision: int | None) -> pa.Array:
    time_type = pa.time32("ms") if precision == 3 else pa.time64("us")
    if precision not in (3, 6):
        raise _NeedsRowWriter
    return _strip_zeros(_require_type(column, time_type).cast(pa.string()))


def _timestamp(column: pa.Array, precision: int | None) -> pa.Array:
    if not pa.types.is_timestamp(column.type) or column.type.tz or _DIGITS.get(column.type.unit) != precision:
        raise _NeedsRowWriter
    return _strip_zeros(_require_four_digit_years(column).cast(pa.string()))


def _instant(column: pa.Array, precision: int | None) -> pa.Array:
    if not pa.types.is_timestamp(column.type) or column.type.tz != "UTC":
        raise _NeedsRowWriter
    plain = _timestamp(column.cast(pa.timestamp(column.type.unit)), precision)
    return pc.binary_join_element_wise(plain, "Z", "")


def _strip_zeros(texts: pa.Array) -> pa.Array:
    """Remove trailing zeros of times, which all have a decimal point."""
    return pc.ascii_rtrim(pc.ascii_rtrim(texts, characters="0"), characters=".")
