"""Restart strategies decide whether a failed job restarts, and after which delay.

Promises: Flink's four strategies with its defaults, as pure functions of the failures so far.
Does not know: jobs, clocks; times are arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from millstream import options
from millstream.config.configuration import Configuration


class RestartStrategy(Protocol):
    """Decides after each failure; an immutable value, so each decision also returns the next strategy."""

    def after_failure(self, at: int) -> tuple[RestartStrategy, int | None]:
        """Return the next strategy and the delay before the restart, or None for no restart. Times are milliseconds."""


@dataclass(frozen=True)
class NoRestart:
    """A failed job is not restarted."""

    def after_failure(self, at: int) -> tuple[RestartStrategy, int | None]:
        """Do not restart."""
        return self, None


@dataclass(frozen=True)
class FixedDelay:
    """A limited number of restarts with the same delay."""

    attempts: int
    delay: int
    used: int = 0

    def after_failure(self, at: int) -> tuple[RestartStrategy, int | None]:
        """Restart while attempts are left."""
        if self.used >= self.attempts:
            return self, None
        return FixedDelay(self.attempts, self.delay, self.used + 1), self.delay


@dataclass(frozen=True)
class FailureRate:
    """Restarts until there are too many failures in an interval."""

    most: int
    interval: int
    delay: int
    failures: tuple[int, ...] = ()

    def after_failure(self, at: int) -> tuple[RestartStrategy, int | None]:
        """Restart, unless the last `most` failures and this one are in one interval."""
        recent = tuple(time for time in self.failures if at - time <= self.interval)
        if len(recent) >= self.most:
            return self, None
        return FailureRate(self.most, self.interval, self.delay, (*recent, at)), self.delay


@dataclass(frozen=True)
class ExponentialDelay:
    """Delays that grow from failure to failure, and are reset after `quiet` milliseconds without one."""

    initial: int
    most: int
    multiplier: float
    quiet: int
    attempts: int | None = None
    used: int = 0
    current: int | None = None
    last: int | None = None

    def after_failure(self, at: int) -> tuple[RestartStrategy, int | None]:
        """Restart after the next delay, while attempts are left."""
        is_reset = self.last is not None and at - self.last >= self.quiet + (self.current or 0)
        used = 0 if is_reset else self.used
        if self.attempts is not None and used >= self.attempts:
            return self, None
        delay = (
            self.initial
            if self.current is None or is_reset
            else min(self.most, int((self.current or 0) * self.multiplier))
        )
        return (
            ExponentialDelay(self.initial, self.most, self.multiplier, self.quiet, self.attempts, used + 1, delay, at),
            delay,
        )


def restart_strategy(configuration: Configuration, *, checkpointing: bool) -> RestartStrategy:
    """Return the configured strategy; by default exponential delay if checkpoints are on, else none."""
    get = configuration.get
    match get(options.RESTART_STRATEGY):
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
