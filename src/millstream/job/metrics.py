"""What a user function can measure: counters, gauges, meters and distributions, in groups.

Promises: PyFlink's names and signatures.
Does not know: where figures go; the runtime subclasses these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable


class Metric(ABC):  # noqa: B024 - each kind has methods of its own
    """Something that is measured."""


class Counter(Metric):
    """A number that goes up and down."""

    @abstractmethod
    def inc(self, n: int = 1) -> None:
        """Add n."""

    @abstractmethod
    def dec(self, n: int = 1) -> None:
        """Subtract n."""

    @abstractmethod
    def get_count(self) -> int:
        """The count so far, as this subtask knows it."""


class Meter(Metric):
    """How often something happens."""

    @abstractmethod
    def mark_event(self, value: int = 1) -> None:
        """It happened so many times."""

    @abstractmethod
    def get_count(self) -> int:
        """How many times it happened, as this subtask knows it."""


class Distribution(Metric):
    """Count, sum, least and greatest of integers."""

    @abstractmethod
    def update(self, value: int) -> None:
        """Take one value in."""


class MetricGroup(ABC):
    """Metrics under a common name."""

    @abstractmethod
    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """A group in this one; with `extra`, a group of a key and in it one of its value."""

    @abstractmethod
    def counter(self, name: str) -> Counter:
        """A counter."""

    @abstractmethod
    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        """A value that is asked for when metrics are reported."""

    @abstractmethod
    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """A meter whose rate is taken over a time span."""

    @abstractmethod
    def distribution(self, name: str) -> Distribution:
        """A distribution."""
