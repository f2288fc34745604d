"""PyFlink's `datastream.formats.json`: rows as JSON messages.

Promises: rows of the given type, times in RFC 3339 as Flink's row schemas have them; a JSON Schema becomes the type
that Flink derives from it.
Does not know: how JSON is read; `millstream.formats` does."""

from __future__ import annotations

import json
from typing import Any

from millstream.errors import UserError
from millstream.formats import FormatDeserializationSchema, FormatSerializationSchema, format_named
from millstream.types.factory import TypeInformation, Types

__all__ = ["JsonRowDeserializationSchema", "JsonRowSerializationSchema"]

_OPTIONS = {"timestamp-format.standard": "RFC-3339"}


class BadJsonSchema(UserError):
    """A JSON Schema that describes no row."""

    hint = "an object with properties, whose types are declared"


class JsonRowDeserializationSchema(FormatDeserializationSchema):
    """JSON objects as rows."""

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """Builds one step by step."""
        return JsonRowDeserializationSchema.Builder()

    class Builder:
        """Builds a JsonRowDeserializationSchema."""

        def __init__(self) -> None:
            self._type_info: TypeInformation | None = None
            self._options: dict[str, Any] = dict(_OPTIONS)

        def type_info(self, type_info: TypeInformation) -> JsonRowDeserializationSchema.Builder:
            """Set the type of the rows."""
            self._type_info = type_info
            return self

        def json_schema(self, json_schema: str | None) -> JsonRowDeserializationSchema.Builder:
            """Derive the type of the rows from a JSON Schema."""
            if json_schema is None:
                message = "The json_schema must not be None."
                raise TypeError(message)
            self._type_info = type_of_json_schema(json_schema)
            return self

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """Refuse an object without one of the fields; else the field is None."""
            self._options["fail-on-missing-field"] = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """Give None for fields, and nothing for messages, that cannot be read."""
            self._options["ignore-parse-errors"] = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """The schema."""
            if self._type_info is None:
                message = "Typeinfo should be set."
                raise TypeError(message)
            return JsonRowDeserializationSchema(format_named("json", self._type_info, self._options))


class JsonRowSerializationSchema(FormatSerializationSchema):
    """Rows as JSON objects."""

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """Builds one step by step."""
        return JsonRowSerializationSchema.Builder()

    class Builder:
        """Builds a JsonRowSerializationSchema."""

        def __init__(self) -> None:
            self._type_info: TypeInformation | None = None

        def with_type_info(self, type_info: TypeInformation) -> JsonRowSerializationSchema.Builder:
            """Set the type of the rows."""
            self._type_info = type_info
            return self

        def build(self) -> JsonRowSerializationSchema:
            """The schema."""
            if self._type_info is None:
                message = "Typeinfo should be set."
                raise TypeError(message)
            return JsonRowSerializationSchema(format_named("json", self._type_info, _OPTIONS))


def type_of_json_schema(text: str) -> TypeInformation:
    """The type of rows that a JSON Schema describes."""
    try:
        root = json.loads(text)
    except ValueError as problem:
        message = f"the JSON Schema is no JSON: {problem}"
        raise BadJsonSchema(message) from None
    return _type("root", root, root, 0)


def _type(name: str, node: Any, root: Any, depth: int) -> TypeInformation:
    if not isinstance(node, dict) or depth > 100:
        message = f"the JSON Schema says nothing about {name!r} that can be used"
        raise BadJsonSchema(message)
    if "$ref" in node:
        return _type(name, _referred(node["$ref"], root), root, depth + 1)
    if "oneOf" in node:
        return _first_that_holds(name, node["oneOf"], root, depth)
    kind = node.get("type")
    if isinstance(kind, list):
        return _first_that_holds(name, [{**node, "type": each} for each in kind], root, depth)
    if kind == "object":
        properties = node.get("properties") or {}
        types = [_type(member, inner, root, depth + 1) for member, inner in properties.items()]
        return Types.ROW_NAMED(list(properties), types)
    if kind == "array":
        return _array(name, node.get("items"), root, depth)
    if kind in ("number", "integer"):
        return Types.BIG_DEC()
    if kind == "boolean":
        return Types.BOOLEAN()
    if kind == "string":
        if node.get("contentEncoding") == "base64":
            return Types.PRIMITIVE_ARRAY(Types.BYTE())
        times = {"date-time": Types.SQL_TIMESTAMP, "date": Types.SQL_DATE, "time": Types.SQL_TIME}
        return times.get(node.get("format", ""), Types.STRING)()
    message = f"the JSON Schema gives {name!r} the type {kind!r}, which is not known"
    raise BadJsonSchema(message)


def _array(name: str, items: Any, root: Any, depth: int) -> TypeInformation:
    if isinstance(items, list):  # a tuple: each place has a type of its own
        return Types.ROW([_type(f"{name}[{index}]", item, root, depth + 1) for index, item in enumerate(items)])
    return Types.OBJECT_ARRAY(_type(f"{name}[]", items, root, depth + 1))


def _first_that_holds(name: str, choices: Any, root: Any, depth: int) -> TypeInformation:
    """The one type among the choices beside null."""
    others = [each for each in choices if each.get("type") != "null"]
    if len(others) != 1:
        message = f"the JSON Schema gives {name!r} several types"
        raise BadJsonSchema(message, hint="one type and null are allowed")
    return _type(name, others[0], root, depth + 1)


def _referred(reference: str, root: Any) -> Any:
    if not reference.startswith("#"):
        message = f"the JSON Schema refers to {reference!r}"
        raise BadJsonSchema(message, hint="only references within the schema are followed")
    found = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        found = found.get(part, {}) if part else found
    return found
