"""The loop of one job: carries out the actions of the job machine until the job has ended.

Promises: every action of the machine is carried out, and its outcome, an error included, is the next event; a job ends
in a final status, with its cause.
Does not know: Spark, how jobs are submitted, what the steps do: the policies `streaming` and `batch` do."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import Any, Protocol

from millstream.cluster.batch import NotInBatch
from millstream.cluster.failures import FailedElsewhere, classify_failure
from millstream.cluster.job_events import StatusChanged
from millstream.cluster.job_execution import JobExecution
from millstream.cluster.job_machine import Job, on_event
from millstream.cluster.job_requests import JobRequests
from millstream.cluster.machine_events import (
    Action,
    CancelEpoch,
    CancelRequested,
    CheckpointDamaged,
    Concluded,
    Event,
    Finish,
    PolicyAction,
    ReachBoundary,
    Restore,
    RestoreAfter,
    Stopped,
    Submitted,
)
from millstream.cluster.rescale import RequestedParallelism
from millstream.cluster.split_progress import SplitProgress, split_progress
from millstream.graph.execution_plan import ExecutionPlan
from millstream.job.job_status import JobStatus
from millstream.state.snapshot import StateFileDamaged

_log = logging.getLogger("millstream.job")


class JobPolicy(Protocol):
    """How the steps of a job are carried out. `requests` are the requests that it accepts while it runs; None if it
    accepts none."""

    @property
    def requests(self) -> JobRequests | None:
        """The requests to the job."""

    def carry_out(self, action: PolicyAction) -> Event:
        """Carry out one step of the job; errors are raised."""


class JobMaster:
    """Runs one job to its end, in the thread that calls `run`. Other methods may be called from other threads."""

    def __init__(self, execution: JobExecution, policy: JobPolicy) -> None:
        self._execution, self._policy = execution, policy
        self.job = Job(strategy=execution.settings.restart)
        self.failure: BaseException | None = None

    @property
    def plan(self) -> ExecutionPlan:
        """The plan at the current parallelism."""
        return self._execution.plan

    def splits(self) -> dict[str, tuple[SplitProgress, ...]]:
        """Return the source splits as of the last accepted epoch, by operator id."""
        sources = self._execution.sources.operators if self._execution.has_sources else ()
        return split_progress(self._execution.progress.memory, sources)

    def cancel(self) -> None:
        """Cancel the job: it ends soon, without a checkpoint."""
        self._execution.cancel()

    def is_cancelled(self) -> bool:
        """Return whether the job was cancelled."""
        return self._execution.cancellation.is_requested()

    def slots_at(self, parallelism: RequestedParallelism) -> int:
        """Return how many slots the job needs at another parallelism."""
        layout = self._execution.job.layout
        assert layout is not None
        return layout.slots_at(parallelism)

    def savepoint(self, directory: str | None = None, **options: Any) -> Future[str]:
        """Request a savepoint; see `JobRequests.savepoint`."""
        return self._requests("savepoints").savepoint(directory, **options)

    def checkpoint(self) -> Future[int]:
        """Request a checkpoint; see `JobRequests.checkpoint`."""
        return self._requests("checkpoints").checkpoint()

    def rescale(self, parallelism: RequestedParallelism) -> Future[int]:
        """Request another parallelism; see `JobRequests.rescale`."""
        return self._requests("other parallelism than the one it started with").rescale(parallelism)

    def _requests(self, feature: str) -> JobRequests:
        if self._policy.requests is None:
            raise NotInBatch(feature)
        return self._policy.requests

    def run(self) -> None:
        """Run to a final status. Does not raise: `failure` and `job` say how it ended."""
        event: Event | None = Submitted()
        while event is not None:
            event = self._carry_out(self._decide(event))

    def _decide(self, event: Event) -> Action:
        status = self.job.status
        self.job, action = on_event(self.job, event)
        if self.job.status is not status:
            self._execution.notify(StatusChanged(self.job.status, self.job.restarts, self.job.cause))
        return action

    def _carry_out(self, action: Action) -> Event | None:
        """Carry out an action of the machine and return the next event; None when the job has ended."""
        execution = self._execution
        match action:
            case Finish():
                self._end()
                return None
            case CancelEpoch():
                execution.engine.cancel()
                return Stopped()
            case RestoreAfter(delay=delay):
                _log.warning("restarting in %s ms: %s", delay, self.job.cause)
                execution.cancellation.pause(delay)
                return self._attempt(Restore())
            case ReachBoundary() if execution.cancellation.is_requested():
                return CancelRequested()
        return self._attempt(action)

    def _attempt(self, action: PolicyAction) -> Event:
        """Let the policy carry out a step; an error becomes an event."""
        try:
            event = self._policy.carry_out(action)
        except Exception as problem:
            return self._to_event(problem)
        if isinstance(event, Concluded):
            self.failure = FailedElsewhere(event) if event.status is JobStatus.FAILED else None
        return event

    def _to_event(self, problem: Exception) -> Event:
        execution = self._execution
        if execution.cancellation.is_requested():
            return CancelRequested()
        leadership = execution.leadership
        self.failure = problem if leadership is None else leadership.explain(problem)
        if isinstance(self.failure, StateFileDamaged) and execution.checkpoints.note_damage(self.failure):
            _log.warning("a checkpoint is damaged: %s", problem)
            return CheckpointDamaged()
        now = execution.clock.now()
        return classify_failure(self.failure, now, standby=leadership is not None, has_started=execution.has_sources)

    def _end(self) -> None:
        """Answer all requests and release everything."""
        execution, requests, status = self._execution, self._policy.requests, self.job.status
        if requests is not None:
            requests.refuse_rescaling()
        leadership = execution.leadership
        is_concluded = leadership is None or leadership.announce_end(status, self.job.cause)
        if requests is not None:
            requests.close(status)
        execution.close(status, is_concluded=is_concluded)
        if requests is not None:
            requests.complete_stop_request()
