"""The contract of a sink: a writer in the task stages, a committer on the driver makes visible, itself or by tasks.

Promises: what a writer stages is invisible until the committer gets its committable, which happens only after the
checkpoint that names it is durable, and may happen more than once.
Does not know: epochs, Spark, checkpoints' files."""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from millstream.connector.slot_task import SlotTask
from millstream.errors import ExternalError

_DESCRIBED = 20  # committables that a message names


class OutputRefused(ExternalError):
    """Output cannot be committed, and trying again would not help: the job fails."""


@dataclass(frozen=True, slots=True)
class WriterContext:
    """What a writer may know. `job` is the job's id and incarnation: no other job has it, nor has the same program when
    it starts from the beginning. `attempt` is unique for each try of each epoch of the job: staged names contain both.
    It begins with a generation; what generations before `recovered` staged is committed or dead.

    `now` is the processing time of the epoch. `storage` is the job's directory in its checkpoint storage: the driver
    and all tasks see it, and it lives as long as the checkpoints do; empty when there is none."""

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
    """Writes the records of one epoch of one subtask."""

    #: True when `write` can also take typed records as one Arrow array, with their timestamps as a numpy column.
    columnar: bool = False
    #: False when no record is looked at: none is made for this writer.
    reads: bool = True

    @abstractmethod
    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Take records, in order."""

    @abstractmethod
    def prepare_commit(self) -> list[Any]:
        """Finish the epoch: all is staged; the committables are JSON values."""

    def abort(self) -> None:
        """The epoch failed: undo what can be undone."""

    def close(self) -> None:
        """Let go of connections."""


class Workers(Protocol):
    """What a committer may use of the job it belongs to."""

    @property
    def owner(self) -> str:
        """Names the run of the driver: no other run has this name, and a job that restarts in its driver keeps it."""

    def run_tasks(self, tasks: Sequence[SlotTask]) -> list[Any]:
        """Run functions on the workers of the job, those of different slots in parallel; gives their results."""

    def leads(self) -> bool:
        """Whether a lease says that this driver runs the job; False when the job has no lease. Raises when another
        driver has taken over."""

    def backpressured(self) -> None:
        """The job waits for the reader of its output: it is not stuck."""


class ThisProcess:
    """Workers for a committer that belongs to no job: tasks run in this process."""

    _numbers = itertools.count()

    def __init__(self) -> None:
        self.owner = f"{os.getpid()}-{next(self._numbers)}"

    def run_tasks(self, tasks: Sequence[SlotTask]) -> list[Any]:
        """Run them one after the other."""
        return [task.run() for task in tasks]

    def leads(self) -> bool:
        """There is no lease."""
        return False

    def backpressured(self) -> None:
        """There is no lease."""


class Committer(ABC):
    """Makes staged output visible. Lives on the driver.

    The driver must do no work for each record. Where committing means one call for each committable (a rename, a COMMIT
    PREPARED, one commit to a table), `commit` makes the calls. Where it means to move records, it hands the work to
    tasks, by `workers.run_tasks`."""

    #: Set by the JobMaster before the first call.
    workers: Workers

    @abstractmethod
    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Make the committables visible, in order. Idempotent: recovery repeats it."""

    def reached(self, watermark: int, now: int) -> None:
        """All output before this point of event and processing time is visible, and its checkpoint durable. Called
        after the commit of every checkpoint, with or without committables, and again on recovery."""

    def snapshot(self) -> Any:
        """What the committer must know after a restore, as a JSON value; every checkpoint keeps it. None: nothing."""
        return None

    def restore(self, kept: Any) -> None:
        """Take back what a checkpoint kept, before anything is committed."""

    def abort(self, committables: Sequence[Any]) -> None:
        """These will never be committed: remove them."""

    def describe(self, committables: Sequence[Any]) -> str:
        """Name output that could not be committed or removed, and say how a person ends it in the external system."""
        shown = ", ".join(map(str, committables[:_DESCRIBED]))
        return f"{shown} and {len(committables) - _DESCRIBED} more" if len(committables) > _DESCRIBED else shown

    def interrupt(self) -> None:
        """A call is not waited for any more, because it has not ended in time: make it fail soon, such as by breaking
        its connections. Of a `driver_only` sink: the job is cancelled, wait for no reader. Called from another thread;
        must not wait."""

    def finish(self) -> None:
        """The job is FINISHED or CANCELED, and this driver ended it: complete what waits, remove what is not needed any
        more. Called before `close`. Not called when the job failed or another driver may run it."""

    def close(self) -> None:
        """Let go of connections. Another driver may run the job by now, so its output must not be changed."""


class Sink(ABC):
    """A description of where records go. Must be picklable."""

    #: True when output may be shown as soon as an epoch is accepted, before its checkpoint (print, blackhole).
    commits_with_epoch: bool = False
    #: True when committables stay in the driver and are never stored: they may be any picklable value.
    driver_only: bool = False

    @abstractmethod
    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer for one epoch."""

    def create_committer(self) -> Committer | None:
        """The committer, or None when writing is all there is."""
        return None

    def check(self) -> None:
        """Raise a `UserError` for what can be known to be wrong before the job starts."""
