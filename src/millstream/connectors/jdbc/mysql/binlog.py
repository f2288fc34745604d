"""Decodes the events of a binary log.

Promises: row changes, statements and positions of MySQL and MariaDB are decoded. Events of other types are skipped;
events whose changes would be lost are refused.
Does not know: connections, captured tables, what values mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from millstream.connectors.jdbc.mysql.wire import read_metadata, read_value
from millstream.errors import ExternalError, UserError

_QUERY, _ROTATE, _TABLE_MAP, _PARTIAL_UPDATE, _TRANSACTION_PAYLOAD = 2, 4, 19, 39, 40
_FORMAT = 15
_GTID, _MARIADB_GTID = 33, 162
_ROWS = {23: "I", 24: "U", 25: "D", 30: "I", 31: "U", 32: "D"}
_VERSION_2 = (30, 31, 32)
_COMPRESSED = range(165, 172)  # of MariaDB: a statement, and row changes
_ARTIFICIAL = 0x20
_COLUMN_NAMES = 4  # a field in the optional metadata of a table map
_HEADER = 19
_FILE_BITS = 40  # the low bits of a position are the offset in a file; the higher bits are the number of the file


class NotReadable(UserError):
    """The server writes its binary log in a format that is not supported."""


class PositionGone(ExternalError):
    """The binary log has no events at a position."""


def position_of(file: str, offset: int) -> int:
    """Return a position as one number, which increases from file to file."""
    return int(file.rpartition(".")[2]) << _FILE_BITS | offset


def offset_of(position: int) -> int:
    """Return the offset of a position in its file."""
    return position & (1 << _FILE_BITS) - 1


def file_of(position: int, base: str) -> str:
    """Return the name of the file of a position; `base` is the name without the number."""
    return f"{base}.{position >> _FILE_BITS:06}"


@dataclass(frozen=True, slots=True)
class TableMap:
    """The table of the row events that follow. `names` is None unless the server writes them."""

    schema: str
    table: str
    columns: tuple[tuple[int, int], ...]
    names: tuple[str, ...] | None


@dataclass(slots=True)
class Event:
    """One change of a row, op I, U or D; a statement, op S; or the start of a transaction with its GTID, op G.

    `end` is the position after the event, `at` its time in milliseconds."""

    op: str
    begin: int
    end: int
    at: int
    table: TableMap | None = None
    old: list[Any] | None = None
    new: list[Any] | None = None
    statement: str = ""
    schema: str = ""
    gtid: tuple[str, int] | None = None


class LogDecoder:
    """Decodes the events of one dump. `position` is the position after the last event."""

    def __init__(self, start: int) -> None:
        self.position = start
        self._tables: dict[int, TableMap] = {}

    def events(self, packets: Iterable[bytes], stop: int) -> Iterator[Event]:
        """Yield the events up to a position."""
        file = self.position >> _FILE_BITS
        # the size of the checksum after each event, from the format description event of the file
        checksum: int | None = None
        for packet in packets:
            event_type = packet[4]
            if event_type == _FORMAT:
                checksum = 4 if packet[-5] == 1 else 0
            elif checksum is None:
                continue  # has the name of the requested file
            data = packet[:-checksum] if checksum else packet
            flags = int.from_bytes(data[17:19], "little")
            size, end_offset = int.from_bytes(data[9:13], "little"), int.from_bytes(data[13:17], "little")
            if event_type == _ROTATE:
                file = int(data[_HEADER + 8 :].rstrip(b"\0").rpartition(b".")[2])
                self.position = max(self.position, file << _FILE_BITS | int.from_bytes(data[19:27], "little"))
                self._tables.clear()
            elif end_offset and not flags & _ARTIFICIAL:
                end = file << _FILE_BITS | end_offset
                if end - size < stop:
                    yield from self._decode(event_type, data, (end - size, end))
                    self.position = end
            if self.position >= stop:
                return

    def _decode(self, event_type: int, data: bytes, position: tuple[int, int]) -> Iterator[Event]:
        at = int.from_bytes(data[:4], "little") * 1000
        if event_type == _TABLE_MAP:
            table_id, table = _table_map(data)
            self._tables[table_id] = table
        elif event_type in _ROWS:
            yield from _rows(data, event_type, self._tables, (*position, at))
        elif event_type == _QUERY:
            schema, statement = _statement(data)
            if statement not in ("BEGIN", "COMMIT"):
                yield Event("S", *position, at, statement=statement, schema=schema)
        elif event_type in (_GTID, _MARIADB_GTID):
            yield Event("G", *position, at, gtid=_gtid(event_type, data))
        elif event_type in _COMPRESSED or event_type in (_TRANSACTION_PAYLOAD, _PARTIAL_UPDATE):
            raise _refuse(event_type)


def _refuse(event_type: int) -> NotReadable:
    setting, value = {
        _TRANSACTION_PAYLOAD: ("binlog_transaction_compression", "OFF"),
        _PARTIAL_UPDATE: ("binlog_row_value_options", "''"),
    }.get(event_type, ("log_bin_compress", "OFF"))
    message = f"the binary log has events of the type {event_type}, which are not supported"
    return NotReadable(message, hint=f"SET GLOBAL {setting} = {value}, and start from a position after that")


def _table_map(data: bytes) -> tuple[int, TableMap]:
    table_id = int.from_bytes(data[_HEADER : _HEADER + 6], "little")
    at = _HEADER + 8
    schema = data[at + 1 : at + 1 + data[at]].decode()
    at += data[at] + 2
    table = data[at + 1 : at + 1 + data[at]].decode()
    at += data[at] + 2
    count, at = _read_packed_int(data, at)
    types = data[at : at + count]
    size, at = _read_packed_int(data, at + count)
    columns = read_metadata(types, data[at : at + size])
    return table_id, TableMap(schema, table, tuple(columns), _names(data, at + size + (count + 7) // 8))


def _names(data: bytes, at: int) -> tuple[str, ...] | None:
    while at < len(data):
        kind = data[at]
        size, at = _read_packed_int(data, at + 1)
        if kind == _COLUMN_NAMES:
            names, end = list[str](), at + size
            while at < end:
                length, at = _read_packed_int(data, at)
                names.append(data[at : at + length].decode())
                at += length
            return tuple(names)
        at += size
    return None


def _rows(data: bytes, event_type: int, tables: dict[int, TableMap], position: tuple[int, int, int]) -> Iterator[Event]:
    table = tables.get(int.from_bytes(data[_HEADER : _HEADER + 6], "little"))
    if table is None:
        message = "the binary log has rows without the description of their table"
        raise PositionGone(message, hint="a position must be the start of a transaction")
    at = _HEADER + 8
    if event_type in _VERSION_2:
        at += int.from_bytes(data[at : at + 2], "little")
    count, at = _read_packed_int(data, at)
    width = (count + 7) // 8
    op = _ROWS[event_type]
    bitmaps = 2 if op == "U" else 1
    if any(data[at + column // 8] >> column % 8 & 1 == 0 for column in range(count)):
        message = f"the binary log does not have all columns of {table.schema}.{table.table}"
        raise NotReadable(message, hint="SET GLOBAL binlog_row_image = FULL")
    at += bitmaps * width
    while at < len(data):
        first, at = _image(table, data, at, width)
        if op == "U":
            second, at = _image(table, data, at, width)
            yield Event(op, *position, table, first, second)
        elif op == "I":
            yield Event(op, *position, table, None, first)
        else:
            yield Event(op, *position, table, first, None)


def _image(table: TableMap, data: bytes, at: int, width: int) -> tuple[list[Any], int]:
    nulls, at = data[at : at + width], at + width
    values: list[Any] = []
    for number, (column_type, meta) in enumerate(table.columns):
        if nulls[number >> 3] >> (number & 7) & 1:
            values.append(None)
        else:
            value, at = read_value(column_type, meta, data, at)
            values.append(value)
    return values, at


def _statement(data: bytes) -> tuple[str, str]:
    schema_size, status_size = data[_HEADER + 8], int.from_bytes(data[_HEADER + 11 : _HEADER + 13], "little")
    at = _HEADER + 13 + status_size
    schema = data[at : at + schema_size].decode(errors="replace")
    return schema, data[at + schema_size + 1 :].decode(errors="replace").strip()


def _gtid(event_type: int, data: bytes) -> tuple[str, int]:
    """Return the source of a transaction, and its number at this source."""
    if event_type == _MARIADB_GTID:
        domain = int.from_bytes(data[_HEADER + 8 : _HEADER + 12], "little")
        return str(domain), int.from_bytes(data[_HEADER : _HEADER + 8], "little")
    digits = data[_HEADER + 1 : _HEADER + 17].hex()
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return "-".join(parts), int.from_bytes(data[_HEADER + 17 : _HEADER + 25], "little")


def _read_packed_int(data: bytes, at: int) -> tuple[int, int]:
    """Read an integer of one, three, four or nine bytes."""
    first = data[at]
    if first < 251:
        return first, at + 1
    size = {252: 2, 253: 3, 254: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size
