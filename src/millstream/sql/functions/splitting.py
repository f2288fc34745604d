"""Strings taken apart at separators.

Promises: a part that is not there is NULL; what has no separator is one part.
Does not know: regular expressions as such."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql import types as t
from millstream.sql.columns import scalar_value
from millstream.sql.functions.registry import by_row, define

_S = "string"
define(
    "SPLIT",
    _S,
    "string, string",
    t.ArrayType(t.STRING),
    by_row(lambda v, d: tuple(v.split(d)) if d else tuple(v)),
    "The parts between the separators.",
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
    parts = pc.split_pattern(value, sign, max_splits=place + 1)
    found = pc.fill_null(pc.greater(pc.list_value_length(parts), place), False).to_numpy(zero_copy_only=False)
    ends = parts.offsets.to_numpy()
    return parts.flatten().take(pa.array(ends[:-1] - ends[0] + place, mask=~found.astype(bool)))


define(
    "SPLIT_INDEX",
    _S,
    ("string, string, int", "string, int, int"),
    t.STRING,
    _split_column,
    "The part at an index, counted from 0, between the separators.",
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
    "A map from text such as k1=v1,k2=v2.",
    null="always",
)
