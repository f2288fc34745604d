"""The context of user-defined functions, and the options of asynchronous functions.

Promises: PyFlink's FunctionContext with the values of the subtask; Flink's options for asynchronous calls: capacity,
timeout and retries.
Does not know: the functions themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from millstream import sql_options
from millstream.config.option import Option
from millstream.errors import UserError
from millstream.functions.async_io import AsyncRetryStrategy
from millstream.runtime.metrics import UserMetrics
from millstream.runtime.operator import OperatorContext
from millstream.times import Duration


class UnusableAsyncOption(UserError):
    """An option of asynchronous functions has an invalid value."""

    def __init__(self, key: str, value: str, expected: str) -> None:
        self.key, self.value = key, value
        super().__init__(f"option '{key}' must be {expected}, not '{value}'")


@dataclass(frozen=True)
class AsyncOptions:
    """How asynchronous functions are called. Times are in milliseconds; if `attempts` is 0, there are no retries."""

    capacity: int = 10
    timeout: int = 180_000
    attempts: int = 3
    delay: int = 100

    def retry(self) -> AsyncRetryStrategy[object]:
        """Return the retry strategy of failed calls."""
        if not self.attempts:
            return AsyncRetryStrategy.no_restart()
        return AsyncRetryStrategy.fixed_delay(self.attempts, max(self.delay, 1), None, _retry_always)


ASYNC_DEFAULTS = AsyncOptions()


def _retry_always(_problem: Exception) -> bool:
    return True


def read_async_options(
    options: Callable[[str], str | None],
    millis: Callable[[str], int],
    declared: sql_options.AsyncFunctionOptions = sql_options.ASYNC_SCALAR,
) -> AsyncOptions:
    """Read the options of asynchronous scalar or table functions from a session; `millis` parses a duration."""
    option = declared.retry_strategy
    strategy = (options(option.key) or option.default).upper()
    if strategy not in option.choices:
        raise UnusableAsyncOption(option.key, strategy, " or ".join(option.choices))
    attempts = _read_positive(declared.max_attempts, options)
    return AsyncOptions(
        _read_positive(declared.capacity, options),
        _read_millis(declared.timeout, options, millis),
        attempts if strategy == "FIXED_DELAY" else 0,
        _read_millis(declared.retry_delay, options, millis),
    )


def _read_positive(option: Option[int], options: Callable[[str], str | None]) -> int:
    value = next((text for key in (option.key, *option.fallback_keys) if (text := options(key))), None)
    if value is None:
        return option.default
    if not value.strip().isdigit() or int(value) < 1:
        raise UnusableAsyncOption(option.key, value, "an integer of at least 1")
    return int(value)


def _read_millis(option: Option[Duration], options: Callable[[str], str | None], millis: Callable[[str], int]) -> int:
    value = options(option.key)
    return option.default.to_milliseconds() if value is None else millis(value)


class FunctionContext:
    """The runtime context of a user-defined function, as in PyFlink.

    Example:
        >>> from millstream.table.udf import ScalarFunction
        >>> class Discount(ScalarFunction):
        ...     def open(self, function_context):
        ...         self.rate = float(function_context.get_job_parameter("discount", "0.1"))
        ...     def eval(self, price):
        ...         return price * (1 - self.rate)

    """

    def __init__(
        self,
        base_metric_group: UserMetrics,
        job_parameters: Mapping[str, str],
        task_name: str = "table",
        task_name_with_subtasks: str = "table (1/1)",
        number_of_parallel_subtasks: int = 1,
        max_number_of_parallel_subtasks: int = 128,
        index_of_this_subtask: int = 0,
        attempt_number: int = 0,
    ) -> None:
        self._metrics, self._parameters = base_metric_group, job_parameters
        self._name, self._name_with_subtasks = task_name, task_name_with_subtasks
        self._parallelism, self._max_parallelism = number_of_parallel_subtasks, max_number_of_parallel_subtasks
        self._subtask, self._attempt = index_of_this_subtask, attempt_number

    @staticmethod
    def of(context: OperatorContext) -> FunctionContext:
        """Create the context from that of an operator subtask.

        Args:
            context: The context of the subtask.

        """
        return FunctionContext(
            UserMetrics(context.metrics),
            context.parameters,
            context.name,
            f"{context.name} ({context.subtask + 1}/{context.parallelism})",
            context.parallelism,
            context.max_parallelism,
            context.subtask,
            context.restarts,
        )

    def get_metric_group(self) -> UserMetrics:
        """Return the metric group."""
        return self._metrics

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return the value of a global job parameter, or the default.

        Args:
            key: The key of the parameter.
            default_value: The result if the parameter is not set.

        """
        return self._parameters.get(key, default_value)

    def get_task_name(self) -> str:
        """Return the name of the operator."""
        return self._name

    def get_task_name_with_subtasks(self) -> str:
        """Return the name of the operator with its subtask, such as "Calc (1/4)"."""
        return self._name_with_subtasks

    def get_number_of_parallel_subtasks(self) -> int:
        """Return the parallelism of the operator."""
        return self._parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the max parallelism of the operator."""
        return self._max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """Return the index of the subtask, counted from 0."""
        return self._subtask

    def get_attempt_number(self) -> int:
        """Return the number of restarts of the job."""
        return self._attempt
