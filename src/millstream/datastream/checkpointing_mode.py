"""CheckpointingMode: exactly once or at least once."""

from __future__ import annotations

from enum import Enum

__all__ = ["CheckpointingMode"]


class CheckpointingMode(Enum):
    """The guarantee for records after a restart from a checkpoint.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.enable_checkpointing(60_000, CheckpointingMode.AT_LEAST_ONCE).get_checkpointing_mode()
        <CheckpointingMode.AT_LEAST_ONCE: 1>

    """

    EXACTLY_ONCE = 0
    """Each record affects state, and the output of transactional sinks, exactly once."""
    AT_LEAST_ONCE = 1
    """Output may be visible before its checkpoint completes, so a restart may repeat it."""
