"""Requests to a running job: checkpoints, savepoints and another parallelism.

Promises: every request is answered, at the end of the job at the latest; requests may come from any thread and are
carried out between two epochs.
Does not know: how savepoints are written and jobs are redeployed."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

from millstream.checkpoint.savepoint import Snapshot
from millstream.cluster.job_events import SavepointDone
from millstream.cluster.job_execution import JobExecution
from millstream.cluster.leader_progress import LeaderProgress
from millstream.cluster.rescale import RequestedParallelism, Rescaling
from millstream.cluster.savepoints import JobHasEnded, NoSavepointDirectory, SavepointRequest, Savepoints
from millstream.errors import UserError
from millstream.job.job_status import JobStatus


class NoCheckpoints(UserError):
    """A checkpoint was requested of a job that takes none."""

    hint = "set execution.checkpointing.interval, or take a savepoint"

    def __init__(self, name: str) -> None:
        super().__init__(f"job '{name}' takes no checkpoints")


class JobRequests:
    """The requests to one job while it runs."""

    def __init__(self, execution: JobExecution, leader_progress: LeaderProgress) -> None:
        self._execution = execution
        self.rescaling = Rescaling(execution.job.adaptive)
        self.savepoints = Savepoints(
            execution.checkpoints,
            execution.workers.run_tasks,
            leader_progress.on_savepoint_piece,
            self.report_savepoint,
        )
        self._lock = threading.Lock()
        self._checkpoints: list[Future[int]] = []
        self._end: JobStatus | None = None
        self._stop: tuple[SavepointRequest, str] | None = None

    def savepoint(self, directory: str | None = None, **options: Any) -> Future[str]:
        """Request a savepoint at the next epoch boundary. `options` are fields of `SavepointRequest`.

        Returns:
            The path of the savepoint, when it exists.

        """
        directory = directory or self._execution.settings.savepoint_dir
        if not directory:
            raise NoSavepointDirectory
        requested = self._execution.clock.precise()
        return self.savepoints.request(SavepointRequest(directory, requested=requested, **options))

    def report_savepoint(self, request: SavepointRequest, written: Snapshot) -> None:
        """Notify the listeners of the job that a savepoint was written."""
        execution, metadata = self._execution, written.metadata
        took = (execution.clock.precise() - request.requested) * 1000
        form, size = request.form.value, metadata.full_size
        execution.notify(SavepointDone(metadata.checkpoint, form, request.ends, size, took, written.path))

    def rescale(self, parallelism: RequestedParallelism) -> Future[int]:
        """Request another parallelism from the next epoch boundary on. A parallelism that is not possible is refused
        immediately; a later request replaces one that was not carried out yet.

        Returns:
            The number of slots, when the first epoch at this parallelism is accepted.

        """
        assert self._execution.job.layout is not None
        return self.rescaling.request(self._execution.job.layout.rescale(parallelism))

    def checkpoint(self) -> Future[int]:
        """Request a checkpoint at the next epoch boundary.

        Returns:
            The number of the checkpoint, when it is complete.

        """
        if not self._execution.checkpoints.enabled:
            raise NoCheckpoints(self._execution.job.name)
        done = Future[int]()
        with self._lock:
            if self._end is not None:
                raise JobHasEnded(self._execution.job.name, self._end.name)
            self._checkpoints.append(done)
        return done

    @property
    def wants_checkpoint(self) -> bool:
        """Whether a checkpoint was requested."""
        return bool(self._checkpoints)

    def complete_checkpoint_requests(self, outcome: int | Exception) -> None:
        """Complete all requests for a checkpoint with its number, or with the error."""
        with self._lock:
            waiting, self._checkpoints = self._checkpoints, []
        for done in waiting:
            if isinstance(outcome, int):
                done.set_result(outcome)
            else:
                done.set_exception(outcome)

    def read(self) -> bool:
        """Let the adaptive scheduler decide; return whether a rescale is requested."""
        execution = self._execution
        slots = execution.plan.slots
        parallelism = self.rescaling.ask_scheduler(execution.engine.slots, execution.clock.now(), slots)
        if parallelism is not None:
            self.rescale(parallelism)
        return self.rescaling.is_requested

    def complete_at_end(self, request: SavepointRequest, path: str) -> None:
        """Complete a request that ends the job when the job has ended."""
        self._stop = (request, path)

    def refuse_rescaling(self) -> None:
        """Cancel requests for another parallelism, and refuse later ones."""
        self.rescaling.close()

    def close(self, status: JobStatus) -> None:
        """Complete savepoints under way and refuse all other requests, because the job has ended."""
        with self._lock:
            self._end = status
        self.complete_checkpoint_requests(JobHasEnded(self._execution.job.name, status.name))
        self.savepoints.close(self._execution.job.name, status.name, self._execution.plan.slots)

    def complete_stop_request(self) -> None:
        """Complete the request that ended the job, after everything was released."""
        if self._stop is not None:
            request, path = self._stop
            request.complete(path)
