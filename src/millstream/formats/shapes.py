"""Shapes: what a format needs to know about a type, whether it was declared as type information or as an Arrow schema.

Promises: every type of the model and every Arrow type that Flink SQL has a word for has a shape; a shape knows the type
information of its records, and how a record is made of its fields.
Does not know: any format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

import pyarrow as pa

from millstream.errors import UserError
from millstream.types.factory import (
    DataclassTypeInfo,
    LocalTimeTypeInfo,
    MapTypeInfo,
    NamedTupleTypeInfo,
    RowTypeInfo,
    StructTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from millstream.types.row import KINDS, Row, RowKind

_LOCAL = LocalTimeTypeInfo.TimeType

#: Some fields of a row by position, each with what is wanted of it, or None for all of it.
Wanted = tuple[tuple[int, "Wanted | None"], ...]


class Kind(Enum):
    """What a value is, in the words of Flink SQL."""

    STRING = "STRING"
    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    BIG_INTEGER = "BIG_INTEGER"
    BYTES = "BYTES"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"
    ARRAY = "ARRAY"
    MAP = "MAP"
    ROW = "ROW"
    ANY = "ANY"


#: How many bits the whole numbers have.
BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}


class UnknownShape(UserError):
    """A type that formats cannot hold."""

    def __init__(self, kind: object) -> None:
        self.kind = kind
        super().__init__(f"no format can hold {kind}", hint="declare the fields with types of their own")


@dataclass(frozen=True)
class Shape:
    """A type as formats see it. `precision` counts digits (of a fraction of a second, for times)."""

    kind: Kind
    precision: int | None = None
    scale: int | None = None
    nullable: bool = True
    names: tuple[str, ...] = ()
    children: tuple[Shape, ...] = ()
    declared: TypeInformation | None = field(default=None, compare=False)

    @staticmethod
    def of(schema: TypeInformation | pa.Schema | pa.DataType | Shape) -> Shape:
        """The shape of a declared type."""
        if isinstance(schema, Shape):
            return schema
        if isinstance(schema, pa.Schema):
            return _of_arrow(pa.struct(list(schema)), nullable=False)
        if isinstance(schema, pa.DataType):
            return _of_arrow(schema)
        if isinstance(schema, TypeInformation):
            return _of_type(schema)
        raise UnknownShape(repr(schema))

    def type_info(self) -> TypeInformation:
        """The type of the records."""
        return self.declared if self.declared is not None else self._made

    @cached_property
    def _made(self) -> TypeInformation:
        return _TYPES[self.kind](self)

    def fields(self) -> list[tuple[str, Shape]]:
        """The fields of a row with their names."""
        return list(zip(self.names, self.children, strict=True))

    def is_flat(self) -> bool:
        """Whether this is a row of single values."""
        nested = (Kind.ARRAY, Kind.MAP, Kind.ROW, Kind.ANY)
        return self.kind is Kind.ROW and all(child.kind not in nested for child in self.children)

    def project(self, names: Sequence[str]) -> Shape:
        """The row with these fields only, in this order."""
        wanted = tuple(self.children[self.names.index(name)] for name in names)
        return Shape(Kind.ROW, None, None, self.nullable, tuple(names), wanted)

    def only(self, wanted: Wanted) -> Shape:
        """The row with some of its fields only, and some of theirs."""
        children = [self.children[i] if part is None else self.children[i].only(part) for i, part in wanted]
        names = tuple(self.names[i] for i, _ in wanted)
        return Shape(Kind.ROW, None, None, self.nullable, names, tuple(children))

    def maker(self) -> Callable[[list[Any]], Any]:
        """What makes a record of the values of its fields."""
        declared = self.declared
        if isinstance(declared, TupleTypeInfo):
            return tuple
        if isinstance(declared, NamedTupleTypeInfo):
            return declared.cls._make  # type: ignore[attr-defined, no-any-return]
        if isinstance(declared, DataclassTypeInfo):
            cls = declared.cls
            return lambda values: cls(*values)
        names = list(self.names)
        return lambda values: Row._from(names, values)

    def splitter(self) -> Callable[[Any], Sequence[Any]]:
        """What gives the values of the fields of a record, in order."""
        names = list(self.names)
        return lambda value: _values_of(value, names)

    def array_of(self, columns: Sequence[pa.Array], length: int, kinds: Sequence[RowKind] | None = None) -> pa.Array:
        """The records with these columns, as an array of the type's Arrow type."""
        arrow_type = self.type_info().arrow_type
        columns = list(columns)
        if len(columns) < arrow_type.num_fields:  # a row's kind, null for an inserted row
            columns.append(
                pa.nulls(length, pa.int8())
                if kinds is None
                else pa.array([None if kind is KINDS[0] else kind.value for kind in kinds], pa.int8())
            )
        return pa.StructArray.from_arrays(columns, fields=list(arrow_type))


def _values_of(value: Any, names: list[str]) -> Sequence[Any]:
    if isinstance(value, Row):
        own = getattr(value, "_fields", None)
        values: list[Any] = value._values
        return values if own is None or own == names else [values[own.index(name)] for name in names]
    if isinstance(value, (tuple, list)):
        return value
    if isinstance(value, dict):
        return [value.get(name) for name in names]
    return [getattr(value, name) for name in names]


