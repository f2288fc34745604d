"""Restart strategies: whether a failed job may run again, and after how long.

Promises: Flink's four strategies with its defaults, as pure functions of the failures so far.
Does not know: jobs, clocks; times are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from millstream import options
from millstream.config.configuration import Configuration


class RestartStrategy(Protocol):
    """Decides after each failure; gives the strategy to use next time too."""

    def after_failure(self, at: int) -> tuple[RestartStrategy, int | None]:
        """After a failure at `at` (ms): the strategy from now on, and the delay before a restart or None for none."""


@dataclass(frozen=True)
class NoRestart:
    """Never."""

    def after_failure(self, at: int) -> tuple[RestartStrategy, int | None]:
        """No."""
        return self, None


@dataclass(frozen=True)
class FixedDelay:
    """A number of attempts with the same delay."""

    attempts: int
    delay: int
    used: int = 0

    def after_failure(self, at: int) -> tuple[RestartStrategy, int | None]:
        """Yes, while attempts are left."""
        if self.used >= self.attempts:
            return self, None
        return FixedDelay(self.attempts, self.delay, self.used + 1), self.delay


@dataclass(frozen=True)
class FailureRate:
    """As long as there are not too many failures in an interval."""

    most: int
    interval: int
    delay: int
    failures: tuple[int, ...] = ()

    def after_failure(self, at: int) -> tuple[RestartStrategy, int | None]:
        """Yes, unless the last `most` failures and this one fall into one interval."""
        recent = tuple(time for time in self.failures if at - time <= self.interval)
        if len(recent) >= self.most:
            return self, None
        return FailureRate(self.most, self.interval, self.delay, (*recent, at)), self.delay


@dataclass(frozen=True)
class ExponentialDelay:
    """Delays that grow while failures follow one another, and start again after a quiet time."""

    initial: int
    most: int
    multiplier: float
    quiet: int
    attempts: int | None = None
    used: int = 0
    current: int | None = None
    last: int | None = None

    def after_failure(self, at: int) -> tuple[RestartStrategy, int | None]:
        """Yes, after a delay."""
        calm = self.last is not None and at - self.last >= self.quiet + (self.current or 0)
        used = 0 if calm else self.used
        if self.attempts is not None and used >= self.attempts:
            return self, None
        fresh = self.current is None or calm
        delay = self.initial if fresh else min(self.most, int((self.current or 0) * self.multiplier))
        return (
            ExponentialDelay(self.initial, self.most, self.multiplier, self.quiet, self.attempts, used + 1, delay, at),
            delay,
        )


def restart_strategy(configuration: Configuration, *, checkpointing: bool) -> RestartStrategy:
    """The strategy a configuration asks for; without one, exponential delay when checkpoints are on, else none."""
    kind = configuration.get(options.RESTART_STRATEGY)
    get = configuration.get
    match kind:
        case "fixed-delay" | "fixeddelay":
            return FixedDelay(
                get(options.FIXED_DELAY_ATTEMPTS),
                get(options.FIXED_DELAY_DELAY).to_milliseconds(),
            )
        case "failure-rate" | "failurerate":
            return FailureRate(
                get(options.FAILURE_RATE_MAX),
                get(options.FAILURE_RATE_INTERVAL).to_milliseconds(),
                get(options.FAILURE_RATE_DELAY).to_milliseconds(),
            )
        case "exponential-delay" | "exponentialdelay":
            return _exponential(configuration)
        case "none" | "off" | "disable":
            return NoRestart()
    return _exponential(configuration) if checkpointing else NoRestart()


def _exponential(configuration: Configuration) -> ExponentialDelay:
    get = configuration.get
    return ExponentialDelay(
        get(options.EXPONENTIAL_INITIAL).to_milliseconds(),
        get(options.EXPONENTIAL_MAX).to_milliseconds(),
        get(options.EXPONENTIAL_MULTIPLIER),
        get(options.EXPONENTIAL_RESET).to_milliseconds(),
        get(options.EXPONENTIAL_ATTEMPTS),
    )
