"""Row types as users give them: type information, an Arrow schema, or a type of the table API.

Promises: one row type for each of these.
Does not know: formats."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from millstream.errors import UserError
from millstream.formats import FormatType
from millstream.types.factory import RowTypeInfo, TypeInformation, Types


class NoRowType(UserError):
    """Something that is no type of rows."""

    hint = "give Types.ROW_NAMED([...], [...]), an Arrow schema or DataTypes.ROW([...])"

    def __init__(self, given: object) -> None:
        self.given = given
        super().__init__(f"row_type must describe rows, got {given!r}")


def type_of(given: Any) -> TypeInformation:
    """The type information of what was given."""
    if isinstance(given, TypeInformation):
        return given
    if isinstance(given, (pa.DataType, pa.Schema)):
        return FormatType.of(given).type_info()
    # the table API's types are of a higher layer: they say themselves what they are
    convert = getattr(given, "to_type_info", None)
    found = convert() if callable(convert) else None
    if isinstance(found, TypeInformation):
        return found
    raise NoRowType(given)


def row_type_of(given: Any) -> RowTypeInfo:
    """The row type of what was given."""
    found = type_of(given)
    if isinstance(found, RowTypeInfo):
        return found
    raise NoRowType(given)


def array_type(element: TypeInformation) -> TypeInformation:
    """Arrays of an element type."""
    return Types.OBJECT_ARRAY(element)
