"""Staged output of an exactly-once Kafka sink, in files.

Promises: staged messages are on the device, or complete in the object store, before their committable is returned. A
file name belongs to one attempt at one epoch, so attempts never write the same file. A committable names its file and
the transactional id that writes it, and no other file.
Does not know: Kafka.

    <directory>/<job>-<sink>@<epoch>@<subtask>-<attempt>     messages of one attempt

The directory is the one of the sink's configuration; without one, `staged` in the job's directory of the checkpoint
storage. On an object store a file is written in one piece when the epoch ends; until then it is in memory."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, ClassVar

from millstream.connector.sink import WriterContext
from millstream.connector.staged import Committable, NotStaged, StagedName, find_obsolete
from millstream.connectors.kafka.messages import Messages, StagedOutputDamaged, read_frames, write_frame
from millstream.errors import ExternalError
from millstream.files.access import opener
from millstream.files.contract import FileSystem
from millstream.files.local import LocalFileSystem
from millstream.files.locations import absolute_location, is_uri
from millstream.files.remote import ObjectStore

_OWN = "staged"


class StagingFailure(ExternalError):
    """The staging directory cannot be used."""

    def __init__(self, path: str, error: OSError) -> None:
        self.path = path
        super().__init__(
            f"cannot stage output in {path}: {(error.strerror or str(error)).lower()}",
            hint="the directory must be writable, with space, and shared by the driver and all executors",
        )


class StagedOutputLost(ExternalError):
    """A checkpoint names output that is neither staged nor committed."""

    hint = "check that the staging directory was not moved since then, and that the driver and all executors share it"

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"the output {path} was staged for a checkpoint, is not there, and was not committed")


@dataclass(frozen=True, slots=True)
class Staged(Committable):
    """A committable: one attempt's messages of one epoch of one subtask. Its name is that of a file.

    `transaction` is the transactional id that writes it, `parallelism` that of the sink. Committables of releases that
    wrote the output of all subtasks with one id have neither."""

    output: ClassVar[str] = "output of a Kafka sink"
    name: str
    job: str
    sink: str
    epoch: int
    subtask: int
    records: int
    size: int
    directory: str = ""
    transaction: str = ""
    parallelism: int = 0

    def __post_init__(self) -> None:
        if StagedName.parse(str(self.name)) is None:
            raise NotStaged(self.name, self.output)
        if self.directory and not _is_clean(str(self.directory)):
            raise NotStaged(self.directory, self.output)


class Staging:
    """The staging directory: the configured one, or that of the job."""

    def __init__(self, directory: str = "") -> None:
        self._configured = directory

    def path(self, staged: Staged) -> str:
        """Return the path of a staged file: the path to which it was written, or the one in the current directory if it
        was moved."""
        written = os.path.join(staged.directory or self._configured or _temporary(), staged.name)
        moved = os.path.join(self._configured, staged.name)
        if (
            not self._configured
            or moved == written
            or _files(written).exists(written)
            or not _files(moved).exists(moved)
        ):
            return written
        return moved

    def exists(self, staged: Staged) -> bool:
        """Return whether a staged file exists."""
        path = self.path(staged)
        return _files(path).exists(path)

    def create(self, context: WriterContext, transaction: str) -> StageFile:
        """Create a file for an attempt, whose messages a transactional id will write."""
        default = os.path.join(context.storage, _OWN) if context.storage else _temporary()
        return StageFile(absolute_location(self._configured or default), context, transaction)

    def read(self, staged: Staged) -> Iterator[Messages]:
        """Read the messages of a file and check its size."""
        path = self.path(staged)
        try:
            with _open(path) as stream:
                if stream.seek(0, os.SEEK_END) != staged.size:
                    raise StagedOutputDamaged(path, f"it should have {staged.size} bytes")
                stream.seek(0)
                yield from read_frames(stream, path)
        except FileNotFoundError:
            raise StagedOutputLost(path) from None
        except OSError as error:
            raise StagingFailure(path, error) from error

    def remove(self, staged: Staged) -> None:
        """Remove a file if it exists."""
        path = self.path(staged)
        with suppress(OSError):
            _files(path).remove(path)

    def sweep(self, committed: Iterable[Staged]) -> None:
        """Remove the files of failed attempts at epochs up to the last committed one."""
        names: dict[str, list[str]] = {}
        for staged in committed:
            names.setdefault(os.path.dirname(self.path(staged)), []).append(staged.name)
        for directory, committed_names in names.items():
            files = _files(directory)
            with suppress(OSError):
                for name in find_obsolete(files.list(directory), committed_names):
                    files.remove(os.path.join(directory, name))

    def remove_empty(self, directories: Iterable[str]) -> None:
        """Remove the empty directories of a finished job."""
        for directory in directories:
            if directory != self._configured and not is_uri(directory):
                with suppress(OSError):
                    os.rmdir(directory)


class StageFile:
    """A file that is being written; created with its first messages."""

    def __init__(self, directory: str, context: WriterContext, transaction: str) -> None:
        self._directory, self._name, self._context = directory, str(StagedName.of(context)), context
        self._transaction = transaction
        self._path = os.path.join(directory, self._name)
        self._stream: BinaryIO | None = None
        self._records = self._size = 0

    def append(self, messages: Messages) -> None:
        """Add messages."""
        try:
            if self._stream is None:
                self._stream = self._create()
            self._size += write_frame(self._stream, messages)
        except OSError as error:
            raise StagingFailure(self._path, error) from error
        self._records += len(messages)

    def _create(self) -> BinaryIO:
        if is_uri(self._directory):
            return io.BytesIO()
        LocalFileSystem().make_dirs(self._directory)
        return open(self._path, "wb", buffering=1 << 20, opener=opener)

    def finish(self) -> list[Staged]:
        """Sync and close the file, and return its committable; empty if nothing was written."""
        if self._stream is None:
            return []
        try:
            self._stream.flush()
            if isinstance(self._stream, io.BytesIO):
                _files(self._path).write_bytes(self._path, self._stream.getvalue(), sync=True)
            else:
                os.fsync(self._stream.fileno())
                LocalFileSystem().sync_dir(self._directory)
            self._stream.close()
        except OSError as error:
            raise StagingFailure(self._path, error) from error
        context = self._context
        origin = (context.job, context.sink, context.epoch, context.subtask)
        target = (self._directory, self._transaction, context.parallelism)
        return [Staged(self._name, *origin, self._records, self._size, *target)]

    def discard(self) -> None:
        """Remove the file."""
        if self._stream is not None:
            with suppress(OSError):
                self._stream.close()
            with suppress(OSError):
                _files(self._path).remove(self._path)


def _files(path: str) -> FileSystem:
    return ObjectStore.of(path) if is_uri(path) else LocalFileSystem()


def _open(path: str) -> BinaryIO:
    return io.BytesIO(_files(path).read_bytes(path)) if is_uri(path) else open(path, "rb")


def _is_clean(directory: str) -> bool:
    """Return whether a directory is absolute, or a URI, without `..`."""
    return absolute_location(directory) == directory and ".." not in directory.split("/")


def _temporary() -> str:
    """Return the staging directory of a writer that is not part of a job."""
    return os.path.join(
        tempfile.gettempdir(), f"millstream-kafka-{os.getuid()}"
    )  # a directory of another user cannot be used
