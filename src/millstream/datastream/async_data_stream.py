"""AsyncDataStream: asynchronous functions on streams, for requests to external systems.

Promises: PyFlink's names, signatures and defaults; invalid arguments are refused while the program is built.
Does not know: event loops."""

from __future__ import annotations

import inspect
from typing import Any

from millstream.datastream.call_types import result_type
from millstream.datastream.data_stream import DataStream
from millstream.errors import UserError
from millstream.functions import NO_RETRY_STRATEGY, AsyncFunction, AsyncRetryStrategy, as_function
from millstream.runtime.operators.async_io import AsyncSpec
from millstream.times import Duration, Time
from millstream.types.factory import TypeInformation

__all__ = ["AsyncDataStream"]


class UnusableAsyncFunction(UserError):
    """An asynchronous function, or a setting of it, cannot be used."""


class AsyncDataStream:
    """Apply an `AsyncFunction` to a stream. Calls run concurrently, at most `capacity` of them in a subtask.

    The timeout covers all attempts of a record together. Ordered results keep the order of their records; unordered
    results are emitted when their calls end, but never overtake a watermark.

    Example:
        >>> from millstream.common import Time
        >>> from millstream.datastream import AsyncFunction, StreamExecutionEnvironment
        >>> class LookUp(AsyncFunction):
        ...     async def async_invoke(self, value):
        ...         return [(value, len(value))]
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> names = env.from_collection(["ann", "bob"])
        >>> lengths = AsyncDataStream.ordered_wait(names, LookUp(), Time.seconds(5), capacity=10)

    """

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Emit results in the order in which the calls end.

        Args:
            data_stream: The stream.
            async_function: The function.
            timeout: How long a record may wait for its result before `AsyncFunction.timeout` is called.
            capacity: How many calls a subtask makes at once.
            output_type: The type of the results.

        """
        return _apply(data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type, ordered=False)

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Emit results in the order in which the calls end, and retry calls by a strategy.

        Args:
            data_stream: The stream.
            async_function: The function.
            timeout: How long a record may wait for its result, all attempts included; must be positive.
            async_retry_strategy: When and how often a call is retried.
            capacity: How many calls a subtask makes at once.
            output_type: The type of the results.

        """
        return _apply(data_stream, async_function, timeout, async_retry_strategy, capacity, output_type, ordered=False)

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Emit results in the order of the records; for the arguments see `unordered_wait`.

        Args:
            data_stream: The stream.
            async_function: Makes the call for a record.
            timeout: The time from the first attempt until `AsyncFunction.timeout` is called.
            capacity: How many calls may run at once in a subtask.
            output_type: The type of the results; None means that they are pickled.

        """
        return _apply(data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type, ordered=True)

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Emit results in the order of the records, with retries; see `unordered_wait_with_retry`.

        Args:
            data_stream: The stream.
            async_function: Makes the call for a record.
            timeout: The time from the first attempt until `AsyncFunction.timeout` is called.
            async_retry_strategy: Whether and when a call is repeated.
            capacity: How many calls may run at once in a subtask.
            output_type: The type of the results; None means that they are pickled.

        """
        return _apply(data_stream, async_function, timeout, async_retry_strategy, capacity, output_type, ordered=True)


def _apply(
    stream: DataStream,
    async_function: Any,
    timeout: Any,
    retry: Any,
    capacity: Any,
    output_type: Any,
    *,
    ordered: bool,
) -> DataStream:
    function: AsyncFunction[Any, Any] = as_function(async_function, AsyncFunction)
    name = type(function).__name__
    if not inspect.iscoroutinefunction(function.async_invoke):
        msg = f"async_invoke of {name} is not a coroutine function"
        raise UnusableAsyncFunction(msg, hint="declare it with 'async def'")
    if not isinstance(timeout, Time | Duration):
        msg = f"the timeout of {name} must be a Time or a Duration, not {timeout!r}"
        raise UnusableAsyncFunction(msg, hint="such as Time.seconds(10)")
    if not isinstance(capacity, int) or capacity < 1:
        msg = f"the capacity of {name} must be an int of at least 1, not {capacity!r}"
        raise UnusableAsyncFunction(msg, hint="such as capacity=100")
    if not isinstance(retry, AsyncRetryStrategy):
        msg = f"{retry!r} is not a retry strategy"
        raise UnusableAsyncFunction(msg, hint="see AsyncRetryStrategy.fixed_delay and exponential_backoff")
    if retry.get_retry_predicate() is None:
        msg = f"the retry predicate of {type(retry).__name__} is None"
        raise UnusableAsyncFunction(msg, hint="give a predicate for results, for errors, or for both")
    timeout_millis = timeout.to_milliseconds()
    if retry != NO_RETRY_STRATEGY and timeout_millis <= 0:
        msg = f"{name} has a retry strategy, but no timeout"
        raise UnusableAsyncFunction(msg, hint="set a timeout above 0: it covers all attempts of a record")
    output_type_info = result_type(output_type, function.async_invoke, element=True)
    spec = AsyncSpec(function, max(timeout_millis, 0), capacity, retry, ordered, stream._key_selection())
    return stream._apply("async wait operator", spec, output_type_info, **stream._keyed())
