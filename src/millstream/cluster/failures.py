"""Why an epoch, a checkpoint or a whole job fails.

Promises: what a task has told comes back as an error of the domain it belongs to: the program's, the world's, or ours.
Does not know: restarts."""

from __future__ import annotations

from millstream.cluster.events import Concluded, EpochFailed, Superseded
from millstream.cluster.finding import CannotRecover
from millstream.cluster.leadership import NotLeading
from millstream.connector.sink import OutputRefused
from millstream.engine.contract import EngineGone
from millstream.errors import ExternalError, InternalError, MillstreamError, UserError
from millstream.runtime.report import TaskFailure
from millstream.runtime.rowwise import UserFunctionFailed
from millstream.state.snapshot import StateFileDamaged


class EpochTimedOut(ExternalError):
    """An epoch did not end by its deadline."""

    def __init__(self, epoch: int, deadline: int) -> None:
        super().__init__(
            f"epoch {epoch} did not end within {deadline / 1000:g} s and was cancelled",
            hint="a function may be waiting for ever; else raise millstream.epoch.deadline",
        )


class CheckpointExpired(ExternalError):
    """A checkpoint was not durable in time."""

    def __init__(self, checkpoint: int, after: int) -> None:
        self.checkpoint, self.after = checkpoint, after
        super().__init__(
            f"checkpoint {checkpoint} expired after {after / 1000:g} s, still waiting for its storage",
            hint="raise execution.checkpointing.timeout or see what slows the checkpoint directory",
        )


class CheckpointNotFound(ExternalError):
    """The checkpoint to go on from was not found in time."""

    def __init__(self, after: int) -> None:
        self.after = after
        super().__init__(
            f"the checkpoint to go on from was not found and verified within {after / 1000:g} s",
            hint="see what slows the checkpoint directory, or raise execution.checkpointing.timeout",
        )


class EndedElsewhere(ExternalError):
    """The job failed under another driver."""

    hint = (
        "to run it from its beginning, give another high-availability.cluster-id; to go on from its last checkpoint, "
        "delete the job's directory in the storageDir"
    )

    def __init__(self, end: Concluded) -> None:
        super().__init__(f"another driver's run of this job ended as {end.status.name}: {end.cause}")


class StateRefused(UserError):
    """The state a job was to start from cannot be read by its program: trying again would not help."""


class TaskFailed(ExternalError):
    """A task failed for a reason that is not the program's."""


class TaskOutOfMemory(TaskFailed):
    """Python could not give a task the memory it asked for."""

    hint = "the job plans smaller epochs; if that does not help, give the executors more memory"
    out_of_memory = True


def event_of(problem: Exception, at: int, *, standby: bool, begun: bool) -> EpochFailed | Superseded:
    """What a problem means for its job: a try again, the end, or with `standby` that another driver runs it."""
    if standby and isinstance(problem, NotLeading | EngineGone):  # the engine of another driver may be well
        return Superseded(str(problem))
    helpless = isinstance(problem, CannotRecover | StateRefused | OutputRefused | EngineGone)
    helpless = helpless or (not begun and isinstance(problem, UserError))
    return EpochFailed(str(problem), at, retryable=not helpless)


def failure_of(failure: TaskFailure) -> MillstreamError:
    """Return the error that stands for the failure of a task."""
    match failure.domain:
        case "refused":
            return StateRefused(failure.problem, hint=failure.hint)
        case "damage":
            problem = f"{failure.problem} (read by {failure.vertex})"
            return StateFileDamaged(failure.file, problem, missing=failure.missing)
        case "user":
            return UserFunctionFailed.from_failure(failure)
    text = f"{failure.problem} (in {failure.vertex})"
    match failure.domain:
        case "memory":
            return TaskOutOfMemory(text)
        case "external":
            return TaskFailed(text)
    return InternalError(f"{text}\n{failure.trace}")
