"""Arrays, maps, rows, JSON and what tells of types.

Promises: positions in arrays count from 1; what is not there is NULL.
Does not know: tables; UNNEST is a table function."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa

from millstream.sql import types as t
from millstream.sql.functions import text
from millstream.sql.functions.registry import by_row, define

_C = "collection"


def _element(kinds: list[t.DataType]) -> t.DataType:
    kind = kinds[0]
    return kind.element if isinstance(kind, t.ArrayType | t.MultisetType) else _map(kinds).value


def _map(kinds: list[t.DataType]) -> t.MapType:
    kind = kinds[0]
    assert isinstance(kind, t.MapType)
    return kind


def _array(kinds: list[t.DataType]) -> t.DataType:
    return kinds[0]


define("CARDINALITY", _C, "collection", t.INT, by_row(len), "How many elements or entries there are.")


def _at(value: Any, index: Any) -> Any:
    if value and isinstance(value[0], tuple) and not isinstance(index, int):
        return next((v for k, v in value if k == index), None)
    return value[index - 1] if isinstance(index, int) and 1 <= index <= len(value) else None


def _item(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    if isinstance(kinds[0], t.MapType):
        return by_row(lambda value, key: next((v for k, v in value if k == key), None))(frame, args, kinds, kind)
    return by_row(lambda value, index: value[index - 1] if 1 <= index <= len(value) else None)(frame, args, kinds, kind)


def _keyed(kinds: list[t.DataType]) -> list[t.DataType] | None:
    if isinstance(kinds[0], t.MapType):
        return [kinds[0], kinds[0].key.with_null(kinds[1].null)]
    return [kinds[0], t.INT.with_null(kinds[1].null)] if isinstance(kinds[1], t.IntegerType | t.NullType) else None


define(
    "ITEM",
    _C,
    ("array, integer", "map, any"),
    _element,
    _item,
    "The element at a position, from 1, or the value of a key.",
    null="always",
    coerce=_keyed,
    syntax="array[index] or map[key]",
)


def _single(value: tuple[Any, ...]) -> Any:
    if len(value) > 1:
        msg = "ELEMENT of an array with more than one element"
        raise ValueError(msg)
    return value[0] if value else None


define("ELEMENT", _C, "array", _element, by_row(_single), "The only element; NULL of an empty array.", null="rule")


def _needle(kinds: list[t.DataType]) -> list[t.DataType] | None:
    array = kinds[0]
    if not isinstance(array, t.ArrayType):
        return None
    common = t.common_type([array.element, kinds[1]])
    if common is None:
        return None
    return [t.ArrayType(common.with_null(array.element.null), null=array.null), common.with_null(kinds[1].null)]


def _appended(kinds: list[t.DataType]) -> t.DataType:
    array = kinds[0]
    assert isinstance(array, t.ArrayType)
    return t.ArrayType(array.element.with_null(array.element.null or kinds[1].null), null=array.null)


def _distinct(value: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(value))


def _alike(kinds: list[t.DataType]) -> list[t.DataType] | None:
    common = t.common_type(kinds)
    return None if common is None else [common.with_null(kind.null) for kind in kinds]


_ITEM = "array, any"
define(
    "ARRAY_CONTAINS",
    _C,
    _ITEM,
    t.BOOLEAN,
    by_row(lambda a, v: None if a is None else v in a, strict=False),
    "TRUE when the array has the element.",
    coerce=_needle,
)
define("ARRAY_DISTINCT", _C, "array", _array, by_row(_distinct), "The array without duplicates.")
define(
    "ARRAY_POSITION",
    _C,
    _ITEM,
    t.INT,
    by_row(lambda a, v: a.index(v) + 1 if v in a else 0),
    "Where the element is first, from 1; 0 when it is not there.",
    coerce=_needle,
)
define(
    "ARRAY_REMOVE",
    _C,
    _ITEM,
    _array,
    by_row(lambda a, v: None if a is None else tuple(e for e in a if e != v), strict=False),
    "The array without an element.",
    coerce=_needle,
)
define(
    "ARRAY_APPEND",
    _C,
    _ITEM,
    _appended,
    by_row(lambda a, v: None if a is None else (*a, v), strict=False),
    "The array with an element behind it.",
    null="rule",
    coerce=_needle,
)
define(
    "ARRAY_PREPEND",
    _C,
    _ITEM,
    _appended,
    by_row(lambda a, v: None if a is None else (v, *a), strict=False),
    "The array with an element before it.",
    null="rule",
    coerce=_needle,
)
define("ARRAY_REVERSE", _C, "array", _array, by_row(lambda a: a[::-1]), "The array backwards.")


def _slice(value: tuple[Any, ...], start: int, end: int | None = None) -> tuple[Any, ...]:
    size = len(value)
    first = start if start > 0 else size + start + 1 if start < 0 else 1
    last = size if end is None else end if end > 0 else size + end + 1 if end < 0 else 1
    return value[max(first, 1) - 1 : last] if first <= last and last > 0 else ()


define(
    "ARRAY_SLICE",
    _C,
    ("array, int", "array, int, int"),
    _array,
    by_row(_slice),
    "The elements from a position to another, both included.",
)


def _sort(value: tuple[Any, ...], ascending: bool = True, nulls_first: bool | None = None) -> tuple[Any, ...]:
    first = ascending if nulls_first is None else nulls_first
    nulls = tuple(v for v in value if v is None)
    rest = tuple(sorted((v for v in value if v is not None), reverse=not ascending))
    return nulls + rest if first else rest + nulls


define(
    "ARRAY_SORT",
    _C,
    ("array", "array, boolean", "array, boolean, boolean"),
    _array,
    by_row(_sort),
    "The array in order; NULLs are first when it ascends, unless said otherwise.",
)
define(
    "ARRAY_UNION",
    _C,
    "array, array",
    _array,
    by_row(lambda a, b: _distinct(a + b)),
    "The elements of both arrays, once each.",
    coerce=_alike,
)
define(
    "ARRAY_CONCAT",
    _C,
    "array...",
    _array,
    by_row(lambda *arrays: sum(arrays, ())),
    "All arrays, one after the other.",
    coerce=_alike,
)
define(
    "ARRAY_EXCEPT",
    _C,
    "array, array",
    _array,
    by_row(lambda a, b: tuple(v for v in _distinct(a) if v not in b)),
    "The elements of the first array that are not in the second, once each.",
    coerce=_alike,
)
define(
    "ARRAY_INTERSECT",
    _C,
    "array, array",
    _array,
    by_row(lambda a, b: tuple(v for v in _distinct(a) if v in b)),
    "The elements of both arrays, once each.",
    coerce=_alike,
)
define(
    "ARRAY_MAX",
    _C,
    "array",
    _element,
    by_row(lambda a: max((v for v in a if v is not None), default=None)),
    "The greatest element.",
    null="always",
)
define(
    "ARRAY_MIN",
    _C,
    "array",
    _element,
    by_row(lambda a: min((v for v in a if v is not None), default=None)),
    "The least element.",
    null="always",
)
define(
    "ARRAY_JOIN",
    _C,
    ("array, string", "array, string, string"),
    t.STRING,
    by_row(
        lambda a, sep, null=None: sep.join(v if v is not None else null for v in a if v is not None or null is not None)
    ),
    "The strings of an array with a separator between them.",
)
define(
    "MAP_KEYS",
    _C,
    "map",
    lambda kinds: t.ArrayType(_map(kinds).key),
    by_row(lambda m: tuple(k for k, _ in m)),
    "The keys.",
)
define(
    "MAP_VALUES",
    _C,
    "map",
    lambda kinds: t.ArrayType(_map(kinds).value),
    by_row(lambda m: tuple(v for _, v in m)),
    "The values.",
)


def _entries(kinds: list[t.DataType]) -> t.DataType:
    kind = kinds[0]
    assert isinstance(kind, t.MapType)
    return t.ArrayType(t.row_of(["key", "value"], [kind.key, kind.value]))


define("MAP_ENTRIES", _C, "map", _entries, by_row(lambda m: m), "The entries as rows of key and value.")


def _from_arrays(keys: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(keys) != len(values):
        msg = f"{len(keys)} keys and {len(values)} values do not make a map"
        raise ValueError(msg)
    return tuple(dict(zip(keys, values, strict=True)).items())


define(
    "MAP_FROM_ARRAYS",
    _C,
    "array, array",
    lambda kinds: t.MapType(_element(kinds), _element(kinds[1:])),
    by_row(_from_arrays),
    "A map of keys and values.",
)


def _map_union(*maps: Any) -> Any:
    merged: dict[Any, Any] = {}
    for each in maps:
        merged.update(dict(each))
    return tuple(merged.items())


define("MAP_UNION", _C, "map...", _array, by_row(_map_union), "All entries; of equal keys the last one.", coerce=_alike)


# ------------------------------------------------------------------------------------------------ value construction


def _row_type(kinds: list[t.DataType]) -> t.DataType:
    return t.row_of([f"EXPR${i}" for i in range(len(kinds))], kinds, null=False)


define(
    "ROW",
    "construction",
    ("", "any..."),
    _row_type,
    by_row(lambda *values: values, strict=False),
    "A row of values.",
    null="never",
    syntax="ROW(value, ...) or (value, value, ...)",
)
define(
    "ARRAY VALUE",
    "construction",
    "any...",
    lambda kinds: t.ArrayType(kinds[0].with_null(t.nullable_all(kinds))),
    by_row(lambda *values: values, strict=False),
    "An array of values.",
    null="never",
    coerce=_alike,
    syntax="ARRAY[value, ...]",
)


def _pairs(kinds: list[t.DataType]) -> list[t.DataType] | None:
    if len(kinds) % 2:
        return None
    key, value = t.common_type(kinds[::2]), t.common_type(kinds[1::2])
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
    "A map of keys and values in turn.",
    null="never",
    coerce=_pairs,
    syntax="MAP[key, value, ...]",
)


def _typeof(_frame: Any, _args: list[Any], kinds: list[t.DataType], _kind: t.DataType) -> Any:
    return pa.scalar(str(kinds[0]))


define(
    "TYPEOF", "conversion", ("any", "any, boolean"), t.STRING, _typeof, "The type of a value, as text.", null="always"
)


# -------------------------------------------------------------------------------------------------------------- JSON

_J = "json"
_STEP = re.compile(r"\.(\*|[\w$-]+)|\[(\*|\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")


class PathError(ValueError):
    """A JSON path that leads nowhere in strict mode, or is none."""


@lru_cache(maxsize=512)
def json_path(path: str) -> tuple[bool, tuple[str | int, ...]]:
    """A path as (strict, steps); '*' stands for all."""
    body = path.strip()
    strict = False
    for mode in ("lax", "strict"):
        if body.startswith(f"{mode} "):
            strict, body = mode == "strict", body[len(mode) :].strip()
    if not body.startswith("$"):
        msg = f"'{path}' is not a JSON path: it must begin with $"
        raise PathError(msg)
    steps: list[str | int] = []
    at = 1
    while at < len(body):
        match = _STEP.match(body, at)
        if match is None:
            msg = f"'{path}' is not a JSON path"
            raise PathError(msg)
        name, index, single, double = match.groups()
        if index is not None:
            steps.append("*" if index == "*" else int(index))
        else:
            steps.append("*" if name == "*" else name or single or double or "")
        at = match.end()
    return strict, tuple(steps)


def _follow(value: Any, steps: tuple[str | int, ...]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    if step == "*":
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from _follow(each, rest)
    elif isinstance(step, int):
        if isinstance(value, list) and step < len(value):
            yield from _follow(value[step], rest)
    elif isinstance(value, dict) and step in value:
        yield from _follow(value[step], rest)


def _found(document: str, path: str) -> list[Any]:
    strict, steps = json_path(path)
    found = list(_follow(json.loads(document), steps))
    if strict and not found and "*" not in steps:
        msg = f"no result for the path '{path}'"
        raise PathError(msg)
    return found


def _lax(path: str) -> bool:
    return path.split()[:1] == ["lax"]


def json_text(value: Any) -> str:
    """A value as JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class JsonFailed(ValueError):
    """A JSON function with ERROR ON ERROR or ON EMPTY met one."""


