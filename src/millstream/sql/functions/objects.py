"""Objects of structured types: made of their fields, and made anew with some of them replaced.

Promises: an object is its fields in the order of its type; NULL stays NULL when fields of it are replaced.
Does not know: classes; the binder made the types, from class and field names that are literals."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import arrow_type, scalar_value
from millstream.sql.expressions.datums import as_array, field_datum
from millstream.sql.functions.registry import define
from millstream.sql.types import data_types as t


def _made(frame: Any, parts: list[Any], kind: t.DataType, whole: Any = None) -> Any:
    """The object of these fields, a constant when all of them are; NULL where the object `whole` is."""
    constant = all(isinstance(each, pa.Scalar) for each in (*parts, *([] if whole is None else [whole])))
    count = 1 if constant else frame.count
    wanted = arrow_type(kind)
    arrays = [as_array(part, count).cast(field.type) for part, field in zip(parts, wanted, strict=True)]
    mask = None if whole is None else pc.is_null(as_array(whole, count))
    if arrays:
        made = pa.StructArray.from_arrays(arrays, fields=list(wanted), mask=mask)
    else:
        made = pa.array([{}] * count, wanted)
    return made[0] if constant else made


def _object_of(frame: Any, args: list[Any], _kinds: list[t.DataType], kind: t.DataType) -> Any:
    return _made(frame, args[2::2], kind)


def _object_update(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    whole, *pairs = args
    assert isinstance(kinds[0], t.StructuredType)
    new = {scalar_value(name): value for name, value in zip(pairs[::2], pairs[1::2], strict=True)}
    parts = [new[name] if name in new else field_datum(whole, place) for place, name in enumerate(kinds[0].names)]
    return _made(frame, parts, kind, whole)


define(
    "OBJECT_OF",
    "construction",
    "string, any...",
    t.StructuredType(),
    _object_of,
    "Returns an object of a structured type. The class name and the field names are string literals.",
    syntax="OBJECT_OF(class, [field, value, ...])",
)
define(
    "OBJECT_UPDATE",
    "construction",
    "row, any...",
    lambda kinds: kinds[0],
    _object_update,
    "Returns a copy of the object with new values for some fields.",
    syntax="OBJECT_UPDATE(object, [field, value, ...])",
)
