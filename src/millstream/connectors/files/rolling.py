"""Size and names of part files.

Promises: a part is complete at the latest with the checkpoint that makes it visible.
Does not know: records, directories."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from millstream.errors import UserError

_log = logging.getLogger("millstream.files")

_MINUTE = 60 * 1000
_NO_LIMIT = 1 << 62


class BadOutputFile(UserError, ValueError):
    """A size or name that a part file cannot have."""


@dataclass(frozen=True)
class RollingPolicy:
    """When a part file is closed and the next one started. Every checkpoint closes all part files.

    Example:
        >>> policy = RollingPolicy.default_rolling_policy(part_size=64 << 20)

    """

    part_size: int = _NO_LIMIT

    def __post_init__(self) -> None:
        if self.part_size <= 0:
            message = f"the part size is {self.part_size} bytes"
            raise BadOutputFile(message, hint="use a number above 0")

    @staticmethod
    def default_rolling_policy(
        part_size: int = 1024 * 1024 * 128, rollover_interval: int = _MINUTE, inactivity_interval: int = _MINUTE
    ) -> DefaultRollingPolicy:
        """Create a policy that closes a part file when it has `part_size` bytes, and with every checkpoint.

        Because every checkpoint closes all part files, the intervals (in milliseconds) have no effect.

        Args:
            part_size: The size of a part file in bytes at which it is closed.
            rollover_interval: A time in milliseconds; it has no effect.
            inactivity_interval: A time in milliseconds; it has no effect.

        """
        if (rollover_interval, inactivity_interval) != (_MINUTE, _MINUTE):
            _log.warning(
                "rollover_interval and inactivity_interval have no effect: every checkpoint finishes all parts"
            )
        return DefaultRollingPolicy(part_size)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """Create a policy that closes part files only with checkpoints."""
        return OnCheckpointRollingPolicy()


@dataclass(frozen=True)
class DefaultRollingPolicy(RollingPolicy):
    """Closes part files by size and with every checkpoint.

    Example:
        >>> RollingPolicy.default_rolling_policy(part_size=64 << 20)
        DefaultRollingPolicy(part_size=67108864)

    """

    part_size: int = 1024 * 1024 * 128


@dataclass(frozen=True)
class OnCheckpointRollingPolicy(RollingPolicy):
    """Closes part files only with checkpoints.

    Example:
        >>> policy = RollingPolicy.on_checkpoint_rolling_policy()

    """


@dataclass(frozen=True)
class OutputFileConfig:
    """The prefix and suffix of part files.

    Example:
        >>> OutputFileConfig.builder().with_part_prefix("orders").build()
        OutputFileConfig(part_prefix='orders', part_suffix='')

    """

    part_prefix: str = "part"
    part_suffix: str = ""

    def __post_init__(self) -> None:
        for text in (self.part_prefix, self.part_suffix):
            if not isinstance(text, str) or "/" in text or "\0" in text:
                message = f"{text!r} cannot be in the name of a file"
                raise BadOutputFile(message)
        if self.part_prefix.startswith("."):
            message = f"files that begin with {self.part_prefix!r} are hidden"
            raise BadOutputFile(message, hint="readers skip them; use another prefix")

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Create a builder."""
        return OutputFileConfig.OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        """Return the prefix."""
        return self.part_prefix

    def get_part_suffix(self) -> str:
        """Return the suffix."""
        return self.part_suffix

    class OutputFileConfigBuilder:
        """Builds an OutputFileConfig."""

        def __init__(self) -> None:
            self.part_prefix = "part"
            self.part_suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the prefix.

            Args:
                prefix: The beginning of the names of part files.

            """
            self.part_prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the suffix.

            Args:
                suffix: The end of the names of part files, such as `.txt`.

            """
            self.part_suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            """Build the configuration."""
            return OutputFileConfig(self.part_prefix, self.part_suffix)
