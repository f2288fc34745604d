"""ExecutionConfig: the options of a job's execution, as methods.

Promises: a view on one Configuration. A setter writes an option, and a getter reads it.
Does not know: options of checkpoints, state or restarts."""

from __future__ import annotations

from typing import Any

from millstream import options
from millstream.config.configuration import Configuration
from millstream.errors import UserError
from millstream.times import Duration

__all__ = ["ExecutionConfig"]

_MAX_KEY_GROUPS = 1 << 15


class InvalidSetting(UserError, ValueError):
    """A setting is outside its range."""

    __str__ = UserError.__str__


class ExecutionConfig:
    """Configure how the operators of a job are executed.

    Example:
        >>> ExecutionConfig().set_parallelism(4).get_parallelism()
        4

    """

    PARALLELISM_DEFAULT = -1
    PARALLELISM_UNKNOWN = -2

    def __init__(self, configuration: Configuration | None = None) -> None:
        """Create a view on a configuration; by default on a new one."""
        self._configuration = Configuration() if configuration is None else configuration

    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Accept Flink's setting, without effect: a Python closure holds only what it uses."""
        return self._set(options.CLOSURE_CLEANER_LEVEL, "RECURSIVE")

    def disable_closure_cleaner(self) -> ExecutionConfig:
        """Accept Flink's setting, without effect: a Python closure holds only what it uses."""
        return self._set(options.CLOSURE_CLEANER_LEVEL, "NONE")

    def is_closure_cleaner_enabled(self) -> bool:
        """Return the setting, which is True unless disabled."""
        return self._configuration.get(options.CLOSURE_CLEANER_LEVEL) != "NONE"

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Set whether watermarks are generated periodically.

        Args:
            interval: 0 disables periodic watermarks; with any other value, in milliseconds, they are generated in every
                epoch.

        Raises:
            InvalidSetting: If the interval is negative.

        """
        if interval < 0:
            message = f"auto watermark interval must not be negative, got {interval}"
            raise InvalidSetting(message)
        return self._set(options.AUTO_WATERMARK_INTERVAL, Duration.of_millis(interval))

    def get_auto_watermark_interval(self) -> int:
        """Return the interval in milliseconds; 0 if there are no periodic watermarks."""
        return self._get_millis(options.AUTO_WATERMARK_INTERVAL)

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        """Accept Flink's setting, without effect: latency is measured for each epoch.

        Args:
            interval: Milliseconds.

        """
        return self._set(options.LATENCY_TRACKING_INTERVAL, Duration.of_millis(max(interval, 0)))

    def get_latency_tracking_interval(self) -> int:
        """Return the setting in milliseconds."""
        return self._get_millis(options.LATENCY_TRACKING_INTERVAL)

    def get_parallelism(self) -> int:
        """Return the default parallelism of operators; PARALLELISM_DEFAULT if none is set."""
        return self._get(options.PARALLELISM, self.PARALLELISM_DEFAULT)

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Set the parallelism of operators that do not set their own.

        Args:
            parallelism: The parallelism; PARALLELISM_DEFAULT removes the setting.

        Raises:
            InvalidSetting: If the parallelism is less than one.

        """
        if parallelism == self.PARALLELISM_UNKNOWN:
            return self
        if parallelism == self.PARALLELISM_DEFAULT:
            self._configuration.remove_config(options.PARALLELISM.key)
            return self
        if parallelism < 1:
            message = f"parallelism must be at least one, got {parallelism}"
            raise InvalidSetting(message, hint="ExecutionConfig.PARALLELISM_DEFAULT leaves it to the system")
        return self._set(options.PARALLELISM, parallelism)

    def get_max_parallelism(self) -> int:
        """Return the number of key groups of keyed state; -1 if it is derived from the parallelism."""
        return self._get(options.MAX_PARALLELISM, -1)

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Set the number of key groups of keyed state, which is the upper limit of the parallelism.

        Args:
            max_parallelism: A number from 1 to 32768.

        Raises:
            InvalidSetting: If it is outside this range.

        """
        if not 0 < max_parallelism <= _MAX_KEY_GROUPS:
            message = f"the maximum parallelism must be between 1 and {_MAX_KEY_GROUPS}, got {max_parallelism}"
            raise InvalidSetting(message)
        return self._set(options.MAX_PARALLELISM, max_parallelism)

    def get_task_cancellation_interval(self) -> int:
        """Return the setting in milliseconds."""
        return self._get_millis(options.TASK_CANCELLATION_INTERVAL)

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        """Accept Flink's setting, without effect: Spark cancels tasks.

        Args:
            interval: Milliseconds.

        """
        return self._set(options.TASK_CANCELLATION_INTERVAL, Duration.of_millis(interval))

    def get_task_cancellation_timeout(self) -> int:
        """Return the setting in milliseconds."""
        return self._get_millis(options.TASK_CANCELLATION_TIMEOUT)

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        """Accept Flink's setting, without effect: Spark cancels tasks.

        Args:
            timeout: Milliseconds, at least 0.

        Raises:
            InvalidSetting: If the timeout is negative.

        """
        if timeout < 0:
            message = f"timeout must be at least 0, got {timeout}"
            raise InvalidSetting(message)
        return self._set(options.TASK_CANCELLATION_TIMEOUT, Duration.of_millis(timeout))

    def enable_force_kryo(self) -> ExecutionConfig:
        """Accept Flink's setting, without effect: there are no Java serializers."""
        return self._set(options.FORCE_KRYO, True)

    def disable_force_kryo(self) -> ExecutionConfig:
        """Accept Flink's setting, without effect: there are no Java serializers."""
        return self._set(options.FORCE_KRYO, False)

    def is_force_kryo_enabled(self) -> bool:
        """Return the setting."""
        return self._is_set(options.FORCE_KRYO)

    def enable_generic_types(self) -> ExecutionConfig:
        """Allow elements without a declared type, which are pickled."""
        return self._set(options.GENERIC_TYPES, True)

    def disable_generic_types(self) -> ExecutionConfig:
        """Refuse programs with elements without a declared type, before the job starts."""
        return self._set(options.GENERIC_TYPES, False)

    def has_generic_types_disabled(self) -> bool:
        """Return whether elements without a declared type are refused."""
        return not self._is_set(options.GENERIC_TYPES)

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Generate uids from the graph for operators without a uid."""
        return self._set(options.AUTO_GENERATE_UIDS, True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Refuse programs with operators without a uid, before the job starts."""
        return self._set(options.AUTO_GENERATE_UIDS, False)

    def has_auto_generated_uids_enabled(self) -> bool:
        """Return whether uids are generated."""
        return self._is_set(options.AUTO_GENERATE_UIDS)

    def enable_force_avro(self) -> ExecutionConfig:
        """Accept Flink's setting, without effect: there are no Java serializers."""
        return self._set(options.FORCE_AVRO, True)

    def disable_force_avro(self) -> ExecutionConfig:
        """Accept Flink's setting, without effect: there are no Java serializers."""
        return self._set(options.FORCE_AVRO, False)

    def is_force_avro_enabled(self) -> bool:
        """Return the setting."""
        return self._is_set(options.FORCE_AVRO)

    def enable_object_reuse(self) -> ExecutionConfig:
        """Pass records to chained functions without a copy.

        This is faster, but correct only if no function changes a record that it has received or emitted.
        """
        return self._set(options.OBJECT_REUSE, True)

    def disable_object_reuse(self) -> ExecutionConfig:
        """Copy records that can change when they are passed to chained functions; the default."""
        return self._set(options.OBJECT_REUSE, False)

    def is_object_reuse_enabled(self) -> bool:
        """Return whether records are passed to chained functions without a copy."""
        return self._is_set(options.OBJECT_REUSE)

    def get_global_job_parameters(self) -> dict[str, str]:
        """Return the parameters that every function of the job can read."""
        parameters: dict[str, str] | None = self._configuration.get(options.GLOBAL_JOB_PARAMETERS)
        return dict(parameters or {})

    def set_global_job_parameters(self, global_job_parameters_dict: dict[str, Any]) -> ExecutionConfig:
        """Set the parameters that every function of the job can read; values are converted to text.

        Args:
            global_job_parameters_dict: The parameters by name.

        """
        return self._set(options.GLOBAL_JOB_PARAMETERS, {k: str(v) for k, v in global_job_parameters_dict.items()})

    def is_use_snapshot_compression(self) -> bool:
        """Return whether snapshots of state are compressed."""
        return self._is_set(options.SNAPSHOT_COMPRESSION)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Set whether snapshots of state are compressed.

        Args:
            use_snapshot_compression: True to compress.

        """
        return self._set(options.SNAPSHOT_COMPRESSION, use_snapshot_compression)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExecutionConfig) and self._configuration == other._configuration

    def __hash__(self) -> int:
        return hash(self._configuration)

    def _set(self, option: options.Option[Any], value: Any) -> ExecutionConfig:
        self._configuration.set(option, value)
        return self

    def _get(self, option: options.Option[int], default: int) -> int:
        return self._configuration.get(option, default)

    def _is_set(self, option: options.Option[bool]) -> bool:
        return self._configuration.get(option)

    def _get_millis(self, option: options.Option[Duration]) -> int:
        return self._configuration.get(option).to_milliseconds()