_TYPES: dict[Kind, Callable[[Shape], TypeInformation]] = {
    Kind.STRING: lambda _: Types.STRING(),
    Kind.BOOLEAN: lambda _: Types.BOOLEAN(),
    Kind.TINYINT: lambda _: Types.BYTE(),
    Kind.SMALLINT: lambda _: Types.SHORT(),
    Kind.INT: lambda _: Types.INT(),
    Kind.BIGINT: lambda _: Types.LONG(),
    Kind.FLOAT: lambda _: Types.FLOAT(),
    Kind.DOUBLE: lambda _: Types.DOUBLE(),
    Kind.DECIMAL: lambda _: Types.BIG_DEC(),
    Kind.BIG_INTEGER: lambda _: Types.BIG_INT(),
    Kind.BYTES: lambda _: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    Kind.DATE: lambda _: Types.SQL_DATE(),
    Kind.TIME: lambda shape: Types.SQL_TIME() if (shape.precision or 0) <= 3 else LocalTimeTypeInfo(_LOCAL.LOCAL_TIME),
    Kind.TIMESTAMP: lambda shape: (
        Types.SQL_TIMESTAMP() if (shape.precision or 0) <= 3 else LocalTimeTypeInfo(_LOCAL.LOCAL_DATE_TIME)
    ),
    Kind.TIMESTAMP_LTZ: lambda _: Types.INSTANT(),
    Kind.ARRAY: lambda shape: Types.LIST(shape.children[0].type_info()),
    Kind.MAP: lambda shape: Types.MAP(shape.children[0].type_info(), shape.children[1].type_info()),
    Kind.ROW: lambda shape: RowTypeInfo([child.type_info() for child in shape.children], list(shape.names)),
    Kind.ANY: lambda _: Types.PICKLED_BYTE_ARRAY(),
}

_TAGS: dict[str, tuple[Kind, int | None]] = {
    "STRING": (Kind.STRING, None),
    "CHAR": (Kind.STRING, None),
    "BOOLEAN": (Kind.BOOLEAN, None),
    "BYTE": (Kind.TINYINT, None),
    "SHORT": (Kind.SMALLINT, None),
    "INT": (Kind.INT, None),
    "LONG": (Kind.BIGINT, None),
    "FLOAT": (Kind.FLOAT, None),
    "DOUBLE": (Kind.DOUBLE, None),
    "BIG_DEC": (Kind.DECIMAL, None),
    "BIG_INT": (Kind.BIG_INTEGER, None),
    "BYTES": (Kind.BYTES, None),
    "SQL_DATE": (Kind.DATE, None),
    "LOCAL_DATE": (Kind.DATE, None),
    "SQL_TIME": (Kind.TIME, 3),
    "LOCAL_TIME": (Kind.TIME, 6),
    "SQL_TIMESTAMP": (Kind.TIMESTAMP, 3),
    "LOCAL_DATE_TIME": (Kind.TIMESTAMP, 6),
    "INSTANT": (Kind.TIMESTAMP_LTZ, 9),
    "PICKLED_BYTE_ARRAY": (Kind.ANY, None),
}


def _of_type(kind: TypeInformation) -> Shape:
    tag = kind.to_json()["type"]
    if tag in _TAGS:
        found, precision = _TAGS[tag]
        return Shape(found, precision, declared=kind)
    if isinstance(kind, StructTypeInfo):
        fields = tuple(map(_of_type, kind.field_types))
        return Shape(Kind.ROW, names=tuple(kind.field_names), children=fields, declared=kind)
    if isinstance(kind, MapTypeInfo):
        return Shape(Kind.MAP, children=(_of_type(kind.key_type), _of_type(kind.value_type)), declared=kind)
    element = getattr(kind, "elem_type", None)
    if isinstance(element, TypeInformation):
        return Shape(Kind.ARRAY, children=(_of_type(element),), declared=kind)
    # a type of another layer: its Arrow type says what it holds
    found_shape = _of_arrow(kind.arrow_type)
    return Shape(found_shape.kind, found_shape.precision, found_shape.scale, True, declared=kind)


_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_PLAIN: tuple[tuple[Callable[[pa.DataType], bool], Kind], ...] = (
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), Kind.STRING),
    (pa.types.is_boolean, Kind.BOOLEAN),
    (pa.types.is_int8, Kind.TINYINT),
    (lambda kind: pa.types.is_int16(kind) or pa.types.is_uint8(kind), Kind.SMALLINT),
    (lambda kind: pa.types.is_int32(kind) or pa.types.is_uint16(kind), Kind.INT),
    (lambda kind: pa.types.is_int64(kind) or pa.types.is_uint32(kind), Kind.BIGINT),
    (lambda kind: pa.types.is_float32(kind) or pa.types.is_float16(kind), Kind.FLOAT),
    (pa.types.is_float64, Kind.DOUBLE),
    (
        lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind),
        Kind.BYTES,
    ),
    (pa.types.is_date, Kind.DATE),
)


def _of_arrow(kind: pa.DataType, nullable: bool = True) -> Shape:
    for test, found in _PLAIN:
        if test(kind):
            return Shape(found, nullable=nullable)
    if pa.types.is_decimal(kind):
        return Shape(Kind.DECIMAL, kind.precision, kind.scale, nullable)
    if pa.types.is_time(kind):
        return Shape(Kind.TIME, _DIGITS[kind.unit], nullable=nullable)
    if pa.types.is_timestamp(kind):
        return Shape(Kind.TIMESTAMP_LTZ if kind.tz else Kind.TIMESTAMP, _DIGITS[kind.unit], nullable=nullable)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return Shape(Kind.ARRAY, nullable=nullable, children=(_of_field(kind.value_field),))
    if pa.types.is_map(kind):
        return Shape(Kind.MAP, nullable=nullable, children=(_of_field(kind.key_field), _of_field(kind.item_field)))
    if pa.types.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        names = tuple(each.name for each in fields)
        return Shape(Kind.ROW, nullable=nullable, names=names, children=tuple(map(_of_field, fields)))
    raise UnknownShape(kind)


def _of_field(given: pa.Field) -> Shape:
    return _of_arrow(given.type, given.nullable)
