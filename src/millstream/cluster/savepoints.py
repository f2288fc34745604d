"""Savepoints of a running job: requested from any thread, written at an epoch boundary.

Promises: every request is answered, with the path of a savepoint that exists or with an error. Tasks on the workers
read and write the state between epochs, in each slot one piece of bounded size at a time, so that the deadline of tasks
holds for each piece. State files that a savepoint needs are kept until it is complete. A job that ends completes the
savepoints that are under way.
Does not know: epochs, sinks; the checkpoint coordinator decides when a savepoint is written, and what it contains."""

from __future__ import annotations

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


class NoSavepointDirectory(UserError):
    """A savepoint was requested without a directory, and none is configured."""

    hint = "pass a directory, or set execution.checkpointing.savepoint-dir"

    def __init__(self) -> None:
        super().__init__("no directory for the savepoint: none was passed and none is configured")


class JobHasEnded(UserError):
    """A savepoint or checkpoint was requested of a job that has ended."""

    hint = "start from one of its retained checkpoints; `millstream checkpoints DIR` lists them"

    def __init__(self, name: str, status: str) -> None:
        super().__init__(f"cannot write a snapshot of job '{name}': the job is {status}")


class SavepointFailed(ExternalError):
    """A savepoint could not be written; the job is not affected."""

    def __init__(self, path: str, problem: BaseException) -> None:
        self.path = path
        reason = problem.message if isinstance(problem, MillstreamError) else repr(problem)
        hint = problem.hint if isinstance(problem, MillstreamError) else None
        super().__init__(f"the savepoint {path} could not be written: {reason}", hint=hint)


@dataclass(frozen=True)
class SavepointRequest:
    """A request for a savepoint. With `stop` the job ends after a last epoch, which with `drain` advances event time to
    its end; with `cancel` the job is cancelled after the savepoint. `requested` is the precise time of the request."""

    directory: str
    form: SavepointFormatType = SavepointFormatType.CANONICAL
    stop: bool = False
    drain: bool = False
    cancel: bool = False
    requested: float = 0.0
    answer: Future[str] = field(default_factory=Future)

    @property
    def ends(self) -> bool:
        """Whether the job ends with it."""
        return self.stop or self.cancel

    def refuse(self, problem: BaseException) -> None:
        """Complete the request with an error."""
        if not self.answer.done():
            self.answer.set_exception(problem)

    def complete(self, path: str) -> None:
        """Complete the request with the path of the savepoint."""
        if not self.answer.done():
            self.answer.set_result(path)


@dataclass
class _UnderWay:
    """A savepoint that is being written, and the results of its pieces so far."""

    request: SavepointRequest
    export: Export
    release: Callable[[], None]
    results: list[Any] = field(default_factory=list)


class Savepoints:
    """The requests of one job, and the savepoints that are being written."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        run_tasks: Callable[[Sequence[SlotTask]], list[Any]],
        piece_written: Callable[[], None],
        report: Callable[[SavepointRequest, Snapshot], None],
    ) -> None:
        """`run_tasks` runs functions on the workers of the job, with a deadline; `piece_written` is called after each
        run while the job runs, `report` with each savepoint of a job that goes on while it is written."""
        self._checkpoints, self._run_tasks, self._piece_written = checkpoints, run_tasks, piece_written
        self._report = report
        self._waiting: deque[SavepointRequest] = deque()
        self._lock = threading.Lock()
        self._closed: BaseException | None = None
        self._under_way: deque[_UnderWay] = deque()

    def request(self, request: SavepointRequest) -> Future[str]:
        """Request a savepoint at the next epoch boundary; may be called from any thread."""
        with self._lock:
            if self._closed is None:
                self._waiting.append(request)
            else:
                request.refuse(self._closed)
        return request.answer

    @property
    def has_requests(self) -> bool:
        """Whether a request is pending."""
        return bool(self._waiting)

    def take_request(self) -> SavepointRequest:
        """Remove and return the oldest request."""
        return self._waiting.popleft()

    def write(self, request: SavepointRequest, metadata: CheckpointMetadata, slots: int) -> Snapshot:
        """Write a savepoint now, on all slots."""

        def run(tasks: Sequence[ExportTask]) -> list[Any]:
            return [
                result for start in range(0, len(tasks), slots) for result in self._run(tasks[start : start + slots])
            ]

        path = self._path(request, metadata)
        try:
            return write_savepoint(metadata, self._checkpoints.storage, path, request.form.value, run)
        except Exception as problem:
            raise SavepointFailed(path, problem) from problem

    def start(self, request: SavepointRequest, metadata: CheckpointMetadata) -> None:
        """Begin a savepoint that is written while the job runs: its state files do not change, and are kept meanwhile.
        Each call of `advance` writes a part of it."""
        export = Export(metadata, self._checkpoints.storage, self._path(request, metadata), request.form.value)
        self._under_way.append(_UnderWay(request, export, self._checkpoints.pin(metadata.handles)))

    def advance(self, slots: int) -> None:
        """Run one task of the oldest savepoint under way in every slot; called between two epochs."""
        if not self._under_way:
            return
        current = self._under_way[0]
        export, results = current.export, current.results
        try:
            results += self._run(export.tasks[len(results) : len(results) + slots])
            if len(results) < len(export.tasks):
                return
            operators = export.operators(results)
            snapshot = publish(export.metadata, operators, export.source, export.path, export.form)
            self._report(current.request, snapshot)
            current.request.complete(snapshot.path)
        except Exception as problem:  # the caller that requested the savepoint gets the error
            current.request.refuse(SavepointFailed(export.path, problem))
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
        """Complete savepoints under way and refuse the other requests, because the job has ended."""
        with self._lock:
            self._closed = JobHasEnded(name, status)
            requests = list(self._waiting)
            self._waiting.clear()
        for request in requests:
            request.refuse(self._closed)
        while self._under_way:
            self.advance(slots)

    def _path(self, request: SavepointRequest, metadata: CheckpointMetadata) -> str:
        directory = absolute_location(request.directory)
        name = f"savepoint-{metadata.job_id[:6]}-{metadata.timestamp:012x}"
        storage, number = self._checkpoints.storage.of(directory, ""), 1
        candidate = name
        while storage.exists(candidate):
            number += 1
            candidate = f"{name}-{number}"
        return f"{directory}/{candidate}"


def reopen_event_time(metadata: CheckpointMetadata) -> CheckpointMetadata:
    """Return the snapshot of a drained job without its final watermarks, so that a job can resume from it."""
    return replace(metadata, operators=tuple(_reopen_event_time(operator) for operator in metadata.operators))


def _reopen_event_time(operator: OperatorSnapshot) -> OperatorSnapshot:
    memories = (
        memory.without_event_time() if memory.watermark == MAX_WATERMARK else memory for memory in operator.memory
    )
    return replace(operator, memory=tuple(memories))
