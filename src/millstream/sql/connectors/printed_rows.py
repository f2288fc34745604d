"""Rows of a table as the print connector writes them.

Promises: the text of a row is Java's text of the external objects that Flink converts it to, with all nanoseconds.
Does not know: where lines are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from millstream.connectors.printing import RecordFormat
from millstream.sql.columns import create_row_type_info, read_row_kinds, to_tuples
from millstream.sql.types import data_types as t
from millstream.sql.types.variants import Variant
from millstream.types import java_texts
from millstream.types.bitmap import Bitmap
from millstream.types.java_numbers import format_double
from millstream.types.row import KINDS


@dataclass(frozen=True)
class TableRowFormat(RecordFormat):
    """Rows such as `+I[1, null, 2024-01-02T03:04]`."""

    row_type: t.RowType
    columnar = True

    def format(self, records: Sequence[Any] | pa.Array) -> list[str]:
        """Return the text of each row."""
        if not isinstance(records, pa.Array):
            records = create_row_type_info(self.row_type).to_arrow(records)
        formats = [_create_format(data_type) for data_type in self.row_type.types]
        row_kinds = read_row_kinds(records, len(formats))
        return [
            f"{KINDS[row_kind]}[{', '.join(f(v) for f, v in zip(formats, values, strict=True))}]"
            for row_kind, values in zip(row_kinds, to_tuples(records, self.row_type), strict=True)
        ]


@cache
def _create_format(data_type: t.DataType) -> java_texts.Format:
    """Return the function that formats internal values of a type; None is `null`."""
    return java_texts.format_or_null(_create_format_of_present(data_type))


def _create_format_of_present(data_type: t.DataType) -> java_texts.Format:
    match data_type:
        case t.BooleanType():
            return java_texts.format_boolean
        case t.BinaryType() | t.VarBinaryType():
            return java_texts.format_bytes
        case t.FloatType():
            return lambda value: format_double(value, single=True)
        case t.DoubleType():
            return format_double
        case t.DateType():
            return java_texts.format_local_date
        case t.TimeType():
            return java_texts.format_local_time
        case t.TimestampType():
            return java_texts.format_local_date_time
        case t.LocalZonedTimestampType():
            return java_texts.format_instant
        case t.YearMonthIntervalType():
            has_years = data_type.resolution != "MONTH"
            return lambda months: java_texts.format_period(months, has_years=has_years)
        case t.DayTimeIntervalType():
            return java_texts.format_java_duration
        case t.BitmapType():
            return lambda value: str(Bitmap.from_bytes(value))
        case t.VariantType():
            return lambda value: Variant(value).to_json()
        case t.ArrayType():
            element = _create_format(data_type.element)
            return lambda values: f"[{', '.join(map(element, values))}]"
        case t.MultisetType():
            return _create_map_format(_create_format(data_type.element), str)
        case t.MapType():
            return _create_map_format(_create_format(data_type.key), _create_format(data_type.value))
        case t.StructuredType():
            return _create_object_format(data_type)
        case t.RowType():
            fields = [_create_format(field_type) for field_type in data_type.types]
            return lambda values: f"+I[{', '.join(f(v) for f, v in zip(fields, values, strict=True))}]"
    return str


def _create_map_format(key: java_texts.Format, item: java_texts.Format) -> java_texts.Format:
    return lambda pairs: f"{{{', '.join(f'{key(k)}={item(v)}' for k, v in pairs)}}}"


def _create_object_format(data_type: t.StructuredType) -> java_texts.Format:
    fields = [
        (name, _create_format(field_type)) for name, field_type in zip(data_type.names, data_type.types, strict=True)
    ]

    def format_object(values: Sequence[Any]) -> str:
        pairs = (f"{name}={format_value(v)}" for (name, format_value), v in zip(fields, values, strict=True))
        return f"({', '.join(pairs)})"

    return format_object
