"""How often a record may show in state and output after a failure."""

from __future__ import annotations

from enum import Enum

__all__ = ["CheckpointingMode"]


class CheckpointingMode(Enum):
    """What a restart from a checkpoint promises."""

    EXACTLY_ONCE = 0
    """Each record shows in state, and in transactional output, exactly once."""
    AT_LEAST_ONCE = 1
    """Output may be visible before its checkpoint, so that a restart may repeat it."""
