"""Functions of arrays and maps.

Promises: positions in arrays count from 1; a missing element is NULL.
Does not know: tables; UNNEST is a table function."""

from __future__ import annotations

from typing import Any

from millstream.sql.functions import variants
from millstream.sql.functions.registry import by_row, define, to_common_type
from millstream.sql.types import data_types as t
from millstream.sql.types.common_types import find_common_type

_COLLECTION = "collection"


def _derive_element_type(arg_types: list[t.DataType]) -> t.DataType:
    data_type = arg_types[0]
    if isinstance(data_type, t.VariantType):
        return data_type
    return (
        data_type.element if isinstance(data_type, t.ArrayType | t.MultisetType) else _derive_map_type(arg_types).value
    )


def _derive_map_type(arg_types: list[t.DataType]) -> t.MapType:
    data_type = arg_types[0]
    assert isinstance(data_type, t.MapType)
    return data_type


def _get_first_type(arg_types: list[t.DataType]) -> t.DataType:
    return arg_types[0]


define(
    "CARDINALITY",
    _COLLECTION,
    "collection",
    t.INT,
    by_row(len),
    "Returns the number of elements of an array or multiset, or of entries of a map.",
)


def _item(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    if isinstance(arg_types[0], t.MapType):
        return by_row(lambda value, key: next((v for k, v in value if k == key), None))(
            frame, args, arg_types, result_type
        )
    if isinstance(arg_types[0], t.VariantType):
        return by_row(variants.get_item)(frame, args, arg_types, result_type)
    return by_row(lambda value, index: value[index - 1] if 1 <= index <= len(value) else None)(
        frame, args, arg_types, result_type
    )


def _coerce_item(arg_types: list[t.DataType]) -> list[t.DataType] | None:
    if isinstance(arg_types[0], t.MapType):
        return [arg_types[0], arg_types[0].key.with_null(arg_types[1].null)]
    if t.is_text(arg_types[1]):
        return arg_types
    return (
        [arg_types[0], t.INT.with_null(arg_types[1].null)]
        if isinstance(arg_types[1], t.IntegerType | t.NullType)
        else None
    )


define(
    "ITEM",
    _COLLECTION,
    ("array, integer", "map, any", "variant, integer", "variant, string"),
    _derive_element_type,
    _item,
    "Returns the element of an array at a position, counted from 1, or the value of a key of a map. A "
    "VARIANT can be either.",
    null="always",
    coerce=_coerce_item,
    syntax="array[index] or map[key] or variant[index] or variant[key]",
)


def _only_element(value: tuple[Any, ...]) -> Any:
    if len(value) > 1:
        msg = "ELEMENT of an array with more than one element"
        raise ValueError(msg)
    return value[0] if value else None


define(
    "ELEMENT",
    _COLLECTION,
    "array",
    _derive_element_type,
    by_row(_only_element),
    "Returns the only element of an array, or NULL if the array is empty. Fails if the array has more "
    "than one element.",
    null="rule",
)


def _coerce_element(arg_types: list[t.DataType]) -> list[t.DataType] | None:
    array = arg_types[0]
    if not isinstance(array, t.ArrayType):
        return None
    common = find_common_type([array.element, arg_types[1]])
    if common is None:
        return None
    return [t.ArrayType(common.with_null(array.element.null), null=array.null), common.with_null(arg_types[1].null)]


def _derive_append_type(arg_types: list[t.DataType]) -> t.DataType:
    array = arg_types[0]
    assert isinstance(array, t.ArrayType)
    return t.ArrayType(array.element.with_null(array.element.null or arg_types[1].null), null=array.null)


def _distinct(value: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(value))


_ARRAY_AND_ELEMENT = "array, any"
define(
    "ARRAY_CONTAINS",
    _COLLECTION,
    _ARRAY_AND_ELEMENT,
    lambda arg_types: t.BOOLEAN.with_null(arg_types[0].null),
    by_row(lambda a, v: None if a is None else v in a, strict=False),
    "Returns TRUE if the array contains the element.",
    null="rule",
    coerce=_coerce_element,
)
define(
    "ARRAY_DISTINCT",
    _COLLECTION,
    "array",
    _get_first_type,
    by_row(_distinct),
    "Returns the array without duplicates; the first occurrence of each element stays.",
)
define(
    "ARRAY_POSITION",
    _COLLECTION,
    _ARRAY_AND_ELEMENT,
    t.INT,
    by_row(lambda a, v: a.index(v) + 1 if v in a else 0),
    "Returns the position of the first occurrence of the element, counted from 1, or 0 if the array does "
    "not contain it.",
    coerce=_coerce_element,
)
define(
    "ARRAY_REMOVE",
    _COLLECTION,
    _ARRAY_AND_ELEMENT,
    _get_first_type,
    by_row(lambda a, v: None if a is None else tuple(e for e in a if e != v), strict=False),
    "Returns the array without all elements that are equal to the second argument.",
    coerce=_coerce_element,
)
define(
    "ARRAY_APPEND",
    _COLLECTION,
    _ARRAY_AND_ELEMENT,
    _derive_append_type,
    by_row(lambda a, v: None if a is None else (*a, v), strict=False),
    "Returns the array with an element added at its end.",
    null="rule",
    coerce=_coerce_element,
)
define(
    "ARRAY_PREPEND",
    _COLLECTION,
    _ARRAY_AND_ELEMENT,
    _derive_append_type,
    by_row(lambda a, v: None if a is None else (v, *a), strict=False),
    "Returns the array with an element added at its beginning.",
    null="rule",
    coerce=_coerce_element,
)
define(
    "ARRAY_REVERSE",
    _COLLECTION,
    "array",
    _get_first_type,
    by_row(lambda a: a[::-1]),
    "Returns the array in reverse order.",
)


def _slice(value: tuple[Any, ...], start: int, end: int | None = None) -> tuple[Any, ...]:
    size = len(value)
    first = start if start > 0 else size + start + 1 if start < 0 else 1
    last = size if end is None else end if end > 0 else size + end + 1 if end < 0 else 1
    return value[max(first, 1) - 1 : last] if first <= last and last > 0 else ()


define(
    "ARRAY_SLICE",
    _COLLECTION,
    ("array, int", "array, int, int"),
    _get_first_type,
    by_row(_slice),
    "Returns the elements from a start position to an end position, both inclusive. Positions count from "
    "1; negative positions count from the end.",
)


def _sort(value: tuple[Any, ...], ascending: bool = True, nulls_first: bool | None = None) -> tuple[Any, ...]:
    are_nulls_first = ascending if nulls_first is None else nulls_first
    nulls = tuple(v for v in value if v is None)
    ordered = tuple(sorted((v for v in value if v is not None), reverse=not ascending))
    return nulls + ordered if are_nulls_first else ordered + nulls


def _require_comparable_elements(arg_types: list[t.DataType]) -> list[t.DataType] | None:
    return arg_types if t.is_comparable(_derive_element_type(arg_types)) else None


define(
    "ARRAY_SORT",
    _COLLECTION,
    ("array", "array, boolean", "array, boolean, boolean"),
    _get_first_type,
    by_row(_sort),
    "Sorts the array, ascending unless the second argument is FALSE. NULLs come first in ascending order "
    "and last in descending order, unless the third argument says otherwise.",
    coerce=_require_comparable_elements,
)
define(
    "ARRAY_UNION",
    _COLLECTION,
    "array, array",
    _get_first_type,
    by_row(lambda a, b: _distinct(a + b)),
    "Returns the distinct elements of both arrays.",
    coerce=to_common_type,
)
define(
    "ARRAY_CONCAT",
    _COLLECTION,
    "array...",
    _get_first_type,
    by_row(lambda *arrays: sum(arrays, ())),
    "Concatenates arrays. Returns NULL if one of them is NULL.",
    coerce=to_common_type,
)
define(
    "ARRAY_EXCEPT",
    _COLLECTION,
    "array, array",
    _get_first_type,
    by_row(lambda a, b: tuple(v for v in _distinct(a) if v not in b)),
    "Returns the distinct elements of the first array that are not in the second.",
    coerce=to_common_type,
)
define(
    "ARRAY_INTERSECT",
    _COLLECTION,
    "array, array",
    _get_first_type,
    by_row(lambda a, b: tuple(v for v in _distinct(a) if v in b)),
    "Returns the distinct elements that are in both arrays.",
    coerce=to_common_type,
)
define(
    "ARRAY_MAX",
    _COLLECTION,
    "array",
    _derive_element_type,
    by_row(lambda a: max((v for v in a if v is not None), default=None)),
    "Returns the greatest element of the array.",
    null="always",
    coerce=_require_comparable_elements,
)
define(
    "ARRAY_MIN",
    _COLLECTION,
    "array",
    _derive_element_type,
    by_row(lambda a: min((v for v in a if v is not None), default=None)),
    "Returns the least element of the array.",
    null="always",
    coerce=_require_comparable_elements,
)
define(
    "ARRAY_JOIN",
    _COLLECTION,
    ("array, string", "array, string, string"),
    t.STRING,
    by_row(
        lambda a, sep, null=None: sep.join(v if v is not None else null for v in a if v is not None or null is not None)
    ),
    "Concatenates the strings of the array with a separator. NULL elements are left out, or replaced by "
    "the third argument.",
)
define(
    "MAP_KEYS",
    _COLLECTION,
    "map",
    lambda arg_types: t.ArrayType(_derive_map_type(arg_types).key),
    by_row(lambda m: tuple(k for k, _ in m)),
    "Returns the keys of the map as an array.",
)
define(
    "MAP_VALUES",
    _COLLECTION,
    "map",
    lambda arg_types: t.ArrayType(_derive_map_type(arg_types).value),
    by_row(lambda m: tuple(v for _, v in m)),
    "Returns the values of the map as an array.",
)


def _derive_entries_type(arg_types: list[t.DataType]) -> t.DataType:
    data_type = arg_types[0]
    assert isinstance(data_type, t.MapType)
    return t.ArrayType(t.row_of(["key", "value"], [data_type.key, data_type.value]))


define(
    "MAP_ENTRIES",
    _COLLECTION,
    "map",
    _derive_entries_type,
    by_row(lambda m: m),
    "Returns the entries of the map as an array of rows (key, value).",
)


def _map_from_arrays(keys: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(keys) != len(values):
        msg = f"the arrays of keys and values have different lengths: {len(keys)} and {len(values)}"
        raise ValueError(msg)
    return tuple(dict(zip(keys, values, strict=True)).items())


define(
    "MAP_FROM_ARRAYS",
    _COLLECTION,
    "array, array",
    lambda arg_types: t.MapType(_derive_element_type(arg_types), _derive_element_type(arg_types[1:])),
    by_row(_map_from_arrays),
    "Returns a map from an array of keys and an array of values of the same length.",
)


def _map_union(*maps: Any) -> Any:
    union: dict[Any, Any] = {}
    for entries in maps:
        union.update(dict(entries))
    return tuple(union.items())


define(
    "MAP_UNION",
    _COLLECTION,
    "map...",
    _get_first_type,
    by_row(_map_union),
    "Returns the entries of all maps. If maps have equal keys, the value of the last map wins.",
    coerce=to_common_type,
)
