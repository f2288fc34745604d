"""What can happen to a job, and what can be ordered: the words of the control plane.

Promises: plain frozen values.
Does not know: anything else."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.job.job_status import JobStatus


@dataclass(frozen=True)
class Started:
    """The first epoch may be planned."""


@dataclass(frozen=True)
class EpochFailed:
    """An epoch, a checkpoint or a commit failed at `at` ms."""

    cause: str
    at: int
    retryable: bool = True


@dataclass(frozen=True)
class Restarted:
    """State is restored after a failure."""


@dataclass(frozen=True)
class InputEnded:
    """Every source has ended and all output is committed."""


@dataclass(frozen=True)
class CancelRequested:
    """A person wants the job to end, without a checkpoint."""


@dataclass(frozen=True)
class Stopped:
    """The epoch at hand has ended after a request to cancel."""


@dataclass(frozen=True)
class Concluded:
    """Another process has brought the job to an end, in this final status."""

    status: JobStatus
    cause: str | None


@dataclass(frozen=True)
class Superseded:
    """Another process runs the job now."""

    cause: str


Event = Started | EpochFailed | Restarted | InputEnded | CancelRequested | Stopped | Concluded | Superseded


@dataclass(frozen=True)
class RunEpochs:
    """Plan and run epochs."""


@dataclass(frozen=True)
class RestoreAfter:
    """Wait, then restore the last checkpoint and go on."""

    delay: int


@dataclass(frozen=True)
class CancelEpoch:
    """End the epoch that runs."""


@dataclass(frozen=True)
class Finish:
    """Nothing more will run."""


Action = RunEpochs | RestoreAfter | CancelEpoch | Finish
