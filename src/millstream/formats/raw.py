"""Raw: the bytes of a record are its only field.

Promises: what Flink's raw format reads and writes for each kind of field, in the character set and byte order given.
Does not know: more than one field."""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from millstream.config.configuration import ConfigOption
from millstream.formats.contract import BadFormat, Decoded, Format, UnencodableRecord, each
from millstream.formats.options import Settings
from millstream.formats.shapes import Kind, Shape

CHARSET = ConfigOption("charset", "UTF-8", "The character set of text.", str)
ENDIANNESS = ConfigOption(
    "endianness", "big-endian", "Which byte of a number comes first.", str, choices=("big-endian", "little-endian")
)
OPTIONS: tuple[ConfigOption[Any], ...] = (CHARSET, ENDIANNESS)
_CODES = {
    Kind.BOOLEAN: "?",
    Kind.TINYINT: "b",
    Kind.SMALLINT: "h",
    Kind.INT: "i",
    Kind.BIGINT: "q",
    Kind.FLOAT: "f",
    Kind.DOUBLE: "d",
}


class RawFormat(Format):
    """Flink's `raw`."""

    name = "raw"

    def __init__(self, shape: Shape, options: Mapping[str, Any]) -> None:
        self._given = dict(options)
        settings = Settings(self.name, OPTIONS, options)
        super().__init__(shape, settings.on_error())
        if shape.kind is Kind.ROW and len(shape.children) != 1:
            message = f"the format raw has one field, the type has {len(shape.children)}"
            raise BadFormat(message, hint="declare one field of text, bytes or a number")
        field = shape.children[0] if shape.kind is Kind.ROW else shape
        self._make: Callable[[list[Any]], Any] = shape.maker() if shape.kind is Kind.ROW else lambda values: values[0]
        self._split = shape.splitter() if shape.kind is Kind.ROW else lambda value: [value]
        order = ">" if settings.get(ENDIANNESS) == "big-endian" else "<"
        self._read, self._write = _field(field.kind, settings.get(CHARSET), order)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.shape, self._given)

    def decode(self, records: Sequence[bytes | None]) -> Decoded:
        """As the contract promises."""
        read, make = self._read, self._make
        return each(records, lambda data: make([read(bytes(data))]), (ValueError, struct.error))

    def encode(self, values: Sequence[Any]) -> list[bytes]:
        """As the contract promises; null is written as no bytes."""
        encoded = []
        for value in values:
            (field,) = self._split(value)
            try:
                encoded.append(b"" if field is None else self._write(field))
            except (ValueError, TypeError, struct.error, AttributeError) as problem:
                raise UnencodableRecord(self.name, value, str(problem)) from None
        return encoded


def _field(kind: Kind, charset: str, order: str) -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    if kind is Kind.BYTES:
        return bytes, bytes
    if kind is Kind.STRING:
        try:
            name = codecs.lookup(charset).name
        except LookupError:
            message = f"the character set {charset!r} of raw.charset is not known"
            raise BadFormat(message, hint='use a name such as "UTF-8"') from None
        return lambda data: data.decode(name, "replace"), lambda value: value.encode(name)
    if kind not in _CODES:
        message = f"the format raw has no {kind.value}"
        raise BadFormat(message, hint="declare a field of text, bytes or a number")
    packed = struct.Struct(order + _CODES[kind])

    def read(data: bytes) -> Any:
        if len(data) != packed.size:
            message = f"{packed.size} bytes expected, got {len(data)}"
            raise ValueError(message)
        return packed.unpack(data)[0]

    return read, packed.pack
