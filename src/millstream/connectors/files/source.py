"""The file source: lines, CSV, Parquet, ORC and Avro, of a set of files or of monitored directories.

Promises: each record of each file is read once; the same range has the same records, or an error names what changed.
Does not know: how ranges are planned; what files contain."""

from __future__ import annotations

import bz2
import gzip
import logging
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, BinaryIO, cast

from millstream.connector.source import (
    Boundedness,
    ReaderContext,
    Records,
    Rejected,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitRange,
)
from millstream.connectors.files import paths
from millstream.connectors.files.bulk import BulkFormat, DamagedFile
from millstream.connectors.files.enumerator import FileEnumerator
from millstream.connectors.files.formats import StreamFormat
from millstream.connectors.files.ranges import FileFormat, OpenRange, split_records
from millstream.files.remote import get_file_system
from millstream.formats import OnError
from millstream.formats.format_types import FieldSelection
from millstream.times import Duration, Time, millis
from millstream.types.factory import TypeInformation

_log = logging.getLogger("millstream.files")

_COMPRESSED: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": gzip.open,
    ".gzip": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
_REFUSED = {".deflate", ".zip", ".zst", ".lz4", ".snappy"}


@dataclass(frozen=True)
class FileEnumeratorProvider:
    """Whether files may be divided into several splits. Hidden files are skipped, directories are searched.

    Example:
        >>> from millstream.datastream.connectors.file_system import StreamFormat
        >>> builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "/data/orders")
        >>> builder = builder.set_file_enumerator(FileEnumeratorProvider.default_non_splittable_file_enumerator())

    """

    splits_files: bool

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Create a provider that splits large files, unless they are compressed or their character set prevents it."""
        return FileEnumeratorProvider(True)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Create a provider for which a file is one split, which is read in one epoch."""
        return FileEnumeratorProvider(False)


class FileSplitAssignerProvider:
    """Which reader gets which split; it has no effect, because Spark places tasks.

    Example:
        >>> assigner = FileSplitAssignerProvider.locality_aware_split_assigner()

    """

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """Create the default provider."""
        return FileSplitAssignerProvider()


@dataclass(frozen=True)
class FileSource(Source):
    """Reads files below `roots`; without an `interval`, those that exist when the job starts.

    Example:
        >>> from millstream.datastream.connectors.file_system import StreamFormat
        >>> source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "/data/orders").build()

    """

    format: FileFormat
    roots: tuple[str, ...]
    interval: int | None = None
    splits_files: bool = True

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        """Return a builder of a source that reads files, and all files of directories, with a format.

        Files that end in .gz, .gzip, .bz2 or .xz are decompressed.

        Args:
            stream_format: The format of the files.
            *paths: Files and directories.

        """
        return FileSourceBuilder(FileSource(stream_format, _roots(paths)))

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str) -> FileSourceBuilder:
        """Return a builder of a source that reads Parquet, ORC or Avro files.

        Args:
            bulk_format: The format of the files.
            *paths: Files and directories.

        """
        return FileSourceBuilder(FileSource(bulk_format, _roots(paths)))

    def type_info(self) -> TypeInformation:
        """Return the type that the format produces."""
        return self.format.type_info()

    def only(self, selection: FieldSelection) -> FileSource | None:
        """Return the source with only some of the fields; None if it must read all of them.

        Args:
            selection: The fields that are read.

        """
        narrower = self.format.only(selection)
        return None if narrower is None else replace(self, format=narrower)

    def boundedness(self) -> Boundedness:
        """Return bounded, unless directories are monitored."""
        return Boundedness.BOUNDED if self.interval is None else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator that discovers files, or continues from a snapshot."""
        return FileEnumerator(self.roots, self.interval, self._can_split, self.format, parallelism, state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader of byte ranges."""
        return FileReader(self.format, context.block_records)

    def _can_split(self, path: str) -> bool:
        ending = os.path.splitext(path)[1].lower()
        if not self.format.unpacks:
            return self.splits_files and self.format.splittable
        if ending in _REFUSED:
            hint = "decompress it first; .gz, .bz2 and .xz are decompressed while reading"
            raise paths.UnusablePath(path, "is compressed in a way that cannot be read", hint=hint)
        return self.splits_files and self.format.splittable and ending not in _COMPRESSED


