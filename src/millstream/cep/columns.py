"""Comparisons of a field with a value, for a whole batch of events.

Promises: exactly the answers that the comparison of each event gives; None where columns do not give them.
Does not know: expressions, patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.runtime.batch import Batch
from millstream.types.factory import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from millstream.types.row import Row

_EXACT = 1 << 53  # whole numbers up to it are floats, too
_LARGEST = 1 << 63
_INTEGERS = (Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG())


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def comparisons(batch: Batch, field: str, op: str, value: Any) -> np.ndarray | None:
    """Whether field `op` value, for each event."""
    found = _column(batch, field)
    if found is None:
        return None
    column, kind = found
    plain = _comparable(kind, value if op == "in" else (value,))
    if plain is None or (op == "in" and pa.types.is_floating(plain[0])):  # there 0.0 is not -0.0, and NaN is itself
        return None
    target, values = plain
    column = column if column.type == target else column.cast(target)
    if op == "in":
        answers = pc.is_in(column, value_set=pa.array(values, target))
    else:
        answers = _OPERATORS[op](column, pa.scalar(values[0], target))
    return answers.fill_null(False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _column(batch: Batch, field: str) -> tuple[pa.Array, TypeInformation] | None:
    """The column of what an event gives by that name; None when events may give something else."""
    kind = batch.kind
    place: str | int = field
    if isinstance(kind, TupleTypeInfo):
        if not field.isdecimal() or not field.isascii():
            return None
        place = int(field)
    elif isinstance(kind, RowTypeInfo) and hasattr(Row, field):
        return None
    found = batch.column(place)
    return None if found is None or batch.array().null_count else found


def _comparable(kind: TypeInformation, values: tuple[Any, ...]) -> tuple[pa.DataType, list[Any]] | None:
    """The Arrow type in which a column of a kind compares with values as Python would, and the values in it."""
    types = set(map(type, values))
    if kind == Types.STRING() and types <= {str}:
        return pa.string(), list(values)
    if kind in _INTEGERS and types <= {int} and all(-_LARGEST <= value < _LARGEST for value in values):
        return pa.int64(), list(values)
    if kind == Types.DOUBLE() and types <= {int, float} and all(type(v) is float or abs(v) <= _EXACT for v in values):
        return pa.float64(), [float(value) for value in values]
    return None
