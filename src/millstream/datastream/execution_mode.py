"""Whether a program runs as a stream or as a batch."""

from __future__ import annotations

from enum import Enum

__all__ = ["RuntimeExecutionMode"]


class RuntimeExecutionMode(Enum):
    """How the same program is run."""

    STREAMING = 0
    """Epoch by epoch, with checkpoints, and results as soon as they are known."""
    BATCH = 1
    """Over bounded input as a whole, one key at a time, and final results only."""
    AUTOMATIC = 2
    """BATCH where all sources are bounded, else STREAMING."""
