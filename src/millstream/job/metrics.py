"""Metrics of user functions: counters, gauges, meters and distributions, in groups.

Promises: PyFlink's names and signatures.
Does not know: where metrics are reported; the runtime subclasses these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable


class Metric(ABC):  # noqa: B024 - its subclasses are abstract
    """The base class of metrics.

    Example:
        >>> issubclass(Counter, Metric)
        True

    """


class Counter(Metric):
    """A number that can be increased and decreased.

    Example:
        >>> from millstream.datastream import MapFunction
        >>> class CountNegative(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.negative = runtime_context.get_metrics_group().counter("negative")
        ...     def map(self, value):
        ...         if value < 0:
        ...             self.negative.inc()
        ...         return value

    """

    @abstractmethod
    def inc(self, n: int = 1) -> None:
        """Add n.

        Args:
            n: The number.

        """

    @abstractmethod
    def dec(self, n: int = 1) -> None:
        """Subtract n.

        Args:
            n: The number.

        """

    @abstractmethod
    def get_count(self) -> int:
        """Return the count so far, in this subtask."""


class Meter(Metric):
    """Measures how often an event occurs.

    Example:
        >>> from millstream.datastream import MapFunction
        >>> class Metered(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.records = runtime_context.get_metrics_group().meter("records")
        ...     def map(self, value):
        ...         self.records.mark_event()
        ...         return value

    """

    @abstractmethod
    def mark_event(self, value: int = 1) -> None:
        """Count events.

        Args:
            value: How many events happened.

        """

    @abstractmethod
    def get_count(self) -> int:
        """Return the number of events so far, in this subtask."""


class Distribution(Metric):
    """Count, sum, minimum and maximum of integers.

    Example:
        >>> from millstream.datastream import MapFunction
        >>> class WithSizes(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.sizes = runtime_context.get_metrics_group().distribution("sizes")
        ...     def map(self, value):
        ...         self.sizes.update(len(value))
        ...         return value

    """

    @abstractmethod
    def update(self, value: int) -> None:
        """Add a value.

        Args:
            value: The value.

        """


class MetricGroup(ABC):
    """A named group of metrics.

    Example:
        >>> from millstream.datastream import MapFunction
        >>> from millstream.testing import harness_for
        >>> class CountRecords(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.records = runtime_context.get_metrics_group().add_group("orders").counter("records")
        ...     def map(self, value):
        ...         self.records.inc()
        ...         return value
        >>> with harness_for(CountRecords()) as harness:
        ...     harness.process_all(["a", "b"])
        ...     harness.counter("user.orders.records")
        2

    """

    @abstractmethod
    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """Return a group inside this one; with `extra`, a key group `name` with a value group `extra` inside it.

        Args:
            name: The name of the group, or its key.
            extra: The value of a key group; None for a simple group.

        """

    @abstractmethod
    def counter(self, name: str) -> Counter:
        """Register a counter.

        Args:
            name: The name, unique in the group.

        """

    @abstractmethod
    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        """Register a function whose value is read when metrics are reported.

        Args:
            name: The name, unique in the group.
            obj: The function; it takes no arguments.

        """

    @abstractmethod
    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """Register a meter, whose rate is computed over a time span.

        Args:
            name: The name, unique in the group.
            time_span_in_seconds: The time span.

        """

    @abstractmethod
    def distribution(self, name: str) -> Distribution:
        """Register a distribution.

        Args:
            name: The name, unique in the group.

        """
