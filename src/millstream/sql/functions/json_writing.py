"""JSON functions that write: values, objects and arrays as text.

Promises: text has no spaces; JSON text is not quoted again inside JSON_OBJECT and JSON_ARRAY.
Does not know: paths."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from millstream.sql.functions import text
from millstream.sql.functions.registry import by_row, define
from millstream.sql.types import data_types as t
from millstream.sql.types.variants import Variant

_J = "json"


def json_text(value: Any) -> str:
    """Format a value as JSON without spaces; raw JSON inside it is inserted unchanged."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    except TypeError:  # it contains raw JSON
        return _assemble(value)


def _assemble(value: Any) -> str:
    match value:
        case RawJson():
            return value.text
        case list():
            return f"[{','.join(map(_assemble, value))}]"
        case dict():
            return "{" + ",".join(f"{json_text(key)}:{_assemble(each)}" for key, each in value.items()) + "}"
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def plain_json(data_type: t.DataType, zone: str) -> Callable[[Any], Any]:
    """Return the conversion of internal values to values that json.dumps accepts."""
    match data_type:
        case t.JsonTextType():
            return RawJson
        case t.VariantType():
            return lambda value: RawJson(Variant(value).to_json())
        case t.BooleanType() | t.IntegerType() | t.FloatType() | t.DoubleType():
            return lambda value: value
        case t.DecimalType():
            return lambda value: float(value) if value != int(value) else int(value)
        case t.BinaryType() | t.VarBinaryType():
            return lambda value: base64.b64encode(value).decode()
        case t.ArrayType():
            inner = plain_json(data_type.element, zone)
            return lambda value: [None if v is None else inner(v) for v in value]
        case t.MapType():
            item = plain_json(data_type.value, zone)
            return lambda value: {str(k): None if v is None else item(v) for k, v in value}
        case t.RowType():
            makers = [plain_json(each, zone) for each in data_type.types]
            names = data_type.names
            return lambda value: {n: None if v is None else m(v) for n, m, v in zip(names, makers, value, strict=True)}
        case t.TimestampType() | t.LocalZonedTimestampType():
            return lambda value: value.replace(tzinfo=None).isoformat() + ("Z" if value.tzinfo else "")
        case t.DateType() | t.TimeType():
            return lambda value: value.isoformat()
    return lambda value: text.to_text(value, data_type, zone)


def _json_string(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    make = plain_json(arg_types[0], frame.zone)
    return by_row(lambda value: json_text(make(value)))(frame, args, arg_types, result_type)


define(
    "JSON",
    _J,
    "string",
    t.JsonTextType(),
    by_row(lambda value: json_text(json.loads(value))),
    "Marks a string as JSON, so that JSON_OBJECT and JSON_ARRAY insert it without quoting it.",
)
define("JSON_STRING", _J, "any", t.STRING, _json_string, "Returns the value as JSON text.")


def _json_object(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    makers = [plain_json(each, frame.zone) for each in arg_types]

    def make(how: str, *parts: Any) -> str:
        pairs = []
        for i in range(0, len(parts), 2):
            key, value = parts[i], parts[i + 1]
            if value is None and how == "ABSENT":
                continue
            pairs.append((key, value if value is None else makers[i + 2](value)))
        inside = ",".join(f"{json_text(k)}:{_format_value(v)}" for k, v in pairs)
        return "{" + inside + "}"

    return by_row(make, strict=False)(frame, args, arg_types, result_type)


def _format_value(value: Any) -> str:
    return value.text if isinstance(value, RawJson) else json_text(value)


class RawJson:
    """JSON text that is inserted unchanged."""

    def __init__(self, text_: str) -> None:
        self.text = text_


def _json_array(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    makers = [plain_json(each, frame.zone) for each in arg_types]

    def make(how: str, *parts: Any) -> str:
        kept = [
            "null" if value is None else _format_value(makers[i + 1](value))
            for i, value in enumerate(parts)
            if value is not None or how != "ABSENT"
        ]
        return "[" + ",".join(kept) + "]"

    return by_row(make, strict=False)(frame, args, arg_types, result_type)


define(
    "JSON_OBJECT",
    _J,
    ("symbol", "symbol, any..."),
    t.STRING,
    _json_object,
    "Returns a JSON object of the keys and values.",
    null="never",
    syntax="JSON_OBJECT([KEY] key VALUE value, ... [{NULL | ABSENT} ON NULL])",
)
define(
    "JSON_ARRAY",
    _J,
    ("symbol", "symbol, any..."),
    t.STRING,
    _json_array,
    "Returns a JSON array of the values.",
    null="never",
    syntax="JSON_ARRAY(value, ... [{NULL | ABSENT} ON NULL])",
)
define(
    "JSON_QUOTE",
    _J,
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
    _J,
    "string",
    t.STRING,
    by_row(_unquote),
    "Removes the quotes and escapes of a JSON string. Other strings are returned unchanged.",
)
