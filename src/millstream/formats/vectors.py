"""Parses batches with Arrow, and converts columns of strings to other types.

Promises: the results are those of the row parsers; if that is not certain, nothing is returned.
Does not know: where the text comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.formats import texts
from millstream.formats.contract import BadRecord, Decoded
from millstream.formats.format_types import FormatType, TypeRoot
from millstream.types.arrow_types import to_python_values
from millstream.types.factory import TypeInformation

_PIECE = 2048
_LEAVES = {
    TypeRoot.STRING: pa.string(),
    TypeRoot.BOOLEAN: pa.bool_(),
    TypeRoot.TINYINT: pa.int8(),
    TypeRoot.SMALLINT: pa.int16(),
    TypeRoot.INT: pa.int32(),
    TypeRoot.BIGINT: pa.int64(),
    TypeRoot.FLOAT: pa.float32(),
    TypeRoot.DOUBLE: pa.float64(),
}
_PLAIN_TIMESTAMP = r"^[12]\d{3}-\d\d-\d\d%s\d\d:\d\d:\d\d(\.\d{1,%d})?$"
_LEAST_TIMESTAMP = "1000-00-00%s00:00:00.000000000"
_DIGITS = {"ms": 3, "us": 6, "ns": 9}
_BETWEEN = {texts.SQL: " ", texts.ISO: "T"}
_PLAIN_DATE = r"^[12]\d{3}-\d\d-\d\d$"
_LEAST_DATE = "1000-00-00"

Together = Callable[[Sequence[bytes | None]], pa.Array | None]
OneByOne = Callable[[Sequence[bytes | None]], Decoded]


def arrow_leaf(data_type: FormatType) -> pa.DataType | None:
    """Return the Arrow type of values that Arrow parses as Flink does; None for other types."""
    return _LEAVES.get(data_type.root)


def array_of_texts(
    data_type: FormatType, column: pa.Array, read: Callable[[str], Any], style: str = texts.SQL
) -> pa.Array:
    """Parse a column of strings to an array of the type; timestamps are in a style."""
    result = None
    if data_type.root is TypeRoot.TIMESTAMP and style in _BETWEEN:
        arrow_type = data_type.type_info().arrow_type
        # at most the digits that are stored, because Arrow and Flink truncate times before 1970 differently
        digits, between = _DIGITS[arrow_type.unit], _BETWEEN[style]
        least = (_LEAST_TIMESTAMP % between)[: 20 + digits]
        result = _parse_with_arrow(column, least, _PLAIN_TIMESTAMP % (between, digits), arrow_type)
    elif data_type.root is TypeRoot.DATE:
        result = _parse_with_arrow(column, _LEAST_DATE, _PLAIN_DATE, pa.date32())
    if result is not None:
        return result
    return data_type.type_info().to_arrow([None if text is None else read(text) for text in to_python_values(column)])


def _parse_with_arrow(column: pa.Array, least: str, pattern: str, arrow_type: pa.DataType) -> pa.Array | None:
    """Parse the column with Arrow if every string has a form that Arrow and Flink parse alike."""
    if not _all_have_form(column, least):
        matches = pc.sum(pc.match_substring_regex(column, pattern))
        if matches != pa.scalar(len(column) - column.null_count, pa.uint64()):
            return None
    try:
        return column.cast(arrow_type)
    except pa.ArrowException:
        return None


def _all_have_form(column: pa.Array, least: str) -> bool:
    """Whether all strings have the length of `least`, a digit where it has one (the first is 1 or 2), and else the same
    characters. A regular expression takes five times as long."""
    count, width = len(column) - column.null_count, len(least)
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)
    lengths = np.diff(offsets)
    if not count or offsets[-1] - offsets[0] != count * width or np.count_nonzero(lengths == width) != count:
        return False
    low = np.frombuffer(least.encode(), np.uint8)
    spans = np.where((low >= ord("0")) & (low <= ord("9")), np.uint8(9), np.uint8(0))
    spans[0] = 1
    characters = np.frombuffer(column.buffers()[2], np.uint8, count * width, offsets[0]).reshape(count, width)
    return bool((characters - low <= spans).all())  # a smaller character wraps around to a large difference


def decode_in_pieces(
    records: Sequence[bytes | None], together: Together, one_by_one: OneByOne, type_info: TypeInformation
) -> Decoded:
    """Parse a batch at once; if a record prevents that, parse small pieces at once, and those with such a record one by
    one."""
    if len(records) < 2:
        return one_by_one(records)
    array = together(records)
    if array is not None:
        return Decoded(array)
    if len(records) <= _PIECE:
        return one_by_one(records)
    starts = range(0, len(records), _PIECE)
    pieces = [records[start : start + _PIECE] for start in starts]
    arrays = [together(piece) for piece in pieces]
    if all(array is None for array in arrays):
        return one_by_one(records)
    parts: list[pa.Array] = []
    origins: list[int] = []
    errors: list[BadRecord] = []
    for start, piece, array in zip(starts, pieces, arrays, strict=True):
        decoded = one_by_one(piece) if array is None else Decoded(array)
        parts.append(type_info.to_arrow(decoded.values) if isinstance(decoded.values, list) else decoded.values)
        origins += [start + decoded.origin_of(index) for index in range(len(decoded.values))]
        errors += [BadRecord(start + bad.index, bad.data, bad.reason) for bad in decoded.errors]
    return Decoded(pa.concat_arrays(parts), origins if len(origins) != len(records) else None, tuple(errors))