def json_value(document: str, path: str, on_empty: tuple[str, Any], on_error: tuple[str, Any]) -> Any:
    """A scalar of a document; what to do when it is missing or no scalar is said by how and a default."""
    try:
        found = _found(document, path)
        if not found and not _lax(path):
            msg = f"no scalar for the path '{path}'"
            raise PathError(msg)
        if not found or found[0] is None:
            return _otherwise(on_empty, "is empty", path)
        if len(found) > 1 or isinstance(found[0], dict | list):
            msg = "the path does not lead to a scalar"
            raise PathError(msg)
    except (ValueError, RecursionError):
        return _otherwise(on_error, "failed", path)
    value = found[0]
    return json_text(value) if isinstance(value, bool | int | float) else value


def json_query(document: str, path: str, wrapper: str, on_empty: tuple[str, Any], on_error: tuple[str, Any]) -> Any:
    """An object or array of a document, as text."""
    try:
        found = _found(document, path)
        if not found and not _lax(path):
            if "*" in json_path(path)[1]:
                return "[]"
            msg = f"no result for the path '{path}'"
            raise PathError(msg)
        value = found[0] if found else None
        if value is None:
            return _otherwise(on_empty, "is empty", path)
        if wrapper.startswith("WITH ") and not wrapper.startswith("WITHOUT"):
            conditional = "CONDITIONAL" in wrapper.split()
            keep = conditional and len(found) == 1 and isinstance(value, list)
            value = value if keep else list(found)
        elif len(found) > 1 or not isinstance(value, dict | list):
            msg = "the path does not lead to an object or array"
            raise PathError(msg)
    except (ValueError, RecursionError):
        return _otherwise(on_error, "failed", path)
    return json_text(value)


