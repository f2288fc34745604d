"""The contract of a receiver: it takes what a system pushes and hands it over, record by record.

Promises: what `emit` has taken is in a log on disk; the job reads it from there, exactly once, over any failure of its
own. What the other side sent and nobody took is not ours to promise.
Does not know: epochs, checkpoints, the log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

from millstream.errors import ExternalError


class ReceiverStopped(ExternalError):
    """The job needs no more records: `run` should let go of its connections and return."""


class Emit(Protocol):
    """Takes a record, with its event time in milliseconds where it has one. May be called from any thread."""

    def __call__(self, value: Any, timestamp: int | None = None) -> None:
        """Take the record; waits while the job is far behind, raises `ReceiverStopped` when it has ended."""


class Receiver(ABC):
    """Runs in a thread of the driver. A description of it travels with the program, so it must be picklable until it
    runs; each run, also after a restart of the job, is one of a new copy."""

    @abstractmethod
    def run(self, emit: Emit) -> None:
        """Receive and emit. Returning ends the stream; raising fails the job, whose restart strategy decides."""

    def stop(self) -> None:
        """Called from another thread when the job ends or restarts: make `run` return soon."""
