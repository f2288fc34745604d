"""The writer of a file sink: records of one attempt at one epoch, in hidden files.

Promises: what is written is out of sight (below `.staging`) under names no other attempt uses, and on the device before
the committables are handed over.
Does not know: commits, checkpoints."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, BinaryIO
from urllib.parse import quote

from millstream.connectors.files.buckets import BucketAssigner, BucketContext, checked
from millstream.connectors.files.encoders import encode_all
from millstream.connectors.files.rolling import OutputFileConfig
from millstream.errors import ExternalError, UserError
from millstream.model.serialization import Encoder
from millstream.model.sink import SinkWriter, WriterContext

STAGING = ".staging"
_OPEN_FILES = 64
_MERGED = 32 << 20  # files up to this size altogether are merged when they are committed


class OutputFailure(ExternalError):
    """The file system refused to write."""

    def __init__(self, path: str, error: OSError, *, action: str = "write") -> None:
        self.path = path
        super().__init__(
            f"cannot {action} {path}: {(error.strerror or str(error)).lower()}",
            hint="there must be space and permission, on the driver and all executors",
        )


class NotAPath(UserError):
    """A name in a committable leads out of the base path."""

    hint = "the checkpoint was not written by this sink, or was tampered with"

    def __init__(self, name: object) -> None:
        self.name = name
        super().__init__(f"{name!r} is not the name of a file below the base path")


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A committable: a hidden file and what it becomes. Names are relative to the base path.

    Staged files of one `group` (a subtask's in a bucket) that have at most `limit` bytes altogether become one file."""

    staged: str
    final: str
    suffix: str
    group: str
    size: int
    limit: int

    def to_json(self) -> dict[str, Any]:
        """The committable as a JSON value."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StagedFile:
        """The inverse of `to_json`. Refuses names that lead out of the base path."""
        for name in (data["staged"], data["final"]):
            parts = PurePosixPath(name).parts
            if not parts or parts[0] == "/" or ".." in parts:
                raise NotAPath(name)
        return cls(**data)


@dataclass(slots=True)
class _Part:
    """A file being written; closed for a while when too many are open."""

    staged: str
    final: str
    group: str
    stream: BinaryIO | None = None
    size: int = 0


class FileWriter(SinkWriter):
    """Encodes records into hidden files, one for each bucket, or more when they grow large."""

    def __init__(
        self,
        base: str,
        encoder: Encoder,
        assigner: BucketAssigner,
        part_size: int,
        names: OutputFileConfig,
        context: WriterContext,
    ) -> None:
        self._base = base
        self._encoder = encoder
        self._assigner = assigner
        self._part_size = part_size
        self._names = names
        self._context = context
        self._open: dict[str, _Part] = {}
        self._parts: list[_Part] = []
        self._streams: dict[str, _Part] = {}
        self._counts: dict[str, int] = {}

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Encode the records, each into the file of its bucket."""
        now = self._context.now
        bucket = self._assigner.bucket_of_all(BucketContext(None, now))
        if bucket is not None:
            self._append(checked(bucket, STAGING), values)
            return
        by_bucket: dict[str, list[Any]] = {}
        times = timestamps if timestamps is not None else [None] * len(values)
        for value, time in zip(values, times, strict=True):
            found = self._assigner.get_bucket_id(value, BucketContext(time, now))
            by_bucket.setdefault(found, []).append(value)
        for found, members in by_bucket.items():
            self._append(checked(found, STAGING), members)

    def _append(self, bucket: str, values: Sequence[Any]) -> None:
        # in pieces, so that a part does not grow far beyond its size
        for first in range(0, len(values), 1024):
            part = self._open.get(bucket) or self._begin(bucket)
            stream = self._stream(part)
            try:
                encode_all(self._encoder, values[first : first + 1024], stream)
                part.size = stream.tell()
            except OSError as error:
                raise OutputFailure(os.path.join(self._base, part.staged), error) from error
            if part.size >= self._part_size:
                del self._open[bucket]
                self._close(part)

    def _begin(self, bucket: str) -> _Part:
        context = self._context
        count = self._counts.get(bucket, 0)
        self._counts[bucket] = count + 1
        number = f"{context.epoch}-{count}" if count else str(context.epoch)
        final = f"{self._names.part_prefix}-{context.subtask}-{number}{self._names.part_suffix}"
        staged = (
            f"{_owner(context)}@{context.epoch}@{context.subtask}-{quote(context.attempt, safe='')}-{len(self._parts)}"
        )
        part = _Part(f"{STAGING}/{staged}", f"{bucket}/{final}" if bucket else final, f"{context.subtask}/{bucket}")
        self._open[bucket] = part
        self._parts.append(part)
        return part

    def _stream(self, part: _Part) -> BinaryIO:
        if part.stream is None:
            if len(self._streams) >= _OPEN_FILES:
                self._close(next(iter(self._streams.values())))
            path = os.path.join(self._base, part.staged)
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                # an attempt of that name is this one, or long dead
                part.stream = open(path, "ab" if part.size else "wb", buffering=1 << 18)  # noqa: SIM115
            except OSError as error:
                raise OutputFailure(path, error) from error
            self._streams[part.staged] = part
        return part.stream

    def _close(self, part: _Part) -> None:
        if part.stream is not None:
            try:
                part.stream.flush()
                os.fsync(part.stream.fileno())
                part.stream.close()
            except OSError as error:
                raise OutputFailure(os.path.join(self._base, part.staged), error) from error
            part.stream = None
            del self._streams[part.staged]

    def prepare_commit(self) -> list[Any]:
        """Bring all files to the device and name them."""
        for part in self._parts:
            self._close(part)
        if self._parts:
            sync_directory(os.path.join(self._base, STAGING))
        limit = min(self._part_size, _MERGED)
        return [
            StagedFile(part.staged, part.final, self._names.part_suffix, part.group, part.size, limit).to_json()
            for part in self._parts
            if part.size
        ]

    def abort(self) -> None:
        """Remove what was staged."""
        self.close()
        for part in self._parts:
            with suppress(OSError):
                os.remove(os.path.join(self._base, part.staged))
        self._parts, self._open = [], {}

    def close(self) -> None:
        """Let go of files that are still open."""
        for part in self._streams.values():
            if part.stream is not None:
                with suppress(OSError):
                    part.stream.close()
                part.stream = None
        self._streams = {}


def _owner(context: WriterContext) -> str:
    """How the names of all files that a sink stages begin; another job with the same sink has other names."""
    job = context.job
    return "-".join(quote(part, safe="") for part in (job, context.sink) if part)


def sync_directory(path: str) -> None:
    """Bring the names in a directory to the device."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
