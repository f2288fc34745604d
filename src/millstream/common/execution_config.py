"""ExecutionConfig: the options of a job's execution, as methods.

Promises: a view on one Configuration: a setter writes an option, and a getter says what the option says.
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
    """A setting outside its range."""

    __str__ = UserError.__str__


class ExecutionConfig:
    """How the operators of a job are executed."""

    PARALLELISM_DEFAULT = -1
    PARALLELISM_UNKNOWN = -2

    def __init__(self, configuration: Configuration | None = None) -> None:
        """A view on the configuration, or on one of its own."""
        self._configuration = Configuration() if configuration is None else configuration

    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Has no effect: a Python closure holds only what it uses."""
        return self._set(options.CLOSURE_CLEANER_LEVEL, "RECURSIVE")

    def disable_closure_cleaner(self) -> ExecutionConfig:
        """Has no effect: a Python closure holds only what it uses."""
        return self._set(options.CLOSURE_CLEANER_LEVEL, "NONE")

    def is_closure_cleaner_enabled(self) -> bool:
        """What was last set; True unless disabled."""
        return self._configuration.get(options.CLOSURE_CLEANER_LEVEL) != "NONE"

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Zero: make no periodic watermarks; any other value, in milliseconds: make them with every epoch."""
        if interval < 0:
            message = f"auto watermark interval must not be negative, got {interval}"
            raise InvalidSetting(message)
        return self._set(options.AUTO_WATERMARK_INTERVAL, Duration.of_millis(interval))

    def get_auto_watermark_interval(self) -> int:
        """What was last set, in milliseconds; zero when there are no periodic watermarks."""
        return self._millis(options.AUTO_WATERMARK_INTERVAL)

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        """Has no effect: latency is measured by epoch."""
        return self._set(options.LATENCY_TRACKING_INTERVAL, Duration.of_millis(max(interval, 0)))

    def get_latency_tracking_interval(self) -> int:
        """What was last set, in milliseconds."""
        return self._millis(options.LATENCY_TRACKING_INTERVAL)

    def get_parallelism(self) -> int:
        """The parallelism of operators that do not set their own; PARALLELISM_DEFAULT if none is set."""
        return self._get(options.PARALLELISM, self.PARALLELISM_DEFAULT)

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Set the parallelism of operators that do not set their own; PARALLELISM_DEFAULT forgets it."""
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
        """How many key groups keyed state has; -1 if that is derived from the parallelism."""
        return self._get(options.MAX_PARALLELISM, -1)

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Set how many key groups keyed state has: the most that the parallelism can ever be."""
        if not 0 < max_parallelism <= _MAX_KEY_GROUPS:
            message = f"the maximum parallelism must be between 1 and {_MAX_KEY_GROUPS}, got {max_parallelism}"
            raise InvalidSetting(message)
        return self._set(options.MAX_PARALLELISM, max_parallelism)

    def get_task_cancellation_interval(self) -> int:
        """What was last set, in milliseconds."""
        return self._millis(options.TASK_CANCELLATION_INTERVAL)

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        """Has no effect: Spark cancels tasks."""
        return self._set(options.TASK_CANCELLATION_INTERVAL, Duration.of_millis(interval))

    def get_task_cancellation_timeout(self) -> int:
        """What was last set, in milliseconds."""
        return self._millis(options.TASK_CANCELLATION_TIMEOUT)

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        """Has no effect: Spark cancels tasks."""
        if timeout < 0:
            message = f"timeout must be at least 0, got {timeout}"
            raise InvalidSetting(message)
        return self._set(options.TASK_CANCELLATION_TIMEOUT, Duration.of_millis(timeout))

    def enable_force_kryo(self) -> ExecutionConfig:
        """Has no effect: there are no Java serializers."""
        return self._set(options.FORCE_KRYO, True)

    def disable_force_kryo(self) -> ExecutionConfig:
        """Has no effect: there are no Java serializers."""
        return self._set(options.FORCE_KRYO, False)

    def is_force_kryo_enabled(self) -> bool:
        """What was last set."""
        return self._flag(options.FORCE_KRYO)

    def enable_generic_types(self) -> ExecutionConfig:
        """Allow elements without a declared type; they travel as Python objects."""
        return self._set(options.GENERIC_TYPES, True)

    def disable_generic_types(self) -> ExecutionConfig:
        """Refuse elements without a declared type before the job starts."""
        return self._set(options.GENERIC_TYPES, False)

    def has_generic_types_disabled(self) -> bool:
        """Whether elements without a declared type are refused."""
        return not self._flag(options.GENERIC_TYPES)

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Give operators without a uid one that is derived from the graph."""
        return self._set(options.AUTO_GENERATE_UIDS, True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Refuse operators without a uid before the job starts."""
        return self._set(options.AUTO_GENERATE_UIDS, False)

    def has_auto_generated_uids_enabled(self) -> bool:
        """Whether operators without a uid are given one."""
        return self._flag(options.AUTO_GENERATE_UIDS)

    def enable_force_avro(self) -> ExecutionConfig:
        """Has no effect: there are no Java serializers."""
        return self._set(options.FORCE_AVRO, True)

    def disable_force_avro(self) -> ExecutionConfig:
        """Has no effect: there are no Java serializers."""
        return self._set(options.FORCE_AVRO, False)

    def is_force_avro_enabled(self) -> bool:
        """What was last set."""
        return self._flag(options.FORCE_AVRO)

    def enable_object_reuse(self) -> ExecutionConfig:
        """Has no effect: functions in one chain are handed the same objects, always."""
        return self._set(options.OBJECT_REUSE, True)

    def disable_object_reuse(self) -> ExecutionConfig:
        """Has no effect: functions in one chain are handed the same objects, always."""
        return self._set(options.OBJECT_REUSE, False)

    def is_object_reuse_enabled(self) -> bool:
        """What was last set."""
        return self._flag(options.OBJECT_REUSE)

    def get_global_job_parameters(self) -> dict[str, str]:
        """The parameters every function of the job can read."""
        parameters: dict[str, str] | None = self._configuration.get(options.GLOBAL_JOB_PARAMETERS)
        return dict(parameters or {})

    def set_global_job_parameters(self, global_job_parameters_dict: dict[str, Any]) -> ExecutionConfig:
        """Set the parameters every function of the job can read; values become text."""
        return self._set(options.GLOBAL_JOB_PARAMETERS, {k: str(v) for k, v in global_job_parameters_dict.items()})

    def is_use_snapshot_compression(self) -> bool:
        """Whether images of state are compressed."""
        return self._flag(options.SNAPSHOT_COMPRESSION)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Set whether images of state are compressed."""
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

    def _flag(self, option: options.Option[bool]) -> bool:
        return self._configuration.get(option)

    def _millis(self, option: options.Option[Duration]) -> int:
        return self._configuration.get(option).to_milliseconds()
