"""Rows as `TableResult.collect` returns them.

Promises: rows have PyFlink's form. They have no field names, nested rows neither; a FLOAT is the Python number with the
digits that Java prints for it; BYTES are bytearrays, except in keys, which must be hashable; timestamps are datetimes.
Values of other types stay as they are.
Does not know: jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from millstream.sql.columns import to_datetime
from millstream.sql.types import data_types as t
from millstream.types.row import Row


def convert_collected_rows(rows: Iterable[Row], row_type: t.RowType) -> Iterator[Row]:
    """Convert the rows of a job, or of a statement, to the rows that a program reads."""
    converters = [
        (index, convert)
        for index, convert in enumerate(map(_create_value_converter, row_type.types))
        if convert is not None
    ]
    for row in rows:
        values = row._values.copy()
        for index, convert in converters:
            if values[index] is not None:
                values[index] = convert(values[index])
        yield Row._from(None, values, row._row_kind)


def _create_value_converter(data_type: t.DataType, binary: type = bytearray) -> Callable[[Any], Any] | None:
    """Return the conversion of the values of a type that are not NULL; None if they stay as they are."""
    match data_type:
        case t.FloatType():
            return _shorten_float
        case t.BinaryType() | t.VarBinaryType():
            return binary
        case t.TimestampType() | t.LocalZonedTimestampType() if data_type.precision > 6:
            return to_datetime
        case t.ArrayType():
            element = _create_value_converter(data_type.element, binary)
            return None if element is None else lambda values: [v if v is None else element(v) for v in values]
        case t.MapType():
            return _map_converter(
                _create_value_converter(data_type.key, bytes), _create_value_converter(data_type.value, binary)
            )
        case t.MultisetType():
            return _map_converter(_create_value_converter(data_type.element, bytes), None)
        case t.RowType():
            return _create_row_converter(data_type, binary)
    return None


def _shorten_float(value: float) -> float:
    """Return the double with the fewest digits that is this number in single precision."""
    return float(str(np.float32(value)))


def _map_converter(
    key: Callable[[Any], Any] | None, value: Callable[[Any], Any] | None
) -> Callable[[dict[Any, Any]], dict[Any, Any]] | None:
    if key is None and value is None:
        return None
    return lambda entries: {
        (k if key is None else key(k)): (v if value is None or v is None else value(v)) for k, v in entries.items()
    }


def _create_row_converter(row_type: t.RowType, binary: type) -> Callable[[Any], Any]:
    converters = [_create_value_converter(data_type, binary) for data_type in row_type.types]

    def convert(row: Any) -> Any:
        if not isinstance(row, Row):  # an object of a structured type
            return row
        values = [
            value if value is None or convert_field is None else convert_field(value)
            for value, convert_field in zip(row._values, converters, strict=True)
        ]
        return Row._from(None, values, row._row_kind)

    return convert
