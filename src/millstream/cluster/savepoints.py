"""Savepoints of a running job: asked for from any thread, written at an epoch boundary.

Promises: every request is answered, with the path of a savepoint that exists or with the reason why there is none; its
state is read and written by tasks on the workers, between epochs, a piece of bounded size in each slot at a time, so
that the deadline of tasks is one for each piece; the files a savepoint is being made of stay until it is; a job that
ends completes those that are under way.
Does not know: epochs, sinks; the JobMaster says when, and what the savepoint holds."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from millstream.checkpoint.export import Export, ExportTask
from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.savepoint import Snapshot, publish, write_savepoint
from millstream.cluster.checkpoints import Checkpoints
from millstream.connector.slot_task import SlotTask
from millstream.errors import ExternalError, MillstreamError, UserError
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.files.locations import absolute_location
from millstream.job.savepoints import SavepointFormatType

_log = logging.getLogger("millstream.savepoints")


class NoSavepointDirectory(UserError):
    """Nobody said where savepoints go."""

    hint = "name a directory, or set execution.checkpointing.savepoint-dir"

    def __init__(self) -> None:
        super().__init__("no directory is given for the savepoint")


class JobHasEnded(UserError):
    """A savepoint of a job that is over."""

    hint = "start from a checkpoint it has left; `millstream checkpoints DIR` lists them"

    def __init__(self, name: str, status: str) -> None:
        super().__init__(f"there is no savepoint of job '{name}': it is {status}")


class SavepointFailed(ExternalError):
    """A savepoint could not be written; the job is as it was."""

    def __init__(self, path: str, problem: BaseException) -> None:
        self.path = path
        told = problem.message if isinstance(problem, MillstreamError) else repr(problem)
        hint = problem.hint if isinstance(problem, MillstreamError) else None
        super().__init__(f"the savepoint {path} could not be written: {told}", hint=hint)


@dataclass(frozen=True)
class SavepointRequest:
    """What is asked for. `stop` ends the job after a last epoch, with `drain` at the end of event time; `cancel` at
    once."""

    directory: str
    form: SavepointFormatType = SavepointFormatType.CANONICAL
    stop: bool = False
    drain: bool = False
    cancel: bool = False
    answer: Future[str] = field(default_factory=Future)

    @property
    def ends(self) -> bool:
        """Whether the job ends with it."""
        return self.stop or self.cancel

    def refuse(self, problem: BaseException) -> None:
        """There will be no savepoint."""
        if not self.answer.done():
            self.answer.set_exception(problem)

    def done(self, path: str) -> None:
        """The savepoint exists."""
        if not self.answer.done():
            self.answer.set_result(path)


@dataclass
class _UnderWay:
    """A savepoint that is being written, and what its pieces gave so far."""

    asked: SavepointRequest
    export: Export
    release: Callable[[], None]
    results: list[Any] = field(default_factory=list)


class Savepoints:
    """The requests of one job, and the savepoints that are being written."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        run_tasks: Callable[[Sequence[SlotTask]], list[Any]],
        piece_written: Callable[[], None] = lambda: None,
    ) -> None:
        """`run_tasks` runs functions on the workers of the job, with a deadline; `piece_written` is called after it, as
        long as the job runs."""
        self._checkpoints, self._run_tasks, self._piece_written = checkpoints, run_tasks, piece_written
        self._waiting: deque[SavepointRequest] = deque()
        self._lock = threading.Lock()
        self._closed: BaseException | None = None
        self._under_way: deque[_UnderWay] = deque()

    def ask(self, asked: SavepointRequest) -> Future[str]:
        """Have a savepoint made at the next epoch boundary; may be called from any thread."""
        with self._lock:
            if self._closed is None:
                self._waiting.append(asked)
            else:
                asked.refuse(self._closed)
        return asked.answer

    @property
    def waiting(self) -> bool:
        """Whether a request waits."""
        return bool(self._waiting)

    def next(self) -> SavepointRequest:
        """The oldest request."""
        return self._waiting.popleft()

    def write(self, asked: SavepointRequest, metadata: CheckpointMetadata, slots: int) -> Snapshot:
        """Write a savepoint, now, on all slots."""

        def run(tasks: Sequence[ExportTask]) -> list[Any]:
            return [
                result for start in range(0, len(tasks), slots) for result in self._run(tasks[start : start + slots])
            ]

        path = self._path(asked, metadata)
        try:
            return write_savepoint(metadata, self._checkpoints.storage, path, asked.form.value, run)
        except Exception as problem:
            raise SavepointFailed(path, problem) from problem

    def start(self, asked: SavepointRequest, metadata: CheckpointMetadata) -> None:
        """Write a savepoint while the job goes on: its state files do not change, and are kept meanwhile. Each call of
        `advance` does some of it."""
        export = Export(metadata, self._checkpoints.storage, self._path(asked, metadata), asked.form.value)
        self._under_way.append(_UnderWay(asked, export, self._checkpoints.pin(metadata.handles)))

    def advance(self, slots: int) -> None:
        """Between two epochs: let every slot run one task of the oldest savepoint that is under way."""
        if not self._under_way:
            return
        current = self._under_way[0]
        export, results = current.export, current.results
        try:
            results += self._run(export.tasks[len(results) : len(results) + slots])
            if len(results) < len(export.tasks):
                return
            operators = export.operators(results)
            current.asked.done(publish(export.metadata, operators, export.source, export.path, export.form).path)
        except Exception as problem:  # raised again in the caller
            current.asked.refuse(SavepointFailed(export.path, problem))
        current.release()
        self._under_way.popleft()

    def _run(self, tasks: Sequence[ExportTask]) -> list[Any]:
        """Run export tasks at the same time, one in each slot."""
        if not tasks:
            return []
        results = self._run_tasks([SlotTask(slot, task) for slot, task in enumerate(tasks)])
        if self._closed is None:
            self._piece_written()
        return results

    def close(self, name: str, status: str, slots: int) -> None:
        """The job is over: savepoints under way are completed, the others refused."""
        with self._lock:
            self._closed = JobHasEnded(name, status)
            left = list(self._waiting)
            self._waiting.clear()
        for asked in left:
            asked.refuse(self._closed)
        while self._under_way:
            self.advance(slots)

    def _path(self, asked: SavepointRequest, metadata: CheckpointMetadata) -> str:
        directory = absolute_location(asked.directory)
        name = f"savepoint-{metadata.job_id[:6]}-{metadata.timestamp:012x}"
        storage, number = self._checkpoints.storage.of(directory, ""), 1
        found = name
        while storage.exists(found):
            number += 1
            found = f"{name}-{number}"
        return f"{directory}/{found}"


def undrained(metadata: CheckpointMetadata) -> CheckpointMetadata:
    """The snapshot of a drained job as one to go on from: event time begins anew."""
    return replace(metadata, operators=tuple(_undrained(operator) for operator in metadata.operators))


def _undrained(operator: OperatorSnapshot) -> OperatorSnapshot:
    memories = (
        memory.without_event_time() if memory.watermark == MAX_WATERMARK else memory for memory in operator.memory
    )
    return replace(operator, memory=tuple(memories))
