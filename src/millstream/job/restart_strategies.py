"""Restart strategies as descriptions: whether and when a failed job starts again.

Promises: each names the options that say the same, so that there is one source of truth when a job runs.
Does not know: failures, clocks, or how a restart is done."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import Any

from millstream.errors import UserError
from millstream.times import Duration


class InvalidRestartStrategy(UserError, ValueError):
    """A restart strategy that cannot be carried out."""

    __str__ = UserError.__str__


class RestartStrategyConfiguration(ABC):
    """Describes a restart strategy."""

    @abstractmethod
    def get_description(self) -> str:
        """What the strategy does, for people."""

    @abstractmethod
    def to_options(self) -> dict[str, Any]:
        """The options that set this strategy, by key."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        return f"RestartStrategies({self.get_description()})"


class RestartStrategies:
    """Makes restart strategies."""

    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        """The job fails at its first failure."""

        def __init__(self) -> None:
            """There is nothing to set."""

        def get_description(self) -> str:
            """What the strategy does, for people."""
            return "Restart deactivated."

        def to_options(self) -> dict[str, Any]:
            """The options that set this strategy, by key."""
            return {"restart-strategy.type": "none"}

    class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """The job is restarted so many times, after a pause."""

        def __init__(
            self, restart_attempts: int | None = None, delay_between_attempts_interval: timedelta | int | None = None
        ) -> None:
            self._attempts = _count(restart_attempts, "restart_attempts")
            self._delay = _delta(delay_between_attempts_interval, "delay_between_attempts_interval")

        def get_restart_attempts(self) -> int:
            """How often the job is restarted."""
            return self._attempts

        def get_delay_between_attempts_interval(self) -> timedelta:
            """The pause before a restart."""
            return self._delay

        def get_description(self) -> str:
            """What the strategy does, for people."""
            return f"Restart with fixed delay ({_duration(self._delay)}). #{self._attempts} restart attempts."

        def to_options(self) -> dict[str, Any]:
            """The options that set this strategy, by key."""
            return {
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": self._attempts,
                "restart-strategy.fixed-delay.delay": _duration(self._delay),
            }

    class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
        """The job is restarted after a pause, unless failures come too fast."""

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
            """How many failures within the interval are followed by a restart."""
            return self._rate

        def get_failure_interval(self) -> timedelta:
            """The interval failures are counted over."""
            return self._interval

        def get_delay_between_attempts_interval(self) -> timedelta:
            """The pause before a restart."""
            return self._delay

        def get_description(self) -> str:
            """What the strategy does, for people."""
            return (
                f"Failure rate restart with maximum of {self._rate} failures within interval "
                f"{_duration(self._interval)} and fixed delay {_duration(self._delay)}."
            )

        def to_options(self) -> dict[str, Any]:
            """The options that set this strategy, by key."""
            return {
                "restart-strategy.type": "failure-rate",
                "restart-strategy.failure-rate.max-failures-per-interval": self._rate,
                "restart-strategy.failure-rate.failure-rate-interval": _duration(self._interval),
                "restart-strategy.failure-rate.delay": _duration(self._delay),
            }

    class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Whatever the configuration of the cluster says."""

        def __init__(self) -> None:
            """There is nothing to set."""

        def get_description(self) -> str:
            """What the strategy does, for people."""
            return "Cluster level default restart strategy"

        def to_options(self) -> dict[str, Any]:
            """The options that set this strategy, by key: none."""
            return {}

    @staticmethod
    def no_restart() -> RestartStrategies.NoRestartStrategyConfiguration:
        """The job fails at its first failure."""
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> RestartStrategies.FallbackRestartStrategyConfiguration:
        """Whatever the configuration of the cluster says."""
        return RestartStrategies.FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: int | timedelta
    ) -> RestartStrategies.FixedDelayRestartStrategyConfiguration:
        """So many restarts, each after a pause (a timedelta, or milliseconds)."""
        return RestartStrategies.FixedDelayRestartStrategyConfiguration(restart_attempts, delay_between_attempts)

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: int | timedelta, delay_interval: int | timedelta
    ) -> RestartStrategies.FailureRateRestartStrategyConfiguration:
        """Restarts after a pause, up to so many within an interval (timedeltas, or milliseconds)."""
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
    return Duration.of_nanos(delta // timedelta(microseconds=1) * 1_000)
