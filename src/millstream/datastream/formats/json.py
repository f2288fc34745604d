"""PyFlink's `datastream.formats.json`: rows as JSON messages.

Promises: rows of the declared type, with times in RFC 3339 as in Flink; a JSON Schema is translated to the type
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


class BadJsonSchema(UserError, ValueError):
    """A JSON Schema from which no row type can be derived."""

    hint = "the schema must be an object whose properties have declared types"


class JsonRowDeserializationSchema(FormatDeserializationSchema):
    """Deserializes JSON objects to rows.

    Example:
        >>> from millstream.common import Types
        >>> row_type = Types.ROW_NAMED(["name", "amount"], [Types.STRING(), Types.LONG()])
        >>> schema = JsonRowDeserializationSchema.builder().type_info(row_type).ignore_parse_errors().build()
        >>> schema.deserialize(b'{"name": "tea", "amount": 3}')
        Row(name='tea', amount=3)

    """

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """Create a builder."""
        return JsonRowDeserializationSchema.Builder()

    class Builder:
        """Builds a JsonRowDeserializationSchema."""

        def __init__(self) -> None:
            self._type_info: TypeInformation | None = None
            self._options: dict[str, Any] = dict(_OPTIONS)

        def type_info(self, type_info: TypeInformation) -> JsonRowDeserializationSchema.Builder:
            """Set the type of the rows.

            Args:
                type_info: The row type.

            """
            self._type_info = type_info
            return self

        def json_schema(self, json_schema: str | None) -> JsonRowDeserializationSchema.Builder:
            """Derive the type of the rows from a JSON Schema.

            Args:
                json_schema: The JSON Schema as text.

            """
            if json_schema is None:
                message = "The json_schema must not be None."
                raise TypeError(message)
            self._type_info = type_of_json_schema(json_schema)
            return self

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """Treat objects with missing fields as invalid; by default a missing field is None."""
            self._options["fail-on-missing-field"] = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """Use None for invalid fields and skip invalid messages, instead of failing the job."""
            self._options["ignore-parse-errors"] = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """Build the schema."""
            if self._type_info is None:
                message = "Typeinfo should be set."
                raise TypeError(message)
            return JsonRowDeserializationSchema(format_named("json", self._type_info, self._options))


class JsonRowSerializationSchema(FormatSerializationSchema):
    """Serializes rows as JSON objects.

    Example:
        >>> from millstream.common import Row, Types
        >>> row_type = Types.ROW_NAMED(["name", "amount"], [Types.STRING(), Types.LONG()])
        >>> JsonRowSerializationSchema.builder().with_type_info(row_type).build().serialize(Row("tea", 3))
        b'{"name":"tea","amount":3}'

    """

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """Create a builder."""
        return JsonRowSerializationSchema.Builder()

    class Builder:
        """Builds a JsonRowSerializationSchema."""

        def __init__(self) -> None:
            self._type_info: TypeInformation | None = None

        def with_type_info(self, type_info: TypeInformation) -> JsonRowSerializationSchema.Builder:
            """Set the type of the rows.

            Args:
                type_info: The row type.

            """
            self._type_info = type_info
            return self

        def build(self) -> JsonRowSerializationSchema:
            """Build the schema."""
            if self._type_info is None:
                message = "Typeinfo should be set."
                raise TypeError(message)
            return JsonRowSerializationSchema(format_named("json", self._type_info, _OPTIONS))


def type_of_json_schema(text: str) -> TypeInformation:
    """Return the type of rows that a JSON Schema describes."""
    try:
        root = json.loads(text)
    except ValueError as problem:
        message = f"the JSON Schema is not valid JSON: {problem}"
        raise BadJsonSchema(message) from None
    return _type("root", root, root, 0)


def _type(name: str, node: Any, root: Any, depth: int) -> TypeInformation:
    if not isinstance(node, dict) or depth > 100:
        message = f"the JSON Schema has no usable type for {name!r}"
        raise BadJsonSchema(message)
    if "$ref" in node:
        return _type(name, _resolve(node["$ref"], root), root, depth + 1)
    if "oneOf" in node:
        return _only_choice(name, node["oneOf"], root, depth)
    json_type = node.get("type")
    if isinstance(json_type, list):
        return _only_choice(name, [{**node, "type": choice} for choice in json_type], root, depth)
    if json_type == "object":
        properties = node.get("properties") or {}
        types = [_type(member, inner, root, depth + 1) for member, inner in properties.items()]
        return Types.ROW_NAMED(list(properties), types)
    if json_type == "array":
        return _array(name, node.get("items"), root, depth)
    if json_type in ("number", "integer"):
        return Types.BIG_DEC()
    if json_type == "boolean":
        return Types.BOOLEAN()
    if json_type == "string":
        if node.get("contentEncoding") == "base64":
            return Types.PRIMITIVE_ARRAY(Types.BYTE())
        times = {"date-time": Types.SQL_TIMESTAMP, "date": Types.SQL_DATE, "time": Types.SQL_TIME}
        return times.get(node.get("format", ""), Types.STRING)()
    message = f"the JSON Schema gives {name!r} the type {json_type!r}, which is unknown"
    raise BadJsonSchema(message)


def _array(name: str, items: Any, root: Any, depth: int) -> TypeInformation:
    if isinstance(items, list):  # a tuple: each element has a type of its own
        return Types.ROW([_type(f"{name}[{index}]", item, root, depth + 1) for index, item in enumerate(items)])
    return Types.OBJECT_ARRAY(_type(f"{name}[]", items, root, depth + 1))


def _only_choice(name: str, choices: Any, root: Any, depth: int) -> TypeInformation:
    """Return the type of the only choice other than null."""
    non_null = [choice for choice in choices if choice.get("type") != "null"]
    if len(non_null) != 1:
        message = f"the JSON Schema has several types for {name!r}"
        raise BadJsonSchema(message, hint="one type and null are allowed")
    return _type(name, non_null[0], root, depth + 1)


def _resolve(reference: str, root: Any) -> Any:
    if not reference.startswith("#"):
        message = f"the JSON Schema refers to {reference!r}"
        raise BadJsonSchema(message, hint="only references within the schema are supported")
    node = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        node = node.get(part, {}) if part else node
    return node
