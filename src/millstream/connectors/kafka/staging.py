"""Output that waits for its checkpoint, in files.

Promises: what was staged is on the device before its committable is handed over; names are of one attempt at one epoch,
so attempts do not meet; a committable says where its file is, and names no other kind of file.
Does not know: Kafka.

    <directory>/<job>-<sink>@<epoch>@<subtask>-<attempt>     messages of one attempt

The directory is the one that the sink was given; else `staged` in the job's directory of the checkpoint storage."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, ClassVar

from millstream.checkpoint.object_store import is_uri
from millstream.checkpoint.storage import LocalFileSystem
from millstream.connectors.kafka.messages import Messages, StagedOutputDamaged, read_frames, write_frame
from millstream.errors import ExternalError, UserError
from millstream.model.sink import WriterContext
from millstream.model.staged import Committable, NotStaged, StagedName, outlived

_OWN = "staged"


class StagingFailure(ExternalError):
    """The staging directory cannot be used."""

    def __init__(self, path: str, error: OSError) -> None:
        self.path = path
        super().__init__(
            f"cannot stage output in {path}: {(error.strerror or str(error)).lower()}",
            hint="the directory must be writable, with space, and shared by the driver and all executors",
        )


class StagingNotShared(UserError):
    """The job's own place for files is no directory."""

    hint = "give the sink a directory that the driver and all executors share: set_staging_directory"

    def __init__(self, place: str) -> None:
        self.place = place
        super().__init__(f"output cannot be staged in {place}, which is no directory")


class StagedOutputLost(ExternalError):
    """A checkpoint names output that is neither staged nor committed."""

    hint = "was the staging directory moved since the checkpoint was taken, or is it not shared with the executors?"

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"the output {path} was staged for a checkpoint, is not there, and was not committed")


@dataclass(frozen=True, slots=True)
class Staged(Committable):
    """A committable: one attempt's messages of one epoch of one subtask. Its name is that of a file."""

    output: ClassVar[str] = "output of a Kafka sink"
    name: str
    job: str
    sink: str
    epoch: int
    subtask: int
    records: int
    size: int
    directory: str = ""

    def __post_init__(self) -> None:
        if StagedName.parse(str(self.name)) is None:
            raise NotStaged(self.name, self.output)
        if self.directory and os.path.abspath(str(self.directory)) != self.directory:
            raise NotStaged(self.directory, self.output)


class Staging:
    """The staging directory: the one given, or the job's own."""

    def __init__(self, directory: str = "") -> None:
        self._given = directory

    def path(self, staged: Staged) -> str:
        """Where a staged file is: where it was written, or in the directory of now if that has been moved."""
        written = os.path.join(staged.directory or self._given or _temporary(), staged.name)
        moved = os.path.join(self._given, staged.name)
        return moved if self._given and not os.path.exists(written) and os.path.exists(moved) else written

    def create(self, context: WriterContext) -> StageFile:
        """A new file for an attempt."""
        if not self._given and is_uri(context.storage):
            raise StagingNotShared(context.storage)
        own = os.path.join(context.storage, _OWN) if context.storage else _temporary()
        return StageFile(os.path.abspath(self._given or own), context)

    def read(self, staged: Staged) -> Iterator[Messages]:
        """The messages of a file, verified."""
        path = self.path(staged)
        try:
            with open(path, "rb") as stream:
                if os.fstat(stream.fileno()).st_size != staged.size:
                    raise StagedOutputDamaged(path, f"it should have {staged.size} bytes")
                yield from read_frames(stream, path)
        except FileNotFoundError:
            raise StagedOutputLost(path) from None
        except OSError as error:
            raise StagingFailure(path, error) from error

    def remove(self, staged: Staged) -> None:
        """Remove a file if it is there."""
        with suppress(OSError):
            os.remove(self.path(staged))

    def sweep(self, committed: Iterable[Staged]) -> None:
        """Remove what dead attempts have left, at epochs up to the last of these."""
        names: dict[str, list[str]] = {}
        for staged in committed:
            names.setdefault(os.path.dirname(self.path(staged)), []).append(staged.name)
        for directory, mine in names.items():
            with suppress(OSError):
                for name in outlived(os.listdir(directory), mine):
                    os.remove(os.path.join(directory, name))

    def leave(self, directories: Iterable[str]) -> None:
        """The job is over: remove directories of its own that are empty."""
        for directory in directories:
            if directory != self._given:
                with suppress(OSError):
                    os.rmdir(directory)


class StageFile:
    """A file being written; made with its first messages."""

    def __init__(self, directory: str, context: WriterContext) -> None:
        self._directory, self._name, self._context = directory, str(StagedName.of(context)), context
        self._path = os.path.join(directory, self._name)
        self._stream: BinaryIO | None = None
        self._records = self._size = 0

    def append(self, messages: Messages) -> None:
        """Add messages."""
        try:
            if self._stream is None:
                LocalFileSystem().make_dirs(self._directory)
                self._stream = open(self._path, "wb", buffering=1 << 20)  # noqa: SIM115
            self._size += write_frame(self._stream, messages)
        except OSError as error:
            raise StagingFailure(self._path, error) from error
        self._records += len(messages)

    def finish(self) -> list[Staged]:
        """Bring the file to the device; nothing if nothing was written."""
        if self._stream is None:
            return []
        try:
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()
            LocalFileSystem().sync_dir(self._directory)
        except OSError as error:
            raise StagingFailure(self._path, error) from error
        context = self._context
        place = (context.job, context.sink, context.epoch, context.subtask)
        return [Staged(self._name, *place, self._records, self._size, self._directory)]

    def discard(self) -> None:
        """Remove the file."""
        if self._stream is not None:
            with suppress(OSError):
                self._stream.close()
            with suppress(OSError):
                os.remove(self._path)


def _temporary() -> str:
    """Where a writer stages that has no job around it."""
    return os.path.join(tempfile.gettempdir(), "millstream-kafka")
