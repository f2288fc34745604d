"""Rows, arrays and maps made of values, and what tells of types.

Promises: elements, keys and values are brought to their common type.
Does not know: what is in a collection once it is made."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from millstream.sql.functions.registry import by_row, define, to_common_type
from millstream.sql.types import data_types as t
from millstream.sql.types.common_types import common_type


def _row_type(kinds: list[t.DataType]) -> t.DataType:
    return t.row_of([f"EXPR${i}" for i in range(len(kinds))], kinds, null=False)


define(
    "ROW",
    "construction",
    ("", "any..."),
    _row_type,
    by_row(lambda *values: values, strict=False),
    "Returns a row of the values.",
    null="never",
    syntax="ROW(value, ...) or (value, value, ...)",
)
define(
    "ARRAY VALUE",
    "construction",
    "any...",
    lambda kinds: t.ArrayType(kinds[0].with_null(t.nullable_all(kinds))),
    by_row(lambda *values: values, strict=False),
    "Returns an array of the values.",
    null="never",
    coerce=to_common_type,
    syntax="ARRAY[value, ...]",
)


def _pairs(kinds: list[t.DataType]) -> list[t.DataType] | None:
    if len(kinds) % 2:
        return None
    key, value = common_type(kinds[::2]), common_type(kinds[1::2])
    if key is None or value is None:
        return None
    return [(key if i % 2 == 0 else value).with_null(kind.null) for i, kind in enumerate(kinds)]


def _map_type(kinds: list[t.DataType]) -> t.DataType:
    return t.MapType(kinds[0].with_null(t.nullable_all(kinds[::2])), kinds[1].with_null(t.nullable_all(kinds[1::2])))


define(
    "MAP VALUE",
    "construction",
    "any...",
    _map_type,
    by_row(lambda *values: tuple(dict(zip(values[::2], values[1::2], strict=True)).items()), strict=False),
    "Returns a map of the keys and values.",
    null="never",
    coerce=_pairs,
    syntax="MAP[key, value, ...]",
)


def _typeof(_frame: Any, _args: list[Any], kinds: list[t.DataType], _kind: t.DataType) -> Any:
    return pa.scalar(str(kinds[0]))


define(
    "TYPEOF",
    "conversion",
    ("any", "any, boolean"),
    t.STRING,
    _typeof,
    "Returns the data type of the argument as text.",
    null="always",
)
