"""Values as `execute_and_collect` returns them.

Promises: a FLOAT is the Python number with the digits that Java prints for it, as in PyFlink; so are FLOATs in rows,
tuples, lists and maps. Other values stay as they are.
Does not know: jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from millstream.types.collection_types import ListTypeInfo, MapTypeInfo
from millstream.types.composite_types import RowTypeInfo, StructTypeInfo, TupleTypeInfo
from millstream.types.factory import Types
from millstream.types.row import Row
from millstream.types.type_information import TypeInformation


def collected_value_converter(type_info: TypeInformation) -> Callable[[Any], Any] | None:
    """Return the conversion of the values of a type; None if they stay as they are."""
    if type_info == Types.FLOAT():
        return _shortest_float
    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        return _struct_converter(type_info)
    if isinstance(type_info, ListTypeInfo):
        element = collected_value_converter(type_info.elem_type)
        return None if element is None else lambda values: values and [element(value) for value in values]
    if isinstance(type_info, MapTypeInfo):
        convert = collected_value_converter(type_info.value_type)
        return None if convert is None else lambda entries: entries and {k: convert(v) for k, v in entries.items()}
    return None


def _shortest_float(value: float | None) -> float | None:
    """Return the double with the fewest digits that is this number in single precision."""
    return None if value is None else float(str(np.float32(value)))


def _struct_converter(type_info: StructTypeInfo) -> Callable[[Any], Any] | None:
    converters = [collected_value_converter(field_type) for field_type in type_info.field_types]
    if not any(converters):
        return None

    def convert(record: Any) -> Any:
        if record is None:
            return None
        values = [
            value if convert_field is None else convert_field(value)
            for value, convert_field in zip(record, converters, strict=True)
        ]
        if isinstance(record, Row):
            return Row._from(getattr(record, "_fields", None), values, record._row_kind)
        return tuple(values)

    return convert
