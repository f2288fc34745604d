"""Construction of rows, arrays, maps and objects of structured types; TYPEOF.

Promises: elements, keys and values are cast to their common type. An object has its fields in the order of its type;
NULL stays NULL when fields of it are replaced.
Does not know: functions of collections; classes, because the binder creates structured types from literals."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import arrow_type, scalar_value
from millstream.sql.expressions.datums import as_array, get_field
from millstream.sql.functions.registry import by_row, define
from millstream.sql.types import data_types as t
from millstream.sql.types.common_types import find_common_type, find_leading_type


def _derive_row_type(arg_types: list[t.DataType]) -> t.DataType:
    return t.row_of([f"EXPR${i}" for i in range(len(arg_types))], arg_types, null=False)


define(
    "ROW",
    "construction",
    ("", "any..."),
    _derive_row_type,
    by_row(lambda *values: values, strict=False),
    "Returns a row of the values.",
    null="never",
    syntax="ROW(value, ...) or (value, value, ...)",
)


def _to_leading_type(arg_types: list[t.DataType]) -> list[t.DataType] | None:
    common = find_leading_type(arg_types)
    return None if common is None else [common.with_null(data_type.null) for data_type in arg_types]


define(
    "ARRAY VALUE",
    "construction",
    "any...",
    lambda arg_types: t.ArrayType(arg_types[0].with_null(t.is_any_nullable(arg_types))),
    by_row(lambda *values: values, strict=False),
    "Returns an array of the values.",
    null="never",
    coerce=_to_leading_type,
    syntax="ARRAY[value, ...]",
)


def _coerce_entries(arg_types: list[t.DataType]) -> list[t.DataType] | None:
    if len(arg_types) % 2:
        return None
    key, value = find_common_type(arg_types[::2]), find_common_type(arg_types[1::2])
    if key is None or value is None:
        return None
    return [(key if i % 2 == 0 else value).with_null(data_type.null) for i, data_type in enumerate(arg_types)]


def _derive_map_type(arg_types: list[t.DataType]) -> t.DataType:
    return t.MapType(
        arg_types[0].with_null(t.is_any_nullable(arg_types[::2])),
        arg_types[1].with_null(t.is_any_nullable(arg_types[1::2])),
    )


define(
    "MAP VALUE",
    "construction",
    "any...",
    _derive_map_type,
    by_row(lambda *values: tuple(dict(zip(values[::2], values[1::2], strict=True)).items()), strict=False),
    "Returns a map of the keys and values.",
    null="never",
    coerce=_coerce_entries,
    syntax="MAP[key, value, ...]",
)


def _typeof(_frame: Any, _args: list[Any], arg_types: list[t.DataType], _result_type: t.DataType) -> Any:
    return pa.scalar(str(arg_types[0]))


define(
    "TYPEOF",
    "conversion",
    ("any", "any, boolean"),
    t.STRING,
    _typeof,
    "Returns the data type of the argument as text.",
    null="always",
)


def _build_object(frame: Any, fields: list[Any], data_type: t.DataType, original: Any = None) -> Any:
    """Return objects with these fields: a scalar if all fields are scalars; NULL where `original` is NULL."""
    is_constant = all(isinstance(datum, pa.Scalar) for datum in (*fields, *([] if original is None else [original])))
    count = 1 if is_constant else frame.count
    struct_type = arrow_type(data_type)
    arrays = [as_array(datum, count).cast(field.type) for datum, field in zip(fields, struct_type, strict=True)]
    mask = None if original is None else pc.is_null(as_array(original, count))
    if arrays:
        result = pa.StructArray.from_arrays(arrays, fields=list(struct_type), mask=mask)
    else:
        result = pa.array([{}] * count, struct_type)
    return result[0] if is_constant else result


def _object_of(frame: Any, args: list[Any], _arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    return _build_object(frame, args[2::2], result_type)


def _object_update(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    original, *pairs = args
    assert isinstance(arg_types[0], t.StructuredType)
    new_values = {scalar_value(name): value for name, value in zip(pairs[::2], pairs[1::2], strict=True)}
    fields = [
        new_values[name] if name in new_values else get_field(original, index)
        for index, name in enumerate(arg_types[0].names)
    ]
    return _build_object(frame, fields, result_type, original)


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
    lambda arg_types: arg_types[0],
    _object_update,
    "Returns a copy of the object with new values for some fields.",
    syntax="OBJECT_UPDATE(object, [field, value, ...])",
)
