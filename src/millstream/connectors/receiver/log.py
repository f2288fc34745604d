"""A log of received records on disk, in segments.

Promises: what was appended before `sync` returned is there after a crash; a record is found by its number; a tail that
was being written when the process died is cut off, any other damage is an error that names the file.
Does not know: what records are, who writes them, or when they may be deleted.

A segment `<number of its first record>.log` is a row of frames: length and CRC-32 of the payload, then the payload."""

from __future__ import annotations

import os
import struct
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from millstream.checkpoint.storage import LocalFileSystem
from millstream.errors import ExternalError
from millstream.model.file_access import make_directories, opener

_FRAME = struct.Struct("<II")
_END = "END"


class LogDamaged(ExternalError):
    """A segment is not what was written."""

    def __init__(self, path: str, offset: int) -> None:
        self.path, self.offset = path, offset
        super().__init__(
            f"the log of received records '{path}' is damaged at byte {offset}", hint="restore the file from a backup"
        )


class LogTruncated(ExternalError):
    """Records that a checkpoint still needs are not in the log."""

    def __init__(self, directory: str, position: int, first: int, end: int) -> None:
        super().__init__(
            f"record {position} is needed from the log '{directory}', which has records {first} to before {end}",
            hint="start from a newer checkpoint, or without one",
        )


class _Segment:
    """One file: the number of its first record, and where each record ends."""

    def __init__(self, directory: str, first: int) -> None:
        self.first = first
        self.path = segment_path(directory, first)
        self.ends = array("q")

    @property
    def after(self) -> int:
        """The number of the first record behind it."""
        return self.first + len(self.ends)

    def offset(self, number: int) -> int:
        """Where a record begins."""
        return self.ends[number - self.first - 1] if number > self.first else 0


def segment_path(directory: str, first: int) -> str:
    """The file of a segment."""
    return os.path.join(directory, f"{first:020d}.log")


def read_frames(path: str, start: int, end: int) -> Iterator[bytes]:
    """The payloads of a part of a segment, checked."""
    with open(path, "rb") as file:
        file.seek(start)
        data = memoryview(file.read(end - start))
    if len(data) != end - start:
        raise LogDamaged(path, start + len(data))
    at = 0
    while at < len(data):
        payload = _payload(data, at)
        if payload is None:
            raise LogDamaged(path, start + at)
        yield payload
        at += _FRAME.size + len(payload)


def _payload(data: memoryview, at: int) -> bytes | None:
    """The payload of the frame at that place; None when there is no whole and undamaged one."""
    if at + _FRAME.size > len(data):
        return None
    length, checksum = _FRAME.unpack_from(data, at)
    payload = bytes(data[at + _FRAME.size : at + _FRAME.size + length])
    return payload if len(payload) == length and zlib.crc32(payload) == checksum else None


class SegmentedLog:
    """The writing end. Not thread-safe: the caller has a lock."""

    def __init__(self, directory: str, segment_bytes: int) -> None:
        self.directory, self._segment_bytes = directory, segment_bytes
        make_directories(directory)
        self._segments = self._found()
        self.durable = self.end
        self._file: BinaryIO | None = None if self.ended else self._begin(self.end)

    @property
    def first(self) -> int:
        """The number of the first record that is still there."""
        return self._segments[0].first if self._segments else 0

    @property
    def end(self) -> int:
        """The number of the next record."""
        return self._segments[-1].after if self._segments else 0

    @property
    def ended(self) -> bool:
        """Whether it was said that nothing will follow."""
        return os.path.exists(os.path.join(self.directory, _END))

    def _found(self) -> list[_Segment]:
        firsts = sorted(int(path.stem) for path in Path(self.directory).glob("*.log"))
        segments: list[_Segment] = []
        for first in firsts:
            segment = _Segment(self.directory, first)
            with open(segment.path, "rb") as file:
                data = memoryview(file.read())
            at = 0
            while at < len(data):
                payload = _payload(data, at)
                if payload is None:
                    if first != firsts[-1]:
                        raise LogDamaged(segment.path, at)
                    os.truncate(segment.path, at)
                    break
                at += _FRAME.size + len(payload)
                segment.ends.append(at)
            if segments and segments[-1].after != first:
                raise LogDamaged(segments[-1].path, segments[-1].offset(segments[-1].after))
            segments.append(segment)
        return segments

    def _begin(self, first: int) -> BinaryIO:
        segment = _Segment(self.directory, first)
        if self._segments and not self._segments[-1].ends:
            self._segments.pop()  # nothing was written to it: it is begun again
        self._segments.append(segment)
        file = open(segment.path, "wb", opener=opener)  # noqa: SIM115 - it stays open until the segment is full
        LocalFileSystem().sync_dir(self.directory)
        return file

    def append(self, payload: bytes) -> None:
        """Write a record behind the others; it may be lost until `sync`."""
        assert self._file is not None
        segment = self._segments[-1]
        at = segment.offset(segment.after)
        if at >= self._segment_bytes:
            self.sync()
            self._file.close()
            self._file = self._begin(segment.after)
            segment, at = self._segments[-1], 0
        self._file.write(_FRAME.pack(len(payload), zlib.crc32(payload)) + payload)
        segment.ends.append(at + _FRAME.size + len(payload))

    def sync(self) -> None:
        """What was appended is durable."""
        if self._file is not None and self.durable < self.end:
            self._file.flush()
            os.fsync(self._file.fileno())
            self.durable = self.end

    def finish(self) -> None:
        """Nothing will follow."""
        self.sync()
        with open(os.path.join(self.directory, _END), "wb", opener=opener) as file:
            os.fsync(file.fileno())
        LocalFileSystem().sync_dir(self.directory)

    def check(self, position: int) -> None:
        """Refuse a position whose records are gone, or were never there."""
        if not self.first <= position <= self.end:
            raise LogTruncated(self.directory, position, self.first, self.end)

    def part(self, number: int, records: int, size: int) -> tuple[int, int, int, int]:
        """(segment, first byte, last byte, number behind) of durable records from `number` on: of one segment, at most
        so many records and bytes, but at least one record if there is one."""
        segment = next((each for each in self._segments if each.first <= number < each.after), None)
        if segment is None:
            return 0, 0, 0, number
        start = segment.offset(number)
        by_size = segment.first + bisect_right(segment.ends, start + size)
        stop = min(number + max(records, 1), max(by_size, number + 1), segment.after, self.durable)
        return segment.first, start, segment.offset(stop), stop

    def bytes_from(self, number: int) -> int:
        """How many bytes of records there are from `number` on."""
        return sum(
            each.offset(each.after) - each.offset(max(number, each.first))
            for each in self._segments
            if each.after > number
        )

    def forget_before(self, number: int) -> None:
        """Delete segments all of whose records come before `number`; the one being written stays."""
        while len(self._segments) > 1 and self._segments[0].after <= number:
            os.remove(self._segments.pop(0).path)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self.sync()
            self._file.close()
            self._file = None
