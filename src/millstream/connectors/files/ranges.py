"""The contract of file formats: a range of an open file in, records and rejected records out.

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
from millstream.formats.contract import shown
from millstream.formats.format_types import FieldSelection
from millstream.types.factory import TypeInformation

_SAMPLE = 1 << 16


class MalformedLine(UserError):
    """A record of a file that the format cannot read."""

    hint = "mend the file, or read on without such records: on_error='skip', in SQL the format's ignore-parse-errors"

    def __init__(self, path: str, offset: int, line: str, reason: str) -> None:
        self.path, self.offset, self.line, self.reason = path, offset, line, reason
        super().__init__(f"malformed line in {path} at byte {offset}: {reason}: {shown(line.encode())}")


@dataclass(frozen=True, slots=True)
class OpenRange:
    """The bytes of an open file from `start` to before `end`; both are None when it is to be read to its end."""

    path: str
    stream: BinaryIO
    start: int
    end: int | None
    size: int | None


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that could not be read: the file, the byte or row it begins at, its bytes, and why."""

    path: str
    offset: int
    data: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """Records, as a list or an Arrow array, and the records that could not be read."""

    values: Any
    rejected: Sequence[Rejected] = ()


class FileFormat(ABC):
    """How records are read from a file. Picklable."""

    #: What is done about records that cannot be read.
    on_error: OnError = OnError.FAIL
    #: The fewest bytes that are worth a range of their own.
    least_range: int = 1
    #: Whether a file whose name ends in .gz, .bz2 or .xz is unpacked first.
    unpacks: bool = True

    @property
    def splittable(self) -> bool:
        """Whether a part of a file can be read by itself."""
        return False

    @abstractmethod
    def type_info(self) -> TypeInformation:
        """Return the type of the records."""

    @abstractmethod
    def read(self, part: OpenRange, block: int) -> Iterator[Found]:
        """Yield the records of a range, about `block` at a time."""

    def units(self, stream: BinaryIO) -> list[tuple[int, int]] | None:
        """Where the parts of a file begin that cannot be cut, with the records in each; None if that is not known."""
        return None

    def record_size(self, stream: BinaryIO) -> float:
        """About how many bytes a record has: by the line ends in a first piece of the file, unless a format knows."""
        sample = stream.read(_SAMPLE)
        return max(len(sample), 1) / max(sample.count(b"\n"), 1)

    def only(self, wanted: FieldSelection) -> FileFormat | None:
        """The format of the same records with some of their fields only; None if it must read all of them."""
        return None

    def settled(self, found: Found) -> Found:
        """What was found, if the policy lets bad records pass."""
        if found.rejected and self.on_error is OnError.FAIL:
            first = found.rejected[0]
            raise MalformedLine(first.path, first.offset, first.data.decode("utf-8", "replace"), first.reason)
        return found


def pieces(values: Any, size: int) -> Iterator[Any]:
    """Records in pieces of at most that many."""
    if isinstance(values, pa.Array) or len(values) > size:
        yield from (values[start : start + size] for start in range(0, len(values), size))
    elif values:
        yield values
