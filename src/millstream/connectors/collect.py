"""Results handed back to the program: what execute_and_collect reads.

Promises: each result once, in the order of its subtask, and only after its checkpoint when checkpoints are on.
Does not know: how long the reader takes; results wait in the driver's memory."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millstream.model.sink import Committer, Sink, SinkWriter, WriterContext

_queues: dict[str, queue.SimpleQueue[Any]] = {}


def results_of(name: str) -> queue.SimpleQueue[Any]:
    """The queue that results of that sink arrive in."""
    return _queues.setdefault(name, queue.SimpleQueue())


def forget(name: str) -> None:
    """Nobody reads that sink any more."""
    _queues.pop(name, None)


@dataclass(frozen=True)
class CollectSink(Sink):
    """Sends records to the driver."""

    name: str
    driver_only = True

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Gathers the epoch's records."""
        return Gathering()

    def create_committer(self) -> Committer:
        """Puts them into the queue."""
        return Delivering(self.name)


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

    def __init__(self, name: str) -> None:
        self._name = name

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Deliver."""
        target = results_of(self._name)
        for value in committables:
            target.put(value)
