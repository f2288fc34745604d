"""Conversion of types and values between formats and Avro.

Promises: a row type has the schema that Flink derives from it, and a schema has a type; values are converted in both
directions without loss if the type can represent them.
Does not know: how Avro is encoded."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from millstream.formats.contract import BadFormat
from millstream.formats.format_types import BITS, FormatType, TypeRoot
from millstream.formats.texts import to_decimal_type
from millstream.times import EPOCH_DAY, LOCAL_EPOCH, MICROSECOND, Instant

_NAME = "org.apache.flink.avro.generated.record"
_PRIMITIVES = {
    TypeRoot.STRING: "string",
    TypeRoot.BOOLEAN: "boolean",
    TypeRoot.TINYINT: "int",
    TypeRoot.SMALLINT: "int",
    TypeRoot.INT: "int",
    TypeRoot.BIGINT: "long",
    TypeRoot.FLOAT: "float",
    TypeRoot.DOUBLE: "double",
    TypeRoot.BYTES: "bytes",
}


def schema_of(data_type: FormatType, name: str = _NAME) -> Any:
    """Return the Avro schema of a type; a nullable type is a union with null."""
    plain = _plain_schema(data_type, name)
    return ["null", plain] if data_type.nullable else plain


def record_schema(data_type: FormatType) -> dict[str, Any]:
    """Return the Avro schema of a row type."""
    if data_type.root is not TypeRoot.ROW:
        message = f"avro records are rows, not {data_type.root.value}"
        raise BadFormat(message)
    result: dict[str, Any] = _plain_schema(data_type, _NAME)
    return result


def _plain_schema(data_type: FormatType, name: str) -> Any:
    root = data_type.root
    if root in _PRIMITIVES:
        return _PRIMITIVES[root]
    if root is TypeRoot.ROW:
        fields: list[dict[str, Any]] = []
        for field, child in data_type.fields():
            entry = {"name": field, "type": schema_of(child, f"{name}_{field}")}
            if child.nullable:
                entry["default"] = None
            fields.append(entry)
        return {"type": "record", "name": name, "fields": fields}
    if root is TypeRoot.ARRAY:
        return {"type": "array", "items": schema_of(data_type.children[0], name)}
    if root is TypeRoot.MAP:
        if data_type.children[0].root is not TypeRoot.STRING:
            message = f"keys of avro maps are text, not {data_type.children[0].root.value}"
            raise BadFormat(message)
        return {"type": "map", "values": schema_of(data_type.children[1], name)}
    if root is TypeRoot.DECIMAL:
        precision, scale = data_type.precision or 38, 18 if data_type.scale is None else data_type.scale
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    if root is TypeRoot.DATE:
        return {"type": "int", "logicalType": "date"}
    precision = data_type.precision if data_type.precision is not None else 3
    if root is TypeRoot.TIME:
        return {"type": "int", "logicalType": "time-millis"}
    if root is TypeRoot.TIMESTAMP or root is TypeRoot.TIMESTAMP_LTZ:
        unit = "millis" if precision <= 3 else "micros"
        return {"type": "long", "logicalType": f"timestamp-{unit}"}
    message = f"avro cannot represent {root.value}"
    raise BadFormat(message, hint="declare the types of the fields")


_TYPE_ROOTS = {
    "string": TypeRoot.STRING,
    "enum": TypeRoot.STRING,
    "boolean": TypeRoot.BOOLEAN,
    "int": TypeRoot.INT,
    "long": TypeRoot.BIGINT,
    "float": TypeRoot.FLOAT,
    "double": TypeRoot.DOUBLE,
    "bytes": TypeRoot.BYTES,
    "fixed": TypeRoot.BYTES,
}
_LOGICAL = {
    "date": (TypeRoot.DATE, None),
    "time-millis": (TypeRoot.TIME, 3),
    "time-micros": (TypeRoot.TIME, 6),
    "timestamp-millis": (TypeRoot.TIMESTAMP, 3),
    "timestamp-micros": (TypeRoot.TIMESTAMP, 6),
    "local-timestamp-millis": (TypeRoot.TIMESTAMP, 3),
    "local-timestamp-micros": (TypeRoot.TIMESTAMP, 6),
}


def format_type_of(schema: Any, named_types: dict[str, Any] | None = None) -> FormatType:
    """Return the type of an Avro schema, given as parsed JSON."""
    named_types = {} if named_types is None else named_types
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        if len(branches) != 1:
            return FormatType(TypeRoot.ANY)
        result = format_type_of(branches[0], named_types)
        return FormatType(result.root, result.precision, result.scale, True, result.names, result.children)
    if isinstance(schema, str):
        if schema in named_types:
            return format_type_of(named_types[schema], named_types)
        if schema not in _TYPE_ROOTS:
            message = f"the avro schema names the type {schema!r}, which it does not have"
            raise BadFormat(message)
        return FormatType(_TYPE_ROOTS[schema], nullable=False)
    root, logical = schema.get("type"), schema.get("logicalType")
    if isinstance(root, (dict, list)):
        return format_type_of(root, named_types)
    if "name" in schema:
        named_types[schema["name"]] = schema
        named_types[schema["name"].rpartition(".")[2]] = schema
    if logical in _LOGICAL:
        type_root, precision = _LOGICAL[logical]
        return FormatType(type_root, precision, nullable=False)
    if logical == "decimal":
        return FormatType(TypeRoot.DECIMAL, schema["precision"], schema.get("scale", 0), False)
    if root == "record":
        fields = schema["fields"]
        children = tuple(format_type_of(field["type"], named_types) for field in fields)
        return FormatType(
            TypeRoot.ROW, nullable=False, names=tuple(field["name"] for field in fields), children=children
        )
    if root == "array":
        return FormatType(TypeRoot.ARRAY, nullable=False, children=(format_type_of(schema["items"], named_types),))
    if root == "map":
        return FormatType(
            TypeRoot.MAP,
            nullable=False,
            children=(FormatType(TypeRoot.STRING), format_type_of(schema["values"], named_types)),
        )
    return format_type_of(root, named_types)


def load_schema(schema: str | dict[str, Any] | list[Any]) -> Any:
    """Return a schema, given as text or as parsed JSON."""
    if not isinstance(schema, str):
        return schema
    try:
        return json.loads(schema)
    except ValueError as problem:
        message = f"the avro schema is not valid JSON: {problem}"
        raise BadFormat(message, hint=schema[:200]) from None


def to_avro(data_type: FormatType) -> Callable[[Any], Any]:
    """Return the conversion of our values to those of fastavro."""
    convert = _to_avro(data_type)
    return lambda value: None if value is None else convert(value)


def _to_avro(data_type: FormatType) -> Callable[[Any], Any]:
    root = data_type.root
    if root is TypeRoot.ROW:
        split, members = data_type.splitter(), [(name, to_avro(child)) for name, child in data_type.fields()]
        return lambda value: {n: convert(item) for (n, convert), item in zip(members, split(value), strict=True)}
    if root is TypeRoot.ARRAY:
        element = to_avro(data_type.children[0])
        return lambda value: [element(item) for item in value]
    if root is TypeRoot.MAP:
        entry = to_avro(data_type.children[1])
        return lambda value: {key: entry(item) for key, item in value.items()}
    if root is TypeRoot.TIMESTAMP:
        unit = 1000 if (data_type.precision or 0) <= 3 else 1
        return lambda value: (value - LOCAL_EPOCH) // MICROSECOND // unit
    if root is TypeRoot.TIMESTAMP_LTZ:
        millis = (data_type.precision if data_type.precision is not None else 3) <= 3
        return lambda value: value.to_epoch_milli() if millis else value.seconds * 1_000_000 + value.nanos // 1000
    if root is TypeRoot.TIME:
        return lambda value: (value.hour * 3600 + value.minute * 60 + value.second) * 1000 + value.microsecond // 1000
    if root is TypeRoot.DATE:
        return lambda value: (value - EPOCH_DAY).days
    if root is TypeRoot.DECIMAL:
        return lambda value: _fit_decimal(value, data_type)
    return lambda value: value


def _fit_decimal(value: Any, data_type: FormatType) -> Decimal:
    decimal_type = FormatType(
        TypeRoot.DECIMAL, data_type.precision or 38, 18 if data_type.scale is None else data_type.scale
    )
    result = to_decimal_type(Decimal(value), decimal_type)
    if result is None:
        message = f"{value} has more than {decimal_type.precision} digits"
        raise ValueError(message)
    return result


def from_avro(data_type: FormatType) -> Callable[[Any], Any]:
    """Return the conversion of values of fastavro to ours."""
    convert = _from_avro(data_type)
    return convert if convert is _identity else lambda value: None if value is None else convert(value)


def _identity(value: Any) -> Any:
    return value


def _from_avro(data_type: FormatType) -> Callable[[Any], Any]:
    root = data_type.root
    if root is TypeRoot.ROW:
        make, members = data_type.maker(), [(name, from_avro(child)) for name, child in data_type.fields()]
        if all(convert is _identity for _, convert in members):
            names = list(data_type.names)
            return lambda value: make(list(map(value.get, names)))
        return lambda value: make([convert(value.get(name)) for name, convert in members])
    if root is TypeRoot.ARRAY:
        element = from_avro(data_type.children[0])
        return lambda value: [element(item) for item in value]
    if root is TypeRoot.MAP:
        entry = from_avro(data_type.children[1])
        return lambda value: {key: entry(item) for key, item in value.items()}
    if root in BITS and root is not TypeRoot.BIGINT:  # Avro's long fits by itself
        limit = 1 << (BITS[root] - 1)
        return lambda value: _check_range(int(value), limit, root)
    if root is TypeRoot.TIMESTAMP:
        return _to_local_timestamp
    if root is TypeRoot.TIMESTAMP_LTZ:
        return _to_instant
    if root is TypeRoot.DECIMAL:
        return lambda value: to_decimal_type(value, data_type)
    return _identity


def _check_range(value: int, limit: int, root: TypeRoot) -> int:
    if not -limit <= value < limit:
        message = f"{value} is not a {root.value}"
        raise ValueError(message)
    return value


def _to_local_timestamp(value: Any) -> datetime.datetime:
    timestamp: datetime.datetime = value
    return timestamp.astimezone(datetime.UTC).replace(tzinfo=None) if timestamp.tzinfo is not None else timestamp


def _to_instant(value: Any) -> Instant:
    micros = (_to_local_timestamp(value) - LOCAL_EPOCH) // MICROSECOND
    return Instant(micros // 1_000_000, micros % 1_000_000 * 1000)
