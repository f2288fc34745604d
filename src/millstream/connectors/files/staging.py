"""The writer of a file sink: records of one attempt at one epoch, in staged files.

Promises: staged files are hidden (below `.staging`), have names that no other attempt uses, and are on the device
before their committables are returned.
Does not know: commits, checkpoints."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, BinaryIO, ClassVar

import pyarrow as pa

from millstream.connector.serialization_schema import BulkWriterFactory, Encoder
from millstream.connector.sink import SinkWriter, WriterContext
from millstream.connector.staged import Committable, NotStaged, StagedName
from millstream.connectors.files.buckets import BucketAssigner, BucketContext, check_bucket
from millstream.connectors.files.encoders import encode_all
from millstream.connectors.files.rolling import OutputFileConfig
from millstream.files.contract import FileSystem
from millstream.files.errors import ConnectorStorageFailure
from millstream.files.locations import join_path

STAGING = ".staging"
_OPEN_FILES = 64
_PIECE, _COLUMN_PIECE = 1024, 8192  # records that are written at once
MERGED = 32 << 20  # files up to this size altogether are merged when they are committed


class NotAPath(NotStaged):
    """A name in a committable leads out of the base path."""

    def __init__(self, name: object) -> None:
        self.name = name
        super().__init__(name, "a file below the base path")


@dataclass(frozen=True, slots=True)
class StagedFile(Committable):
    """A committable: a staged file and its final name. Names are relative to the base path.

    Staged files of one `group` (a subtask's in a bucket) that have at most `limit` bytes altogether become one file.
    `time` is the processing time of the epoch that wrote it, `parallelism` that of the sink in it."""

    output: ClassVar[str] = "a file of a file sink"
    staged: str
    final: str
    suffix: str
    group: str
    size: int
    limit: int
    time: int = 0
    parallelism: int = 0

    def __post_init__(self) -> None:
        for name in (self.staged, self.final):
            parts = PurePosixPath(name).parts
            if not parts or parts[0] == "/" or ".." in parts:
                raise NotAPath(name)

    @property
    def bucket(self) -> str:
        """The bucket of the file."""
        return self.final.rpartition("/")[0]


@dataclass(slots=True)
class _Part:
    """A file being written; it is closed temporarily if too many are open."""

    staged: str
    final: str
    group: str
    stream: BinaryIO | None = None
    content: Content | None = None
    size: int = 0


class Content(ABC):
    """Writes records to an open file."""

    @abstractmethod
    def add(self, values: Sequence[Any]) -> None:
        """Write records."""

    def finish(self) -> None:
        """Write the end of the file."""


class Rows(Content):
    """Writes record by record; a file can be closed and appended to later."""

    def __init__(self, encoder: Encoder, stream: BinaryIO) -> None:
        self._encoder, self._stream = encoder, stream

    def add(self, values: Sequence[Any]) -> None:
        """Write records."""
        encode_all(self._encoder, values, self._stream)


class Bulk(Content):
    """Writes the records of a bulk-encoded file."""

    def __init__(self, factory: BulkWriterFactory, stream: BinaryIO) -> None:
        self._writer = factory.create(stream)

    def add(self, values: Sequence[Any]) -> None:
        """Write records."""
        self._writer.add_elements(list(values))

    def finish(self) -> None:
        """Write the end of the file."""
        self._writer.finish()


@dataclass(frozen=True)
class PartFiles:
    """The settings of part files: how they are written and named, and their size.

    Parts of at most `merged` bytes together are merged when they are committed. `columnar` says whether the
    content also accepts typed records as one Arrow array."""

    content: Callable[[BinaryIO], Content]
    reopens: bool
    part_size: int
    merged: int
    names: OutputFileConfig
    columnar: bool = False


class FileWriter(SinkWriter):
    """Writes records into hidden files, one for each bucket, or more when they grow large."""

    def __init__(
        self, base: str, files: FileSystem, parts: PartFiles, assigner: BucketAssigner, context: WriterContext
    ) -> None:
        self._base = base
        self._files = files
        self._part_files = parts
        self._reopens = parts.reopens and files.has_atomic_rename
        self._assigner = assigner
        self.columnar = parts.columnar and assigner.columnar
        self._part_size = parts.part_size
        self._names = parts.names
        self._context = context
        self._open: dict[str, _Part] = {}
        self._parts: list[_Part] = []
        self._streams: dict[str, _Part] = {}
        self._counts: dict[str, int] = {}

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Encode the records, each into the file of its bucket."""
        now = self._context.now
        if isinstance(values, pa.Array):
            for bucket_id, members in self._assigner.buckets_of(values, BucketContext(None, now)):
                self._append(check_bucket(bucket_id, STAGING), members)
            return
        bucket = self._assigner.bucket_of_all(BucketContext(None, now))
        if bucket is not None:
            self._append(check_bucket(bucket, STAGING), values)
            return
        by_bucket: dict[str, list[Any]] = {}
        times = timestamps if timestamps is not None else [None] * len(values)
        for value, time in zip(values, times, strict=True):
            bucket_id = self._assigner.get_bucket_id(value, BucketContext(time, now))
            by_bucket.setdefault(bucket_id, []).append(value)
        for bucket_id, rows in by_bucket.items():
            self._append(check_bucket(bucket_id, STAGING), rows)

    def _append(self, bucket: str, values: Sequence[Any]) -> None:
        # in slices, so that a part does not exceed its size limit by much
        step = _COLUMN_PIECE if isinstance(values, pa.Array) else _PIECE
        for first in range(0, len(values), step):
            part = self._open.get(bucket) or self._begin(bucket)
            content = self._content(part)
            assert part.stream is not None
            try:
                content.add(values[first : first + step])
                part.size = part.stream.tell()
            except OSError as error:
                raise ConnectorStorageFailure(self._path(part), "write", error) from error
            if part.size >= self._part_size:
                del self._open[bucket]
                self._close(part)

    def _begin(self, bucket: str) -> _Part:
        context = self._context
        count = self._counts.get(bucket, 0)
        self._counts[bucket] = count + 1
        number = f"{context.epoch}-{count}" if count else str(context.epoch)
        owner = _tag(context.job, context.sink)  # a name that is unique in the job
        # without atomic renames, each name is used once: it contains the attempt
        attempt = "" if self._files.has_atomic_rename else f"-{_tag(str(context.epoch), context.attempt)}"
        final = f"{self._names.part_prefix}-{owner}-{context.subtask}-{number}{attempt}{self._names.part_suffix}"
        staged = f"{StagedName.of(context)}-{len(self._parts)}"
        part = _Part(f"{STAGING}/{staged}", f"{bucket}/{final}" if bucket else final, f"{context.subtask}/{bucket}")
        self._open[bucket] = part
        self._parts.append(part)
        return part

    def _content(self, part: _Part) -> Content:
        if part.content is None:
            if len(self._streams) >= _OPEN_FILES:
                self._suspend(next(iter(self._streams.values())))
            try:
                # a file of this name was written by this attempt, or by one that is dead
                self._files.make_private_dir(
                    join_path(self._base, STAGING)
                )  # files in it have the permissions of final output
                part.stream = self._files.create(self._path(part), append=bool(part.size))
                part.content = self._part_files.content(part.stream)
            except OSError as error:
                raise ConnectorStorageFailure(self._path(part), "write", error) from error
            self._streams[part.staged] = part
        return part.content

    def _suspend(self, part: _Part) -> None:
        """Close a part; it is reopened later if the file system can append."""
        self._close(part)
        if not self._reopens:
            self._open = {bucket: open_part for bucket, open_part in self._open.items() if open_part is not part}

    def _close(self, part: _Part) -> None:
        if part.stream is not None and part.content is not None:
            try:
                part.content.finish()
                part.size = part.stream.tell()
                self._files.finish(part.stream)
            except OSError as error:
                raise ConnectorStorageFailure(self._path(part), "write", error) from error
            part.stream = part.content = None
            del self._streams[part.staged]

    def prepare_commit(self) -> list[Any]:
        """Sync all files and return their committables."""
        for part in self._parts:
            self._close(part)
        if self._parts:
            self._files.sync_dir(join_path(self._base, STAGING))
        limit = min(self._part_size, self._part_files.merged)
        suffix, now, parallelism = self._names.part_suffix, self._context.now, self._context.parallelism
        return [
            StagedFile(part.staged, part.final, suffix, part.group, part.size, limit, now, parallelism).to_json()
            for part in self._parts
            if part.size
        ]

    def _path(self, part: _Part) -> str:
        return join_path(self._base, part.staged)

    def abort(self) -> None:
        """Remove what was staged."""
        self.close()
        for part in self._parts:
            with suppress(OSError):
                self._files.remove(self._path(part))
        self._parts, self._open = [], {}

    def close(self) -> None:
        """Close files that are still open."""
        for part in self._streams.values():
            if part.stream is not None:
                with suppress(OSError):
                    part.stream.close()
                part.stream = part.content = None
        self._streams = {}


def _tag(*parts: str) -> str:
    """Return a short hash of names."""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=6).hexdigest()
