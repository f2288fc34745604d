"""Output that waits for its checkpoint, in files.

Promises: what was staged is on the device before its committable is handed over; names are of one attempt at one epoch,
so attempts do not meet; what a committable names is inside the staging directory.
Does not know: Kafka.

    <directory>/<job>-<sink>@<epoch>@<subtask>-<attempt>     messages of one attempt"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, ClassVar

from millstream.checkpoint.storage import LocalFileSystem
from millstream.connectors.kafka.messages import Messages, StagedOutputDamaged, read_frames, write_frame
from millstream.errors import ExternalError
from millstream.model.sink import WriterContext
from millstream.model.staged import Committable, NotStaged, StagedName, outlived


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

    hint = "is the staging directory another one than when the checkpoint was taken, or not shared with the executors?"

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

    def __post_init__(self) -> None:
        if StagedName.parse(str(self.name)) is None:
            raise NotStaged(self.name, self.output)


class Staging:
    """The staging directory."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def path(self, name: str) -> str:
        """Where a staged file is."""
        return os.path.join(self._directory, name)

    def create(self, context: WriterContext) -> StageFile:
        """A new file for an attempt."""
        name = str(StagedName.of(context))
        return StageFile(self.path(name), name, context)

    def read(self, staged: Staged) -> Iterator[Messages]:
        """The messages of a file, verified."""
        path = self.path(staged.name)
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
            os.remove(self.path(staged.name))

    def sweep(self, committed: Iterable[Staged]) -> None:
        """Remove what dead attempts have left, at epochs up to the last of these."""
        with suppress(OSError):
            for name in outlived(os.listdir(self._directory), [staged.name for staged in committed]):
                os.remove(self.path(name))


class StageFile:
    """A file being written; made with its first messages."""

    def __init__(self, path: str, name: str, context: WriterContext) -> None:
        self._path, self._name, self._context = path, name, context
        self._stream: BinaryIO | None = None
        self._records = self._size = 0

    def append(self, messages: Messages) -> None:
        """Add messages."""
        try:
            if self._stream is None:
                os.makedirs(os.path.dirname(self._path), exist_ok=True)
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
            LocalFileSystem().sync_dir(os.path.dirname(self._path))
        except OSError as error:
            raise StagingFailure(self._path, error) from error
        context = self._context
        staged = Staged(
            self._name, context.job, context.sink, context.epoch, context.subtask, self._records, self._size
        )
        return [staged]

    def discard(self) -> None:
        """Remove the file."""
        if self._stream is not None:
            with suppress(OSError):
                self._stream.close()
            with suppress(OSError):
                os.remove(self._path)
