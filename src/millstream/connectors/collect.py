"""The collect sink: results that `execute_and_collect` returns to the program.

Promises: each result once, in the order of its subtask, and only after its checkpoint when checkpoints are on. When
many results are unread, the job waits until they are read, the reader is closed, or the job is cancelled.
Does not know: how long the reader takes."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.types.type_information import TypeInformation

MAX_UNREAD = 100_000  # results after which the job waits for the reader
MAX_UNREAD_BATCHES = 100  # the same for results that are batches of records


class Results:
    """The queue of results of one sink: the thread of the job puts them, the reader gets them."""

    def __init__(self, max_unread: int = MAX_UNREAD) -> None:
        self._max_unread: int | None = max_unread
        self._values: deque[Any] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, values: Sequence[Any]) -> None:
        """Add results, after waiting while too many are unread; they are dropped if the reader is closed."""
        with self._changed:
            self._changed.wait_for(self._has_room)
            if not self._closed:
                self._values.extend(values)
                self._changed.notify_all()

    def _has_room(self) -> bool:
        return self._closed or self._max_unread is None or len(self._values) < self._max_unread

    def get(self, timeout: float | None = None) -> Any:
        """Return the next result; `queue.Empty` if there is none within the timeout."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._values, timeout):
                raise queue.Empty
            value = self._values.popleft()
            self._changed.notify_all()
            return value

    def empty(self) -> bool:
        """Return whether all results were read."""
        return not self._values

    def hold_all(self) -> None:
        """Keep all results from now on, because the program reads after the end of the job."""
        with self._changed:
            self._max_unread = None
            self._changed.notify_all()

    def close(self) -> None:
        """Drop all results, because the reader has closed."""
        with self._changed:
            self._closed = True
            self._values.clear()
            self._changed.notify_all()


_results: dict[str, Results] = {}


def get_results(name: str, max_unread: int = MAX_UNREAD) -> Results:
    """Return the results of the sink with this name; the first call decides after how many the job waits."""
    return _results.setdefault(name, Results(max_unread))


def forget(name: str) -> None:
    """Remove the results of a sink that is not read any more."""
    results = _results.pop(name, None)
    if results is not None:
        results.close()


@dataclass(frozen=True)
class CollectSink(Sink):
    """Sends records to the reader on the driver, or Arrow arrays of the type `batches_of` if it is given."""

    name: str
    batches_of: TypeInformation | None = None
    driver_only = True

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create a writer that gathers the records of an epoch."""
        return CollectWriter() if self.batches_of is None else CollectBatchesWriter(self.batches_of)

    def create_committer(self) -> Committer:
        """Create a committer that passes them to the reader."""
        return CollectCommitter(get_results(self.name))


class CollectWriter(SinkWriter):
    """Keeps records until the epoch ends."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Add records."""
        self._values.extend(values)

    def prepare_commit(self) -> list[Any]:
        """Return the records."""
        return self._values


class CollectBatchesWriter(CollectWriter):
    """Keeps Arrow arrays until the epoch ends."""

    columnar = True

    def __init__(self, type_info: TypeInformation) -> None:
        super().__init__()
        self._type_info = type_info

    def write(self, values: Any, timestamps: Any) -> None:
        """Add records, as one array."""
        self._values.append(values if isinstance(values, pa.Array) else self._type_info.to_arrow(values))


class CollectCommitter(Committer):
    """Passes records to the reader."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Pass the records to the reader."""
        self._results.put(committables)

    def interrupt(self) -> None:
        """Stop waiting for the reader: the results of the current commit are kept for it."""
        self._results.hold_all()
