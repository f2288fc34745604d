"""Asynchronous functions, and when a failed call is tried again.

Promises: a strategy's answers depend on the number of attempts alone.
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
    """A retry strategy was given a number that is not positive."""

    def __init__(self, parameter: str, value: float) -> None:
        self.parameter, self.value = parameter, value
        super().__init__(f"{parameter} of a retry strategy must be greater than zero, not {value}")


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """Which outcomes of a call lead to another try."""

    @abstractmethod
    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        """True for a result that is not good enough; None to take every result."""

    @abstractmethod
    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        """True for an error worth another try; None to fail at the first."""


@dataclass(frozen=True)
class RetryPredicate(AsyncRetryPredicate[OUT]):
    """A predicate made of two callables."""

    _result_predicate: ResultPredicate
    _exception_predicate: ExceptionPredicate

    def __init__(self, result_predicate: ResultPredicate, exception_predicate: ExceptionPredicate) -> None:
        object.__setattr__(self, "_result_predicate", result_predicate)
        object.__setattr__(self, "_exception_predicate", exception_predicate)

    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        """The callable for results."""
        return self._result_predicate

    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        """The callable for errors."""
        return self._exception_predicate


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """Whether, and after how long, a call is tried again."""

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Whether another try may follow after that many."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """How long to wait before the next try, in milliseconds."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Which outcomes lead to another try."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Never try again."""
        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate,
        exception_predicate: ExceptionPredicate,
    ) -> AsyncRetryStrategy[Any]:
        """Try again after the same time, that many times."""
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
        """Try again after a time that grows by `multiplier` up to `max_retry_delay`."""
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


@dataclass(frozen=True)
class NoRetryStrategy(AsyncRetryStrategy[OUT]):
    """One try and no more."""

    def can_retry(self, current_attempts: int) -> bool:
        """Never."""
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """-1: there is no next try."""
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """No outcome leads to another try."""
        return RetryPredicate(None, None)


@dataclass(frozen=True)
class FixedDelayRetryStrategy(AsyncRetryStrategy[OUT]):
    """The same wait before each try."""

    max_attempts: int
    backoff_time_millis: int
    result_predicate: ResultPredicate
    exception_predicate: ExceptionPredicate

    def __post_init__(self) -> None:
        _require_positive(max_attempts=self.max_attempts, backoff_time_millis=self.backoff_time_millis)

    def can_retry(self, current_attempts: int) -> bool:
        """True up to `max_attempts`."""
        return current_attempts <= self.max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """The fixed wait."""
        return self.backoff_time_millis

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """The predicates given."""
        return RetryPredicate(self.result_predicate, self.exception_predicate)


@dataclass(frozen=True)
class ExponentialBackoffDelayRetryStrategy(AsyncRetryStrategy[OUT]):
    """A wait that grows with each try."""

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
        """True up to `max_attempts`."""
        return current_attempts <= self.max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """`initial_delay` before the second try, then each wait times `multiplier`, in whole milliseconds."""
        delay = self.initial_delay
        for _ in range(1, current_attempts):
            delay = int(min(delay * self.multiplier, self.max_retry_delay))
        return delay

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """The predicates given."""
        return RetryPredicate(self.result_predicate, self.exception_predicate)


NO_RETRY_STRATEGY: AsyncRetryStrategy[Any] = NoRetryStrategy()


class AsyncFunction(Function, Generic[IN, OUT]):
    """Calls a slow system for each record without making the next record wait."""

    @abstractmethod
    async def async_invoke(self, value: IN) -> list[OUT]:
        """The records that take the place of `value`, when the call has come back."""

    def timeout(self, value: IN) -> list[OUT]:
        """The records for a call that took too long; by default that fails the job."""
        message = f"the asynchronous call for {value!r} took longer than its timeout"
        raise TimeoutError(message)


def _require_positive(**numbers: float) -> None:
    for parameter, value in numbers.items():
        if value <= 0:
            raise InvalidRetryStrategy(parameter, value)
