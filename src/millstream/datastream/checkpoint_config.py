"""Checkpointing as the program sets it: a typed view on the configuration.

Promises: what is set here is set in the configuration and the other way round, with Flink's defaults and checks.
Does not know: who takes checkpoints."""

from __future__ import annotations

from millstream import options
from millstream.config.configuration import ConfigOption, Configuration
from millstream.datastream.checkpointing_mode import CheckpointingMode
from millstream.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from millstream.errors import UserError
from millstream.times import Duration

__all__ = ["CheckpointConfig", "ExternalizedCheckpointRetention"]

MIN_MILLIS = 10
UNLIMITED_FAILURES = 2**31 - 1

# options.py lists these as ignored, without a type: an epoch boundary has nothing to align. Programs still read them.
UNALIGNED = ConfigOption(
    "execution.checkpointing.unaligned.enabled",
    False,
    type=bool,
    fallback_keys=("execution.checkpointing.unaligned",),
)
FORCE_UNALIGNED = ConfigOption("execution.checkpointing.unaligned.forced", False, type=bool)
ALIGNED_TIMEOUT = ConfigOption(
    "execution.checkpointing.aligned-checkpoint-timeout",
    Duration.of_millis(0),
    type=Duration,
    fallback_keys=("execution.checkpointing.alignment-timeout",),
)
MAX_CONCURRENT = ConfigOption("execution.checkpointing.max-concurrent-checkpoints", 1, type=int)


class InvalidCheckpointSetting(UserError, ValueError):
    """A setting of checkpointing out of its range."""

    def __init__(self, setting: str, value: int, least: int) -> None:
        self.setting, self.value, self.least = setting, value, least
        super().__init__(f"{setting} must be at least {least}, not {value}")


class CheckpointConfig:
    """When checkpoints are taken, and what becomes of them. Times are milliseconds unless they are durations."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def is_checkpointing_enabled(self) -> bool:
        """Whether an interval is set."""
        return self.get_checkpoint_interval() > 0

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """What a restart promises; at-least-once while checkpointing is off, as in Flink."""
        if not self.is_checkpointing_enabled():
            return CheckpointingMode.AT_LEAST_ONCE
        return CheckpointingMode[self._configuration.get(options.CHECKPOINT_MODE, "EXACTLY_ONCE")]

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """What a restart is to promise."""
        self._configuration.set(options.CHECKPOINT_MODE, checkpointing_mode)
        return self

    def get_checkpoint_interval(self) -> int:
        """How often a checkpoint is taken; -1 for never."""
        interval = self._configuration.get(options.CHECKPOINT_INTERVAL)
        return -1 if interval is None else interval.to_milliseconds()

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """Take a checkpoint so often; at least every 10 ms."""
        _require("the checkpoint interval in ms", checkpoint_interval, MIN_MILLIS)
        self._configuration.set(options.CHECKPOINT_INTERVAL, Duration.of_millis(checkpoint_interval))
        return self

    def get_checkpoint_timeout(self) -> int:
        """After how long a checkpoint is given up."""
        return _millis(self._configuration.get(options.CHECKPOINT_TIMEOUT))

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Give a checkpoint up after so long; at least 10 ms."""
        _require("the checkpoint timeout in ms", checkpoint_timeout, MIN_MILLIS)
        self._configuration.set(options.CHECKPOINT_TIMEOUT, Duration.of_millis(checkpoint_timeout))
        return self

    def get_min_pause_between_checkpoints(self) -> int:
        """How long after one checkpoint the next may start."""
        return _millis(self._configuration.get(options.CHECKPOINT_MIN_PAUSE))

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> CheckpointConfig:
        """Start the next checkpoint no sooner than this after the last."""
        _require("the pause between checkpoints in ms", min_pause_between_checkpoints, 0)
        self._configuration.set(options.CHECKPOINT_MIN_PAUSE, Duration.of_millis(min_pause_between_checkpoints))
        return self

    def get_max_concurrent_checkpoints(self) -> int:
        """How many checkpoints may be under way at once."""
        return self._configuration.get(MAX_CONCURRENT) or 1

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Accepted; a checkpoint is done before the next begins."""
        _require("the number of concurrent checkpoints", max_concurrent_checkpoints, 1)
        self._configuration.set(MAX_CONCURRENT, max_concurrent_checkpoints)
        return self

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Whether the first checkpoint that fails fails the job."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        """Fail the job with the first checkpoint that fails, or never for that reason."""
        number = 0 if fail_on_checkpointing_errors else UNLIMITED_FAILURES
        return self.set_tolerable_checkpoint_failure_number(number)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """How many checkpoints in a row may fail."""
        return self._configuration.get(options.TOLERABLE_FAILED_CHECKPOINTS) or 0

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> CheckpointConfig:
        """Let so many checkpoints in a row fail before the job does."""
        _require("the number of tolerable checkpoint failures", tolerable_checkpoint_failure_number, 0)
        self._configuration.set(options.TOLERABLE_FAILED_CHECKPOINTS, tolerable_checkpoint_failure_number)
        return self

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """What becomes of checkpoints when the job is cancelled."""
        self._configuration.set(options.CHECKPOINT_RETENTION, retention_mode)
        return self

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Whether checkpoints may outlive the job."""
        return (
            self.get_externalized_checkpoint_retention()
            is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        )

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """What becomes of checkpoints when the job is cancelled."""
        name = self._configuration.get(options.CHECKPOINT_RETENTION)
        return ExternalizedCheckpointRetention[name or "NO_EXTERNALIZED_CHECKPOINTS"]

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether unaligned checkpoints are asked for and possible; every checkpoint here is as fast as one."""
        exactly_once = self.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
        return exactly_once and self._configuration.get(UNALIGNED) is True

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Accepted; a checkpoint has nothing to align."""
        self._configuration.set(UNALIGNED, enabled)
        return self

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Accepted; a checkpoint has nothing to align."""
        return self.enable_unaligned_checkpoints(False)

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Accepted; a checkpoint has nothing to align."""
        self._configuration.set(ALIGNED_TIMEOUT, alignment_timeout)
        return self

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """The timeout set, or none at all."""
        return self._configuration.get(ALIGNED_TIMEOUT) or Duration.of_millis(0)

    def set_alignment_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """The older name of `set_aligned_checkpoint_timeout`."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def get_alignment_timeout(self) -> Duration:
        """The older name of `get_aligned_checkpoint_timeout`."""
        return self.get_aligned_checkpoint_timeout()

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        """Accepted; a checkpoint has nothing to align."""
        self._configuration.set(FORCE_UNALIGNED, force_unaligned_checkpoints)
        return self

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether unaligned checkpoints are insisted on."""
        return self._configuration.get(FORCE_UNALIGNED) is True


def _millis(duration: Duration | None) -> int:
    return 0 if duration is None else duration.to_milliseconds()


def _require(setting: str, value: int, least: int) -> None:
    if value < least:
        raise InvalidCheckpointSetting(setting, value, least)
