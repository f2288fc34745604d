"""Types: the factory of all type information, under PyFlink's names.

Promises: every type PyFlink's `Types` makes, plus dataclasses and named tuples; all names of the type system can be
imported from here.
Does not know: how a type is laid out; its own module does."""

from __future__ import annotations

import dataclasses
from typing import Any

from millstream.types.arrow_types import TypeMismatch
from millstream.types.basic_types import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    LocalTimeTypeInfo,
    PickledBytesTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from millstream.types.collection_types import (
    BasicArrayTypeInfo,
    ByteArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    primitive_array,
)
from millstream.types.composite_types import (
    KIND_FIELD,
    DataclassTypeInfo,
    NamedTupleTypeInfo,
    RowTypeInfo,
    StructTypeInfo,
    TupleTypeInfo,
    hints_of_fields,
    is_named_tuple,
)
from millstream.types.type_hints import type_of_hint
from millstream.types.type_information import InvalidTypeArgument, TypeInformation, UnknownType

__all__ = [
    "KIND_FIELD",
    "BasicArrayTypeInfo",
    "BasicType",
    "BasicTypeInfo",
    "ByteArrayTypeInfo",
    "DataclassTypeInfo",
    "DateTypeInfo",
    "InvalidTypeArgument",
    "ListTypeInfo",
    "LocalTimeTypeInfo",
    "MapTypeInfo",
    "NamedTupleTypeInfo",
    "ObjectArrayTypeInfo",
    "PickledBytesTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "StructTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
    "TupleTypeInfo",
    "TypeInformation",
    "TypeMismatch",
    "Types",
    "UnknownType",
    "type_from_json",
]

type_from_json = TypeInformation.type_from_json


class Types:
    """Makes type information."""

    @staticmethod
    def STRING() -> TypeInformation:
        """Strings."""
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BYTE() -> TypeInformation:
        """Whole numbers of 8 bits."""
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def BOOLEAN() -> TypeInformation:
        """True and False."""
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def SHORT() -> TypeInformation:
        """Whole numbers of 16 bits."""
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT() -> TypeInformation:
        """Whole numbers of 32 bits."""
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG() -> TypeInformation:
        """Whole numbers of 64 bits."""
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT() -> TypeInformation:
        """Floating point numbers of 32 bits."""
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE() -> TypeInformation:
        """Floating point numbers of 64 bits."""
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR() -> TypeInformation:
        """Characters."""
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT() -> TypeInformation:
        """Whole numbers of any size."""
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC() -> TypeInformation:
        """Decimals of any precision."""
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT() -> TypeInformation:
        """Points in time, to the nanosecond."""
        return BasicTypeInfo(BasicType.INSTANT)

    @staticmethod
    def SQL_DATE() -> TypeInformation:
        """Dates."""
        return DateTypeInfo()

    @staticmethod
    def SQL_TIME() -> TypeInformation:
        """Times of day, to the millisecond."""
        return TimeTypeInfo()

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:
        """Dates with time, to the millisecond."""
        return TimestampTypeInfo()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:
        """Python objects of any kind."""
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: list[TypeInformation]) -> RowTypeInfo:
        """Rows with fields of these types, named f0, f1, ..."""
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(field_names: list[str], field_types: list[TypeInformation]) -> RowTypeInfo:
        """Rows with fields of these names and types."""
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: list[TypeInformation]) -> TupleTypeInfo:
        """Tuples with fields of these types."""
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Arrays of a primitive; those of BYTE are `bytes`, the others lists."""
        return primitive_array(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Arrays of a boxed primitive or of strings, as lists."""
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Arrays of any type, as lists."""
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> TypeInformation:
        """Dicts."""
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> TypeInformation:
        """Lists."""
        return ListTypeInfo(element_type_info)

    @staticmethod
    def DATACLASS(cls: type) -> DataclassTypeInfo:
        """Instances of a dataclass, field by field; a field whose hint says too little holds any Python object."""
        if not dataclasses.is_dataclass(cls):
            message = f"{cls!r} is not a dataclass"
            raise InvalidTypeArgument(message, cls)
        return DataclassTypeInfo(cls, *_fields(cls))

    @staticmethod
    def NAMED_TUPLE(cls: type) -> NamedTupleTypeInfo:
        """Instances of a NamedTuple class; a field whose hint says too little holds any Python object."""
        if not is_named_tuple(cls):
            message = f"{cls!r} is not a NamedTuple class"
            raise InvalidTypeArgument(message, cls)
        return NamedTupleTypeInfo(cls, *_fields(cls))


def _fields(cls: type) -> tuple[list[TypeInformation], list[str]]:
    pairs: list[tuple[str, Any]] = hints_of_fields(cls)
    return [type_of_hint(hint) or PickledBytesTypeInfo() for _, hint in pairs], [name for name, _ in pairs]
