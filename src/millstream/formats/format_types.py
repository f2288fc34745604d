"""The types of records as formats see them, whether declared as type information or as an Arrow schema.

Promises: every type information, and every Arrow type that has a counterpart in Flink SQL, has a `FormatType`. It knows
the type information of its records, and how a record is created from its fields.
Does not know: any format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

import pyarrow as pa

from millstream.errors import UserError
from millstream.types.basic_types import NanosecondTimestampTypeInfo
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

#: A projection: fields of a row by index, each with a projection of its own, or None for the whole field.
FieldSelection = tuple[tuple[int, "FieldSelection | None"], ...]


class TypeRoot(Enum):
    """The type roots of Flink SQL that formats distinguish."""

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


#: The size of integers in bits.
BITS = {TypeRoot.TINYINT: 8, TypeRoot.SMALLINT: 16, TypeRoot.INT: 32, TypeRoot.BIGINT: 64}


class UnsupportedType(UserError):
    """Formats cannot represent a type."""

    def __init__(self, data_type: object) -> None:
        self.data_type = data_type
        super().__init__(f"formats cannot represent {data_type}", hint="declare the types of the fields")


@dataclass(frozen=True)
class FormatType:
    """The type of records or fields. For times, `precision` is the number of digits of the fractional second."""

    root: TypeRoot
    precision: int | None = None
    scale: int | None = None
    nullable: bool = True
    names: tuple[str, ...] = ()
    children: tuple[FormatType, ...] = ()
    declared: TypeInformation | None = field(default=None, compare=False)

    @staticmethod
    def of(schema: TypeInformation | pa.Schema | pa.DataType | FormatType) -> FormatType:
        """Return the type of a declared type."""
        if isinstance(schema, FormatType):
            return schema
        if isinstance(schema, pa.Schema):
            return _of_arrow(pa.struct(list(schema)), nullable=False)
        if isinstance(schema, pa.DataType):
            return _of_arrow(schema)
        if isinstance(schema, TypeInformation):
            return _of_type(schema)
        raise UnsupportedType(repr(schema))

    def type_info(self) -> TypeInformation:
        """Return the type information of the records."""
        return self.declared if self.declared is not None else self._derived

    @cached_property
    def _derived(self) -> TypeInformation:
        return _TYPES[self.root](self)

    def fields(self) -> list[tuple[str, FormatType]]:
        """Return the names and types of the fields of a row."""
        return list(zip(self.names, self.children, strict=True))

    def is_flat(self) -> bool:
        """Whether this is a row of scalar values."""
        nested = (TypeRoot.ARRAY, TypeRoot.MAP, TypeRoot.ROW, TypeRoot.ANY)
        return self.root is TypeRoot.ROW and all(child.root not in nested for child in self.children)

    def project(self, names: Sequence[str]) -> FormatType:
        """Return the row with these fields only, in this order."""
        children = tuple(self.children[self.names.index(name)] for name in names)
        return FormatType(TypeRoot.ROW, None, None, self.nullable, tuple(names), children)

    def only(self, selection: FieldSelection) -> FormatType:
        """Return the row after a projection of its fields."""
        children = [self.children[i] if part is None else self.children[i].only(part) for i, part in selection]
        names = tuple(self.names[i] for i, _ in selection)
        return FormatType(TypeRoot.ROW, None, None, self.nullable, names, tuple(children))

    def maker(self) -> Callable[[list[Any]], Any]:
        """Return a function that creates a record from the values of its fields."""
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
        """Return a function that returns the values of the fields of a record, in order."""
        names = list(self.names)
        return lambda value: _values_of(value, names)

    def array_of(
        self, columns: Sequence[pa.Array], length: int, row_kinds: Sequence[RowKind] | None = None
    ) -> pa.Array:
        """Return an array of records, of the Arrow type of the type information, from the columns of their fields."""
        arrow_type = self.type_info().arrow_type
        columns = list(columns)
        if len(columns) < arrow_type.num_fields:  # the row kind; null for an insert
            columns.append(
                pa.nulls(length, pa.int8())
                if row_kinds is None
                else pa.array([None if row_kind is KINDS[0] else row_kind.value for row_kind in row_kinds], pa.int8())
            )
        return pa.StructArray.from_arrays(columns, fields=list(arrow_type))


def _values_of(value: Any, names: list[str]) -> Sequence[Any]:
    if isinstance(value, Row):
        field_names = getattr(value, "_fields", None)
        values: list[Any] = value._values
        if field_names is not None and field_names != names and set(names) <= set(field_names):
            return [values[field_names.index(name)] for name in names]
        if len(values) != len(names):
            message = f"the row has {len(values)} fields, its type has {len(names)}: {', '.join(names)}"
            raise ValueError(message)
        return values  # by position, as in Flink
    if isinstance(value, (tuple, list)):
        return value
    if isinstance(value, dict):
        return [value.get(name) for name in names]
    return [getattr(value, name) for name in names]


def _timestamp_type(precision: int) -> TypeInformation:
    if precision <= 3:
        return Types.SQL_TIMESTAMP()
    return LocalTimeTypeInfo(_LOCAL.LOCAL_DATE_TIME) if precision <= 6 else NanosecondTimestampTypeInfo()


_TYPES: dict[TypeRoot, Callable[[FormatType], TypeInformation]] = {
    TypeRoot.STRING: lambda _: Types.STRING(),
    TypeRoot.BOOLEAN: lambda _: Types.BOOLEAN(),
    TypeRoot.TINYINT: lambda _: Types.BYTE(),
    TypeRoot.SMALLINT: lambda _: Types.SHORT(),
    TypeRoot.INT: lambda _: Types.INT(),
    TypeRoot.BIGINT: lambda _: Types.LONG(),
    TypeRoot.FLOAT: lambda _: Types.FLOAT(),
    TypeRoot.DOUBLE: lambda _: Types.DOUBLE(),
    TypeRoot.DECIMAL: lambda _: Types.BIG_DEC(),
    TypeRoot.BIG_INTEGER: lambda _: Types.BIG_INT(),
    TypeRoot.BYTES: lambda _: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    TypeRoot.DATE: lambda _: Types.SQL_DATE(),
    TypeRoot.TIME: lambda data_type: (
        Types.SQL_TIME() if (data_type.precision or 0) <= 3 else LocalTimeTypeInfo(_LOCAL.LOCAL_TIME)
    ),
    TypeRoot.TIMESTAMP: lambda data_type: _timestamp_type(data_type.precision or 0),
    TypeRoot.TIMESTAMP_LTZ: lambda _: Types.INSTANT(),
    TypeRoot.ARRAY: lambda data_type: Types.LIST(data_type.children[0].type_info()),
    TypeRoot.MAP: lambda data_type: Types.MAP(data_type.children[0].type_info(), data_type.children[1].type_info()),
    TypeRoot.ROW: lambda data_type: RowTypeInfo(
        [child.type_info() for child in data_type.children], list(data_type.names)
    ),
    TypeRoot.ANY: lambda _: Types.PICKLED_BYTE_ARRAY(),
}

_TAGS: dict[str, tuple[TypeRoot, int | None]] = {
    "STRING": (TypeRoot.STRING, None),
    "CHAR": (TypeRoot.STRING, None),
    "BOOLEAN": (TypeRoot.BOOLEAN, None),
    "BYTE": (TypeRoot.TINYINT, None),
    "SHORT": (TypeRoot.SMALLINT, None),
    "INT": (TypeRoot.INT, None),
    "LONG": (TypeRoot.BIGINT, None),
    "FLOAT": (TypeRoot.FLOAT, None),
    "DOUBLE": (TypeRoot.DOUBLE, None),
    "BIG_DEC": (TypeRoot.DECIMAL, None),
    "BIG_INT": (TypeRoot.BIG_INTEGER, None),
    "BYTES": (TypeRoot.BYTES, None),
    "SQL_DATE": (TypeRoot.DATE, None),
    "LOCAL_DATE": (TypeRoot.DATE, None),
    "SQL_TIME": (TypeRoot.TIME, 3),
    "LOCAL_TIME": (TypeRoot.TIME, 6),
    "SQL_TIMESTAMP": (TypeRoot.TIMESTAMP, 3),
    "LOCAL_DATE_TIME": (TypeRoot.TIMESTAMP, 6),
    "NANOSECOND_TIMESTAMP": (TypeRoot.TIMESTAMP, 9),
    "INSTANT": (TypeRoot.TIMESTAMP_LTZ, 9),
    "PICKLED_BYTE_ARRAY": (TypeRoot.ANY, None),
}


def _of_type(type_info: TypeInformation) -> FormatType:
    tag = type_info.to_json()["type"]
    if tag in _TAGS:
        root, precision = _TAGS[tag]
        return FormatType(root, precision, declared=type_info)
    if isinstance(type_info, StructTypeInfo):
        fields = tuple(map(_of_type, type_info.field_types))
        return FormatType(TypeRoot.ROW, names=tuple(type_info.field_names), children=fields, declared=type_info)
    if isinstance(type_info, MapTypeInfo):
        return FormatType(
            TypeRoot.MAP, children=(_of_type(type_info.key_type), _of_type(type_info.value_type)), declared=type_info
        )
    element = getattr(type_info, "elem_type", None)
    if isinstance(element, TypeInformation):
        return FormatType(TypeRoot.ARRAY, children=(_of_type(element),), declared=type_info)
    # a type of another layer, which is known by its Arrow type
    arrow_based = _of_arrow(type_info.arrow_type)
    return FormatType(arrow_based.root, arrow_based.precision, arrow_based.scale, True, declared=type_info)


_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_PLAIN: tuple[tuple[Callable[[pa.DataType], bool], TypeRoot], ...] = (
    (lambda arrow_type: pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type), TypeRoot.STRING),
    (pa.types.is_boolean, TypeRoot.BOOLEAN),
    (pa.types.is_int8, TypeRoot.TINYINT),
    (lambda arrow_type: pa.types.is_int16(arrow_type) or pa.types.is_uint8(arrow_type), TypeRoot.SMALLINT),
    (lambda arrow_type: pa.types.is_int32(arrow_type) or pa.types.is_uint16(arrow_type), TypeRoot.INT),
    (lambda arrow_type: pa.types.is_int64(arrow_type) or pa.types.is_uint32(arrow_type), TypeRoot.BIGINT),
    (lambda arrow_type: pa.types.is_float32(arrow_type) or pa.types.is_float16(arrow_type), TypeRoot.FLOAT),
    (pa.types.is_float64, TypeRoot.DOUBLE),
    (
        lambda arrow_type: (
            pa.types.is_binary(arrow_type)
            or pa.types.is_large_binary(arrow_type)
            or pa.types.is_fixed_size_binary(arrow_type)
        ),
        TypeRoot.BYTES,
    ),
    (pa.types.is_date, TypeRoot.DATE),
)


def _of_arrow(arrow_type: pa.DataType, nullable: bool = True) -> FormatType:
    for matches, root in _PLAIN:
        if matches(arrow_type):
            return FormatType(root, nullable=nullable)
    if pa.types.is_decimal(arrow_type):
        return FormatType(TypeRoot.DECIMAL, arrow_type.precision, arrow_type.scale, nullable)
    if pa.types.is_time(arrow_type):
        return FormatType(TypeRoot.TIME, _DIGITS[arrow_type.unit], nullable=nullable)
    if pa.types.is_timestamp(arrow_type):
        return FormatType(
            TypeRoot.TIMESTAMP_LTZ if arrow_type.tz else TypeRoot.TIMESTAMP, _DIGITS[arrow_type.unit], nullable=nullable
        )
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type) or pa.types.is_fixed_size_list(arrow_type):
        return FormatType(TypeRoot.ARRAY, nullable=nullable, children=(_of_field(arrow_type.value_field),))
    if pa.types.is_map(arrow_type):
        return FormatType(
            TypeRoot.MAP,
            nullable=nullable,
            children=(_of_field(arrow_type.key_field), _of_field(arrow_type.item_field)),
        )
    if pa.types.is_struct(arrow_type):
        fields = [arrow_type.field(index) for index in range(arrow_type.num_fields)]
        names = tuple(arrow_field.name for arrow_field in fields)
        return FormatType(TypeRoot.ROW, nullable=nullable, names=names, children=tuple(map(_of_field, fields)))
    raise UnsupportedType(arrow_type)


def _of_field(arrow_field: pa.Field) -> FormatType:
    return _of_arrow(arrow_field.type, arrow_field.nullable)
