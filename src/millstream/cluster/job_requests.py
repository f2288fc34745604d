"""Mailbox to a running job: savepoints and another parallelism, from this process or another one.

Promises: every request is answered, at the end of the job at the latest; requests may come from any thread and are
carried out between two epochs.
Does not know: how savepoints are written and jobs are redeployed."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from millstream.cluster.job_execution import JobExecution
from millstream.cluster.leader_progress import LeaderProgress
from millstream.cluster.mailbox import Mailbox
from millstream.cluster.rescale import RequestedParallelism, Rescaling
from millstream.cluster.savepoints import NoSavepointDirectory, SavepointRequest, Savepoints
from millstream.job.job_status import JobStatus


class JobRequests:
    """What is asked of one job while it runs."""

    def __init__(self, execution: JobExecution, leader_progress: LeaderProgress) -> None:
        self._execution = execution
        self.rescaling = Rescaling(execution.job.adaptive)
        self.savepoints = Savepoints(
            execution.checkpoints, execution.workers.run_tasks, leader_progress.on_savepoint_piece
        )
        self._mailbox = Mailbox(execution.checkpoints.storage, self._rescale_by_mail)
        self._stop: tuple[SavepointRequest, str] | None = None

    def savepoint(self, directory: str | None = None, **options: Any) -> Future[str]:
        """Ask for a savepoint at the next epoch boundary. `options` are fields of `SavepointRequest`.

        Returns:
            The path of the savepoint, when it exists.

        """
        directory = directory or self._execution.settings.savepoint_dir
        if not directory:
            raise NoSavepointDirectory
        return self.savepoints.request(SavepointRequest(directory, **options))

    def rescale(self, parallelism: RequestedParallelism) -> Future[int]:
        """Ask for another parallelism from the next epoch boundary on. What cannot run is refused at once; a later
        request replaces one that was not carried out yet.

        Returns:
            The number of slots, when the first epoch at this parallelism is accepted.

        """
        assert self._execution.job.layout is not None
        return self.rescaling.request(self._execution.job.layout.rescale(parallelism))

    def _rescale_by_mail(self, parallelism: RequestedParallelism) -> Future[int]:
        self._execution.check_leadership()  # else the request is for the driver that leads
        return self.rescale(parallelism)

    def read(self) -> bool:
        """Read the requests of other processes, and ask the adaptive scheduler; return whether a rescale waits."""
        execution = self._execution
        self._mailbox.read(execution.clock.precise())
        slots = execution.plan.slots
        parallelism = self.rescaling.ask_scheduler(execution.engine.slots, execution.clock.now(), slots)
        if parallelism is not None:
            self.rescale(parallelism)
        return self.rescaling.is_requested

    def answer_after_end(self, request: SavepointRequest, path: str) -> None:
        """Answer a request that ends the job when the job has ended."""
        self._stop = (request, path)

    def refuse_rescaling(self) -> None:
        """Cancel requests for another parallelism, and refuse later ones."""
        self.rescaling.close()

    def close(self, status: JobStatus, *, is_concluded: bool) -> None:
        """The job is over: answer what is in the mailbox, complete savepoints under way and refuse the others."""
        if is_concluded:
            self._mailbox.close(status.name)
        self.savepoints.close(self._execution.job.name, status.name, self._execution.plan.slots)

    def answer_stop(self) -> None:
        """Everything is released: answer the request that ended the job."""
        if self._stop is not None:
            request, path = self._stop
            request.complete(path)
