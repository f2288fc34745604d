"""RuntimeExecutionMode: streaming or batch."""

from __future__ import annotations

from enum import Enum

__all__ = ["RuntimeExecutionMode"]


class RuntimeExecutionMode(Enum):
    """How a program is executed."""

    STREAMING = 0
    """In epochs, with checkpoints; results are emitted as soon as they are known."""
    BATCH = 1
    """Over all of the bounded input, one key at a time; only final results are emitted."""
    AUTOMATIC = 2
    """BATCH if all sources are bounded, otherwise STREAMING."""
