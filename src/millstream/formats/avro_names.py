"""Matching of Avro records by position, whatever names the writer gave them.

Promises: records match by their position and their fields, not by their names, as in Avro's Java library; the encoding
stays the same.
Does not know: how Avro is encoded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

_NAMED = ("record", "error", "enum", "fixed")


def matched(schema: Any, written: Any) -> tuple[Any, Any]:
    """Return the writer's schema and the reader's, so that records at the same position match."""
    named = dict(_definitions(written, ""))
    names = (f"written{number}" for number in count())
    out = _Written(named, names).out(written, "", {})
    return out, _aliased(schema, out)


class _Written:
    """Defines every type where it is used, under a name of its own, because a reference to a named type cannot be
    matched with the type of the reader. A recursive type stays a reference."""

    def __init__(self, named: Mapping[str, Any], names: Iterator[str]) -> None:
        self._named, self._names = named, names

    def out(self, schema: Any, space: str, around: Mapping[str, str]) -> Any:
        """Return the schema in a namespace, inside the types named in `around`."""
        if isinstance(schema, list):
            return [self.out(each, space, around) for each in schema]
        if isinstance(schema, str):
            full = schema if "." in schema or not space else f"{space}.{schema}"
            full = full if full in self._named else schema
            if full in around:
                return around[full]
            return self.out(self._named[full], space, around) if full in self._named else schema
        if not isinstance(schema, dict):
            return schema
        if schema.get("type") not in _NAMED:
            inner = ("items", "values") if schema.get("type") in ("array", "map") else ("type",)
            return {**schema, **{key: self.out(schema[key], space, around) for key in inner if key in schema}}
        full = _full_name(schema, space)
        result = {key: value for key, value in schema.items() if key not in ("namespace", "aliases")}
        result["name"] = next(self._names)
        if "fields" in schema:
            space, around = full.rpartition(".")[0], {**around, full: result["name"]}
            result["fields"] = [{**each, "type": self.out(each["type"], space, around)} for each in schema["fields"]]
        return result


def _full_name(schema: Mapping[str, Any], space: str) -> str:
    name, space = schema["name"], schema.get("namespace", space)
    return name if "." in name or not space else f"{space}.{name}"


def _definitions(schema: Any, space: str) -> Iterator[tuple[str, Any]]:
    """Collect the named types of a schema by their full names."""
    if isinstance(schema, list):
        for each in schema:
            yield from _definitions(each, space)
    if not isinstance(schema, dict):
        return
    if schema.get("type") in _NAMED:
        full = _full_name(schema, space)
        yield full, {**schema, "name": full, "namespace": full.rpartition(".")[0]}
        for field in schema.get("fields", ()):
            yield from _definitions(field["type"], full.rpartition(".")[0])
        return
    for key in ("type", "items", "values"):
        yield from _definitions(schema.get(key), space)


def _aliased(schema: Any, written: Any) -> Any:
    """Return the reader's schema with the names of the writer's records at the same position as aliases."""
    if isinstance(schema, list):
        return [_aliased(each, written) for each in schema]
    result = _of_type(written, schema.get("type")) if isinstance(schema, dict) else None
    if result is None:
        return schema
    match schema["type"]:
        case "array":
            return {**schema, "items": _aliased(schema["items"], result["items"])}
        case "map":
            return {**schema, "values": _aliased(schema["values"], result["values"])}
    theirs = {field["name"]: field["type"] for field in result["fields"]}
    fields = [
        {**field, "type": _aliased(field["type"], theirs[field["name"]])} if field["name"] in theirs else field
        for field in schema["fields"]
    ]
    return {**schema, "aliases": [*schema.get("aliases", ()), result["name"]], "fields": fields}


def _of_type(written: Any, avro_type: Any) -> Any:
    """Return the writer's schema of a type: itself, or a branch of a union."""
    for each in written if isinstance(written, list) else [written]:
        if avro_type in ("record", "array", "map") and isinstance(each, dict) and each.get("type") == avro_type:
            return each
    return None
