"""The contract of a sink: a writer in the task stages output, a committer on the driver makes it visible.

Promises: what a writer stages is invisible until the committer gets its committable, which happens only after the
checkpoint that names it is durable, and may happen more than once.
Does not know: epochs, Spark, files of checkpoints."""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from millstream.connector.slot_task import SlotTask
from millstream.errors import ExternalError

_MAX_NAMED = 20  # committables that a message names


class OutputRefused(ExternalError):
    """Output cannot be committed, and a retry would not help: the job fails."""


@dataclass(frozen=True, slots=True)
class WriterContext:
    """The context of a writer. `job` is the job's id and incarnation: no other job has it, and the same program has
    another one when it starts from the beginning. `attempt` is unique for each attempt of each epoch of the job; names
    of staged output contain both. It begins with a generation; output that generations before `recovered` staged is
    either committed or obsolete.

    `now` is the processing time of the epoch. `storage` is the job's directory in its checkpoint storage, which the
    driver and all tasks can access, and which is kept as long as the checkpoints; empty if there is none.

    Example:
        >>> WriterContext("job", "sink", subtask=0, parallelism=1, epoch=1, attempt="1-0", now=0).subtask
        0

    """

    job: str
    sink: str
    subtask: int
    parallelism: int
    epoch: int
    attempt: str
    now: int
    storage: str = ""
    recovered: int = 0


class SinkWriter(ABC):
    """Writes the records of one epoch of one subtask.

    Example:
        >>> class CountRecords(SinkWriter):
        ...     def __init__(self):
        ...         self.count = 0
        ...     def write(self, values, timestamps):
        ...         self.count += len(values)
        ...     def prepare_commit(self):
        ...         return [self.count]
        >>> writer = CountRecords()
        >>> writer.write(["tea", "coffee"], None)
        >>> writer.prepare_commit()
        [2]

    """

    #: True if `write` also accepts typed records as one Arrow array, with their timestamps as a numpy column.
    columnar: bool = False
    #: False if the writer reads no records: none are created for it.
    reads: bool = True

    @abstractmethod
    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Write records, in order.

        Args:
            values: The records.
            timestamps: Their event-time timestamps, None for a record without one; None if no record has one.

        """

    @abstractmethod
    def prepare_commit(self) -> list[Any]:
        """Finish the epoch: stage all records, and return committables, which are JSON values."""

    def abort(self) -> None:
        """Undo what was written, as far as possible: the epoch failed."""

    def close(self) -> None:
        """Close connections."""


class Workers(Protocol):
    """What a committer can use of its job.

    Example:
        >>> ThisProcess().leads()
        False

    """

    @property
    def owner(self) -> str:
        """A name of the run of the driver: no other run has it, and a job that restarts in the same driver keeps it."""

    def run_tasks(self, tasks: Sequence[SlotTask]) -> list[Any]:
        """Run functions on the workers of the job, those of different slots in parallel; return their results.

        Args:
            tasks: The tasks, each with the slot that runs it.

        """

    def leads(self) -> bool:
        """Return whether this driver holds the lease of the job; False if the job has no lease. Raises if another
        driver has taken over."""

    def backpressured(self) -> None:
        """Report that the job waits for the reader of its output, so that it does not count as stuck."""


class ThisProcess:
    """Workers of a committer without a job: tasks run in this process.

    Example:
        >>> ThisProcess().run_tasks([])
        []

    """

    _numbers = itertools.count()

    def __init__(self) -> None:
        self.owner = f"{os.getpid()}-{next(self._numbers)}"

    def run_tasks(self, tasks: Sequence[SlotTask]) -> list[Any]:
        """Run the tasks one after the other.

        Args:
            tasks: The tasks.

        """
        return [task.run() for task in tasks]

    def leads(self) -> bool:
        """Return False: there is no lease."""
        return False

    def backpressured(self) -> None:
        """Do nothing: there is no lease."""


class Committer(ABC):
    """Makes staged output visible. It runs on the driver.

    The driver must not do work for each record. If a commit is one call for each committable (a rename, a COMMIT
    PREPARED, one commit to a table), `commit` makes the calls. If it must move records, it does so in tasks, with
    `workers.run_tasks`.

    Example:
        >>> class PrintNames(Committer):
        ...     def commit(self, checkpoint, committables):
        ...         print(checkpoint, *committables)
        >>> PrintNames().commit(7, ["part-0", "part-1"])
        7 part-0 part-1

    """

    #: Set by the job master before the first call.
    workers: Workers

    @abstractmethod
    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Make the committables visible, in order. Idempotent: recovery repeats it.

        Args:
            checkpoint: The number of the checkpoint that contains the committables.
            committables: What the writers returned since the last checkpoint, in the order of epochs.

        """

    def reached(self, watermark: int, now: int) -> None:
        """Handle that all output before this watermark and processing time is visible and its checkpoint is durable.
        The job calls it after the commit of every checkpoint, with or without committables, and again on recovery.

        Args:
            watermark: The smallest watermark of the sink's inputs.
            now: The processing time of the newest epoch of the checkpoint.

        """

    def snapshot(self) -> Any:
        """Return the state of the committer as a JSON value, which every checkpoint contains; None if there is none."""
        return None

    def restore(self, state: Any) -> None:
        """Restore the state from a checkpoint, before anything is committed.

        Args:
            state: What `snapshot` returned for the checkpoint.

        """

    def abort(self, committables: Sequence[Any]) -> None:
        """Remove staged output that will never be committed.

        Args:
            committables: The committables of the output.

        """

    def describe(self, committables: Sequence[Any]) -> str:
        """Describe output that could not be committed or removed, and how to resolve it in the external system.

        Args:
            committables: The committables of the output.

        """
        names = ", ".join(map(str, committables[:_MAX_NAMED]))
        return f"{names} and {len(committables) - _MAX_NAMED} more" if len(committables) > _MAX_NAMED else names

    def interrupt(self) -> None:
        """Make a call fail soon that did not end in time, for example by closing its connections. For a `driver_only`
        sink: the job is cancelled, so do not wait for a reader. Called from another thread; must not wait."""

    def finish(self) -> None:
        """Complete pending work and remove what is not needed any more: the job is FINISHED or CANCELED, and this
        driver ended it. Called before `close`. Not called if the job failed or another driver may run it."""

    def close(self) -> None:
        """Close connections. Another driver may run the job already, so its output must not be changed."""


class Sink(ABC):
    """The description of a sink. It must be picklable.

    Example:
        >>> class CountRecords(SinkWriter):
        ...     def __init__(self):
        ...         self.count = 0
        ...     def write(self, values, timestamps):
        ...         self.count += len(values)
        ...     def prepare_commit(self):
        ...         return [self.count]
        >>> class PrintCount(Committer):
        ...     def commit(self, checkpoint, committables):
        ...         print(sum(committables), "records")
        >>> class CountSink(Sink):
        ...     def create_writer(self, context):
        ...         return CountRecords()
        ...     def create_committer(self):
        ...         return PrintCount()
        >>> CountSink().create_committer().commit(1, [2, 3])
        5 records

    """

    #: True if output may become visible when an epoch is accepted, before its checkpoint (print, blackhole).
    commits_with_epoch: bool = False
    #: True if committables stay in the driver and are never stored, so that they may be any picklable values.
    driver_only: bool = False

    @abstractmethod
    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create a writer for one epoch.

        Args:
            context: The subtask, the epoch and the name of the attempt.

        """

    def create_committer(self) -> Committer | None:
        """Create the committer; None if output needs no commit."""
        return None

    def check(self) -> None:
        """Check the sink before the job starts; raise a `UserError` for a problem."""
