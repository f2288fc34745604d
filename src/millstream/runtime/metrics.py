"""Counters of one operator in one epoch, and the metric group user functions see.

Promises: what is counted in an epoch counts once, with the attempt that was accepted.
Does not know: reporters, registries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Metrics:
    """Named counts; `take` gives and resets them."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.gauges: dict[str, Callable[[], int]] = {}
        self.distributions: dict[str, dict[str, int]] = {}

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a counter."""
        self.counts[name] = self.counts.get(name, 0) + amount

    def take(self) -> dict[str, Any]:
        """What was counted since the last call."""
        taken: dict[str, Any] = dict(self.counts)
        self.counts.clear()
        for name, gauge in self.gauges.items():
            taken[f"gauge.{name}"] = gauge()
        for name, values in self.distributions.items():
            taken[f"distribution.{name}"] = dict(values)
        return taken

    def forget(self) -> None:
        """What was counted belongs to an attempt that failed."""
        self.counts.clear()


class Counter:
    """A counter of a user function."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._metrics, self._name, self._total = metrics, name, 0

    def inc(self, n: int = 1) -> None:
        """Add n."""
        self._total += n
        self._metrics.count(self._name, n)

    def dec(self, n: int = 1) -> None:
        """Subtract n."""
        self.inc(-n)

    def get_count(self) -> int:
        """What this worker has counted so far."""
        return self._total


class Meter(Counter):
    """Counts events; the rate is derived where metrics are reported."""

    def mark_event(self, value: int = 1) -> None:
        """Count events."""
        self.inc(value)


class Distribution:
    """Count, sum, least and greatest of the values given."""

    def __init__(self, values: dict[str, int]) -> None:
        self._values = values

    def update(self, value: int) -> None:
        """Take one value in."""
        values = self._values
        values["count"] = values.get("count", 0) + 1
        values["sum"] = values.get("sum", 0) + value
        values["min"] = min(values.get("min", value), value)
        values["max"] = max(values.get("max", value), value)


class UserMetrics:
    """The metric group of a user function: names are prefixed by their groups."""

    def __init__(self, metrics: Metrics, prefix: str = "user.") -> None:
        self._metrics, self._prefix = metrics, prefix

    def add_group(self, name: str, extra: str | None = None) -> UserMetrics:
        """A group inside this one."""
        return UserMetrics(self._metrics, f"{self._prefix}{name}." + (f"{extra}." if extra else ""))

    def counter(self, name: str) -> Any:
        """A counter."""
        return Counter(self._metrics, self._prefix + name)

    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        """A value read at the end of every epoch."""
        self._metrics.gauges[self._prefix + name] = obj

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Any:
        """A meter."""
        return Meter(self._metrics, self._prefix + name)

    def distribution(self, name: str) -> Any:
        """A distribution."""
        return Distribution(self._metrics.distributions.setdefault(self._prefix + name, {}))
