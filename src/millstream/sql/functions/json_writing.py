"""JSON functions that construct text: values, objects and arrays.

Promises: text has no spaces, and the keys of objects are sorted, as in Flink; JSON text is not quoted again inside
JSON_OBJECT and JSON_ARRAY.
Does not know: paths into documents."""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NoReturn

from millstream.sql.functions import text
from millstream.sql.functions.registry import by_row, define
from millstream.sql.types import data_types as t
from millstream.sql.types.variants import Variant
from millstream.types.java_numbers import format_double

_JSON = "json"


def format_json(value: Any) -> str:
    """Format a value as JSON without spaces, with sorted keys; raw JSON inside it is inserted unchanged."""
    try:
        return _dump(value)
    except TypeError:  # it contains raw JSON or decimals
        return _assemble(value)


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def _assemble(value: Any) -> str:
    match value:
        case RawJson():
            return value.text
        case Decimal():
            return str(value)
        case list():
            return f"[{','.join(map(_assemble, value))}]"
        case dict():
            return "{" + ",".join(f"{_dump(key)}:{_assemble(item)}" for key, item in sorted(value.items())) + "}"
    return _dump(value)


def _reject_constant(constant: str) -> NoReturn:
    msg = f"{constant} is not valid JSON"
    raise ValueError(msg)


_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_reject_constant)


def parse_json(text: str) -> Any:
    """Parse JSON; numbers with a fraction or an exponent are decimals, so that `format_json` returns them unchanged.

    Raises:
        ValueError: If the text is not valid JSON.

    """
    try:
        return _DECODER.decode(text)
    except RecursionError:
        msg = "JSON that is nested too deeply"
        raise ValueError(msg) from None


def create_json_converter(data_type: t.DataType, zone: str) -> Callable[[Any], Any]:
    """Return the conversion of internal values of a type to values that `format_json` formats."""
    match data_type:
        case t.JsonTextType():
            return RawJson
        case t.VariantType():
            return lambda value: RawJson(Variant(value).to_json())
        case t.BooleanType() | t.IntegerType() | t.DecimalType():
            return lambda value: value
        case t.FloatType() | t.DoubleType():
            return lambda value: Decimal(format_double(value)) if math.isfinite(value) else value
        case t.BinaryType() | t.VarBinaryType():
            return lambda value: base64.b64encode(value).decode()
        case t.ArrayType():
            convert_element = create_json_converter(data_type.element, zone)
            return lambda value: [None if v is None else convert_element(v) for v in value]
        case t.MapType():
            convert_value = create_json_converter(data_type.value, zone)
            return lambda value: {str(k): None if v is None else convert_value(v) for k, v in value}
        case t.MultisetType():
            return lambda value: {str(element): count for element, count in value}
        case t.RowType():
            converters = [create_json_converter(field_type, zone) for field_type in data_type.types]
            names = data_type.names
            return lambda value: {
                name: None if v is None else convert(v)
                for name, convert, v in zip(names, converters, value, strict=True)
            }
        case t.TimestampType() | t.LocalZonedTimestampType():
            return _format_iso_timestamp
        case t.DateType() | t.TimeType():
            return lambda value: value.isoformat()
    return lambda value: text.to_text(value, data_type, zone)


def _format_iso_timestamp(value: datetime.datetime) -> str:
    """Format a timestamp as in ISO 8601, with as many digits of the second as it has."""
    nanos = f"{value.microsecond * 1000 + getattr(value, 'nanosecond', 0):09d}".rstrip("0")
    seconds = f"{value.date().isoformat()}T{value.hour:02d}:{value.minute:02d}:{value.second:02d}"
    return f"{seconds}{f'.{nanos}' if nanos else ''}{'Z' if value.tzinfo else ''}"


def _json_string(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    convert = create_json_converter(arg_types[0], frame.zone)
    return by_row(lambda value: format_json(convert(value)))(frame, args, arg_types, result_type)


def _json(text: str) -> str | None:
    return format_json(parse_json(text)) if text.strip() else None


define(
    "JSON",
    _JSON,
    "string",
    t.JsonTextType(),
    by_row(_json),
    "Marks a string as JSON, so that JSON_OBJECT and JSON_ARRAY insert it without quoting it. Returns NULL if it is "
    "blank.",
    null="always",
)
define("JSON_STRING", _JSON, "any", t.STRING, _json_string, "Returns the value as JSON text. Keys are sorted.")


def _json_object(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    converters = [create_json_converter(data_type, frame.zone) for data_type in arg_types]

    def build(on_null: str, *keys_and_values: Any) -> str:
        members: dict[str, str] = {}
        for i in range(0, len(keys_and_values), 2):
            key, value = keys_and_values[i], keys_and_values[i + 1]
            if value is None and on_null == "ABSENT":
                continue
            members[key] = "null" if value is None else format_json(converters[i + 2](value))
        return "{" + ",".join(f"{format_json(key)}:{members[key]}" for key in sorted(members)) + "}"

    return by_row(build, strict=False)(frame, args, arg_types, result_type)


class RawJson:
    """JSON text that is inserted unchanged."""

    def __init__(self, json: str) -> None:
        self.text = json


def _json_array(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    converters = [create_json_converter(data_type, frame.zone) for data_type in arg_types]

    def build(on_null: str, *values: Any) -> str:
        elements = [
            "null" if value is None else format_json(converters[i + 1](value))
            for i, value in enumerate(values)
            if value is not None or on_null != "ABSENT"
        ]
        return "[" + ",".join(elements) + "]"

    return by_row(build, strict=False)(frame, args, arg_types, result_type)


define(
    "JSON_OBJECT",
    _JSON,
    ("symbol", "symbol, any..."),
    t.STRING,
    _json_object,
    "Returns a JSON object of the keys and values, with sorted keys.",
    null="never",
    syntax="JSON_OBJECT([KEY] key VALUE value, ... [{NULL | ABSENT} ON NULL])",
)
define(
    "JSON_ARRAY",
    _JSON,
    ("symbol", "symbol, any..."),
    t.STRING,
    _json_array,
    "Returns a JSON array of the values.",
    null="never",
    syntax="JSON_ARRAY(value, ... [{NULL | ABSENT} ON NULL])",
)
define(
    "JSON_QUOTE",
    _JSON,
    "string",
    t.STRING,
    by_row(lambda v: json.dumps(v)),
    "Returns the string as a JSON string, with quotes and escaped characters.",
)


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == '"':
        try:
            result = json.loads(value)
        except ValueError:
            return value
        return result if isinstance(result, str) else value
    return value


define(
    "JSON_UNQUOTE",
    _JSON,
    "string",
    t.STRING,
    by_row(_unquote),
    "Removes the quotes and escapes of a JSON string. Other strings are returned unchanged.",
)
