"""Converts type information, Arrow schemas and types of the Table API to types of records in formats.

Promises: each of them is converted to one format type; precision and scale are kept.
Does not know: formats; the types of the Table API, which `millstream.sql` registers with `format_type_of`."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import pyarrow as pa

from millstream.errors import UserError
from millstream.formats import FormatType
from millstream.types.factory import RowTypeInfo, TypeInformation, Types


class NoDataType(UserError, TypeError):
    """An argument that is not a type."""

    hint = "use a type of Types or DataTypes, such as Types.INT() or DataTypes.INT()"

    def __init__(self, argument: object) -> None:
        self.argument = argument
        super().__init__(f"{argument!r} is not a data type")


class NoRowType(UserError, TypeError):
    """An argument that is not a row type."""

    hint = "use Types.ROW_NAMED([...], [...]), an Arrow schema or DataTypes.ROW([...])"

    def __init__(self, argument: object) -> None:
        self.argument = argument
        super().__init__(f"row_type must describe rows, got {argument!r}")


@singledispatch
def format_type_of(declared: Any) -> FormatType:
    """Return the format type of a declared type."""
    raise NoDataType(declared)


@format_type_of.register(TypeInformation)
@format_type_of.register(pa.DataType)
@format_type_of.register(pa.Schema)
def _(declared: Any) -> FormatType:
    return FormatType.of(declared)


def type_of(declared: Any) -> TypeInformation:
    """Return the type information of a declared type."""
    return format_type_of(declared).type_info()


def row_type_of(declared: Any) -> FormatType:
    """Return the format type of a declared row type."""
    try:
        row_type = format_type_of(declared)
    except NoDataType:
        raise NoRowType(declared) from None
    if isinstance(row_type.type_info(), RowTypeInfo):
        return row_type
    raise NoRowType(declared)


def array_type(element: TypeInformation) -> TypeInformation:
    """Return the type of arrays of an element type."""
    return Types.OBJECT_ARRAY(element)
