"""Rows as JSON, in the two formats of Flink's gateway: JSON values, and the texts that a SQL client prints.

Promises: JSON values are those of Flink's JSON format; texts are those of CAST to STRING.
Does not know: results, pages."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any

from millstream.sql.columns import create_internal_converter
from millstream.sql.functions.text import find_time_zone, to_text
from millstream.sql.types import data_types as t
from millstream.types.row import Row

Formatter = Callable[[Row], list[Any]]
_SECONDS = 1000


class RowFormat(Enum):
    """How the fields of rows are sent."""

    JSON = "JSON"
    PLAIN_TEXT = "PLAIN_TEXT"


def create_formatter(row_format: RowFormat, data_types: Sequence[t.DataType], zone: str) -> Formatter:
    """Return the conversion of a row to its fields; `zone` is the time zone of the session."""
    converters = [create_internal_converter(data_type) for data_type in data_types]

    def format_row(row: Row) -> list[Any]:
        fields = zip(row, data_types, converters, strict=True)
        return [None if value is None else encode(convert(value), data_type) for value, data_type, convert in fields]

    def encode(value: Any, data_type: t.DataType) -> Any:
        if row_format is RowFormat.PLAIN_TEXT:
            return to_text(value, data_type, zone, hex_bytes=True)
        return to_json(value, data_type, zone)

    return format_row


def to_json(value: Any, data_type: t.DataType, zone: str = "UTC") -> Any:
    """Return an internal value as Flink's JSON format writes it."""

    def nested(inner: Any, inner_type: t.DataType) -> Any:
        return None if inner is None else to_json(inner, inner_type, zone)

    match data_type:
        case t.BooleanType() | t.IntegerType() | t.YearMonthIntervalType():
            return value
        case t.FloatType() | t.DoubleType():
            return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        case t.DecimalType():
            return _decimal(value)
        case t.BinaryType() | t.VarBinaryType():
            return base64.b64encode(bytes(value)).decode()
        case t.TimeType():
            return _without_zeros(to_text(value, t.TimeType(9), zone))
        case t.TimestampType():
            return _iso(to_text(value, t.TimestampType(9), zone))
        case t.LocalZonedTimestampType():
            local = value.astimezone(find_time_zone(zone)).replace(tzinfo=None)
            return _iso(to_text(local, t.TimestampType(9), zone)) + "Z"
        case t.DayTimeIntervalType():
            return round(value.total_seconds() * _SECONDS) if hasattr(value, "total_seconds") else int(value)
        case t.ArrayType():
            return [nested(element, data_type.element) for element in value]
        case t.MultisetType():
            return {to_text(element, data_type.element, zone): count for element, count in value}
        case t.MapType():
            return {to_text(key, data_type.key, zone): nested(item, data_type.value) for key, item in value}
        case t.RowType():
            fields = zip(data_type.names, value, data_type.types, strict=True)
            return {name: nested(field, field_type) for name, field, field_type in fields}
    return to_text(value, data_type, zone)


def _decimal(value: Decimal) -> float | str:
    """Return a number, or a text for one that a double cannot hold; clients read both."""
    number = float(value)
    return number if Decimal(repr(number)) == value else f"{value:f}"


def _iso(text: str) -> str:
    return _without_zeros(text).replace(" ", "T", 1)


def _without_zeros(text: str) -> str:
    """Remove the zeros at the end of a fraction of a second."""
    return text.rstrip("0").rstrip(".") if "." in text else text
