"""Results handed back to the program: what execute_and_collect reads.

Promises: each result once, in the order of its subtask, and only after its checkpoint when checkpoints are on. When
many results wait to be read, the job waits too, until they are read, nobody reads any more, or the job is cancelled.
Does not know: how long the reader takes."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext

MOST = 100_000  # results that wait to be read before the job waits


class Results:
    """The results of one sink, between the job's thread and the reader's."""

    def __init__(self, most: int = MOST) -> None:
        self._most: int | None = most
        self._values: deque[Any] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, values: Sequence[Any]) -> None:
        """Add results. Waits first while too many of earlier calls are unread; a reader that is gone gets none."""
        with self._changed:
            self._changed.wait_for(self._has_room)
            if not self._closed:
                self._values.extend(values)
                self._changed.notify_all()

    def _has_room(self) -> bool:
        return self._closed or self._most is None or len(self._values) < self._most

    def get(self, timeout: float | None = None) -> Any:
        """The next result; raises `queue.Empty` when none comes in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._values, timeout):
                raise queue.Empty
            value = self._values.popleft()
            self._changed.notify_all()
            return value

    def empty(self) -> bool:
        """Whether no result waits."""
        return not self._values

    def hold_all(self) -> None:
        """Keep all results from now on: the program waits for the end of the job before it reads."""
        with self._changed:
            self._most = None
            self._changed.notify_all()

    def close(self) -> None:
        """Nobody reads any more."""
        with self._changed:
            self._closed = True
            self._values.clear()
            self._changed.notify_all()


_results: dict[str, Results] = {}


def results_of(name: str) -> Results:
    """The results of the sink of that name."""
    return _results.setdefault(name, Results())


def forget(name: str) -> None:
    """Nobody reads that sink any more."""
    found = _results.pop(name, None)
    if found is not None:
        found.close()


@dataclass(frozen=True)
class CollectSink(Sink):
    """Sends records to the driver."""

    name: str
    driver_only = True

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Gathers the epoch's records."""
        return Gathering()

    def create_committer(self) -> Committer:
        """Hands them to the reader."""
        return Delivering(results_of(self.name))


class Gathering(SinkWriter):
    """Keeps records until the epoch ends."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Take records."""
        self._values.extend(values)

    def prepare_commit(self) -> list[Any]:
        """The records themselves."""
        return self._values


class Delivering(Committer):
    """Hands records to whoever reads."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Deliver."""
        self._results.put(committables)

    def interrupt(self) -> None:
        """Wait for no reader: the rows of the checkpoint that is being committed are kept for it."""
        self._results.hold_all()
