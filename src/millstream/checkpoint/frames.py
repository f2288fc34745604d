"""Records in a file that is appended to.

Promises: a record that is read is one that was written at that place; what a crash left at the end of a file can be
told from damage: no whole record follows it.
Does not know: files, or what is in a record.

A record's frame: a mark, the length, a checksum of the place and length, one of the place and record. The place makes a
frame that is copied, or that a record contains, worthless anywhere else."""

from __future__ import annotations

import struct
import zlib

_MARK = b"\xabREC"
_HEADER = struct.Struct("<4sIII")

OVERHEAD = _HEADER.size


def framed(place: int, record: bytes) -> bytes:
    """A record as it is written at that place of a file."""
    return _HEADER.pack(_MARK, len(record), _check(place, len(record)), _check(place, 0, record)) + record


def record_at(data: bytes, place: int, origin: int = 0) -> bytes | None:
    """The record at a place of a file, whole and undamaged; `data` are the bytes of the file from `origin` on."""
    at = place - origin
    if at + _HEADER.size > len(data):
        return None
    mark, length, header_check, record_check = _HEADER.unpack_from(data, at)
    record = data[at + _HEADER.size : at + _HEADER.size + length]
    whole = mark == _MARK and header_check == _check(place, length) and len(record) == length
    return record if whole and record_check == _check(place, 0, record) else None


def scan(data: bytes) -> tuple[list[bytes], int, int | None]:
    """The records from the beginning of a file, where they end, and where the next whole one is behind that."""
    records: list[bytes] = []
    place = 0
    while (record := record_at(data, place)) is not None:
        records.append(record)
        place += OVERHEAD + len(record)
    later = data.find(_MARK, place + 1)
    while later >= 0 and record_at(data, later) is None:
        later = data.find(_MARK, later + 1)
    return records, place, later if later >= 0 else None


def _check(place: int, length: int, record: bytes = b"") -> int:
    return zlib.crc32(record, zlib.crc32(struct.pack("<QI", place, length)))