class FileSourceBuilder:
    """Builds a FileSource.

    Example:
        >>> from millstream.common import Duration
        >>> from millstream.datastream.connectors.file_system import StreamFormat
        >>> builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "/data/orders")
        >>> source = builder.monitor_continuously(Duration.of_seconds(10)).build()

    """

    def __init__(self, source: FileSource) -> None:
        self._source = source

    def monitor_continuously(self, discovery_interval: Duration | Time | timedelta | int) -> FileSourceBuilder:
        """Discover new files at an interval, which makes the source unbounded. A file is read once.

        Args:
            discovery_interval: The time between two discoveries.

        """
        interval = millis(discovery_interval)
        if interval <= 0:
            raise paths.UnusablePath(", ".join(self._source.roots), f"cannot be watched every {interval} ms")
        self._source = replace(self._source, interval=interval)
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read the files that exist when the job starts: the default."""
        self._source = replace(self._source, interval=None)
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        """Set whether files may be divided into several splits.

        Args:
            file_enumerator: Whether files are divided.

        """
        self._source = replace(self._source, splits_files=file_enumerator.splits_files)
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        """Accept the assigner without effect: Spark decides where a split is read.

        Args:
            split_assigner: Any assigner; it has no effect but a warning.

        """
        _log.warning("set_split_assigner has no effect: Spark decides where a split is read")
        return self

    def build(self) -> FileSource:
        """Build the source."""
        return self._source


def _roots(path_arguments: tuple[str, ...]) -> tuple[str, ...]:
    if not path_arguments:
        raise paths.UnusablePath(repr(path_arguments), "has nothing to read", hint="pass at least one path")
    return tuple(paths.resolve_path(path) for path in path_arguments)


class FileReader(SourceReader):
    """Reads the records of ranges."""

    def __init__(self, file_format: FileFormat, block: int) -> None:
        self._format = file_format
        self._block = block
        self._skipped = 0
        self._letters: list[tuple[bytes, str]] = []

    def read(self, part: SplitRange) -> Iterator[Records]:
        """Yield the records that begin in the range."""
        path, planned = part.start["path"], (part.start["size"], part.start["modified"])
        _verify(path, planned)
        unpack = _COMPRESSED.get(os.path.splitext(path)[1].lower()) if self._format.unpacks else None
        with _open_file(path, unpack) as file:
            end, size = (None, None) if unpack else (part.end, planned[0])
            for records in self._format.read(OpenRange(path, file, part.start["at"], end, size), self._block):
                self._skipped += len(records.rejected)
                if self._format.on_error is OnError.DEAD_LETTER:
                    self._letters += [
                        (rejected.data, f"{path}:{rejected.offset}: {rejected.reason}") for rejected in records.rejected
                    ]
                for values in split_records(records.values, self._block):
                    yield Records(values)
        _verify(path, planned)

    def take_rejected(self) -> Rejected:
        """Return the rejected records, with their offsets."""
        rejected = Rejected(self._skipped, self._letters)
        self._skipped, self._letters = 0, []
        return rejected


def _verify(path: str, planned: tuple[int, int]) -> None:
    actual = paths.file_status(path)
    if actual != planned:
        raise paths.FileChanged(path, planned, actual)


@contextmanager
def _open_file(path: str, unpack: Callable[[BinaryIO], Any] | None) -> Iterator[BinaryIO]:
    try:
        with get_file_system(path).open(path) as packed, unpack(packed) if unpack else packed as file:
            yield cast(BinaryIO, file)
    except FileNotFoundError:
        raise paths.FileVanished(path) from None
    except (gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError) as problem:
        raise DamagedFile(path, problem) from problem
    except OSError as error:
        if unpack is not None and error.errno is None:  # the error of bz2 for other data
            raise DamagedFile(path, error) from error
        raise paths.UnreadableFile(path, error) from error
