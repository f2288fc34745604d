"""Raw: a record is the bytes of its only field.

Promises: the results of Flink's raw format for each type, in the given character set and byte order.
Does not know: more than one field."""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from millstream.config.configuration import ConfigOption
from millstream.formats.contract import BadFormat, Decoded, Format, UnencodableRecord, decode_each
from millstream.formats.format_types import FormatType, TypeRoot
from millstream.formats.options import Settings

CHARSET = ConfigOption("charset", "UTF-8", "The character set of strings.", str)
ENDIANNESS = ConfigOption(
    "endianness",
    "big-endian",
    "The byte order of numbers: big-endian or little-endian.",
    str,
    choices=("big-endian", "little-endian"),
)
OPTIONS: tuple[ConfigOption[Any], ...] = (CHARSET, ENDIANNESS)
_CODES = {
    TypeRoot.BOOLEAN: "?",
    TypeRoot.TINYINT: "b",
    TypeRoot.SMALLINT: "h",
    TypeRoot.INT: "i",
    TypeRoot.BIGINT: "q",
    TypeRoot.FLOAT: "f",
    TypeRoot.DOUBLE: "d",
}


class RawFormat(Format):
    """The format `raw`."""

    name = "raw"

    def __init__(self, data_type: FormatType, options: Mapping[str, Any]) -> None:
        self._options = dict(options)
        settings = Settings(self.name, OPTIONS, options)
        super().__init__(data_type, settings.on_error())
        if data_type.root is TypeRoot.ROW and len(data_type.children) != 1:
            message = f"the format raw needs a type with one field, not {len(data_type.children)}"
            raise BadFormat(message, hint="declare one field of a string, binary or numeric type")
        field = data_type.children[0] if data_type.root is TypeRoot.ROW else data_type
        self._make: Callable[[list[Any]], Any] = (
            data_type.maker() if data_type.root is TypeRoot.ROW else lambda values: values[0]
        )
        self._split = data_type.splitter() if data_type.root is TypeRoot.ROW else lambda value: [value]
        order = ">" if settings.get(ENDIANNESS) == "big-endian" else "<"
        self._read, self._write = _field_codec(field.root, settings.get(CHARSET), order)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.data_type, self._options)

    def decode(self, records: Sequence[bytes | None]) -> Decoded:
        """Decode each record to its field."""
        read, make = self._read, self._make
        return decode_each(records, lambda data: make([read(bytes(data))]), (ValueError, struct.error))

    def encode(self, values: Sequence[Any]) -> list[bytes]:
        """Encode the field of each record; null has no bytes."""
        encoded = []
        for value in values:
            (field,) = self._split(value)
            try:
                encoded.append(b"" if field is None else self._write(field))
            except (ValueError, TypeError, struct.error, AttributeError) as problem:
                raise UnencodableRecord(self.name, value, str(problem)) from None
        return encoded


def _field_codec(root: TypeRoot, charset: str, order: str) -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    if root is TypeRoot.BYTES:
        return bytes, bytes
    if root is TypeRoot.STRING:
        try:
            name = codecs.lookup(charset).name
        except LookupError:
            message = f"unknown character set {charset!r} in raw.charset"
            raise BadFormat(message, hint='use a name such as "UTF-8"') from None
        return lambda data: data.decode(name, "replace"), lambda value: value.encode(name)
    if root not in _CODES:
        message = f"the format raw cannot represent {root.value}"
        raise BadFormat(message, hint="declare a field of a string, binary or numeric type")
    packed = struct.Struct(order + _CODES[root])

    def read(data: bytes) -> Any:
        if len(data) != packed.size:
            message = f"{packed.size} bytes expected, got {len(data)}"
            raise ValueError(message)
        return packed.unpack(data)[0]

    return read, packed.pack
