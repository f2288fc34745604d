"""Failures of epochs, checkpoints and jobs, and what they mean for a job.

Promises: the failure that a task reports becomes an error of its domain: user, external or internal.
Does not know: restart strategies."""

from __future__ import annotations

from millstream.cluster.checkpoint_lookup import CannotRecover
from millstream.cluster.leadership import NotLeading
from millstream.cluster.loops import IterationTooLong
from millstream.cluster.machine_events import Concluded, EpochFailed, Superseded
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
            hint="check whether a function blocks; if none does, raise millstream.epoch.deadline",
        )


class CheckpointExpired(ExternalError):
    """A checkpoint was not published in time."""

    def __init__(self, checkpoint: int, after: int) -> None:
        self.checkpoint, self.after = checkpoint, after
        super().__init__(
            f"checkpoint {checkpoint} expired after {after / 1000:g} s, still waiting for its storage",
            hint="check what slows the checkpoint directory down, or raise execution.checkpointing.timeout",
        )


class CheckpointNotFound(ExternalError):
    """The checkpoint to restore was not found in time."""

    def __init__(self, after: int) -> None:
        self.after = after
        super().__init__(
            f"the checkpoint to restore was not found and verified within {after / 1000:g} s",
            hint="check what slows the checkpoint directory down, or raise execution.checkpointing.timeout",
        )


class FailedElsewhere(ExternalError):
    """The job failed under another driver."""

    hint = (
        "to run it from its beginning, set another high-availability.cluster-id; to resume from its last checkpoint, "
        "delete the job's directory in the storageDir"
    )

    def __init__(self, end: Concluded) -> None:
        super().__init__(f"another driver's run of this job ended as {end.status.name}: {end.cause}")


class StateRefused(UserError):
    """The program cannot use the state that the job starts from: a restart cannot help."""


class TaskFailed(ExternalError):
    """A task failed for a reason outside the program."""


class TaskOutOfMemory(TaskFailed):
    """A task could not allocate memory."""

    hint = "the job plans smaller epochs; if that does not help, give the executors more memory"
    out_of_memory = True


def classify_failure(problem: Exception, at: int, *, standby: bool, has_started: bool) -> EpochFailed | Superseded:
    """Convert a problem to an event of its job: a failure with or without a restart or, with `standby`, that another
    driver leads. `has_started`: the program was deployed at least once."""
    if standby and isinstance(problem, NotLeading | EngineGone):  # another driver may have a working engine
        return Superseded(str(problem))
    is_final = isinstance(problem, CannotRecover | StateRefused | OutputRefused | EngineGone | IterationTooLong)
    is_final = is_final or (not has_started and isinstance(problem, UserError))
    return EpochFailed(str(problem), at, retryable=not is_final)


def to_error(failure: TaskFailure) -> MillstreamError:
    """Convert the failure of a task to an error."""
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
