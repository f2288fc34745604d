"""Asynchronous functions, and strategies for retries.

Promises: the decisions of a strategy depend only on the number of attempts.
Does not know: event loops, capacity or order of results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from millstream.errors import UserError
from millstream.functions.base import Function

IN = TypeVar("IN")
OUT = TypeVar("OUT")
ResultPredicate = Callable[[list[Any]], bool] | None
ExceptionPredicate = Callable[[Exception], bool] | None


class InvalidRetryStrategy(UserError, ValueError):
    """A number of a retry strategy is not positive."""

    def __init__(self, parameter: str, value: float) -> None:
        self.parameter, self.value = parameter, value
        super().__init__(f"{parameter} of a retry strategy must be greater than zero, not {value}")


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """Which outcomes of a call lead to a retry.

    Example:
        >>> class RetryTimeouts(AsyncRetryPredicate):
        ...     def result_predicate(self):
        ...         return None
        ...     def exception_predicate(self):
        ...         return lambda error: isinstance(error, TimeoutError)
        >>> RetryTimeouts().exception_predicate()(TimeoutError())
        True

    """

    @abstractmethod
    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        """Return a predicate that is true for results that lead to a retry; None if every result is accepted."""

    @abstractmethod
    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        """Return a predicate that is true for errors that lead to a retry; None if the first error fails the job."""


@dataclass(frozen=True)
class RetryPredicate(AsyncRetryPredicate[OUT]):
    """A retry predicate of two callables.

    Example:
        >>> predicate = RetryPredicate(lambda results: not results, None)
        >>> predicate.result_predicate()([])
        True

    """

    _result_predicate: ResultPredicate
    _exception_predicate: ExceptionPredicate

    def __init__(self, result_predicate: ResultPredicate, exception_predicate: ExceptionPredicate) -> None:
        object.__setattr__(self, "_result_predicate", result_predicate)
        object.__setattr__(self, "_exception_predicate", exception_predicate)

    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        """Return the predicate of results."""
        return self._result_predicate

    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        """Return the predicate of errors."""
        return self._exception_predicate


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """Whether, and after which delay, a call is retried.

    Example:
        >>> strategy = AsyncRetryStrategy.fixed_delay(3, 100, None, lambda error: isinstance(error, TimeoutError))
        >>> strategy.can_retry(3), strategy.get_backoff_time_millis(1)
        (True, 100)

    """

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Return whether another attempt may follow after so many attempts.

        Args:
            current_attempts: How many attempts have been made.

        """

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return the delay before the next attempt, in milliseconds.

        Args:
            current_attempts: How many attempts have been made.

        """

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Return which outcomes lead to a retry."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Create a strategy without retries."""
        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate,
        exception_predicate: ExceptionPredicate,
    ) -> AsyncRetryStrategy[Any]:
        """Create a strategy with a fixed delay before each retry.

        Args:
            max_attempts: The number of attempts that a retry may follow.
            backoff_time_millis: The delay in milliseconds.
            result_predicate: True for results that lead to a retry; None for none.
            exception_predicate: True for errors that lead to a retry; None for none.

        """
        return FixedDelayRetryStrategy(max_attempts, backoff_time_millis, result_predicate, exception_predicate)

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate,
        exception_predicate: ExceptionPredicate,
    ) -> AsyncRetryStrategy[Any]:
        """Create a strategy with a delay that grows with each retry.

        Args:
            max_attempts: The number of attempts that a retry may follow.
            initial_delay: The first delay in milliseconds.
            max_retry_delay: The longest delay in milliseconds.
            multiplier: The factor between two delays.
            result_predicate: True for results that lead to a retry; None for none.
            exception_predicate: True for errors that lead to a retry; None for none.

        """
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


@dataclass(frozen=True)
class NoRetryStrategy(AsyncRetryStrategy[OUT]):
    """A strategy without retries.

    Example:
        >>> NoRetryStrategy().can_retry(1)
        False

    """

    def can_retry(self, current_attempts: int) -> bool:
        """Return False."""
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return -1: there is no next attempt."""
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Return a predicate without conditions: no outcome leads to a retry."""
        return RetryPredicate(None, None)


@dataclass(frozen=True)
class FixedDelayRetryStrategy(AsyncRetryStrategy[OUT]):
    """A strategy with the same delay before each retry.

    Example:
        >>> FixedDelayRetryStrategy(3, 100, None, None).get_backoff_time_millis(2)
        100

    """

    max_attempts: int
    backoff_time_millis: int
    result_predicate: ResultPredicate
    exception_predicate: ExceptionPredicate

    def __post_init__(self) -> None:
        _require_positive(max_attempts=self.max_attempts, backoff_time_millis=self.backoff_time_millis)

    def can_retry(self, current_attempts: int) -> bool:
        """Return whether `max_attempts` is not exceeded."""
        return current_attempts <= self.max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return the fixed delay."""
        return self.backoff_time_millis

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Return the predicates of the strategy."""
        return RetryPredicate(self.result_predicate, self.exception_predicate)


@dataclass(frozen=True)
class ExponentialBackoffDelayRetryStrategy(AsyncRetryStrategy[OUT]):
    """A strategy with a delay that grows with each retry.

    Example:
        >>> strategy = ExponentialBackoffDelayRetryStrategy(5, 100, 1_000, 2.0, None, None)
        >>> [strategy.get_backoff_time_millis(attempts) for attempts in (1, 2, 3)]
        [100, 200, 400]

    """

    max_attempts: int
    initial_delay: int
    max_retry_delay: int
    multiplier: float
    result_predicate: ResultPredicate
    exception_predicate: ExceptionPredicate

    def __post_init__(self) -> None:
        _require_positive(
            max_attempts=self.max_attempts,
            initial_delay=self.initial_delay,
            max_retry_delay=self.max_retry_delay,
            multiplier=self.multiplier,
        )

    def can_retry(self, current_attempts: int) -> bool:
        """Return whether `max_attempts` is not exceeded."""
        return current_attempts <= self.max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return the delay: `initial_delay` before the second attempt, then multiplied each time; whole
        milliseconds."""
        delay = self.initial_delay
        for _ in range(1, current_attempts):
            delay = int(min(delay * self.multiplier, self.max_retry_delay))
        return delay

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Return the predicates of the strategy."""
        return RetryPredicate(self.result_predicate, self.exception_predicate)


NO_RETRY_STRATEGY: AsyncRetryStrategy[Any] = NoRetryStrategy()


class AsyncFunction(Function, Generic[IN, OUT]):
    """A function that makes an asynchronous call for each record, so that calls of several records run concurrently.

    Example:
        >>> from millstream.common import Time
        >>> from millstream.datastream import AsyncDataStream, StreamExecutionEnvironment
        >>> class Greet(AsyncFunction):
        ...     async def async_invoke(self, value):
        ...         return [f"hello {value}"]
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> greetings = AsyncDataStream.unordered_wait(env.from_collection(["ann"]), Greet(), Time.seconds(5))

    """

    @abstractmethod
    async def async_invoke(self, value: IN) -> list[OUT]:
        """Make the call for a record, and return the records that replace it.

        Args:
            value: The record.

        """

    def timeout(self, value: IN) -> list[OUT]:
        """Return the records for a call that exceeded the timeout; by default the job fails.

        Args:
            value: The record.

        """
        message = f"the asynchronous call for {value!r} took longer than its timeout"
        raise TimeoutError(message)


def _require_positive(**numbers: float) -> None:
    for parameter, value in numbers.items():
        if value <= 0:
            raise InvalidRetryStrategy(parameter, value)