def _otherwise(how: tuple[str, Any], what: str, path: str) -> Any:
    match how[0]:
        case "NULL":
            return None
        case "ERROR":
            msg = f"the path '{path}' {what}"
            raise JsonFailed(msg)
        case "EMPTY ARRAY":
            return "[]"
        case "EMPTY OBJECT":
            return "{}"
    return how[1]


def json_exists(document: str, path: str, on_error: str) -> bool | None:
    """Whether a path leads to something."""
    try:
        return bool(_found(document, path))
    except (ValueError, RecursionError):
        if on_error == "ERROR":
            raise
        return {"TRUE": True, "UNKNOWN": None}.get(on_error, False)


def is_json(value: str, kind: str) -> bool:
    """Whether a string is JSON of some kind."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return False
    match kind:
        case "OBJECT":
            return isinstance(found, dict)
        case "ARRAY":
            return isinstance(found, list)
        case "SCALAR":
            return not isinstance(found, dict | list)
    return True


def _json_value(document: str | None, path: str | None, empty: str, or_empty: Any, error: str, or_error: Any) -> Any:
    if document is None or path is None:
        return None
    return json_value(document, path, (empty, or_empty), (error, or_error))


define(
    "IS JSON",
    _J,
    "string, symbol",
    t.BOOLEAN,
    by_row(is_json),
    "TRUE when the string is JSON.",
    syntax="string IS JSON [VALUE | OBJECT | ARRAY | SCALAR]",
)
define(
    "IS NOT JSON",
    _J,
    "string, symbol",
    t.BOOLEAN,
    by_row(lambda v, k: not is_json(v, k)),
    "TRUE when the string is no JSON.",
    syntax="string IS NOT JSON [VALUE | OBJECT | ARRAY | SCALAR]",
)
define(
    "JSON_EXISTS",
    _J,
    "string, string, symbol",
    t.BOOLEAN,
    by_row(json_exists),
    "TRUE when the path leads to something.",
    null="always",
    syntax="JSON_EXISTS(json, path [{TRUE | FALSE | UNKNOWN | ERROR} ON ERROR])",
)
define(
    "JSON_VALUE", _J, "string, string, symbol, any, symbol, any", t.STRING,
    by_row(_json_value, strict=False),
    "A scalar of a JSON document, as text.", null="always",
    syntax="JSON_VALUE(json, path [RETURNING type] [{NULL | ERROR | DEFAULT value} ON EMPTY] [... ON ERROR])",
)  # fmt: skip
define(
    "JSON_QUERY", _J, "string, string, symbol, symbol, symbol", t.STRING,
    by_row(lambda d, p, w, e, r: json_query(d, p, w, (e, None), (r, None))),
    "An object or array of a JSON document, as text.", null="always",
    syntax="JSON_QUERY(json, path [{WITHOUT | WITH [CONDITIONAL]} WRAPPER] [how ON {EMPTY | ERROR}])",
)  # fmt: skip


def plain_json(kind: t.DataType, zone: str) -> Callable[[Any], Any]:
    """How an internal value becomes one that json.dumps can write."""
    match kind:
        case t.JsonTextType():
            return RawJson
        case t.BooleanType() | t.IntegerType() | t.FloatType() | t.DoubleType():
            return lambda value: value
        case t.DecimalType():
            return lambda value: float(value) if value != int(value) else int(value)
        case t.BinaryType() | t.VarBinaryType():
            return lambda value: base64.b64encode(value).decode()
        case t.ArrayType():
            inner = plain_json(kind.element, zone)
            return lambda value: [None if v is None else inner(v) for v in value]
        case t.MapType():
            item = plain_json(kind.value, zone)
            return lambda value: {str(k): None if v is None else item(v) for k, v in value}
        case t.RowType():
            makers = [plain_json(each, zone) for each in kind.types]
            names = kind.names
            return lambda value: {n: None if v is None else m(v) for n, m, v in zip(names, makers, value, strict=True)}
        case t.TimestampType() | t.LocalZonedTimestampType():
            return lambda value: value.replace(tzinfo=None).isoformat() + ("Z" if value.tzinfo else "")
        case t.DateType() | t.TimeType():
            return lambda value: value.isoformat()
    return lambda value: text.to_text(value, kind, zone)


def _json_string(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    make = plain_json(kinds[0], frame.zone)
    return by_row(lambda value: json_text(make(value)))(frame, args, kinds, kind)


define(
    "JSON",
    _J,
    "string",
    t.JsonTextType(),
    by_row(lambda value: json_text(json.loads(value))),
    "Text that is JSON already, inside JSON_OBJECT and JSON_ARRAY.",
)
define("JSON_STRING", _J, "any", t.STRING, _json_string, "A value as JSON.")


def _json_object(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    makers = [plain_json(each, frame.zone) for each in kinds]

    def make(how: str, *parts: Any) -> str:
        pairs = []
        for i in range(0, len(parts), 2):
            key, value = parts[i], parts[i + 1]
            if value is None and how == "ABSENT":
                continue
            pairs.append((key, value if value is None else makers[i + 2](value)))
        inside = ",".join(f"{json_text(k)}:{_maybe_raw(v)}" for k, v in pairs)
        return "{" + inside + "}"

    return by_row(make, strict=False)(frame, args, kinds, kind)


def _maybe_raw(value: Any) -> str:
    return value.text if isinstance(value, RawJson) else json_text(value)


class RawJson:
    """Text that is JSON already."""

    def __init__(self, text_: str) -> None:
        self.text = text_


def _json_array(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    makers = [plain_json(each, frame.zone) for each in kinds]

    def make(how: str, *parts: Any) -> str:
        kept = [
            "null" if value is None else _maybe_raw(makers[i + 1](value))
            for i, value in enumerate(parts)
            if value is not None or how != "ABSENT"
        ]
        return "[" + ",".join(kept) + "]"

    return by_row(make, strict=False)(frame, args, kinds, kind)


define(
    "JSON_OBJECT",
    _J,
    ("symbol", "symbol, any..."),
    t.STRING,
    _json_object,
    "A JSON object of keys and values.",
    null="never",
    syntax="JSON_OBJECT([KEY] key VALUE value, ... [{NULL | ABSENT} ON NULL])",
)
define(
    "JSON_ARRAY",
    _J,
    ("symbol", "symbol, any..."),
    t.STRING,
    _json_array,
    "A JSON array of values.",
    null="never",
    syntax="JSON_ARRAY(value, ... [{NULL | ABSENT} ON NULL])",
)
define(
    "JSON_QUOTE", _J, "string", t.STRING, by_row(lambda v: json.dumps(v)), "The string as a JSON string, with quotes."
)


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == '"':
        try:
            found = json.loads(value)
        except ValueError:
            return value
        return found if isinstance(found, str) else value
    return value


define("JSON_UNQUOTE", _J, "string", t.STRING, by_row(_unquote), "The string that a JSON string stands for.")


def number_text(value: Any) -> str:
    """A number as JSON writes it."""
    return str(value) if not isinstance(value, Decimal) else f"{value:f}"
