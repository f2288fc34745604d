"""The contract of a receiver: it receives the data that a system pushes, and emits it record by record.

Promises: a record for which `emit` returned is in a log on disk; the job reads it from there, exactly once, across its
failures. Records that were sent while no receiver ran may be lost.
Does not know: epochs, checkpoints, the log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

from millstream.errors import ExternalError


class ReceiverStopped(ExternalError):
    """The job needs no more records: `run` must close its connections and return."""


class Emit(Protocol):
    """Takes a record, with its event time in milliseconds where it has one. May be called from any thread.

    Example:
        >>> def receive(emit: Emit) -> None:
        ...     emit("ann logged in", timestamp=1_700_000_000_000)

    """

    def __call__(self, value: Any, timestamp: int | None = None) -> None:
        """Emit a record; waits while the job is far behind, raises `ReceiverStopped` when it has ended."""


class Receiver(ABC):
    """Runs in a thread of the driver. It is part of the program, so it must be picklable before it
    runs; each run, also after a restart of the job, uses a new copy.

    Example:
        >>> class Greetings(Receiver):
        ...     def run(self, emit):
        ...         for name in ("ann", "bob"):
        ...             emit(f"hello {name}")

    """

    @abstractmethod
    def run(self, emit: Emit) -> None:
        """Receive and emit. Returning ends the stream; raising fails the job, whose restart strategy decides.

        Args:
            emit: Emits a record.

        """

    def stop(self) -> None:
        """Make `run` return soon; this is called from another thread when the job ends or restarts."""
