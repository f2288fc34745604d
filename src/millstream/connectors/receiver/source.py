"""A receiver as a source: records are received into a log on the driver and read from there by a task.

Promises: every record that was received and planned is read exactly once, across failures and restarts.
Does not know: what the receiver is connected to.

The log must be on a file system that driver and workers share: below the checkpoint directory, as a rule."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from millstream.connector.source import (
    Boundedness,
    ReaderContext,
    Records,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitRange,
)
from millstream.connectors.receiver.contract import Receiver
from millstream.connectors.receiver.enumerator import ReceiverEnumerator
from millstream.connectors.receiver.log import SegmentedLog, read_frames, segment_path
from millstream.errors import UserError
from millstream.files.local import LocalFileSystem
from millstream.serialization import codec
from millstream.types.factory import TypeInformation, Types


class NotAReceiver(UserError):
    """A value that was passed as a receiver is not a receiver."""

    def __init__(self, value: object) -> None:
        super().__init__(f"{value!r} is not a receiver", hint="subclass Receiver and pass an instance")


class ReceiverSource(Source):
    """Emits the records of a receiver, through a write-ahead log.

    `directory` holds this log only; records in it that no checkpoint covers are read first. Without it the log is a new
    directory below `parent`, or a temporary directory that is deleted with this object. A segment is deleted when no
    retained checkpoint (`execution.checkpointing.num-retained`) and none of the last `kept_checkpoints` needs it.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream.connectors.receiver import SocketTextReceiver
        >>> source = ReceiverSource(SocketTextReceiver("localhost", 9999), type_info=Types.STRING())

    """

    def __init__(
        self,
        receiver: Receiver,
        directory: str | None = None,
        type_info: TypeInformation | None = None,
        *,
        parent: str | None = None,
        segment_bytes: int = 64 << 20,
        max_backlog_bytes: int = 1 << 30,
        kept_checkpoints: int = 1,
    ) -> None:
        if not isinstance(receiver, Receiver):
            raise NotAReceiver(receiver)
        for name, number in (
            ("segment_bytes", segment_bytes),
            ("max_backlog_bytes", max_backlog_bytes),
            ("kept_checkpoints", kept_checkpoints),
        ):
            if number < 1:
                msg = f"{name} is {number}"
                raise UserError(msg, hint="use at least 1")
        self._receiver, self._directory, self._parent = receiver, directory, parent
        self._type = type_info or Types.PICKLED_BYTE_ARRAY()
        self._segment_bytes, self._backlog, self._kept_checkpoints = segment_bytes, max_backlog_bytes, kept_checkpoints

    def type_info(self) -> TypeInformation:
        """Return the declared type."""
        return self._type

    def boundedness(self) -> Boundedness:
        """Return unbounded: the source ends only if its receiver returns."""
        return Boundedness.CONTINUOUS_UNBOUNDED

    def max_parallelism(self) -> int | None:
        """Return 1: a single reader keeps the order of the records."""
        return 1

    def _log_directory(self) -> str:
        """Return the directory of the log; a new one is kept across restarts of the job."""
        if self._directory is None:
            if self._parent is not None:
                LocalFileSystem().make_dirs(self._parent)
            self._directory = tempfile.mkdtemp(prefix="received-", dir=self._parent)
            if self._parent is None:
                weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        return str(Path(self._directory).absolute())

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator; it continues in the log that the state names."""
        directory, position = (
            (self._log_directory(), None) if state is None else (state["directory"], state["position"])
        )
        log = SegmentedLog(directory, self._segment_bytes)
        return ReceiverEnumerator(self._receiver, log, position, backlog=self._backlog, retained=self._kept_checkpoints)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader of the log."""
        return LogReader(context.block_records)


class LogReader(SourceReader):
    """Reads parts of segments."""

    def __init__(self, block: int) -> None:
        self._block = block

    def read(self, part: SplitRange) -> Iterator[Records]:
        """Yield the records of a range."""
        segment, start, _ = part.start
        pairs: list[tuple[int | None, Any]] = []
        for payload in read_frames(segment_path(part.split, segment), start, part.end[1]):
            pairs.append(codec.decode(payload))
            if len(pairs) == self._block:
                yield _records(pairs)
                pairs = []
        if pairs:
            yield _records(pairs)


def _records(pairs: list[tuple[int | None, Any]]) -> Records:
    times = [time for time, _ in pairs]
    return Records([value for _, value in pairs], None if all(time is None for time in times) else times)
