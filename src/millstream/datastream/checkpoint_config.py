"""CheckpointConfig: a typed view of the checkpointing options of a configuration.

Promises: setters write to the configuration and getters read from it, with Flink's defaults and checks.
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

# options.py lists these as ignored, without a type: checkpoints need no alignment here. Programs still read them.
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
    """A setting of checkpointing is out of its range."""

    def __init__(self, setting: str, value: int, least: int) -> None:
        self.setting, self.value, self.least = setting, value, least
        super().__init__(f"{setting} must be a whole number of at least {least}, not {value!r}")


class CheckpointConfig:
    """The checkpoint settings of a job. Times are in milliseconds unless they are durations.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> config = StreamExecutionEnvironment.get_execution_environment().get_checkpoint_config()
        >>> config.set_checkpoint_interval(60_000).get_checkpoint_interval()
        60000

    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def is_checkpointing_enabled(self) -> bool:
        """Return whether a checkpoint interval is set."""
        return self.get_checkpoint_interval() > 0

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the checkpointing mode; AT_LEAST_ONCE while checkpointing is disabled, as in Flink."""
        if not self.is_checkpointing_enabled():
            return CheckpointingMode.AT_LEAST_ONCE
        return CheckpointingMode[self._configuration.get(options.CHECKPOINT_MODE, "EXACTLY_ONCE")]

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """Set the checkpointing mode: exactly once or at least once.

        Args:
            checkpointing_mode: The mode.

        """
        self._configuration.set(options.CHECKPOINT_MODE, checkpointing_mode)
        return self

    def get_checkpoint_interval(self) -> int:
        """Return the checkpoint interval; -1 if checkpointing is disabled."""
        interval = self._configuration.get(options.CHECKPOINT_INTERVAL)
        return -1 if interval is None else interval.to_milliseconds()

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """Set the interval between the starts of two checkpoints; at least 10 ms.

        Args:
            checkpoint_interval: Milliseconds.

        """
        _require("the checkpoint interval in ms", checkpoint_interval, MIN_MILLIS)
        self._configuration.set(options.CHECKPOINT_INTERVAL, Duration.of_millis(checkpoint_interval))
        return self

    def get_checkpoint_timeout(self) -> int:
        """Return after how long a pending checkpoint is aborted."""
        return _millis(self._configuration.get(options.CHECKPOINT_TIMEOUT))

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Set after how long a pending checkpoint is aborted; at least 10 ms.

        Args:
            checkpoint_timeout: Milliseconds.

        """
        _require("the checkpoint timeout in ms", checkpoint_timeout, MIN_MILLIS)
        self._configuration.set(options.CHECKPOINT_TIMEOUT, Duration.of_millis(checkpoint_timeout))
        return self

    def get_min_pause_between_checkpoints(self) -> int:
        """Return the minimal pause between the end of a checkpoint and the start of the next."""
        return _millis(self._configuration.get(options.CHECKPOINT_MIN_PAUSE))

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> CheckpointConfig:
        """Set the minimal pause between the end of a checkpoint and the start of the next.

        Args:
            min_pause_between_checkpoints: Milliseconds, at least 0.

        """
        _require("the pause between checkpoints in ms", min_pause_between_checkpoints, 0)
        self._configuration.set(options.CHECKPOINT_MIN_PAUSE, Duration.of_millis(min_pause_between_checkpoints))
        return self

    def get_max_concurrent_checkpoints(self) -> int:
        """Return how many checkpoints may be pending at once, as it was set."""
        return self._configuration.get(MAX_CONCURRENT) or 1

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Accept the number without effect: a checkpoint ends before the next one starts.

        Args:
            max_concurrent_checkpoints: At least 1.

        """
        _require("the number of concurrent checkpoints", max_concurrent_checkpoints, 1)
        self._configuration.set(MAX_CONCURRENT, max_concurrent_checkpoints)
        return self

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Return whether the first failed checkpoint fails the job."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        """Set whether the first failed checkpoint fails the job; otherwise failed checkpoints never do.

        Args:
            fail_on_checkpointing_errors: True to fail the job.

        """
        number = 0 if fail_on_checkpointing_errors else UNLIMITED_FAILURES
        return self.set_tolerable_checkpoint_failure_number(number)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """Return how many consecutive checkpoints may fail before the job fails."""
        return self._configuration.get(options.TOLERABLE_FAILED_CHECKPOINTS) or 0

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> CheckpointConfig:
        """Set how many consecutive checkpoints may fail before the job fails.

        Args:
            tolerable_checkpoint_failure_number: The number, at least 0.

        """
        _require("the number of tolerable checkpoint failures", tolerable_checkpoint_failure_number, 0)
        self._configuration.set(options.TOLERABLE_FAILED_CHECKPOINTS, tolerable_checkpoint_failure_number)
        return self

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Set whether checkpoints are kept or deleted when the job is cancelled.

        Args:
            retention_mode: What happens to the checkpoints.

        """
        self._configuration.set(options.CHECKPOINT_RETENTION, retention_mode)
        return self

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Return whether checkpoints may be kept after the job ends."""
        return (
            self.get_externalized_checkpoint_retention()
            is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        )

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """Return whether checkpoints are kept or deleted when the job is cancelled."""
        name = self._configuration.get(options.CHECKPOINT_RETENTION)
        return ExternalizedCheckpointRetention[name or "NO_EXTERNALIZED_CHECKPOINTS"]

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return whether unaligned checkpoints are enabled and the mode is exactly once; it has no effect."""
        exactly_once = self.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
        return exactly_once and self._configuration.get(UNALIGNED) is True

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Accept the setting without effect: checkpoints need no alignment.

        Args:
            enabled: Ignored.

        """
        self._configuration.set(UNALIGNED, enabled)
        return self

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Accept the setting without effect: checkpoints need no alignment."""
        return self.enable_unaligned_checkpoints(False)

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Accept the setting without effect: checkpoints need no alignment.

        Args:
            alignment_timeout: Ignored.

        """
        self._configuration.set(ALIGNED_TIMEOUT, alignment_timeout)
        return self

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """Return the alignment timeout that was set; 0 if none was."""
        return self._configuration.get(ALIGNED_TIMEOUT) or Duration.of_millis(0)

    def set_alignment_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Call `set_aligned_checkpoint_timeout`; this is its older name.

        Args:
            alignment_timeout: Ignored.

        """
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def get_alignment_timeout(self) -> Duration:
        """Call `get_aligned_checkpoint_timeout`; this is its older name."""
        return self.get_aligned_checkpoint_timeout()

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        """Accept the setting without effect: checkpoints need no alignment.

        Args:
            force_unaligned_checkpoints: Ignored.

        """
        self._configuration.set(FORCE_UNALIGNED, force_unaligned_checkpoints)
        return self

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return whether unaligned checkpoints are forced; it has no effect."""
        return self._configuration.get(FORCE_UNALIGNED) is True


def _millis(duration: Duration | None) -> int:
    return 0 if duration is None else duration.to_milliseconds()


def _require(setting: str, value: int, least: int) -> None:
    if not isinstance(value, int) or value < least:
        raise InvalidCheckpointSetting(setting, value, least)
