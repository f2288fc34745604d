"""AsyncDataStream: a stream through a function that waits for another system.

Promises: PyFlink's names, signatures and defaults; what cannot work is refused while the program is built.
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
    """An asynchronous operation that cannot work as it is given."""


class AsyncDataStream:
    """Applies an `AsyncFunction` to a stream: many calls are under way at once, at most `capacity` in a subtask.

    `timeout` is for a record and all its tries together. Ordered results keep the order of their records; unordered
    ones come as the calls end, but never across a watermark."""

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Results in the order in which the calls end."""
        return _applied(data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type, ordered=False)

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """As `unordered_wait`; a call is made again as the strategy says."""
        return _applied(
            data_stream, async_function, timeout, async_retry_strategy, capacity, output_type, ordered=False
        )

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Results in the order of the records."""
        return _applied(data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type, ordered=True)

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """As `ordered_wait`; a call is made again as the strategy says."""
        return _applied(data_stream, async_function, timeout, async_retry_strategy, capacity, output_type, ordered=True)


def _applied(
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
        msg = f"async_invoke of {name} is no coroutine function"
        raise UnusableAsyncFunction(msg, hint="declare it with 'async def'")
    if not isinstance(timeout, Time | Duration):
        msg = f"the timeout of {name} must be a Time or a Duration, not {timeout!r}"
        raise UnusableAsyncFunction(msg, hint="such as Time.seconds(10)")
    if not isinstance(capacity, int) or capacity < 1:
        msg = f"a capacity of {capacity!r} is not possible"
        raise UnusableAsyncFunction(msg, hint="give an int of at least 1")
    if not isinstance(retry, AsyncRetryStrategy):
        msg = f"{retry!r} is not a retry strategy"
        raise UnusableAsyncFunction(msg, hint="see AsyncRetryStrategy.fixed_delay and exponential_backoff")
    if retry.get_retry_predicate() is None:
        msg = f"the retry predicate of {type(retry).__name__} is None"
        raise UnusableAsyncFunction(msg, hint="give a predicate for results, for errors, or for both")
    within = timeout.to_milliseconds()
    if retry != NO_RETRY_STRATEGY and within <= 0:
        msg = f"{name} is to be tried again, but has no timeout"
        raise UnusableAsyncFunction(msg, hint="give a timeout above 0: it covers all tries of a record")
    kind = result_type(output_type, function.async_invoke, element=True)
    spec = AsyncSpec(function, max(within, 0), capacity, retry, ordered, stream._key_selection())
    return stream._apply("async wait operator", spec, kind, **stream._keyed())
