"""JSON functions that query documents by path.

Promises: a path is strict unless it starts with `lax`. In strict mode, invalid JSON, a path without a value and JSON's
null are errors, and ON ERROR decides the result. In lax mode they are an empty result, and ON EMPTY decides. The value
of a path with a wildcard is the array of all matches.
Does not know: how values are formatted as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

from millstream.sql.functions.json_writing import format_json, parse_json
from millstream.sql.functions.registry import by_row, define
from millstream.sql.types import data_types as t

_JSON = "json"
_MODE = re.compile(r"\s*(strict|lax)\s+(.+)", re.IGNORECASE | re.DOTALL)
_STEP = re.compile(r"\.(\*|[\w$-]+)|\.?\[(\*|\d+)\]|\.?\['((?:[^'\\]|\\.)*)'\]|\.?\[\"((?:[^\"\\]|\\.)*)\"\]")


class PathError(ValueError):
    """A JSON path is invalid, or there is no value at it in strict mode."""


@lru_cache(maxsize=512)
def parse_json_path(path: str) -> tuple[bool, tuple[str | int, ...]]:
    """Return whether the path is lax, and its steps; the step '*' is a wildcard."""
    mode = _MODE.fullmatch(path)
    is_lax = mode is not None and mode[1].lower() == "lax"
    body = (path if mode is None else mode[2]).strip()
    if not body.startswith("$"):
        msg = f"'{path}' is not a JSON path: it must start with $"
        raise PathError(msg)
    steps: list[str | int] = []
    offset = 1
    while offset < len(body):
        match = _STEP.match(body, offset)
        if match is None:
            msg = f"'{path}' is not a JSON path"
            raise PathError(msg)
        name, index, single_quoted, double_quoted = match.groups()
        if index is not None:
            steps.append("*" if index == "*" else int(index))
        else:
            steps.append("*" if name == "*" else name or single_quoted or double_quoted or "")
        offset = match.end()
    return is_lax, tuple(steps)


def _follow(value: Any, steps: tuple[str | int, ...], is_required: bool) -> Iterator[Any]:
    """Yield the values at the end of a path. If `is_required`, raise if a step before the first wildcard fails."""
    if not steps:
        yield value
        return
    step, remaining = steps[0], steps[1:]
    if step == "*":
        for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from _follow(child, remaining, is_required=False)
    elif isinstance(step, int) and isinstance(value, list):
        if step < len(value):
            yield from _follow(value[step], remaining, is_required)
    elif isinstance(step, str) and isinstance(value, dict) and step in value:
        yield from _follow(value[step], remaining, is_required)
    elif is_required:
        msg = f"there is no '{step}'"
        raise PathError(msg)


class _Selection(NamedTuple):
    """The value at a path: None if there is none, an array if the path has a wildcard."""

    is_lax: bool
    value: Any

    @property
    def is_scalar(self) -> bool:
        return not isinstance(self.value, dict | list)


def _select(document: str, path: str) -> _Selection:
    is_lax, steps = parse_json_path(path)
    try:
        root = parse_json(document)
    except ValueError:
        if is_lax:
            return _Selection(is_lax, None)
        raise
    values = list(_follow(root, steps, is_required=not is_lax))
    if "*" in steps:
        return _Selection(is_lax, values)
    value = values[0] if values else None
    if value is None and not is_lax:
        msg = f"no result for the path '{path}'"
        raise PathError(msg)
    return _Selection(is_lax, value)


class JsonFailed(ValueError):
    """A JSON function failed with ERROR ON ERROR or ERROR ON EMPTY."""


def json_value(document: str, path: str, on_empty: tuple[str, Any], on_error: tuple[str, Any]) -> Any:
    """Return the scalar at a path; `on_empty` and `on_error` are a behavior such as NULL, and a default value."""
    try:
        selection = _select(document, path)
        if not selection.is_lax and not selection.is_scalar:
            msg = "the path does not lead to a scalar"
            raise PathError(msg)
    except ValueError:
        return _apply_clause(on_error, "failed", path)
    value = selection.value
    if value is None or not selection.is_scalar:
        return _apply_clause(on_empty, "is empty", path)
    return value if isinstance(value, str) else format_json(value)


def json_query(
    document: str, path: str, wrapper: str, on_empty: str, on_error: str, *, returns_array: bool = False
) -> str | tuple[str | None, ...] | None:
    """Return the object or array at a path as text, or the elements of the array as an array of texts."""
    try:
        selection = _select(document, path)
        value = selection.value
        is_wrapped = wrapper.startswith("WITH ") and value is not None
        if is_wrapped and not ("CONDITIONAL" in wrapper.split() and isinstance(value, list)):
            value = [value]
        is_scalar = not isinstance(value, dict | list)
        if (is_scalar and not selection.is_lax) or (returns_array and isinstance(value, dict)):
            msg = f"the path does not lead to {'an array' if returns_array else 'an object or array'}"
            raise PathError(msg)
    except ValueError:
        return _get_empty_collection(on_error, "failed", path, returns_array)
    if is_scalar:
        return _get_empty_collection(on_empty, "is empty", path, returns_array)
    return tuple(map(_format_element, value)) if returns_array else format_json(value)


def _format_element(element: Any) -> str | None:
    return element if element is None or isinstance(element, str) else format_json(element)


def _get_empty_collection(behavior: str, problem: str, path: str, returns_array: bool) -> str | tuple[()] | None:
    text: str | None = _apply_clause((behavior, None), problem, path)
    return () if returns_array and text is not None else text


def _apply_clause(clause: tuple[str, Any], problem: str, path: str) -> Any:
    """Return the result of an ON EMPTY or ON ERROR clause, or raise."""
    behavior, default = clause
    match behavior:
        case "NULL":
            return None
        case "ERROR":
            msg = f"the path '{path}' {problem}"
            raise JsonFailed(msg)
        case "EMPTY ARRAY":
            return "[]"
        case "EMPTY OBJECT":
            return "{}"
    return default


def json_exists(document: str, path: str, on_error: str) -> bool | None:
    """Whether there is a value at the path; for a path with a wildcard always TRUE, as in Flink."""
    try:
        return _select(document, path).value is not None
    except ValueError:
        if on_error == "ERROR":
            raise
        return {"TRUE": True, "UNKNOWN": None}.get(on_error, False)


def is_json(text: str, json_type: str) -> bool:
    """Whether a string is JSON of a type: VALUE, OBJECT, ARRAY or SCALAR."""
    try:
        value = parse_json(text)
    except ValueError:
        return False
    match json_type:
        case "OBJECT":
            return isinstance(value, dict)
        case "ARRAY":
            return isinstance(value, list)
        case "SCALAR":
            return not isinstance(value, dict | list)
    return True


def _json_value(
    document: str | None, path: str | None, on_empty: str, empty_default: Any, on_error: str, error_default: Any
) -> Any:
    if document is None or path is None:
        return None
    return json_value(document, path, (on_empty, empty_default), (on_error, error_default))


define(
    "IS JSON",
    _JSON,
    "string, symbol",
    t.BOOLEAN,
    by_row(is_json),
    "Returns TRUE if the string is valid JSON of the given type (any type if not given).",
    syntax="string IS JSON [VALUE | OBJECT | ARRAY | SCALAR]",
)
define(
    "IS NOT JSON",
    _JSON,
    "string, symbol",
    t.BOOLEAN,
    by_row(lambda text, json_type: not is_json(text, json_type)),
    "Returns TRUE if the string is not valid JSON of the given type.",
    syntax="string IS NOT JSON [VALUE | OBJECT | ARRAY | SCALAR]",
)
define(
    "JSON_EXISTS",
    _JSON,
    "string, string, symbol",
    t.BOOLEAN,
    by_row(json_exists),
    "Returns TRUE if the JSON document has a value at the path.",
    null="always",
    syntax="JSON_EXISTS(json, path [{TRUE | FALSE | UNKNOWN | ERROR} ON ERROR])",
)
define(
    "JSON_VALUE", _JSON, "string, string, symbol, any, symbol, any", t.STRING,
    by_row(_json_value, strict=False),
    "Returns the scalar value at a path of a JSON document, as a string or as the type after RETURNING.", null="always",
    syntax="JSON_VALUE(json, path [RETURNING type] [{NULL | ERROR | DEFAULT value} ON EMPTY] [... ON ERROR])",
)  # fmt: skip
define(
    "JSON_QUERY", _JSON, "string, string, symbol, symbol, symbol", t.STRING, by_row(json_query),
    "Returns the object or array at a path of a JSON document, as JSON text or as ARRAY<STRING>.", null="always",
    syntax="JSON_QUERY(json, path [RETURNING {STRING | ARRAY<STRING>}] [{WITHOUT | WITH [CONDITIONAL]} WRAPPER] "
    "[behavior ON {EMPTY | ERROR}])",
)  # fmt: skip
define(
    "$JSON_QUERY_ARRAY", "internal", "string, string, symbol, symbol, symbol", t.ArrayType(t.STRING),
    by_row(partial(json_query, returns_array=True)),
    "Returns the elements of the array at a path of a JSON document: JSON_QUERY with RETURNING ARRAY<STRING>.",
    null="always",
)  # fmt: skip
