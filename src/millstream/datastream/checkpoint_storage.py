"""Checkpoint storages: where the checkpoints of a job are written.

Promises: `apply_to` writes the choice to a configuration; the rest of the system reads only the configuration.
Does not know: how checkpoints are written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from millstream import options
from millstream.config.configuration import Configuration
from millstream.errors import UserError

__all__ = ["CheckpointStorage", "FileSystemCheckpointStorage", "JobManagerCheckpointStorage"]

INLINE_THRESHOLD = "execution.checkpointing.data-inline-threshold"
WRITE_BUFFER_SIZE = "execution.checkpointing.write-buffer-size"


class InvalidCheckpointStorage(UserError, ValueError):
    """A parameter of a checkpoint storage is invalid."""

    def __init__(self, parameter: str, value: object, rule: str) -> None:
        self.parameter, self.value, self.rule = parameter, value, rule
        super().__init__(f"{parameter} of a checkpoint storage must be {rule}, not {value!r}")


class CheckpointStorage(ABC):
    """Where checkpoints are written.

    Example:
        >>> from millstream.common import Configuration
        >>> configuration = Configuration()
        >>> FileSystemCheckpointStorage("file:///tmp/checkpoints").apply_to(configuration)
        >>> configuration.to_dict()
        {'execution.checkpointing.storage': 'filesystem', 'execution.checkpointing.dir': 'file:///tmp/checkpoints'}

    """

    @abstractmethod
    def apply_to(self, configuration: Configuration) -> None:
        """Set this storage in a configuration.

        Args:
            configuration: The configuration of the environment.

        """


@dataclass(frozen=True)
class JobManagerCheckpointStorage(CheckpointStorage):
    """Checkpoints in the memory of the job's driver: for tests and very small state.

    Args:
        checkpoint_path: The directory for metadata; by default that of the configuration.
        max_state_size: The largest size of one state, in bytes.

    Example:
        >>> JobManagerCheckpointStorage("file:///tmp/checkpoints").get_checkpoint_path()
        'file:///tmp/checkpoints'

    """

    DEFAULT_MAX_STATE_SIZE = 5 * 1024 * 1024

    checkpoint_path: str | None = None
    max_state_size: int | None = None

    def apply_to(self, configuration: Configuration) -> None:
        """Set this storage in a configuration."""
        configuration.set(options.CHECKPOINT_STORAGE, "jobmanager")
        if self.checkpoint_path is not None:
            configuration.set(options.CHECKPOINT_DIR, self.checkpoint_path)

    def get_checkpoint_path(self) -> str | None:
        """Return the directory of metadata; None if the configuration sets it."""
        return self.checkpoint_path

    def get_max_state_size(self) -> int:
        """Return the largest size of one state, in bytes."""
        return self.DEFAULT_MAX_STATE_SIZE if self.max_state_size is None else self.max_state_size

    def get_savepoint_path(self) -> str | None:
        """Return the directory of savepoints; None: the configuration sets it."""
        return None


@dataclass(frozen=True)
class FileSystemCheckpointStorage(CheckpointStorage):
    """Checkpoints in a directory of a file system.

    Args:
        checkpoint_path: The URI or the local path of the directory.
        file_state_size_threshold: Accepted without effect; Flink stores smaller state in the metadata.
        write_buffer_size: Accepted without effect; the size of Flink's write buffer.

    Example:
        >>> FileSystemCheckpointStorage("file:///tmp/checkpoints").get_checkpoint_path()
        'file:///tmp/checkpoints'

    """

    MAX_FILE_STATE_THRESHOLD = 1024 * 1024

    checkpoint_path: str | None = None
    file_state_size_threshold: int | None = None
    write_buffer_size: int = -1

    def __post_init__(self) -> None:
        if not self.checkpoint_path:
            raise InvalidCheckpointStorage(parameter="checkpoint_path", value=self.checkpoint_path, rule="a directory")
        threshold = self.file_state_size_threshold
        if threshold is not None and not -1 <= threshold <= self.MAX_FILE_STATE_THRESHOLD:
            rule = f"between -1 and {self.MAX_FILE_STATE_THRESHOLD}"
            raise InvalidCheckpointStorage(parameter="file_state_size_threshold", value=threshold, rule=rule)

    def apply_to(self, configuration: Configuration) -> None:
        """Set this storage in a configuration."""
        configuration.set(options.CHECKPOINT_STORAGE, "filesystem")
        configuration.set(options.CHECKPOINT_DIR, self.checkpoint_path)
        if self.file_state_size_threshold not in (None, -1):
            configuration.set(INLINE_THRESHOLD, f"{self.file_state_size_threshold} bytes")
        if self.write_buffer_size != -1:
            configuration.set(WRITE_BUFFER_SIZE, self.write_buffer_size)

    def get_checkpoint_path(self) -> str:
        """Return the directory of checkpoints, without a slash at the end."""
        path = self.checkpoint_path or ""
        return path.rstrip("/") or path

    def get_savepoint_path(self) -> str | None:
        """Return the directory of savepoints; None: the configuration sets it."""
        return None

    def get_min_file_size_threshold(self) -> int:
        """Return the size in bytes below which Flink stores state in the metadata."""
        return 20 * 1024 if self.file_state_size_threshold in (None, -1) else int(self.file_state_size_threshold or 0)

    def get_write_buffer_size(self) -> int:
        """Return the size of Flink's write buffer in bytes."""
        return 4096 if self.write_buffer_size == -1 else self.write_buffer_size
