"""Records of an Avro schema under the names that another writer gave them.

Promises: records match by their place and their fields, as in Avro's own library for Java, not by what they are called;
what is encoded stays the same.
Does not know: how Avro is encoded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

_NAMED = ("record", "error", "enum", "fixed")


def matched(schema: Any, written: Any) -> tuple[Any, Any]:
    """A writer's schema and a reader's, whose records at the same places match."""
    named = dict(_definitions(written, ""))
    names = (f"written{number}" for number in count())
    out = _Written(named, names).out(written, "", {})
    return out, _aliased(schema, out)


class _Written:
    """Has every type defined where it is used, under a name of its own there: a type that is only named cannot be
    matched with a reader's. A type within itself stays named."""

    def __init__(self, named: Mapping[str, Any], names: Iterator[str]) -> None:
        self._named, self._names = named, names

    def out(self, schema: Any, space: str, around: Mapping[str, str]) -> Any:
        """The schema, in a namespace, within types that are called as `around` says."""
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
        made = {key: value for key, value in schema.items() if key not in ("namespace", "aliases")}
        made["name"] = next(self._names)
        if "fields" in schema:
            space, around = full.rpartition(".")[0], {**around, full: made["name"]}
            made["fields"] = [{**each, "type": self.out(each["type"], space, around)} for each in schema["fields"]]
        return made


def _full_name(schema: Mapping[str, Any], space: str) -> str:
    name, space = schema["name"], schema.get("namespace", space)
    return name if "." in name or not space else f"{space}.{name}"


def _definitions(schema: Any, space: str) -> Iterator[tuple[str, Any]]:
    """Named types by their full names, which they have in themselves."""
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
    """A reader's schema whose records have the names of the writer's at the same place as aliases."""
    if isinstance(schema, list):
        return [_aliased(each, written) for each in schema]
    found = _of_kind(written, schema.get("type")) if isinstance(schema, dict) else None
    if found is None:
        return schema
    match schema["type"]:
        case "array":
            return {**schema, "items": _aliased(schema["items"], found["items"])}
        case "map":
            return {**schema, "values": _aliased(schema["values"], found["values"])}
    theirs = {field["name"]: field["type"] for field in found["fields"]}
    fields = [
        {**field, "type": _aliased(field["type"], theirs[field["name"]])} if field["name"] in theirs else field
        for field in schema["fields"]
    ]
    return {**schema, "aliases": [*schema.get("aliases", ()), found["name"]], "fields": fields}


def _of_kind(written: Any, kind: Any) -> Any:
    """What the writer has of a kind at a place: itself, or a branch of a union."""
    for each in written if isinstance(written, list) else [written]:
        if kind in ("record", "array", "map") and isinstance(each, dict) and each.get("type") == kind:
            return each
    return None
