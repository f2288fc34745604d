"""ExternalizedCheckpointRetention: whether checkpoints of a cancelled job are kept."""

from __future__ import annotations

from enum import Enum

__all__ = ["ExternalizedCheckpointRetention"]


class ExternalizedCheckpointRetention(Enum):
    """Whether the last checkpoints of a cancelled job are kept. Those of a failed job are kept in the first two
    modes.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> config = StreamExecutionEnvironment.get_execution_environment().get_checkpoint_config()
        >>> retain = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
        >>> config.set_externalized_checkpoint_retention(retain).get_externalized_checkpoint_retention()
        <ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION: 1>

    """

    DELETE_ON_CANCELLATION = 0
    """Checkpoints are deleted when the job is cancelled."""
    RETAIN_ON_CANCELLATION = 1
    """Checkpoints are kept when the job is cancelled, until the user deletes them."""
    NO_EXTERNALIZED_CHECKPOINTS = 2
    """Checkpoints are used for restarts only and are deleted when the job ends."""
