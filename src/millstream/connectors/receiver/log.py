"""A write-ahead log of received records on disk, in segments.

Promises: records that were appended before `sync` returned survive a crash; a record is found by its number; a torn
record at the end is ignored, any other damage is an error that names the file. If several writers open the log, the
last one owns it: records that an earlier writer appends after that are not part of the log, and its next `sync` raises.
Does not know: what records are, who writes them, or when they may be deleted.

    <directory>/<number of its first record>-<term>.log   a segment: a sequence of frames (`files.frames`)
    <directory>/<term>.term                               a driver that opens the log creates the next one; only one can
    <directory>/END                                       the term in which the log ended

The number of the first segment of a term is where the segments of earlier terms end."""

from __future__ import annotations

import os
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

from millstream.errors import ExternalError, UserError
from millstream.files.access import opener
from millstream.files.frames import OVERHEAD, frame_record, read_record, scan_records
from millstream.files.local import LocalFileSystem

_END = "END"
_SEGMENT = re.compile(r"([0-9]{20})-([0-9]{10})\.log")
_TERM = re.compile(r"([0-9]{10})\.term")
_OLD_SEGMENT = re.compile(r"[0-9]{20}\.log")


class LogDamaged(ExternalError):
    """A segment is damaged: it does not contain the records that were written."""

    def __init__(self, path: str, offset: int) -> None:
        self.path, self.offset = path, offset
        super().__init__(
            f"the log of received records '{path}' is damaged at byte {offset}", hint="restore the file from a backup"
        )


class LogTruncated(ExternalError):
    """The log lacks records that a checkpoint needs."""

    def __init__(self, directory: str, position: int, first: int, end: int) -> None:
        super().__init__(
            f"record {position} is needed from the log '{directory}', which has records {first} to before {end}",
            hint="start from a newer checkpoint, or without one",
        )


class LogTaken(ExternalError):
    """Another driver has opened the log."""

    hint = "another driver of the job has taken over; two jobs must not have the same log"

    def __init__(self, directory: str) -> None:
        super().__init__(f"the log of received records '{directory}' was opened by another driver")


class OldLog(UserError):
    """A log in the format of an earlier release."""

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"the log of received records '{directory}' was written by an earlier version",
            hint="finish the job with the version that wrote it, or give the source another directory",
        )


class _Segment:
    """One file: the number of its first record, and where each record ends."""

    def __init__(self, directory: str, first: int, term: int) -> None:
        self.first, self.term = first, term
        self.name = f"{first:020d}-{term:010d}.log"
        self.path = segment_path(directory, self.name)
        self.ends = array("q")

    @property
    def after(self) -> int:
        """Return the number of the first record after the segment."""
        return self.first + len(self.ends)

    def offset(self, number: int) -> int:
        """Return the offset of a record in the file."""
        return self.ends[number - self.first - 1] if number > self.first else 0

    def load(self, records: int | None) -> None:
        """Index `records` records of the file, or all if None. Damage before a complete record is not a torn tail."""
        with open(self.path, "rb") as file:
            payloads, end, next_record = scan_records(file.read())
        at = 0
        for payload in payloads[:records]:
            at += OVERHEAD + len(payload)
            self.ends.append(at)
        if next_record is not None if records is None else len(payloads) < records:
            raise LogDamaged(self.path, end)


def segment_path(directory: str, name: str) -> str:
    """Return the path of a segment."""
    return os.path.join(directory, name)


def read_frames(path: str, start: int, end: int) -> Iterator[bytes]:
    """Yield the payloads of a part of a segment, verified."""
    with open(path, "rb") as file:
        file.seek(start)
        data = file.read(end - start)
    at = start
    while at < end:
        payload = read_record(data, at, start)
        if payload is None:
            raise LogDamaged(path, at)
        yield payload
        at += OVERHEAD + len(payload)


