"""Records to JSON text.

Promises: exactly the text that Flink's json format writes for every value.
Does not know: options, batches."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

from millstream.formats import texts
from millstream.formats.format_types import BITS, FormatType, TypeRoot


class JsonWriter:
    """Converts records to JSON text."""

    def __init__(
        self,
        data_type: FormatType,
        *,
        style: str,
        null_key_mode: str,
        null_key: str,
        plain_decimals: bool,
        drop_nulls: bool,
    ) -> None:
        self._style, self._plain, self._drop_nulls = style, plain_decimals, drop_nulls
        self._null_key_mode, self._null_key = null_key_mode, null_key
        self.row = self._writer(data_type)

    def writer(self, data_type: FormatType) -> Callable[[Any], str]:
        """Return the formatter of values of a type."""
        write = self._writer(data_type)
        return lambda value: "null" if value is None else write(value)

    def _writer(self, data_type: FormatType) -> Callable[[Any], str]:
        root, precision, style = data_type.root, data_type.precision, self._style
        if root in BITS or root is TypeRoot.BIG_INTEGER:
            return lambda value: str(int(value))
        if root is TypeRoot.FLOAT or root is TypeRoot.DOUBLE:
            return lambda value: _number_text(texts.write_float(value, root))
        if root is TypeRoot.DECIMAL:
            return lambda value: texts.write_decimal(value, data_type, self._plain, short=True)
        if root is TypeRoot.TIME:
            end = "Z" if style == texts.RFC else ""
            return lambda value: f'"{texts.write_time(value, precision)}{end}"'
        if root is TypeRoot.TIMESTAMP:
            return lambda value: f'"{texts.write_timestamp(value, style, precision)}"'
        if root is TypeRoot.TIMESTAMP_LTZ:
            return lambda value: f'"{texts.write_instant(value, style, precision)}"'
        if root is TypeRoot.ARRAY:
            element = self.writer(data_type.children[0])
            return lambda value: "[" + ",".join([element(item) for item in value]) + "]"
        if root is TypeRoot.MAP:
            return self._map_writer(data_type)
        if root is TypeRoot.ROW:
            return self._row_writer(data_type)
        return _TEXTS[root]

    def _row_writer(self, data_type: FormatType) -> Callable[[Any], str]:
        split, drop = data_type.splitter(), self._drop_nulls
        heads = [f"{quote_string(name)}:" for name in data_type.names]
        writers = [self.writer(child) for child in data_type.children]

        def write(value: Any) -> str:
            fields = zip(heads, writers, split(value), strict=True)
            members = [head + write(item) for head, write, item in fields if not (drop and item is None)]
            return "{" + ",".join(members) + "}"

        return write

    def _map_writer(self, data_type: FormatType) -> Callable[[Any], str]:
        item_writer = self.writer(data_type.children[1])

        def write(value: Any) -> str:
            members = []
            for key, item in value.items():
                if key is None:
                    if self._null_key_mode == "DROP":
                        continue
                    if self._null_key_mode == "FAIL":
                        message = "a map with a NULL key cannot be written as JSON; see the option map-null-key.mode"
                        raise ValueError(message)
                    key = self._null_key
                members.append(f"{quote_string(str(key))}:{item_writer(item)}")
            return "{" + ",".join(members) + "}"

        return write


_ESCAPES = re.compile("[\x00-\x1f]|[\U00010000-\U0010ffff]")
_SHORT_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def quote_string(text: str) -> str:
    """Quote a text and escape it as Java does: surrogates one by one, hexadecimal digits in upper case."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_ESCAPES.sub(_escape, plain)}"' if _ESCAPES.search(plain) else f'"{plain}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2))


def _number_text(text: str) -> str:
    return f'"{text}"' if text[-1] in "yN" else text


_TEXTS: dict[TypeRoot, Callable[[Any], str]] = {
    TypeRoot.STRING: quote_string,
    TypeRoot.BOOLEAN: lambda value: "true" if value else "false",
    TypeRoot.BYTES: lambda value: f'"{base64.b64encode(value).decode()}"',
    TypeRoot.DATE: lambda value: f'"{value.isoformat()}"',
    TypeRoot.ANY: lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False),
}
