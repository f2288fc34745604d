"""Records to JSON text.

Promises: the text that Flink's json format writes for every value, sign by sign.
Does not know: options, batches."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

from millstream.formats import texts
from millstream.formats.shapes import BITS, Kind, Shape


class JsonWriter:
    """Makes JSON text of records."""

    def __init__(
        self, shape: Shape, *, style: str, null_key_mode: str, null_key: str, plain_decimals: bool, drop_nulls: bool
    ) -> None:
        self._style, self._plain, self._drop_nulls = style, plain_decimals, drop_nulls
        self._null_key_mode, self._null_key = null_key_mode, null_key
        self.row = self._writer(shape)

    def writer(self, shape: Shape) -> Callable[[Any], str]:
        """What writes a value of the shape, or null."""
        write = self._writer(shape)
        return lambda value: "null" if value is None else write(value)

    def _writer(self, shape: Shape) -> Callable[[Any], str]:
        kind, precision, style = shape.kind, shape.precision, self._style
        if kind in BITS or kind is Kind.BIG_INTEGER:
            return lambda value: str(int(value))
        if kind is Kind.FLOAT or kind is Kind.DOUBLE:
            return lambda value: _number_text(texts.write_float(value, kind))
        if kind is Kind.DECIMAL:
            return lambda value: texts.write_decimal(value, shape, self._plain, short=True)
        if kind is Kind.TIME:
            end = "Z" if style == texts.RFC else ""
            return lambda value: f'"{texts.write_time(value, precision)}{end}"'
        if kind is Kind.TIMESTAMP:
            return lambda value: f'"{texts.write_timestamp(value, style, precision)}"'
        if kind is Kind.TIMESTAMP_LTZ:
            return lambda value: f'"{texts.write_instant(value, style, precision)}"'
        if kind is Kind.ARRAY:
            element = self.writer(shape.children[0])
            return lambda value: "[" + ",".join([element(item) for item in value]) + "]"
        if kind is Kind.MAP:
            return self._map_writer(shape)
        if kind is Kind.ROW:
            return self._row_writer(shape)
        return _TEXTS[kind]

    def _row_writer(self, shape: Shape) -> Callable[[Any], str]:
        split, drop = shape.splitter(), self._drop_nulls
        heads = [f"{quoted(name)}:" for name in shape.names]
        writers = [self.writer(child) for child in shape.children]

        def write(value: Any) -> str:
            fields = zip(heads, writers, split(value), strict=True)
            members = [head + write(item) for head, write, item in fields if not (drop and item is None)]
            return "{" + ",".join(members) + "}"

        return write

    def _map_writer(self, shape: Shape) -> Callable[[Any], str]:
        item_writer = self.writer(shape.children[1])

        def write(value: Any) -> str:
            members = []
            for key, item in value.items():
                if key is None:
                    if self._null_key_mode == "DROP":
                        continue
                    if self._null_key_mode == "FAIL":
                        message = "JSON has no map with a null key; see map-null-key.mode"
                        raise ValueError(message)
                    key = self._null_key
                members.append(f"{quoted(str(key))}:{item_writer(item)}")
            return "{" + ",".join(members) + "}"

        return write


_ESCAPES = re.compile("[\x00-\x1f]|[\U00010000-\U0010ffff]")
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def quoted(text: str) -> str:
    """A text in quotes, escaped as Java's writer does: its surrogates one by one, hexadecimal digits in capitals."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_ESCAPES.sub(_escape, plain)}"' if _ESCAPES.search(plain) else f'"{plain}"'


def _escape(found: re.Match[str]) -> str:
    sign = found[0]
    if sign in _SHORT:
        return _SHORT[sign]
    units = sign.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2))


def _number_text(text: str) -> str:
    return f'"{text}"' if text[-1] in "yN" else text


_TEXTS: dict[Kind, Callable[[Any], str]] = {
    Kind.STRING: quoted,
    Kind.BOOLEAN: lambda value: "true" if value else "false",
    Kind.BYTES: lambda value: f'"{base64.b64encode(value).decode()}"',
    Kind.DATE: lambda value: f'"{value.isoformat()}"',
    Kind.ANY: lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False),
}