class SegmentedLog:
    """The writer of the log. Not thread-safe: the caller holds a lock."""

    def __init__(self, directory: str, segment_bytes: int) -> None:
        self.directory, self._segment_bytes = directory, segment_bytes
        LocalFileSystem().make_dirs(directory)
        self._term = self._newest_term()
        self.ended = self._read_end() == self._term
        self._file: BinaryIO | None = None
        self._segments: list[_Segment] = []
        if not self.ended:
            self._take_term()
        self._find_segments()
        self.durable = self.end
        if not self.ended:
            self._begin_segment(self.end)

    @property
    def first(self) -> int:
        """Return the number of the first record that is still stored."""
        return self._segments[0].first if self._segments else 0

    @property
    def end(self) -> int:
        """Return the number of the next record."""
        return self._segments[-1].after if self._segments else 0

    def _newest_term(self) -> int:
        names = os.listdir(self.directory)
        if any(map(_OLD_SEGMENT.fullmatch, names)):
            raise OldLog(self.directory)
        terms = [match[1] for match in map(_TERM.fullmatch, names) if match]
        return max(map(int, (*terms, *(match[2] for match in map(_SEGMENT.fullmatch, names) if match))), default=0)

    def _read_end(self) -> int | None:
        try:
            with open(os.path.join(self.directory, _END), encoding="ascii") as file:
                return int(file.read() or 0)
        except FileNotFoundError:
            return None

    def _take_term(self) -> None:
        """Begin a term; if several drivers open the log at the same time, one of them gets the term."""
        self._term += 1
        try:
            with open(self._term_path(self._term), "xb", opener=opener) as file:
                os.fsync(file.fileno())
        except FileExistsError:
            raise LogTaken(self.directory) from None
        LocalFileSystem().sync_dir(self.directory)
        with suppress(FileNotFoundError):
            os.remove(self._term_path(self._term - 1))

    def _term_path(self, term: int) -> str:
        return os.path.join(self.directory, f"{term:010d}.term")

    def _check_term(self) -> None:
        if self._newest_term() != self._term:
            raise LogTaken(self.directory)

    def _find_segments(self) -> None:
        """Load the segments of the log; segments that a replaced writer created afterwards are deleted."""
        matches = (match for match in map(_SEGMENT.fullmatch, os.listdir(self.directory)) if match)
        segments = sorted((_Segment(self.directory, int(match[1]), int(match[2])) for match in matches), key=_by_term)
        limit: int | None = None  # the first record of the segments after this one
        for segment in reversed(segments):
            if limit is not None and segment.first >= limit:
                os.remove(segment.path)
                continue
            self._segments.insert(0, segment)
            limit = segment.first
        for segment, following in zip(self._segments, [*self._segments[1:], None], strict=False):
            segment.load(None if following is None else following.first - segment.first)

    def _begin_segment(self, first: int) -> None:
        segment = _Segment(self.directory, first, self._term)
        self._file = open(segment.path, "xb", opener=opener)  # noqa: SIM115 - it stays open until the segment is full
        LocalFileSystem().sync_dir(self.directory)
        if self._segments and not self._segments[-1].ends:
            os.remove(
                self._segments.pop().path
            )  # it is empty, and records that its old writer may still append are not part of the log
        self._segments.append(segment)

    def append(self, payload: bytes) -> None:
        """Append a record; it may be lost until `sync`."""
        assert self._file is not None
        segment = self._segments[-1]
        at = segment.offset(segment.after)
        if at >= self._segment_bytes:
            self.sync()
            self._file.close()
            self._begin_segment(segment.after)
            segment, at = self._segments[-1], 0
        frame = frame_record(at, payload)
        self._file.write(frame)
        segment.ends.append(at + len(frame))

    def sync(self) -> None:
        """Make appended records durable; `LogTaken` if another driver has opened the log."""
        if self._file is not None and self.durable < self.end:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._check_term()
            self.durable = self.end

    def finish(self) -> None:
        """Mark the end of the log."""
        self.sync()
        self._check_term()
        with open(os.path.join(self.directory, _END), "wb", opener=opener) as file:
            file.write(b"%d" % self._term)
            file.flush()
            os.fsync(file.fileno())
        LocalFileSystem().sync_dir(self.directory)
        self.ended = True

    def check(self, position: int) -> None:
        """Raise `LogTruncated` if the records from an offset on are gone, or never existed."""
        if not self.first <= position <= self.end:
            raise LogTruncated(self.directory, position, self.first, self.end)

    def part(self, number: int, records: int, size: int) -> tuple[str, int, int, int]:
        """Return (segment, start offset, end offset, number of the next record) of durable records from `number` on.

        They are of one segment: at most `records` records and `size` bytes, but at least one record if there is one."""
        segment = next((segment for segment in self._segments if segment.first <= number < segment.after), None)
        if segment is None:
            return "", 0, 0, number
        start = segment.offset(number)
        by_size = segment.first + bisect_right(segment.ends, start + size)
        stop = min(number + max(records, 1), max(by_size, number + 1), segment.after, self.durable)
        return segment.name, start, segment.offset(stop), stop

    def bytes_from(self, number: int) -> int:
        """Return the size of the records from `number` on."""
        return sum(
            segment.offset(segment.after) - segment.offset(max(number, segment.first))
            for segment in self._segments
            if segment.after > number
        )

    def forget_before(self, number: int) -> None:
        """Delete segments whose records are all before `number`; the segment that is being written stays."""
        while len(self._segments) > 1 and self._segments[0].after <= number:
            os.remove(self._segments.pop(0).path)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            try:
                with suppress(LogTaken):
                    self.sync()
            finally:
                self._file.close()
                self._file = None


def _by_term(segment: _Segment) -> tuple[int, int]:
    return segment.term, segment.first
