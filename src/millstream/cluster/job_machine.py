"""A job from CREATED to a final status: pure.

Promises: on_event gives the job after an event and what to do; an event that cannot happen raises with the history.
Does not know: threads, time, engines."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from millstream.cluster.events import (
    Action,
    CancelEpoch,
    CancelRequested,
    Concluded,
    EpochFailed,
    Event,
    Finish,
    InputEnded,
    Restarted,
    RestoreAfter,
    RunEpochs,
    Started,
    Stopped,
    Superseded,
)
from millstream.cluster.restarts import NoRestart, RestartStrategy
from millstream.errors import InternalError
from millstream.job.job_status import JobStatus


class UnexpectedEvent(InternalError):
    """The control plane has lost its way."""

    def __init__(self, history: tuple[str, ...], event: object) -> None:
        super().__init__(f"unexpected {event} after {' > '.join(history)}", hint="please report this")


@dataclass(frozen=True)
class Job:
    """Status, restarts and how it came to be."""

    status: JobStatus = JobStatus.CREATED
    strategy: RestartStrategy = field(default_factory=NoRestart)
    restarts: int = 0
    cause: str | None = None
    history: tuple[str, ...] = ("CREATED",)

    def to(self, status: JobStatus, cause: str | None = None) -> Job:
        """The job in another status."""
        return replace(self, status=status, cause=cause or self.cause, history=(*self.history[-50:], status.name))


def on_event(job: Job, event: Event) -> tuple[Job, tuple[Action, ...]]:
    """The job after the event, and what must be done."""
    match job.status, event:
        case JobStatus.CREATED, Started():
            return job.to(JobStatus.RUNNING), (RunEpochs(),)
        case ((JobStatus.CREATED | JobStatus.RUNNING | JobStatus.RESTARTING), EpochFailed(cause=cause, at=at)):
            strategy, delay = job.strategy.after_failure(at) if event.retryable else (job.strategy, None)
            if delay is None:
                return job.to(JobStatus.FAILED, cause), (Finish(),)
            failed = replace(job, strategy=strategy, restarts=job.restarts + 1)
            return failed.to(JobStatus.RESTARTING, cause), (RestoreAfter(delay),)
        case JobStatus.RESTARTING, Restarted():
            return job.to(JobStatus.RUNNING), (RunEpochs(),)
        case JobStatus.RUNNING, InputEnded():
            return job.to(JobStatus.FINISHED), (Finish(),)
        case ((JobStatus.CREATED | JobStatus.RUNNING | JobStatus.RESTARTING), CancelRequested()):
            return job.to(JobStatus.CANCELLING), (CancelEpoch(),)
        case JobStatus.CANCELLING, Stopped() | EpochFailed() | InputEnded():
            return job.to(JobStatus.CANCELED), (Finish(),)
        case ((JobStatus.CREATED | JobStatus.RESTARTING), Concluded(status=status, cause=cause)):
            return job.to(status, cause), (Finish(),)
        case ((JobStatus.CREATED | JobStatus.RUNNING | JobStatus.RESTARTING), Superseded(cause=cause)):
            return job.to(JobStatus.SUSPENDED, cause), (Finish(),)
        case _, CancelRequested():
            return job, ()
    raise UnexpectedEvent(job.history, event)
