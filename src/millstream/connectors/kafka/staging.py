"""Output that waits for its checkpoint, in files.

Promises: what was staged is on the device before its committable is handed over; names are of one attempt at one epoch,
so attempts do not meet; what a committable names is inside the staging directory.
Does not know: Kafka.

    <directory>/<job>-<sink>@<epoch>@<subtask>-<attempt>     messages of one attempt"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import quote

from millstream.connectors.kafka.messages import Messages, StagedOutputDamaged, read_frames, write_frame
from millstream.errors import ExternalError, UserError
from millstream.model.sink import WriterContext

_NAME = re.compile(r"(?P<owner>[\w%.~-]+)@(?P<epoch>\d+)@(?P<attempt>[\w%.~-]+)")


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


class NotStagedHere(UserError):
    """A committable that this sink has not written."""

    hint = "the checkpoint is of another kind of sink, or was tampered with"

    def __init__(self, data: object) -> None:
        super().__init__(f"{data!r:.200} is no output that a Kafka sink has staged")


@dataclass(frozen=True, slots=True)
class Staged:
    """A committable: one attempt's messages of one epoch of one subtask."""

    name: str
    job: str
    sink: str
    epoch: int
    subtask: int
    records: int
    size: int

    def to_json(self) -> dict[str, Any]:
        """The committable as a JSON value."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: Any) -> Staged:
        """The inverse of `to_json`. A name that is not a staged file's is refused."""
        if not isinstance(data, dict) or set(data) != set(cls.__slots__) or not _NAME.fullmatch(str(data["name"])):
            raise NotStagedHere(data)
        return cls(**data)


class Staging:
    """The staging directory."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def path(self, name: str) -> str:
        """Where a staged file is."""
        return os.path.join(self._directory, name)

    def create(self, context: WriterContext) -> StageFile:
        """A new file for an attempt."""
        attempt = quote(context.attempt, safe="")
        name = f"{_owner(context.job, context.sink)}@{context.epoch}@{context.subtask}-{attempt}"
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

    def sweep(self, job: str, sink: str, epoch: int) -> None:
        """Remove what dead attempts at epochs up to this one have left."""
        owner = _owner(job, sink)
        with suppress(OSError):
            for name in os.listdir(self._directory):
                found = _NAME.fullmatch(name)
                if found is not None and found["owner"] == owner and int(found["epoch"]) <= epoch:
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
            _sync(os.path.dirname(self._path))
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


def _owner(job: str, sink: str) -> str:
    return "-".join(quote(part, safe="") for part in (job, sink) if part)


def _sync(directory: str) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
