"""Frames around the records of an append-only file.

A frame is a magic number, the length, a checksum of offset and length, a checksum of offset and record, and the record.
The offset is part of both checksums, so a copy of a frame at another offset, or inside a record, is not valid.

Promises: a record that is read was written at that offset; a torn record at the end, which a crash leaves, can be
distinguished from damage, because no complete record follows it.
Does not know: files, or what is in a record."""

from __future__ import annotations

import struct
import zlib

_MAGIC = b"\xabREC"
_HEADER = struct.Struct("<4sIII")

OVERHEAD = _HEADER.size


def frame_record(offset: int, record: bytes) -> bytes:
    """Return the bytes of a record that is written at an offset of a file."""
    return _HEADER.pack(_MAGIC, len(record), _checksum(offset, len(record)), _checksum(offset, 0, record)) + record


def read_record(data: bytes, offset: int, origin: int = 0) -> bytes | None:
    """Return the record at an offset of a file, None if it is torn or damaged; `data` begins at offset `origin`."""
    start = offset - origin
    if start + _HEADER.size > len(data):
        return None
    magic, length, header_checksum, record_checksum = _HEADER.unpack_from(data, start)
    record = data[start + _HEADER.size : start + _HEADER.size + length]
    is_whole = magic == _MAGIC and header_checksum == _checksum(offset, length) and len(record) == length
    return record if is_whole and record_checksum == _checksum(offset, 0, record) else None


def scan_records(data: bytes) -> tuple[list[bytes], int, int | None]:
    """Return the records from the beginning of a file, the offset of their end, and that of the next complete
    record."""
    records: list[bytes] = []
    offset = 0
    while (record := read_record(data, offset)) is not None:
        records.append(record)
        offset += OVERHEAD + len(record)
    later = data.find(_MAGIC, offset + 1)
    while later >= 0 and read_record(data, later) is None:
        later = data.find(_MAGIC, later + 1)
    return records, offset, later if later >= 0 else None


def _checksum(offset: int, length: int, record: bytes = b"") -> int:
    return zlib.crc32(record, zlib.crc32(struct.pack("<QI", offset, length)))
