"""State machine of a job, from CREATED to a final status: a pure function of events.

Every decision about a running job is a transition here: start, restart, replay, rescale, checkpoint, savepoint, stop,
cancel and finish. The job master carries out the actions and reports what came of them as the next event.

Promises: `on_event` returns the job after an event and the one action to carry out; an event that cannot happen raises
`UnexpectedEvent` with the history of the job.
Does not know: threads, clocks, engines, storage."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from millstream.cluster.machine_events import (
    Action,
    BoundaryReached,
    CancelEpoch,
    CancelRequested,
    CheckpointCompleted,
    CheckpointDamaged,
    CheckpointSkipped,
    Concluded,
    EpochAccepted,
    EpochFailed,
    Event,
    Finish,
    NothingToRead,
    Position,
    ReachBoundary,
    ReadRequests,
    RequestsRead,
    Rescale,
    Rescaled,
    Restore,
    RestoreAfter,
    Restored,
    RunEpoch,
    SavepointNotWritten,
    SavepointWritten,
    Start,
    Stopped,
    Submitted,
    Superseded,
    TakeCheckpoint,
    Wait,
    Waited,
    WriteSavepoint,
)
from millstream.cluster.restarts import NoRestart, RestartStrategy
from millstream.errors import InternalError
from millstream.job.job_status import JobStatus

_KEPT_HISTORY = 50  # statuses


class UnexpectedEvent(InternalError):
    """The job machine got an event that cannot happen in the job's status."""

    def __init__(self, history: tuple[str, ...], event: object) -> None:
        super().__init__(f"unexpected {event} after {' > '.join(history)}", hint="please report this")


@dataclass(frozen=True)
class Job:
    """The status of a job and everything its next transition depends on.

    Attributes:
        strategy: Decides whether a failed job restarts.
        restarts: Restarts so far.
        cause: Of the last failure.
        history: The last statuses, oldest first.
        position: Where the job is between two epochs.
        is_idle: Whether the sources had nothing to read in this turn.

    """

    status: JobStatus = JobStatus.CREATED
    strategy: RestartStrategy = field(default_factory=NoRestart)
    restarts: int = 0
    cause: str | None = None
    history: tuple[str, ...] = ("CREATED",)
    position: Position = field(default_factory=Position)
    is_idle: bool = False

    def to(self, status: JobStatus, cause: str | None = None) -> Job:
        """Return the job in another status."""
        history = (*self.history[-_KEPT_HISTORY:], status.name)
        return replace(self, status=status, cause=cause or self.cause, history=history)


Step = tuple[Job, Action]


def on_event(job: Job, event: Event) -> Step:
    """Return the job after the event, and the action to carry out."""
    match job.status, event:
        case JobStatus.CREATED, Submitted():
            return job, Start()
        case ((JobStatus.CREATED | JobStatus.RUNNING | JobStatus.RESTARTING), Restored(position=position)):
            return replace(job.to(JobStatus.RUNNING), position=position, is_idle=False), ReachBoundary()
        case ((JobStatus.CREATED | JobStatus.RUNNING | JobStatus.RESTARTING), EpochFailed()):
            return _after_failure(job, event)
        case ((JobStatus.CREATED | JobStatus.RUNNING | JobStatus.RESTARTING), CheckpointDamaged()):
            return job, Restore()  # this does not count as a restart: an older checkpoint may be intact
        case ((JobStatus.CREATED | JobStatus.RUNNING | JobStatus.RESTARTING), CancelRequested()):
            return job.to(JobStatus.CANCELLING), CancelEpoch()
        case JobStatus.CANCELLING, Stopped():
            return job.to(JobStatus.CANCELED), Finish()
        case ((JobStatus.CREATED | JobStatus.RESTARTING), Concluded(status=status, cause=cause)):
            return job.to(status, cause), Finish()
        case ((JobStatus.CREATED | JobStatus.RUNNING | JobStatus.RESTARTING), Superseded(cause=cause)):
            return job.to(JobStatus.SUSPENDED, cause), Finish()
        case JobStatus.RUNNING, _:
            return _between_epochs(job, event)
    raise UnexpectedEvent(job.history, event)


def _after_failure(job: Job, failure: EpochFailed) -> Step:
    strategy, delay = job.strategy.after_failure(failure.at) if failure.retryable else (job.strategy, None)
    if delay is None:
        return job.to(JobStatus.FAILED, failure.cause), Finish()
    failed = replace(job, strategy=strategy, restarts=job.restarts + 1)
    return failed.to(JobStatus.RESTARTING, failure.cause), RestoreAfter(delay)


def _between_epochs(job: Job, event: Event) -> Step:
    """The cycle of a running job: requests at the epoch boundary, then an epoch, then a checkpoint if one is due."""
    match event:
        case BoundaryReached(savepoint=True) if job.position.allows_savepoint:
            return job, WriteSavepoint(job.restarts)
        case BoundaryReached() if job.position.is_over:
            return job.to(JobStatus.FINISHED), Finish()
        case BoundaryReached() if job.position.awaits_commit:
            return job, TakeCheckpoint(is_final=True)
        case BoundaryReached():
            return job, ReadRequests()
        case RequestsRead(rescale=True) if job.position.allows_rescale:
            return job, Rescale()
        case RequestsRead():
            return _run_epoch(job)
        case Rescaled(position=position):
            return _run_epoch(replace(job, position=position))
        case EpochAccepted(position=position):
            job = replace(job, position=position)
            checkpoint = event.is_last or event.checkpoint_due
            return job, TakeCheckpoint(event.is_last) if checkpoint else ReachBoundary()
        case NothingToRead(checkpoint_due=due):
            return replace(job, is_idle=True), TakeCheckpoint() if due else Wait()
        case CheckpointCompleted(is_final=True) | SavepointWritten(stop=True):
            return job.to(JobStatus.FINISHED), Finish()
        case CheckpointCompleted() | CheckpointSkipped():
            return job, Wait() if job.is_idle else ReachBoundary()
        case SavepointWritten(cancel=True):
            return job.to(JobStatus.CANCELLING), CancelEpoch()
        case SavepointWritten() | SavepointNotWritten():
            return job, ReachBoundary()
        case Waited():
            return replace(job, is_idle=False), ReachBoundary()
    raise UnexpectedEvent(job.history, event)


def _run_epoch(job: Job) -> Step:
    return job, RunEpoch(replay=job.position.replay > 0, restarts=job.restarts)
