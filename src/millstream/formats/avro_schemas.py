"""Avro schemas of shapes, and shapes of Avro schemas; values as Avro's library has them.

Promises: the schema that Flink derives from a row type, and back; a value is converted both ways without loss where the
shape can hold it.
Does not know: how Avro is encoded."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from millstream.formats.contract import BadFormat
from millstream.formats.shapes import BITS, Kind, Shape
from millstream.formats.texts import fitted
from millstream.times import Instant

_NAME = "org.apache.flink.avro.generated.record"
_PRIMITIVES = {
    Kind.STRING: "string",
    Kind.BOOLEAN: "boolean",
    Kind.TINYINT: "int",
    Kind.SMALLINT: "int",
    Kind.INT: "int",
    Kind.BIGINT: "long",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.BYTES: "bytes",
}
_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - a timestamp without a zone
_DAY_ONE = datetime.date(1970, 1, 1)
_MICRO = datetime.timedelta(microseconds=1)


def schema_of(shape: Shape, name: str = _NAME) -> Any:
    """The Avro schema of a shape; what may be null is a union with null."""
    plain = _plain_schema(shape, name)
    return ["null", plain] if shape.nullable else plain


def record_schema(shape: Shape) -> dict[str, Any]:
    """The Avro schema of rows."""
    if shape.kind is not Kind.ROW:
        message = f"avro records are rows, not {shape.kind.value}"
        raise BadFormat(message)
    found: dict[str, Any] = _plain_schema(shape, _NAME)
    return found


def _plain_schema(shape: Shape, name: str) -> Any:
    kind = shape.kind
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    if kind is Kind.ROW:
        fields: list[dict[str, Any]] = []
        for field, child in shape.fields():
            entry = {"name": field, "type": schema_of(child, f"{name}_{field}")}
            if child.nullable:
                entry["default"] = None
            fields.append(entry)
        return {"type": "record", "name": name, "fields": fields}
    if kind is Kind.ARRAY:
        return {"type": "array", "items": schema_of(shape.children[0], name)}
    if kind is Kind.MAP:
        if shape.children[0].kind is not Kind.STRING:
            message = f"keys of avro maps are text, not {shape.children[0].kind.value}"
            raise BadFormat(message)
        return {"type": "map", "values": schema_of(shape.children[1], name)}
    if kind is Kind.DECIMAL:
        precision, scale = shape.precision or 38, 18 if shape.scale is None else shape.scale
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    if kind is Kind.DATE:
        return {"type": "int", "logicalType": "date"}
    precision = shape.precision if shape.precision is not None else 3
    if kind is Kind.TIME:
        return {"type": "int", "logicalType": "time-millis"}
    if kind is Kind.TIMESTAMP or kind is Kind.TIMESTAMP_LTZ:
        unit = "millis" if precision <= 3 else "micros"
        return {"type": "long", "logicalType": f"timestamp-{unit}"}
    message = f"avro has no {kind.value}"
    raise BadFormat(message, hint="declare the fields with types of their own")


_KINDS = {
    "string": Kind.STRING,
    "enum": Kind.STRING,
    "boolean": Kind.BOOLEAN,
    "int": Kind.INT,
    "long": Kind.BIGINT,
    "float": Kind.FLOAT,
    "double": Kind.DOUBLE,
    "bytes": Kind.BYTES,
    "fixed": Kind.BYTES,
}
_LOGICAL = {
    "date": (Kind.DATE, None),
    "time-millis": (Kind.TIME, 3),
    "time-micros": (Kind.TIME, 6),
    "timestamp-millis": (Kind.TIMESTAMP, 3),
    "timestamp-micros": (Kind.TIMESTAMP, 6),
    "local-timestamp-millis": (Kind.TIMESTAMP, 3),
    "local-timestamp-micros": (Kind.TIMESTAMP, 6),
}


def shape_of(schema: Any, known: dict[str, Any] | None = None) -> Shape:
    """The shape of an Avro schema, given as its parsed JSON."""
    known = {} if known is None else known
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        if len(others) != 1:
            return Shape(Kind.ANY)
        found = shape_of(others[0], known)
        return Shape(found.kind, found.precision, found.scale, True, found.names, found.children)
    if isinstance(schema, str):
        if schema in known:
            return shape_of(known[schema], known)
        if schema not in _KINDS:
            message = f"the avro schema names the type {schema!r}, which it does not have"
            raise BadFormat(message)
        return Shape(_KINDS[schema], nullable=False)
    kind, logical = schema.get("type"), schema.get("logicalType")
    if isinstance(kind, (dict, list)):
        return shape_of(kind, known)
    if "name" in schema:
        known[schema["name"]] = schema
        known[schema["name"].rpartition(".")[2]] = schema
    if logical in _LOGICAL:
        found_kind, precision = _LOGICAL[logical]
        return Shape(found_kind, precision, nullable=False)
    if logical == "decimal":
        return Shape(Kind.DECIMAL, schema["precision"], schema.get("scale", 0), False)
    if kind == "record":
        fields = schema["fields"]
        children = tuple(shape_of(field["type"], known) for field in fields)
        return Shape(Kind.ROW, nullable=False, names=tuple(field["name"] for field in fields), children=children)
    if kind == "array":
        return Shape(Kind.ARRAY, nullable=False, children=(shape_of(schema["items"], known),))
    if kind == "map":
        return Shape(Kind.MAP, nullable=False, children=(Shape(Kind.STRING), shape_of(schema["values"], known)))
    return shape_of(kind, known)


def parsed(schema: str | dict[str, Any] | list[Any]) -> Any:
    """A schema given as text or as its JSON value."""
    if not isinstance(schema, str):
        return schema
    try:
        return json.loads(schema)
    except ValueError as problem:
        message = f"the avro schema is no JSON: {problem}"
        raise BadFormat(message, hint=schema[:200]) from None


def to_avro(shape: Shape) -> Callable[[Any], Any]:
    """What makes the library's value of ours."""
    convert = _to_avro(shape)
    return lambda value: None if value is None else convert(value)


