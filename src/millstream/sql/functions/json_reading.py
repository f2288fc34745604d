"""JSON functions that read: paths into JSON documents.

Promises: ON EMPTY and ON ERROR decide the result of a path that finds nothing and of invalid JSON.
Does not know: how values are formatted as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from millstream.sql.functions.json_writing import json_text
from millstream.sql.functions.registry import by_row, define
from millstream.sql.types import data_types as t

_J = "json"
_STEP = re.compile(r"\.(\*|[\w$-]+)|\[(\*|\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")


class PathError(ValueError):
    """A JSON path is invalid, or finds nothing in strict mode."""


@lru_cache(maxsize=512)
def json_path(path: str) -> tuple[bool, tuple[str | int, ...]]:
    """Parse a path to (strict, steps); '*' is a wildcard."""
    body = path.strip()
    strict = False
    for mode in ("lax", "strict"):
        if body.startswith(f"{mode} "):
            strict, body = mode == "strict", body[len(mode) :].strip()
    if not body.startswith("$"):
        msg = f"'{path}' is not a JSON path: it must start with $"
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
    result = list(_follow(json.loads(document), steps))
    if strict and not result and "*" not in steps:
        msg = f"no result for the path '{path}'"
        raise PathError(msg)
    return result


def _lax(path: str) -> bool:
    return path.split()[:1] == ["lax"]


class JsonFailed(ValueError):
    """A JSON function failed with ERROR ON ERROR or ERROR ON EMPTY."""


def json_value(document: str, path: str, on_empty: tuple[str, Any], on_error: tuple[str, Any]) -> Any:
    """Return the scalar at a path. `on_empty` and `on_error` are what to do if there is none, and a default value."""
    try:
        result = _found(document, path)
        if not result and not _lax(path):
            msg = f"no scalar for the path '{path}'"
            raise PathError(msg)
        if not result or result[0] is None:
            return _otherwise(on_empty, "is empty", path)
        if len(result) > 1 or isinstance(result[0], dict | list):
            msg = "the path does not lead to a scalar"
            raise PathError(msg)
    except (ValueError, RecursionError):
        return _otherwise(on_error, "failed", path)
    value = result[0]
    return json_text(value) if isinstance(value, bool | int | float) else value


def json_query(document: str, path: str, wrapper: str, on_empty: tuple[str, Any], on_error: tuple[str, Any]) -> Any:
    """Return the object or array at a path, as text."""
    try:
        result = _found(document, path)
        if not result and not _lax(path):
            if "*" in json_path(path)[1]:
                return "[]"
            msg = f"no result for the path '{path}'"
            raise PathError(msg)
        value = result[0] if result else None
        if value is None:
            return _otherwise(on_empty, "is empty", path)
        if wrapper.startswith("WITH ") and not wrapper.startswith("WITHOUT"):
            conditional = "CONDITIONAL" in wrapper.split()
            keep = conditional and len(result) == 1 and isinstance(value, list)
            value = value if keep else list(result)
        elif len(result) > 1 or not isinstance(value, dict | list):
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
    """Whether there is a value at the path."""
    try:
        return bool(_found(document, path))
    except (ValueError, RecursionError):
        if on_error == "ERROR":
            raise
        return {"TRUE": True, "UNKNOWN": None}.get(on_error, False)


def is_json(value: str, kind: str) -> bool:
    """Whether a string is JSON of a type: VALUE, OBJECT, ARRAY or SCALAR."""
    try:
        result = json.loads(value)
    except (ValueError, RecursionError):
        return False
    match kind:
        case "OBJECT":
            return isinstance(result, dict)
        case "ARRAY":
            return isinstance(result, list)
        case "SCALAR":
            return not isinstance(result, dict | list)
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
    "Returns TRUE if the string is valid JSON of the given type (any type if not given).",
    syntax="string IS JSON [VALUE | OBJECT | ARRAY | SCALAR]",
)
define(
    "IS NOT JSON",
    _J,
    "string, symbol",
    t.BOOLEAN,
    by_row(lambda v, k: not is_json(v, k)),
    "Returns TRUE if the string is not valid JSON of the given type.",
    syntax="string IS NOT JSON [VALUE | OBJECT | ARRAY | SCALAR]",
)
define(
    "JSON_EXISTS",
    _J,
    "string, string, symbol",
    t.BOOLEAN,
    by_row(json_exists),
    "Returns TRUE if the JSON document has a value at the path.",
    null="always",
    syntax="JSON_EXISTS(json, path [{TRUE | FALSE | UNKNOWN | ERROR} ON ERROR])",
)
define(
    "JSON_VALUE", _J, "string, string, symbol, any, symbol, any", t.STRING,
    by_row(_json_value, strict=False),
    "Returns the scalar value at a path of a JSON document, as a string or as the type after RETURNING.", null="always",
    syntax="JSON_VALUE(json, path [RETURNING type] [{NULL | ERROR | DEFAULT value} ON EMPTY] [... ON ERROR])",
)  # fmt: skip
define(
    "JSON_QUERY", _J, "string, string, symbol, symbol, symbol", t.STRING,
    by_row(lambda d, p, w, e, r: json_query(d, p, w, (e, None), (r, None))),
    "Returns the object or array at a path of a JSON document, as JSON text.", null="always",
    syntax="JSON_QUERY(json, path [{WITHOUT | WITH [CONDITIONAL]} WRAPPER] [how ON {EMPTY | ERROR}])",
)  # fmt: skip
