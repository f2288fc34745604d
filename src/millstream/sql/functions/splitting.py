"""Strings taken apart at separators.

Promises: a part that is not there is NULL; what has no separator is one part.
Does not know: regular expressions as such."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import scalar_value
from millstream.sql.functions.registry import by_row, define
from millstream.sql.types import data_types as t

_S = "string"
define(
    "SPLIT",
    _S,
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


def _split_column(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    value, separator, index = args
    plain = not isinstance(value, pa.Scalar) and isinstance(separator, pa.Scalar) and isinstance(index, pa.Scalar)
    sign, place = (scalar_value(separator), scalar_value(index)) if plain else (None, None)
    if not isinstance(sign, str) or not sign or place is None or place < 0:
        return by_row(_split_index)(frame, args, kinds, kind)
    if sign.isascii() and len(sign) == 1 and len(value) and pa.types.is_string(value.type):
        key = "separators", sign, id(value)
        known = frame.known.get(key)
        if known is None:
            known = frame.known[key] = value, _Separators(value, ord(sign))  # with the column, whose number it is
        return known[1].part(place)
    parts = pc.split_pattern(value, sign, max_splits=place + 1)
    found = pc.fill_null(pc.greater(pc.list_value_length(parts), place), False).to_numpy(zero_copy_only=False)
    ends = parts.offsets.to_numpy()
    return parts.flatten().take(pa.array(ends[:-1] - ends[0] + place, mask=~found.astype(bool)))


class _Separators:
    """Where a sign of one byte stands in the strings of a column."""

    def __init__(self, column: pa.StringArray, sign: int) -> None:
        _, offsets, data = column.buffers()
        self._column, self._data = column, data
        self._bounds = np.frombuffer(offsets, np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
        begin, end = (int(self._bounds[place]) for place in (0, -1))
        signs = np.frombuffer(data, np.uint8, end - begin, begin) if data is not None else np.empty(0, np.uint8)
        self._places = np.flatnonzero(signs == sign) + begin
        self._first = np.searchsorted(self._places, self._bounds)

    def part(self, number: int) -> pa.Array:
        """The part of each string before the separator of that number, counted from 0."""
        first, bounds = self._first, self._bounds
        beyond = np.append(self._places, bounds[-1])  # so that there is something to look at behind the last one
        ends = first[:-1] + number
        found = ends <= first[1:]
        begins = bounds[:-1] if number == 0 else beyond[np.minimum(ends - 1, len(beyond) - 1)] + 1
        cuts = np.empty((len(found), 2), np.int32)  # a part and what is between it and the next, in turn
        cuts[:, 0] = np.where(found, begins, bounds[:-1])
        cuts[:, 1] = np.where(ends < first[1:], beyond[np.minimum(ends, len(beyond) - 1)], bounds[1:])
        cuts[:, 1] = np.where(found, cuts[:, 1], cuts[:, 0])
        pieces = pa.StringArray.from_buffers(2 * len(found) - 1, pa.py_buffer(cuts), self._data)
        if self._column.null_count:
            found &= self._column.is_valid().to_numpy(zero_copy_only=False)
        return pieces.take(pa.array(np.arange(0, 2 * len(found), 2), mask=~found))


define(
    "SPLIT_INDEX",
    _S,
    ("string, string, int", "string, int, int"),
    t.STRING,
    _split_column,
    "Splits the string at a separator and returns the part at the index, counted from 0, or NULL if there is none.",
    null="always",
)


def _str_to_map(value: str, pairs: str = ",", keys: str = "=") -> tuple[tuple[str, str | None], ...]:
    found: dict[str, str | None] = {}
    for part in re.split(pairs, value):
        mark = re.search(keys, part)
        found[part if mark is None else part[: mark.start()]] = None if mark is None else part[mark.end() :]
    return tuple(found.items())


define(
    "STR_TO_MAP",
    _S,
    ("string", "string, string, string"),
    t.MapType(t.STRING, t.STRING),
    by_row(_str_to_map),
    "Returns a map from text such as k1=v1,k2=v2. The other arguments are the separators of entries and "
    "of keys and values, as regular expressions.",
    null="always",
)
