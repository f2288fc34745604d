"""RuntimeExecutionMode: streaming or batch."""

from __future__ import annotations

from enum import Enum

__all__ = ["RuntimeExecutionMode"]


class RuntimeExecutionMode(Enum):
    """How a program is executed.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> batch = env.set_runtime_mode(RuntimeExecutionMode.BATCH)

    """

    STREAMING = 0
    """In epochs, with checkpoints; results are emitted as soon as they are known."""
    BATCH = 1
    """Over all of the bounded input, one key at a time; only final results are emitted."""
    AUTOMATIC = 2
    """BATCH if all sources are bounded, otherwise STREAMING."""
