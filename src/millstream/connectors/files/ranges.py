"""The contract of file formats: reads records, and rejected records, from a range of an open file.

Promises: plain values; a rejected record keeps its file, its offset and its bytes.
Does not know: formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from millstream.errors import UserError
from millstream.formats import OnError
from millstream.formats.contract import quote_bytes
from millstream.formats.format_types import FieldSelection
from millstream.types.factory import TypeInformation

_SAMPLE = 1 << 16


class MalformedLine(UserError):
    """An invalid record of a file."""

    hint = "correct the file, or skip such records: on_error='skip', in SQL the format's ignore-parse-errors"

    def __init__(self, path: str, offset: int, line: str, reason: str) -> None:
        self.path, self.offset, self.line, self.reason = path, offset, line, reason
        super().__init__(f"malformed line in {path} at byte {offset}: {reason}: {quote_bytes(line.encode())}")


@dataclass(frozen=True, slots=True)
class OpenRange:
    """The bytes of an open file from `start` to before `end`; with None, to the end of the file."""

    path: str
    stream: BinaryIO
    start: int
    end: int | None
    size: int | None


@dataclass(frozen=True, slots=True)
class Rejected:
    """An invalid record: its file, its offset or row, its bytes, and the reason."""

    path: str
    offset: int
    data: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """Records, as a list or an Arrow array, and the invalid records."""

    values: Any
    rejected: Sequence[Rejected] = ()


class FileFormat(ABC):
    """How records are read from a file. A format is picklable."""

    #: What is done with invalid records.
    on_error: OnError = OnError.FAIL
    #: The minimal size of a range, in bytes.
    least_range: int = 1
    #: Whether a file whose name ends in .gz, .bz2 or .xz is decompressed first.
    unpacks: bool = True

    @property
    def splittable(self) -> bool:
        """Whether a file can be split into ranges."""
        return False

    @abstractmethod
    def type_info(self) -> TypeInformation:
        """Return the type of the records."""

    @abstractmethod
    def read(self, part: OpenRange, block: int) -> Iterator[ReadRecords]:
        """Yield the records of a range, about `block` at a time."""

    def units(self, stream: BinaryIO) -> list[tuple[int, int]] | None:
        """Return the offsets and record counts of the units that cannot be split; None if that is unknown."""
        return None

    def record_size(self, stream: BinaryIO) -> float:
        """Estimate the size of a record; by default from the line endings at the start of the file."""
        sample = stream.read(_SAMPLE)
        return max(len(sample), 1) / max(sample.count(b"\n"), 1)

    def only(self, selection: FieldSelection) -> FileFormat | None:
        """Return the format with only some of the fields; None if it must read all of them."""
        return None

    def apply_error_policy(self, records: ReadRecords) -> ReadRecords:
        """Return the records; raise for an invalid record if the error policy is to fail."""
        if records.rejected and self.on_error is OnError.FAIL:
            first = records.rejected[0]
            raise MalformedLine(first.path, first.offset, first.data.decode("utf-8", "replace"), first.reason)
        return records


def split_records(values: Any, size: int) -> Iterator[Any]:
    """Yield slices of at most `size` records."""
    if isinstance(values, pa.Array) or len(values) > size:
        yield from (values[start : start + size] for start in range(0, len(values), size))
    elif values:
        yield values
