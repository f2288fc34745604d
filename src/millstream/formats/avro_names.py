"""Schema resolution of Avro records by their position in the schema instead of by their names.

Promises: records match by their position and their fields, not by their names, as in Avro's Java library; the encoding
stays the same.
Does not know: how Avro is encoded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

_NAMED = ("record", "error", "enum", "fixed")


def match_by_position(schema: Any, written: Any) -> tuple[Any, Any]:
    """Return the writer's schema and the reader's, so that records at the same position match."""
    definitions = dict(_definitions(written, ""))
    names = (f"written{number}" for number in count())
    inlined = _InlinedSchema(definitions, names).inline(written, "", {})
    return inlined, _with_aliases(schema, inlined)


class _InlinedSchema:
    """Defines every type where it is used, under a name of its own, because a reference to a named type cannot be
    matched with the type of the reader. A recursive type stays a reference."""

    def __init__(self, named: Mapping[str, Any], names: Iterator[str]) -> None:
        self._named, self._names = named, names

    def inline(self, schema: Any, space: str, around: Mapping[str, str]) -> Any:
        """Return the schema in a namespace, inside the types named in `around`."""
        if isinstance(schema, list):
            return [self.inline(branch, space, around) for branch in schema]
        if isinstance(schema, str):
            full = schema if "." in schema or not space else f"{space}.{schema}"
            full = full if full in self._named else schema
            if full in around:
                return around[full]
            return self.inline(self._named[full], space, around) if full in self._named else schema
        if not isinstance(schema, dict):
            return schema
        if schema.get("type") not in _NAMED:
            inner = ("items", "values") if schema.get("type") in ("array", "map") else ("type",)
            return {**schema, **{key: self.inline(schema[key], space, around) for key in inner if key in schema}}
        full = _full_name(schema, space)
        result = {key: value for key, value in schema.items() if key not in ("namespace", "aliases")}
        result["name"] = next(self._names)
        if "fields" in schema:
            space, around = full.rpartition(".")[0], {**around, full: result["name"]}
            result["fields"] = [
                {**field, "type": self.inline(field["type"], space, around)} for field in schema["fields"]
            ]
        return result


def _full_name(schema: Mapping[str, Any], space: str) -> str:
    name, space = schema["name"], schema.get("namespace", space)
    return name if "." in name or not space else f"{space}.{name}"


def _definitions(schema: Any, space: str) -> Iterator[tuple[str, Any]]:
    """Collect the named types of a schema by their full names."""
    if isinstance(schema, list):
        for branch in schema:
            yield from _definitions(branch, space)
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


def _with_aliases(schema: Any, written: Any) -> Any:
    """Return the reader's schema with the names of the writer's records at the same position as aliases."""
    if isinstance(schema, list):
        return [_with_aliases(branch, written) for branch in schema]
    writer = _branch_of_type(written, schema.get("type")) if isinstance(schema, dict) else None
    if writer is None:
        return schema
    match schema["type"]:
        case "array":
            return {**schema, "items": _with_aliases(schema["items"], writer["items"])}
        case "map":
            return {**schema, "values": _with_aliases(schema["values"], writer["values"])}
    writer_types = {field["name"]: field["type"] for field in writer["fields"]}
    fields = [
        {**field, "type": _with_aliases(field["type"], writer_types[field["name"]])}
        if field["name"] in writer_types
        else field
        for field in schema["fields"]
    ]
    return {**schema, "aliases": [*schema.get("aliases", ()), writer["name"]], "fields": fields}


def _branch_of_type(written: Any, avro_type: Any) -> Any:
    """Return the writer's schema of a type: itself, or a branch of a union."""
    for branch in written if isinstance(written, list) else [written]:
        if avro_type in ("record", "array", "map") and isinstance(branch, dict) and branch.get("type") == avro_type:
            return branch
    return None
