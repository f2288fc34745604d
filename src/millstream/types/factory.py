"""Types: the factory of type information, under PyFlink's names.

Promises: every type that PyFlink's `Types` creates, and types of dataclasses and named tuples. All names of the type
system can be imported from here.
Does not know: how the values of a type are stored; the module of the type does."""

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
    create_primitive_array,
)
from millstream.types.composite_types import (
    KIND_FIELD,
    DataclassTypeInfo,
    NamedTupleTypeInfo,
    RowTypeInfo,
    StructTypeInfo,
    TupleTypeInfo,
    is_named_tuple,
    read_hints_of_fields,
)
from millstream.types.type_hints import find_type_of_hint
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
    """Create type information.

    Example:
        >>> Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
        RowTypeInfo(name: String, age: Integer)

    """

    @staticmethod
    def STRING() -> TypeInformation:
        """Return the type of strings."""
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BYTE() -> TypeInformation:
        """Return the type of signed integers of 8 bits."""
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def BOOLEAN() -> TypeInformation:
        """Return the type of booleans."""
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def SHORT() -> TypeInformation:
        """Return the type of signed integers of 16 bits."""
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT() -> TypeInformation:
        """Return the type of signed integers of 32 bits."""
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG() -> TypeInformation:
        """Return the type of signed integers of 64 bits."""
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT() -> TypeInformation:
        """Return the type of floating-point numbers of 32 bits."""
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE() -> TypeInformation:
        """Return the type of floating-point numbers of 64 bits."""
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR() -> TypeInformation:
        """Return the type of single characters."""
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT() -> TypeInformation:
        """Return the type of integers of any size."""
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC() -> TypeInformation:
        """Return the type of decimals of any precision."""
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT() -> TypeInformation:
        """Return the type of points in time with a precision of nanoseconds."""
        return BasicTypeInfo(BasicType.INSTANT)

    @staticmethod
    def SQL_DATE() -> TypeInformation:
        """Return the type of dates."""
        return DateTypeInfo()

    @staticmethod
    def SQL_TIME() -> TypeInformation:
        """Return the type of times of day with a precision of milliseconds."""
        return TimeTypeInfo()

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:
        """Return the type of dates with time with a precision of milliseconds."""
        return TimestampTypeInfo()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:
        """Return the type of any Python objects, which are pickled."""
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: list[TypeInformation]) -> RowTypeInfo:
        """Return the type of rows with fields named f0, f1 and so on.

        Args:
            field_types: The types of the fields.

        """
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(field_names: list[str], field_types: list[TypeInformation]) -> RowTypeInfo:
        """Return the type of rows with named fields.

        Args:
            field_names: The names of the fields.
            field_types: The types of the fields, as many as names.

        """
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: list[TypeInformation]) -> TupleTypeInfo:
        """Return the type of tuples.

        Args:
            field_types: The types of the fields.

        """
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Return the type of arrays of a primitive type; arrays of BYTE are `bytes`, others are lists.

        Args:
            element_type: The type of the elements.

        """
        return create_primitive_array(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Return the type of arrays of a boxed primitive type or of strings; values are lists.

        Args:
            element_type: The type of the elements.

        """
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """Return the type of arrays of any type; values are lists.

        Args:
            element_type: The type of the elements.

        """
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> TypeInformation:
        """Return the type of dicts.

        Args:
            key_type_info: The type of the keys.
            value_type_info: The type of the values.

        """
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> TypeInformation:
        """Return the type of lists.

        Args:
            element_type_info: The type of the elements.

        """
        return ListTypeInfo(element_type_info)

    @staticmethod
    def DATACLASS(cls: type) -> DataclassTypeInfo:
        """Return the type of instances of a dataclass, which are stored field by field.

        Args:
            cls: The dataclass. A field whose type hint has no corresponding type is pickled.

        Raises:
            InvalidTypeArgument: If it is not a dataclass.

        """
        if not dataclasses.is_dataclass(cls):
            message = f"{cls!r} is not a dataclass"
            raise InvalidTypeArgument(message, cls)
        return DataclassTypeInfo(cls, *_split_field_types_and_names(cls))

    @staticmethod
    def NAMED_TUPLE(cls: type) -> NamedTupleTypeInfo:
        """Return the type of instances of a NamedTuple class, which are stored field by field.

        Args:
            cls: The class. A field whose type hint has no corresponding type is pickled.

        Raises:
            InvalidTypeArgument: If it is not a NamedTuple class.

        """
        if not is_named_tuple(cls):
            message = f"{cls!r} is not a NamedTuple class"
            raise InvalidTypeArgument(message, cls)
        return NamedTupleTypeInfo(cls, *_split_field_types_and_names(cls))


def _split_field_types_and_names(cls: type) -> tuple[list[TypeInformation], list[str]]:
    fields: list[tuple[str, Any]] = read_hints_of_fields(cls)
    return [find_type_of_hint(hint) or PickledBytesTypeInfo() for _, hint in fields], [name for name, _ in fields]
