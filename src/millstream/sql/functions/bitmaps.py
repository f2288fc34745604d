"""Bitmaps: sets of 32-bit numbers.

Promises: numbers are unsigned where bitmaps are ordered or written, and INTs with the same bits where they are
elements of arrays; bytes are the portable Roaring form.
Does not know: how a set becomes bytes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from millstream.sql.functions.registry import by_row, define
from millstream.sql.types import data_types as t
from millstream.types.bitmap import Bitmap
from millstream.types.roaring import decode, encode, runs_of

_C = "bitmap"
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "AND": operator.and_,
    "OR": operator.or_,
    "XOR": operator.xor,
    "ANDNOT": operator.sub,
}


def put_together(how: str, one: bytes, other: bytes) -> bytes:
    """Two bitmaps as one: what AND, OR, XOR or ANDNOT keeps of them."""
    made: Bitmap = _OPERATORS[how](Bitmap.from_bytes(one), Bitmap.from_bytes(other))
    return made.to_bytes()


def built(values: Any) -> bytes:
    """The bitmap of some numbers; NULLs are passed over."""
    return encode(runs_of([each for each in values if each is not None]))


def _of_ints(kinds: list[t.DataType]) -> list[t.DataType] | None:
    kind = kinds[0]
    if isinstance(kind, t.NullType):
        return [t.ArrayType(t.INT)]
    fits = isinstance(kind, t.ArrayType) and isinstance(kind.element, t.TinyIntType | t.SmallIntType | t.IntType)
    return [t.ArrayType(t.INT, null=kind.null)] if fits else None


define("BITMAP_BUILD", _C, "array", t.BITMAP, by_row(built), "The bitmap of an array's numbers.", coerce=_of_ints)
define(
    "BITMAP_FROM_BYTES", _C, "bytes", t.BITMAP, by_row(lambda data: encode(decode(data))),
    "The bitmap of its portable Roaring form.",
)  # fmt: skip
define("BITMAP_TO_BYTES", _C, "bitmap", t.BYTES, by_row(bytes), "The portable Roaring form of a bitmap.")
define(
    "BITMAP_TO_ARRAY", _C, "bitmap", t.ArrayType(t.INT),
    by_row(lambda data: Bitmap.from_bytes(data).to_array()),
    "The numbers of a bitmap in the order of unsigned numbers.",
)  # fmt: skip
define(
    "BITMAP_TO_STRING", _C, "bitmap", t.STRING, by_row(lambda data: str(Bitmap.from_bytes(data))),
    "The numbers of a bitmap, unsigned, as {1,2,3}.",
)  # fmt: skip
define(
    "BITMAP_CARDINALITY", _C, "bitmap", t.BIGINT, by_row(lambda data: decode(data).cardinality()),
    "How many numbers a bitmap has.",
)  # fmt: skip
for _how, _doc in (
    ("AND", "The numbers that both bitmaps have."),
    ("OR", "The numbers that one of the bitmaps has, or both."),
    ("XOR", "The numbers that one of the bitmaps has, but not both."),
    ("ANDNOT", "The numbers of the first bitmap that the second does not have."),
):
    define(
        f"BITMAP_{_how}", _C, "bitmap, bitmap", t.BITMAP,
        by_row(lambda one, other, how=_how: put_together(how, one, other)), _doc,
    )  # fmt: skip
