"""Restart strategies as descriptions: whether and when a failed job starts again.

Promises: each strategy can be written as options, so that a running job reads only options.
Does not know: failures, clocks, or how a restart is done."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import Any

from millstream.errors import UserError
from millstream.times import MICROSECOND, Duration


class InvalidRestartStrategy(UserError, ValueError):
    """Invalid arguments of a restart strategy."""

    __str__ = UserError.__str__


class RestartStrategyConfiguration(ABC):
    """The description of a restart strategy.

    Example:
        >>> RestartStrategies.fixed_delay_restart(3, 10_000).get_description()
        'Restart with fixed delay (10 s). #3 restart attempts.'

    """

    @abstractmethod
    def get_description(self) -> str:
        """Return a description of the strategy, in Flink's words."""

    @abstractmethod
    def to_options(self) -> dict[str, Any]:
        """Return the options that set this strategy, by key."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        return f"RestartStrategies({self.get_description()})"


class RestartStrategies:
    """Creates restart strategies.

    Example:
        >>> RestartStrategies.fixed_delay_restart(3, 10_000).get_restart_attempts()
        3

    """

    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        """The job is not restarted after a failure."""

        def __init__(self) -> None:
            """Create the strategy; it has no settings."""

        def get_description(self) -> str:
            """Return a description of the strategy, in Flink's words."""
            return "Restart deactivated."

        def to_options(self) -> dict[str, Any]:
            """Return the options that set this strategy, by key."""
            return {"restart-strategy.type": "none"}

    class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """The job is restarted a number of times, with a delay before each restart."""

        def __init__(
            self, restart_attempts: int | None = None, delay_between_attempts_interval: timedelta | int | None = None
        ) -> None:
            self._attempts = _count(restart_attempts, "restart_attempts")
            self._delay = _delta(delay_between_attempts_interval, "delay_between_attempts_interval")

        def get_restart_attempts(self) -> int:
            """Return the number of restarts before the job fails."""
            return self._attempts

        def get_delay_between_attempts_interval(self) -> timedelta:
            """Return the delay before a restart."""
            return self._delay

        def get_description(self) -> str:
            """Return a description of the strategy, in Flink's words."""
            return f"Restart with fixed delay ({_duration(self._delay)}). #{self._attempts} restart attempts."

        def to_options(self) -> dict[str, Any]:
            """Return the options that set this strategy, by key."""
            return {
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": self._attempts,
                "restart-strategy.fixed-delay.delay": _duration(self._delay),
            }

    class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
        """The job is restarted with a delay, unless there are too many failures in an interval."""

        def __init__(
            self,
            max_failure_rate: int | None = None,
            failure_interval: timedelta | int | None = None,
            delay_between_attempts_interval: timedelta | int | None = None,
        ) -> None:
            self._rate = _count(max_failure_rate, "max_failure_rate")
            self._interval = _delta(failure_interval, "failure_interval")
            self._delay = _delta(delay_between_attempts_interval, "delay_between_attempts_interval")

        def get_max_failure_rate(self) -> int:
            """Return how many failures in the interval do not fail the job."""
            return self._rate

        def get_failure_interval(self) -> timedelta:
            """Return the interval in which failures are counted."""
            return self._interval

        def get_delay_between_attempts_interval(self) -> timedelta:
            """Return the delay before a restart."""
            return self._delay

        def get_description(self) -> str:
            """Return a description of the strategy, in Flink's words."""
            return (
                f"Failure rate restart with maximum of {self._rate} failures within interval "
                f"{_duration(self._interval)} and fixed delay {_duration(self._delay)}."
            )

        def to_options(self) -> dict[str, Any]:
            """Return the options that set this strategy, by key."""
            return {
                "restart-strategy.type": "failure-rate",
                "restart-strategy.failure-rate.max-failures-per-interval": self._rate,
                "restart-strategy.failure-rate.failure-rate-interval": _duration(self._interval),
                "restart-strategy.failure-rate.delay": _duration(self._delay),
            }

    class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
        """The restart strategy of the configuration."""

        def __init__(self) -> None:
            """Create the strategy; it has no settings."""

        def get_description(self) -> str:
            """Return a description of the strategy, in Flink's words."""
            return "Cluster level default restart strategy"

        def to_options(self) -> dict[str, Any]:
            """Return no options."""
            return {}

    @staticmethod
    def no_restart() -> RestartStrategies.NoRestartStrategyConfiguration:
        """Create a strategy without restarts."""
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> RestartStrategies.FallbackRestartStrategyConfiguration:
        """Create a strategy that uses the configured one."""
        return RestartStrategies.FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: int | timedelta
    ) -> RestartStrategies.FixedDelayRestartStrategyConfiguration:
        """Create a strategy with a number of restarts and a fixed delay.

        Args:
            restart_attempts: The number of restarts before the job fails.
            delay_between_attempts: The delay before a restart: a timedelta, or milliseconds.

        """
        return RestartStrategies.FixedDelayRestartStrategyConfiguration(restart_attempts, delay_between_attempts)

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: int | timedelta, delay_interval: int | timedelta
    ) -> RestartStrategies.FailureRateRestartStrategyConfiguration:
        """Create a strategy that limits the number of failures in an interval.

        Args:
            failure_rate: The number of failures in the interval that do not fail the job.
            failure_interval: The interval: a timedelta, or milliseconds.
            delay_interval: The delay before a restart: a timedelta, or milliseconds.

        """
        return RestartStrategies.FailureRateRestartStrategyConfiguration(failure_rate, failure_interval, delay_interval)


def _count(value: object, name: str) -> int:
    if not isinstance(value, int) or value < 0:
        message = f"{name} must be a whole number that is not negative, got {value!r}"
        raise InvalidRestartStrategy(message)
    return value


def _delta(value: object, name: str) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, int):
        msg = f"{name} takes milliseconds or a datetime.timedelta, got {value!r}"
        raise TypeError(msg)
    return timedelta(milliseconds=value)


def _duration(delta: timedelta) -> Duration:
    return Duration.of_nanos(delta // MICROSECOND * 1_000)
