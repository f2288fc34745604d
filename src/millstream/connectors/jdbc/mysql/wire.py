"""Decodes values in the row images of a binary log.

Promises: `read_value` decodes one value of every column type and returns the position after it. An invalid date, such
as `0000-00-00`, is None.
Does not know: character sets, unsigned integers, the words of enumerations: `types` does."""

from __future__ import annotations

import struct
from datetime import date, datetime, timedelta
from typing import Any

from millstream.connectors.jdbc.mysql.binary_json import decode_json
from millstream.connectors.jdbc.mysql.packed_decimal import read_decimal
from millstream.errors import ExternalError

TINY, SHORT, LONG, FLOAT, DOUBLE, TIMESTAMP, LONGLONG, INT24 = 1, 2, 3, 4, 5, 7, 8, 9
DATE, TIME, DATETIME, YEAR, NEWDATE, VARCHAR, BIT = 10, 11, 12, 13, 14, 15, 16
TIMESTAMP2, DATETIME2, TIME2, JSON, NEWDECIMAL, ENUM, SET = 17, 18, 19, 245, 246, 247, 248
TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB, VAR_STRING, STRING, GEOMETRY = 249, 250, 251, 252, 253, 254, 255

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 a local time of UTC
_INTEGERS = {TINY: 1, SHORT: 2, INT24: 3, LONG: 4, LONGLONG: 8}
_WITH_ONE_BYTE = frozenset({FLOAT, DOUBLE, BLOB, TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, JSON, GEOMETRY,
                            TIMESTAMP2, DATETIME2, TIME2})  # fmt: skip
_WITH_TWO_BYTES = frozenset({VARCHAR, VAR_STRING, STRING, NEWDECIMAL, BIT, ENUM, SET})


class UnknownColumnType(ExternalError):
    """A column type of the binary log that is not supported."""

    hint = "columns of this type cannot be captured; MariaDB's COMPRESSED columns are among them"

    def __init__(self, column_type: int) -> None:
        super().__init__(f"the binary log has a column of the unknown type {column_type}")


def read_metadata(types: bytes, data: bytes) -> list[tuple[int, int]]:
    """Return the type and the metadata of each column of a table map."""
    columns: list[tuple[int, int]] = []
    position = 0
    for column_type in types:
        if column_type in _WITH_ONE_BYTE:
            columns.append((column_type, data[position]))
            position += 1
        elif column_type in _WITH_TWO_BYTES:
            first, second = data[position], data[position + 1]
            position += 2
            columns.append(_string_type(column_type, first, second))
        else:
            columns.append((column_type, 0))
    return columns


def _string_type(column_type: int, first: int, second: int) -> tuple[int, int]:
    if column_type in (VARCHAR, VAR_STRING):
        return VARCHAR, first | second << 8
    if column_type != STRING:
        return column_type, first << 8 | second
    if first in (ENUM, SET):
        return first, second
    # two bits of long lengths are stored inverted in the type
    return VARCHAR, second | ((first & 0x30) ^ 0x30) << 4


def read_value(column_type: int, meta: int, data: bytes, position: int) -> tuple[Any, int]:
    """Decode one value."""
    if column_type in _INTEGERS:
        end = position + _INTEGERS[column_type]
        return int.from_bytes(data[position:end], "little", signed=True), end
    if column_type == VARCHAR:
        return _read_sized(data, position, 2 if meta > 255 else 1)
    if column_type in (BLOB, TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, GEOMETRY):
        return _read_sized(data, position, meta)
    if column_type == JSON:
        raw, end = _read_sized(data, position, meta)
        return decode_json(raw), end
    if column_type == NEWDECIMAL:
        return read_decimal(data, position, meta >> 8, meta & 0xFF)
    if column_type in (ENUM, SET):
        size = meta & 0xFF
        return int.from_bytes(data[position : position + size], "little"), position + size
    if column_type == BIT:
        size = (meta & 0xFF) + (1 if meta >> 8 else 0)
        return data[position : position + size], position + size
    if column_type == FLOAT:
        return struct.unpack_from("<f", data, position)[0], position + 4
    if column_type == DOUBLE:
        return struct.unpack_from("<d", data, position)[0], position + 8
    return _temporal(column_type, meta, data, position)


def _read_sized(data: bytes, position: int, size_bytes: int) -> tuple[bytes, int]:
    start = position + size_bytes
    end = start + int.from_bytes(data[position:start], "little")
    return data[start:end], end


def _temporal(column_type: int, meta: int, data: bytes, position: int) -> tuple[Any, int]:
    if column_type in (DATE, NEWDATE):
        packed = int.from_bytes(data[position : position + 3], "little")
        return make_date(packed >> 9, packed >> 5 & 15, packed & 31), position + 3
    if column_type == YEAR:
        return (data[position] + 1900 if data[position] else 0), position + 1
    if column_type == TIMESTAMP:
        return _since_epoch(int.from_bytes(data[position : position + 4], "little"), 0), position + 4
    if column_type == TIMESTAMP2:
        micros, end = _fraction(data, position + 4, meta)
        return _since_epoch(int.from_bytes(data[position : position + 4], "big"), micros), end
    if column_type == DATETIME2:
        packed = int.from_bytes(data[position : position + 5], "big") - 0x8000000000
        micros, end = _fraction(data, position + 5, meta)
        days, clock = packed >> 17, packed & 0x1FFFF
        months = days >> 5
        return _make_datetime((months // 13, months % 13, days & 31), clock, micros), end
    if column_type == TIME2:
        return _time2(data, position, meta)
    if column_type == DATETIME:
        number = int.from_bytes(data[position : position + 8], "little")
        day, clock = divmod(number, 1_000_000)
        packed = clock // 10_000 << 12 | clock // 100 % 100 << 6 | clock % 100
        return _make_datetime((day // 10_000, day // 100 % 100, day % 100), packed, 0), position + 8
    if column_type == TIME:
        number = int.from_bytes(data[position : position + 3], "little", signed=True)
        size = abs(number)
        span = timedelta(hours=size // 10_000, minutes=size // 100 % 100, seconds=size % 100)
        return (span if number >= 0 else -span), position + 3
    raise UnknownColumnType(column_type)


def _fraction(data: bytes, position: int, digits: int) -> tuple[int, int]:
    size = (digits + 1) // 2
    return int.from_bytes(data[position : position + size], "big") * 100 ** (3 - size) if size else 0, position + size


def _time2(data: bytes, position: int, digits: int) -> tuple[timedelta, int]:
    fraction = (digits + 1) // 2
    end = position + 3 + fraction
    packed = int.from_bytes(data[position:end], "big") - (0x800000 << 8 * fraction)
    size = abs(packed)
    clock, micros = size >> 8 * fraction, (size & (1 << 8 * fraction) - 1) * 100 ** (3 - fraction) if fraction else 0
    span = timedelta(hours=clock >> 12 & 0x3FF, minutes=clock >> 6 & 63, seconds=clock & 63, microseconds=micros)
    return (span if packed >= 0 else -span), end


def _since_epoch(seconds: int, micros: int) -> datetime | None:
    """Return a timestamp in UTC; None for zero, which stands for an invalid timestamp."""
    return _EPOCH + timedelta(seconds=seconds, microseconds=micros) if seconds or micros else None


def make_date(year: int, month: int, day: int) -> date | None:
    """Return a date; None for an invalid one."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _make_datetime(day: tuple[int, int, int], clock: int, micros: int) -> datetime | None:
    try:
        return datetime(*day, clock >> 12, clock >> 6 & 63, clock & 63, micros)  # noqa: DTZ001 a local time
    except ValueError:
        return None
