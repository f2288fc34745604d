"""Decodes MySQL's binary form of JSON documents, which row images of a binary log contain.

Promises: the document as JSON text without spaces, as Flink CDC writes it.
Does not know: MariaDB, which stores JSON as text."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

from millstream.connectors.jdbc.mysql.packed_decimal import read_decimal
from millstream.errors import ExternalError

_LITERALS = {0: None, 1: True, 2: False}
_INLINE = {4: "<i", 5: "<h", 6: "<H", 7: "<i", 8: "<I", 9: "<q", 10: "<Q", 11: "<d"}


class DamagedJson(ExternalError):
    """Bytes that are not a JSON document in MySQL's binary form."""

    def __init__(self, problem: object) -> None:
        super().__init__(f"the binary log has a JSON document that cannot be read: {problem}")


def decode_json(data: bytes) -> str:
    """Return the text of a document."""
    if not data:
        return "null"
    try:
        return json.dumps(_value(data[0], data, 1), separators=(",", ":"), ensure_ascii=False)
    except (IndexError, struct.error, UnicodeDecodeError) as problem:
        raise DamagedJson(problem) from problem


def _value(kind: int, data: bytes, at: int) -> Any:
    if kind in (0, 1, 2, 3):
        return _container(data, at, is_object=kind < 2, wide=kind in (1, 3))
    if kind == 4:
        return _LITERALS[data[at]]
    if kind in _INLINE:
        return struct.unpack_from(_INLINE[kind], data, at)[0]
    if kind == 12:
        length, start = _length(data, at)
        return data[start : start + length].decode()
    if kind == 15:
        length, start = _length(data, at + 1)
        return _opaque(data[at], data[start : start + length])
    problem = f"unknown type {kind}"
    raise DamagedJson(problem)


def _container(data: bytes, at: int, *, is_object: bool, wide: bool) -> Any:
    """Decode an object or an array at `at`, from which its offsets are counted."""
    number, size = ("<I", 4) if wide else ("<H", 2)
    count = struct.unpack_from(number, data, at)[0]
    keys: list[str] = []
    entry = at + 2 * size
    if is_object:
        for _ in range(count):
            offset = at + struct.unpack_from(number, data, entry)[0]
            length = struct.unpack_from("<H", data, entry + size)[0]
            keys.append(data[offset : offset + length].decode())
            entry += size + 2
    values: list[Any] = []
    inlined = {4, 5, 6, 7, 8} if wide else {4, 5, 6}
    for _ in range(count):
        kind = data[entry]
        start = entry + 1 if kind in inlined else at + struct.unpack_from(number, data, entry + 1)[0]
        values.append(_value(kind, data, start))
        entry += 1 + size
    return dict(zip(keys, values, strict=True)) if is_object else values


def _length(data: bytes, at: int) -> tuple[int, int]:
    """Read a length with seven bits in each byte."""
    length = shift = 0
    while True:
        byte = data[at]
        length |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return length, at


def _opaque(column_type: int, data: bytes) -> Any:
    """Decode an SQL value inside a document: a decimal, a date or a time; other values become the text that MySQL
    prints."""
    if column_type == 246:
        number, _ = read_decimal(data, 2, data[0], data[1])
        return int(number) if number == int(number) and not data[1] else float(number)
    if column_type in (7, 10, 12):
        return _datetime(struct.unpack("<q", data)[0], with_time=column_type != 10)
    if column_type == 11:
        packed = struct.unpack("<q", data)[0]
        sign, size = ("-" if packed < 0 else ""), abs(packed)
        clock = size >> 24
        return f"{sign}{clock >> 12 & 0x3FF:02}:{clock >> 6 & 63:02}:{clock & 63:02}.{size & 0xFFFFFF:06}"
    return f"base64:type{column_type}:{base64.b64encode(data).decode()}"


def _datetime(packed: int, *, with_time: bool) -> str:
    day, clock = packed >> 41, packed >> 24 & 0x1FFFF
    months = day >> 5
    text = f"{months // 13:04}-{months % 13:02}-{day & 31:02}"
    if not with_time:
        return text
    return f"{text} {clock >> 12:02}:{clock >> 6 & 63:02}:{clock & 63:02}.{packed & 0xFFFFFF:06}"
