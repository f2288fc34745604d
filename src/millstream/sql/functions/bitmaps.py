"""Bitmaps: sets of 32-bit integers.

Promises: integers are unsigned where bitmaps are ordered or formatted, and INTs with the same bits as elements of
arrays; bytes are in the portable Roaring format.
Does not know: the encoding of bitmaps, which is in `types/roaring.py`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from millstream.sql.functions.registry import by_row, define
from millstream.sql.types import data_types as t
from millstream.types.bitmap import Bitmap
from millstream.types.roaring import decode, encode, find_runs

_BITMAP = "bitmap"
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "AND": operator.and_,
    "OR": operator.or_,
    "XOR": operator.xor,
    "ANDNOT": operator.sub,
}


def combine(operator_name: str, left: bytes, right: bytes) -> bytes:
    """Combine two bitmaps with AND, OR, XOR or ANDNOT."""
    result: Bitmap = _OPERATORS[operator_name](Bitmap.from_bytes(left), Bitmap.from_bytes(right))
    return result.to_bytes()


def build(values: Any) -> bytes:
    """Return the bitmap of integers; NULLs are ignored."""
    return encode(find_runs([value for value in values if value is not None]))


def _coerce_to_int_array(arg_types: list[t.DataType]) -> list[t.DataType] | None:
    data_type = arg_types[0]
    if isinstance(data_type, t.NullType):
        return [t.ArrayType(t.INT)]
    fits = isinstance(data_type, t.ArrayType) and isinstance(
        data_type.element, t.TinyIntType | t.SmallIntType | t.IntType
    )
    return [t.ArrayType(t.INT, null=data_type.null)] if fits else None


define(
    "BITMAP_BUILD",
    _BITMAP,
    "array",
    t.BITMAP,
    by_row(build),
    "Returns the bitmap of the integers of an array.",
    coerce=_coerce_to_int_array,
)
define(
    "BITMAP_FROM_BYTES", _BITMAP, "bytes", t.BITMAP, by_row(lambda data: encode(decode(data))),
    "Reads a bitmap from bytes in the portable Roaring format.",
)  # fmt: skip
define(
    "BITMAP_TO_BYTES",
    _BITMAP,
    "bitmap",
    t.BYTES,
    by_row(bytes),
    "Returns the bitmap as bytes in the portable Roaring format.",
)
define(
    "BITMAP_TO_ARRAY", _BITMAP, "bitmap", t.ArrayType(t.INT),
    by_row(lambda data: Bitmap.from_bytes(data).to_array()),
    "Returns the integers of the bitmap as an array, ordered as unsigned integers.",
)  # fmt: skip
define(
    "BITMAP_TO_STRING", _BITMAP, "bitmap", t.STRING, by_row(lambda data: str(Bitmap.from_bytes(data))),
    "Returns the integers of the bitmap as text such as {1,2,3}, written as unsigned integers.",
)  # fmt: skip
define(
    "BITMAP_CARDINALITY", _BITMAP, "bitmap", t.BIGINT, by_row(lambda data: decode(data).cardinality()),
    "Returns the number of integers in the bitmap.",
)  # fmt: skip
for _operator, _doc in (
    ("AND", "Returns the bitmap of the integers that are in both bitmaps."),
    ("OR", "Returns the bitmap of the integers that are in at least one of the bitmaps."),
    ("XOR", "Returns the bitmap of the integers that are in exactly one of the bitmaps."),
    ("ANDNOT", "Returns the bitmap of the integers that are in the first bitmap and not in the second."),
):
    define(
        f"BITMAP_{_operator}", _BITMAP, "bitmap, bitmap", t.BITMAP,
        by_row(lambda left, right, name=_operator: combine(name, left, right)), _doc,
    )  # fmt: skip
