"""What becomes of checkpoints when a job is cancelled."""

from __future__ import annotations

from enum import Enum

__all__ = ["ExternalizedCheckpointRetention"]


class ExternalizedCheckpointRetention(Enum):
    """Whether a cancelled job's last checkpoints stay; those of a failed job always do, unless there are none."""

    DELETE_ON_CANCELLATION = 0
    """They are deleted."""
    RETAIN_ON_CANCELLATION = 1
    """They stay until someone deletes them."""
    NO_EXTERNALIZED_CHECKPOINTS = 2
    """Checkpoints serve restarts only, and end with the job."""
