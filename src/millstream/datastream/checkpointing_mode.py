"""CheckpointingMode: exactly once or at least once."""

from __future__ import annotations

from enum import Enum

__all__ = ["CheckpointingMode"]


class CheckpointingMode(Enum):
    """The guarantee for records after a restart from a checkpoint."""

    EXACTLY_ONCE = 0
    """Each record affects state, and the output of transactional sinks, exactly once."""
    AT_LEAST_ONCE = 1
    """Output may be visible before its checkpoint completes, so a restart may repeat it."""
