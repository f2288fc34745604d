"""Comparisons of a field with a value, evaluated for a batch of events.

Promises: the results are the same as those of comparing each event; None if columns cannot give these results.
Does not know: expressions and patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.runtime.batch import Batch
from millstream.types.factory import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from millstream.types.row import Row

_MAX_EXACT_FLOAT = 1 << 53  # integers up to this value are exact as floats
_INT64_LIMIT = 1 << 63
_INTEGERS = (Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG())


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compare_column(batch: Batch, field: str, op: str, value: Any) -> np.ndarray | None:
    """Return for each event whether `field op value` is true; None if each event must be compared by itself."""
    column_with_type = _get_column(batch, field)
    if column_with_type is None:
        return None
    column, type_info = column_with_type
    common = _find_common_type(type_info, value if op == "in" else (value,))
    if common is None:
        return None
    common_type, values = common
    if op == "in" and pa.types.is_floating(common_type):  # for is_in, 0.0 differs from -0.0 and NaN equals itself
        return None
    column = column if column.type == common_type else column.cast(common_type)
    if op == "in":
        results = pc.is_in(column, value_set=pa.array(values, common_type))
    else:
        results = _OPERATORS[op](column, pa.scalar(values[0], common_type))
    return results.fill_null(False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _get_column(batch: Batch, field: str) -> tuple[pa.Array, TypeInformation] | None:
    """Return the column of a field and its type; None if an event can return another value for this name."""
    type_info = batch.record_type
    name_or_index: str | int = field
    if isinstance(type_info, TupleTypeInfo):
        if not field.isdecimal() or not field.isascii():
            return None
        name_or_index = int(field)
    elif isinstance(type_info, RowTypeInfo) and hasattr(Row, field):
        return None
    column = batch.column(name_or_index)
    return None if column is None or batch.array().null_count else column


def _find_common_type(type_info: TypeInformation, values: tuple[Any, ...]) -> tuple[pa.DataType, list[Any]] | None:
    """Return the Arrow type in which a column and values compare as in Python, and the values of this type."""
    classes = set(map(type, values))
    if type_info == Types.STRING() and classes <= {str}:
        return pa.string(), list(values)
    if type_info in _INTEGERS and classes <= {int} and all(-_INT64_LIMIT <= value < _INT64_LIMIT for value in values):
        return pa.int64(), list(values)
    if type_info == Types.DOUBLE() and classes <= {int, float}:
        are_exact = all(type(value) is float or abs(value) <= _MAX_EXACT_FLOAT for value in values)
        return (pa.float64(), [float(value) for value in values]) if are_exact else None
    return None
