"""Functions that split strings at separators.

Promises: a missing part is NULL; a string without separators is one part.
Does not know: regular expressions, except those of STR_TO_MAP."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import scalar_value
from millstream.sql.functions.registry import by_row, define
from millstream.sql.types import data_types as t

_STRING = "string"
define(
    "SPLIT",
    _STRING,
    "string, string",
    t.ArrayType(t.STRING),
    by_row(lambda v, d: tuple(v.split(d)) if d else tuple(v)),
    "Splits the string at a separator and returns the parts as an array.",
)


def _split_index(value: str, separator: Any, index: int) -> str | None:
    if isinstance(separator, int):
        if separator <= 0:
            return None
        separator = chr(separator)
    parts = value.split(separator) if separator else [value]
    return parts[index] if 0 <= index < len(parts) else None


def _split_index_kernel(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    value, separator, index = args
    is_vectorized = (
        not isinstance(value, pa.Scalar) and isinstance(separator, pa.Scalar) and isinstance(index, pa.Scalar)
    )
    character, part_index = (scalar_value(separator), scalar_value(index)) if is_vectorized else (None, None)
    if not isinstance(character, str) or not character or part_index is None or part_index < 0:
        return by_row(_split_index)(frame, args, arg_types, result_type)
    if character.isascii() and len(character) == 1 and len(value) and pa.types.is_string(value.type):
        key = "separators", character, id(value)
        cached = frame.known.get(key)
        if cached is None:  # the entry keeps the column alive, because its id is the key
            cached = frame.known[key] = (value, _Separators(value, ord(character)))
        return cached[1].part(part_index)
    parts = pc.split_pattern(value, character, max_splits=part_index + 1)
    has_part = pc.fill_null(pc.greater(pc.list_value_length(parts), part_index), False).to_numpy(zero_copy_only=False)
    offsets = parts.offsets.to_numpy()
    return parts.flatten().take(pa.array(offsets[:-1] - offsets[0] + part_index, mask=~has_part.astype(bool)))


class _Separators:
    """The offsets of a separator of one byte in the strings of a column."""

    def __init__(self, column: pa.StringArray, character: int) -> None:
        _, offsets, data = column.buffers()
        self._column, self._data = column, data
        self._bounds = np.frombuffer(offsets, np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
        begin, end = int(self._bounds[0]), int(self._bounds[-1])
        data_bytes = np.frombuffer(data, np.uint8, end - begin, begin) if data is not None else np.empty(0, np.uint8)
        self._offsets = np.flatnonzero(data_bytes == character) + begin
        self._first = np.searchsorted(self._offsets, self._bounds)

    def part(self, number: int) -> pa.Array:
        """Return the part of each string before the n-th separator, counted from 0."""
        first, bounds = self._first, self._bounds
        separators = np.append(self._offsets, bounds[-1])  # with an entry after the last separator
        ends = first[:-1] + number
        has_part = ends <= first[1:]
        begins = bounds[:-1] if number == 0 else separators[np.minimum(ends - 1, len(separators) - 1)] + 1
        cuts = np.empty((len(has_part), 2), np.int32)  # offsets of a part and of what follows it, alternating
        cuts[:, 0] = np.where(has_part, begins, bounds[:-1])
        cuts[:, 1] = np.where(ends < first[1:], separators[np.minimum(ends, len(separators) - 1)], bounds[1:])
        cuts[:, 1] = np.where(has_part, cuts[:, 1], cuts[:, 0])
        pieces = pa.StringArray.from_buffers(2 * len(has_part) - 1, pa.py_buffer(cuts), self._data)
        if self._column.null_count:
            has_part &= self._column.is_valid().to_numpy(zero_copy_only=False)
        return pieces.take(pa.array(np.arange(0, 2 * len(has_part), 2), mask=~has_part))


define(
    "SPLIT_INDEX",
    _STRING,
    ("string, string, int", "string, int, int"),
    t.STRING,
    _split_index_kernel,
    "Splits the string at a separator and returns the part at the index, counted from 0, or NULL if there is none.",
    null="always",
)


def _split_as_java(separator: str, value: str) -> list[str]:
    """Split a string without the empty parts at its end, and without the empty part that an empty match creates at its
    beginning."""
    parts = re.split(separator, value)
    if len(parts) > 1 and not parts[0] and (match := re.match(separator, value)) and match.end() == 0:
        del parts[0]
    while parts and not parts[-1]:
        del parts[-1]
    return parts


def _str_to_map(value: str, entry_separator: str = ",", key_separator: str = "=") -> tuple[tuple[str, str | None], ...]:
    result: dict[str, str | None] = {}
    for entry in _split_as_java(entry_separator, value):
        match = re.search(key_separator, entry)
        result[entry if match is None else entry[: match.start()]] = None if match is None else entry[match.end() :]
    return tuple(result.items())


define(
    "STR_TO_MAP",
    _STRING,
    ("string", "string, string, string"),
    t.MapType(t.STRING, t.STRING),
    by_row(_str_to_map),
    "Returns a map from text such as k1=v1,k2=v2. The other arguments are the separators of entries and "
    "of keys and values, as regular expressions.",
    null="always",
)