def _to_avro(shape: Shape) -> Callable[[Any], Any]:
    kind = shape.kind
    if kind is Kind.ROW:
        split, members = shape.splitter(), [(name, to_avro(child)) for name, child in shape.fields()]
        return lambda value: {n: convert(item) for (n, convert), item in zip(members, split(value), strict=True)}
    if kind is Kind.ARRAY:
        element = to_avro(shape.children[0])
        return lambda value: [element(item) for item in value]
    if kind is Kind.MAP:
        entry = to_avro(shape.children[1])
        return lambda value: {key: entry(item) for key, item in value.items()}
    if kind is Kind.TIMESTAMP:
        unit = 1000 if (shape.precision or 0) <= 3 else 1
        return lambda value: (value - _EPOCH) // _MICRO // unit
    if kind is Kind.TIMESTAMP_LTZ:
        millis = (shape.precision if shape.precision is not None else 3) <= 3
        return lambda value: value.to_epoch_milli() if millis else value.seconds * 1_000_000 + value.nanos // 1000
    if kind is Kind.TIME:
        return lambda value: (value.hour * 3600 + value.minute * 60 + value.second) * 1000 + value.microsecond // 1000
    if kind is Kind.DATE:
        return lambda value: (value - _DAY_ONE).days
    if kind is Kind.DECIMAL:
        return lambda value: _fitting(value, shape)
    return lambda value: value


def _fitting(value: Any, shape: Shape) -> Decimal:
    wanted = Shape(Kind.DECIMAL, shape.precision or 38, 18 if shape.scale is None else shape.scale)
    found = fitted(Decimal(value), wanted)
    if found is None:
        message = f"{value} has more than {wanted.precision} digits"
        raise ValueError(message)
    return found


def from_avro(shape: Shape) -> Callable[[Any], Any]:
    """What makes our value of the library's."""
    convert = _from_avro(shape)
    return convert if convert is _same else lambda value: None if value is None else convert(value)


def _same(value: Any) -> Any:
    return value


def _from_avro(shape: Shape) -> Callable[[Any], Any]:
    kind = shape.kind
    if kind is Kind.ROW:
        make, members = shape.maker(), [(name, from_avro(child)) for name, child in shape.fields()]
        if all(convert is _same for _, convert in members):
            names = list(shape.names)
            return lambda value: make(list(map(value.get, names)))
        return lambda value: make([convert(value.get(name)) for name, convert in members])
    if kind is Kind.ARRAY:
        element = from_avro(shape.children[0])
        return lambda value: [element(item) for item in value]
    if kind is Kind.MAP:
        entry = from_avro(shape.children[1])
        return lambda value: {key: entry(item) for key, item in value.items()}
    if kind in BITS and kind is not Kind.BIGINT:  # Avro's long fits by itself
        limit = 1 << (BITS[kind] - 1)
        return lambda value: _within(int(value), limit, kind)
    if kind is Kind.TIMESTAMP:
        return _naive
    if kind is Kind.TIMESTAMP_LTZ:
        return _instant
    if kind is Kind.DECIMAL:
        return lambda value: fitted(value, shape)
    return _same


def _within(value: int, limit: int, kind: Kind) -> int:
    if not -limit <= value < limit:
        message = f"{value} is no {kind.value}"
        raise ValueError(message)
    return value


def _naive(value: Any) -> datetime.datetime:
    moment: datetime.datetime = value
    return moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment


def _instant(value: Any) -> Instant:
    micros = (_naive(value) - _EPOCH) // _MICRO
    return Instant(micros // 1_000_000, micros % 1_000_000 * 1000)
