"""The dispatcher keeps the jobs that this process runs or has run, by id.

Promises: it has every running job, and the newest of the ended ones; the methods may be called from any thread.
Does not know: how jobs run and who asks for them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from millstream.cluster.job_samples import JobSamples
from millstream.cluster.job_statistics import EpochSample, Statistics, Timed, VertexSample
from millstream.cluster.open_snapshots import OpenSnapshots
from millstream.cluster.rescale import RequestedParallelism
from millstream.cluster.split_progress import SplitProgress
from millstream.config.configuration import Configuration
from millstream.errors import UserError
from millstream.graph.execution_plan import ExecutionPlan
from millstream.serialization.codec import Classes

_KEPT_ENDED = 100


class NoSuchJob(UserError):
    """There is no job of this id."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"there is no job {job_id}", hint="list the jobs and their ids: millstream list")


class DispatchedJob(Protocol):
    """A job as its observers see it. Its methods may be called from any thread."""

    id: str
    name: str
    configuration: Configuration
    snapshots: OpenSnapshots
    classes: Classes
    samples: JobSamples

    def statistics(self) -> Statistics:
        """Return the current statistics."""

    def history(self) -> tuple[Timed[Mapping[str, VertexSample]], ...]:
        """Return samples of the vertices of the last hours, by id, oldest first."""

    def epoch_samples(self) -> tuple[Timed[EpochSample], ...]:
        """Return the newest epochs, oldest first."""

    def splits(self) -> dict[str, tuple[SplitProgress, ...]]:
        """Return the source splits as of the last accepted epoch, by operator id."""

    def plan(self) -> ExecutionPlan:
        """Return the plan at the current parallelism."""

    def waiting_reason(self) -> str | None:
        """Return what the job waits for before it can start; None if it does not wait."""

    def accumulators(self) -> dict[str, Any]:
        """Return the values of accumulators and user metrics."""

    def cancel(self) -> None:
        """Cancel the job."""

    def savepoint(self, directory: str | None, **options: Any) -> Future[str]:
        """Request a savepoint; `options` are fields of `SavepointRequest`."""

    def checkpoint(self) -> Future[int]:
        """Request a checkpoint at the next epoch boundary; the future has its number."""

    def rescale(self, parallelism: RequestedParallelism) -> Future[int]:
        """Request another parallelism."""


class Dispatcher:
    """The jobs of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, DispatchedJob] = {}

    def add(self, job: DispatchedJob) -> None:
        """Add a job; the oldest ended jobs are forgotten."""
        with self._lock:
            self._jobs[job.id] = job
            ended = [
                known.id for known in self._jobs.values() if known.statistics().status.is_globally_terminal_state()
            ]
            for job_id in ended[: max(0, len(ended) - _KEPT_ENDED)]:
                del self._jobs[job_id]

    def jobs(self) -> list[DispatchedJob]:
        """Return all jobs, oldest first."""
        with self._lock:
            return list(self._jobs.values())

    def job(self, job_id: str) -> DispatchedJob:
        """Return the job of an id.

        Raises:
            NoSuchJob: There is none.

        """
        with self._lock:
            try:
                return self._jobs[job_id]
            except KeyError:
                raise NoSuchJob(job_id) from None
