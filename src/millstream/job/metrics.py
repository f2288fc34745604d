"""Metrics of user functions: counters, gauges, meters and distributions, in groups.

Promises: PyFlink's names and signatures.
Does not know: where metrics are reported; the runtime subclasses these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable


class Metric(ABC):  # noqa: B024 - its subclasses are abstract
    """The base class of metrics."""


class Counter(Metric):
    """A number that can be increased and decreased."""

    @abstractmethod
    def inc(self, n: int = 1) -> None:
        """Add n."""

    @abstractmethod
    def dec(self, n: int = 1) -> None:
        """Subtract n."""

    @abstractmethod
    def get_count(self) -> int:
        """Return the count so far, in this subtask."""


class Meter(Metric):
    """Measures how often an event occurs."""

    @abstractmethod
    def mark_event(self, value: int = 1) -> None:
        """Count events."""

    @abstractmethod
    def get_count(self) -> int:
        """Return the number of events so far, in this subtask."""


class Distribution(Metric):
    """Count, sum, minimum and maximum of integers."""

    @abstractmethod
    def update(self, value: int) -> None:
        """Add a value."""


class MetricGroup(ABC):
    """A named group of metrics."""

    @abstractmethod
    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """Return a group inside this one; with `extra`, a key group `name` with a value group `extra` inside it."""

    @abstractmethod
    def counter(self, name: str) -> Counter:
        """Register a counter."""

    @abstractmethod
    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        """Register a function whose value is read when metrics are reported."""

    @abstractmethod
    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """Register a meter, whose rate is computed over a time span."""

    @abstractmethod
    def distribution(self, name: str) -> Distribution:
        """Register a distribution."""
