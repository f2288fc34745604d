"""Events and actions of the job machine.

Promises: frozen values. An event says what happened to a job, an action says what is to be done next; carrying out an
action gives the next event.
Does not know: who reports events and who carries out actions."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.job.job_status import JobStatus


@dataclass(frozen=True)
class Position:
    """The position of a job between two epochs.

    Attributes:
        epochs: Epochs accepted since the last restore.
        replay: Logged plans that are still to be run again.
        has_restored_files: Whether state is still in the files of a restore; the next epoch writes it as its own.
        is_over: Whether the restored checkpoint is the last one of a job that was stopped.
        awaits_commit: Whether all input is processed, and only the output is to be committed.

    """

    epochs: int = 0
    replay: int = 0
    has_restored_files: bool = False
    is_over: bool = False
    awaits_commit: bool = False

    @property
    def allows_savepoint(self) -> bool:
        """Whether a savepoint can be written at this boundary: an epoch has run, so the state is in files of the
        job."""
        return self.epochs > 0 and self.replay == 0

    @property
    def allows_rescale(self) -> bool:
        """Whether the parallelism can change: logged plans are replayed at the parallelism of the restore."""
        return self.replay == 0 and not self.has_restored_files


# ------------------------------------------------------------------------------------------------------------ events


@dataclass(frozen=True)
class Submitted:
    """The job was submitted and nothing of it has run."""


@dataclass(frozen=True)
class Restored:
    """State is restored, or the job starts from its beginning: epochs can run."""

    position: Position = Position()


@dataclass(frozen=True)
class BoundaryReached:
    """The job is between two epochs; `savepoint`: a savepoint is requested."""

    savepoint: bool = False


@dataclass(frozen=True)
class RequestsRead:
    """Requests to the job were read; `rescale`: another parallelism is requested."""

    rescale: bool = False


@dataclass(frozen=True)
class Rescaled:
    """The job is deployed at another parallelism."""

    position: Position = Position()


@dataclass(frozen=True)
class EpochAccepted:
    """An epoch was accepted; `is_last`: the input ended with it."""

    position: Position
    is_last: bool = False
    checkpoint_due: bool = False


@dataclass(frozen=True)
class NothingToRead:
    """No source has input and no timer is due."""

    checkpoint_due: bool = False


@dataclass(frozen=True)
class Waited:
    """The job has waited for input."""


@dataclass(frozen=True)
class CheckpointCompleted:
    """A checkpoint exists and its output is committed; `is_final`: it is the last one of the job."""

    is_final: bool = False


@dataclass(frozen=True)
class CheckpointSkipped:
    """A checkpoint failed, and the job may continue without it."""


@dataclass(frozen=True)
class SavepointWritten:
    """A requested savepoint was written; the fields say whether the job then stops, is cancelled or continues."""

    stop: bool = False
    cancel: bool = False


@dataclass(frozen=True)
class SavepointNotWritten:
    """A savepoint failed, and the job continues unchanged."""


@dataclass(frozen=True)
class EpochFailed:
    """An epoch, a checkpoint, a commit or a restore failed at `at` (milliseconds)."""

    cause: str
    at: int
    retryable: bool = True


@dataclass(frozen=True)
class CheckpointDamaged:
    """A task cannot read a state file of the checkpoint that the job would restart from."""


@dataclass(frozen=True)
class CancelRequested:
    """The user cancels the job: it ends without a checkpoint."""


@dataclass(frozen=True)
class Stopped:
    """Nothing runs on the engine after a request to cancel."""


@dataclass(frozen=True)
class Concluded:
    """Another driver has ended the job, in this final status."""

    status: JobStatus
    cause: str | None


@dataclass(frozen=True)
class Superseded:
    """Another driver leads the job now."""

    cause: str


Event = (
    Submitted
    | Restored
    | BoundaryReached
    | RequestsRead
    | Rescaled
    | EpochAccepted
    | NothingToRead
    | Waited
    | CheckpointCompleted
    | CheckpointSkipped
    | SavepointWritten
    | SavepointNotWritten
    | EpochFailed
    | CheckpointDamaged
    | CancelRequested
    | Stopped
    | Concluded
    | Superseded
)

# ----------------------------------------------------------------------------------------------------------- actions


@dataclass(frozen=True)
class Start:
    """Deploy the job from its newest checkpoint, from the snapshot it is to start from, or from the beginning."""


@dataclass(frozen=True)
class Restore:
    """Restore the newest checkpoint now."""


@dataclass(frozen=True)
class RestoreAfter:
    """Wait `delay` milliseconds, then restore the newest checkpoint."""

    delay: int


@dataclass(frozen=True)
class ReachBoundary:
    """Check for requests between two epochs."""


@dataclass(frozen=True)
class ReadRequests:
    """Read the requests of other processes, and ask the adaptive scheduler for the parallelism."""


@dataclass(frozen=True)
class Rescale:
    """Deploy the job at the parallelism that is requested."""


@dataclass(frozen=True)
class RunEpoch:
    """Run the next epoch: with `replay`, the next logged plan; else one that is planned now."""

    replay: bool = False
    restarts: int = 0


@dataclass(frozen=True)
class TakeCheckpoint:
    """Publish a checkpoint and commit its output; `is_final`: the job ends with it."""

    is_final: bool = False


@dataclass(frozen=True)
class WriteSavepoint:
    """Carry out the oldest request for a savepoint."""

    restarts: int = 0


@dataclass(frozen=True)
class Wait:
    """Wait for input."""


@dataclass(frozen=True)
class CancelEpoch:
    """Cancel what runs on the engine."""


@dataclass(frozen=True)
class Finish:
    """Release everything, because the job has ended."""


PolicyAction = (
    Start | Restore | ReachBoundary | ReadRequests | Rescale | RunEpoch | TakeCheckpoint | WriteSavepoint | Wait
)
Action = PolicyAction | RestoreAfter | CancelEpoch | Finish
