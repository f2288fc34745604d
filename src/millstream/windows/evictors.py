"""Evictors: which records of a window are removed before or after its function is called.

Promises: an evictor removes records from the given list in place and keeps the order of the others.
Does not know: how the window stores its records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeAlias, TypeVar

from millstream.times import Duration, Time, millis

T = TypeVar("T")
W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class TimestampedValue(Generic[T]):
    """A record of a window with its timestamp, or None if it has no timestamp.

    Example:
        >>> TimestampedValue("a", 12_000)
        TimestampedValue(value='a', timestamp=12000)

    """

    value: T
    timestamp: int | None = None


class EvictorContext(ABC):
    """Times and metrics for an evictor.

    Example:
        >>> class UpToWatermark(Evictor):
        ...     def evict_before(self, elements, size, window, ctx):
        ...         elements[:] = [element for element in elements if element.timestamp <= ctx.get_current_watermark()]
        ...     def evict_after(self, elements, size, window, ctx):
        ...         pass

    """

    @abstractmethod
    def get_current_processing_time(self) -> int:
        """Return the processing time in milliseconds."""

    @abstractmethod
    def get_metric_group(self) -> Any:
        """Return the `MetricGroup` in which the evictor registers its metrics."""

    @abstractmethod
    def get_current_watermark(self) -> int:
        """Return the current watermark of the operator."""


class Evictor(ABC, Generic[T, W]):
    """Removes records of a window, before or after the window function is called.

    Example:
        >>> class WithoutZeros(Evictor):
        ...     def evict_before(self, elements, size, window, ctx):
        ...         elements[:] = [element for element in elements if element.value != 0]
        ...     def evict_after(self, elements, size, window, ctx):
        ...         pass
        >>> elements = [TimestampedValue(0), TimestampedValue(5)]
        >>> WithoutZeros().evict_before(elements, 2, None, None)
        >>> elements
        [TimestampedValue(value=5, timestamp=None)]

    """

    EvictorContext: TypeAlias = EvictorContext

    @abstractmethod
    def evict_before(self, elements: list[TimestampedValue[T]], size: int, window: W, ctx: EvictorContext) -> None:
        """Remove records before the window function is called.

        Args:
            elements: The records in the order of arrival; remove from this list in place.
            size: The number of records.
            window: The window.
            ctx: Times and metrics.

        """

    @abstractmethod
    def evict_after(self, elements: list[TimestampedValue[T]], size: int, window: W, ctx: EvictorContext) -> None:
        """Remove records after the window function was called.

        Args:
            elements: The records in the order of arrival; remove from this list in place.
            size: The number of records.
            window: The window.
            ctx: Times and metrics.

        """


class BuiltInEvictor(Evictor[Any, Any]):
    """An evictor that removes the same records before or after the window function, depending on `do_evict_after`."""

    do_evict_after: bool

    @abstractmethod
    def evict(self, elements: list[TimestampedValue[Any]]) -> None:
        """Remove records."""

    def evict_before(self, elements: list[TimestampedValue[Any]], size: int, window: Any, ctx: EvictorContext) -> None:
        """Remove records if `do_evict_after` is False."""
        if not self.do_evict_after:
            self.evict(elements)

    def evict_after(self, elements: list[TimestampedValue[Any]], size: int, window: Any, ctx: EvictorContext) -> None:
        """Remove records if `do_evict_after` is True."""
        if self.do_evict_after:
            self.evict(elements)


@dataclass(frozen=True)
class CountEvictor(BuiltInEvictor):
    """Keeps the last `max_count` records.

    Example:
        >>> elements = [TimestampedValue(1), TimestampedValue(2), TimestampedValue(3)]
        >>> CountEvictor.of(2).evict(elements)
        >>> [element.value for element in elements]
        [2, 3]

    """

    max_count: int
    do_evict_after: bool = False

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """Create the evictor.

        Args:
            max_count: The number of records to keep.
            do_evict_after: Whether records are removed after the window function instead of before it.

        """
        return CountEvictor(max_count, do_evict_after)

    def evict(self, elements: list[TimestampedValue[Any]]) -> None:
        """Remove the first records beyond the maximum."""
        del elements[: max(0, len(elements) - self.max_count)]


@dataclass(frozen=True)
class TimeEvictor(BuiltInEvictor):
    """Keeps the records whose timestamp is less than `window_size` milliseconds before the latest timestamp.

    Example:
        >>> from millstream.common import Time
        >>> elements = [TimestampedValue("old", 1_000), TimestampedValue("new", 9_000)]
        >>> TimeEvictor.of(Time.seconds(5)).evict(elements)
        >>> [element.value for element in elements]
        ['new']

    """

    window_size: int
    do_evict_after: bool = False

    @staticmethod
    def of(window_size: Time | Duration | timedelta, do_evict_after: bool = False) -> TimeEvictor:
        """Create the evictor.

        Args:
            window_size: The maximum age of a record compared with the latest one.
            do_evict_after: Whether records are removed after the window function instead of before it.

        """
        return TimeEvictor(millis(window_size), do_evict_after)

    def evict(self, elements: list[TimestampedValue[Any]]) -> None:
        """Remove older records; without timestamps, none are removed."""
        times = [element.timestamp for element in elements if element.timestamp is not None]
        if times:
            cutoff = max(times) - self.window_size
            elements[:] = [e for e in elements if e.timestamp is not None and e.timestamp > cutoff]


@dataclass(frozen=True)
class DeltaEvictor(BuiltInEvictor):
    """Keeps the records that differ from the last record by less than `threshold`.

    Example:
        >>> elements = [TimestampedValue(1), TimestampedValue(8), TimestampedValue(10)]
        >>> DeltaEvictor.of(5, lambda element, last: abs(last - element)).evict(elements)
        >>> [element.value for element in elements]
        [8, 10]

    """

    threshold: float
    delta_function: Callable[[Any, Any], float]
    do_evict_after: bool = False

    @staticmethod
    def of(threshold: float, delta_function: Callable[[Any, Any], float], do_evict_after: bool = False) -> DeltaEvictor:
        """Create the evictor.

        Args:
            threshold: The difference from which on records are removed.
            delta_function: A function of a record and the last record that returns their difference.
            do_evict_after: Whether records are removed after the window function instead of before it.

        """
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def evict(self, elements: list[TimestampedValue[Any]]) -> None:
        """Remove the records that differ too much."""
        if elements:
            last = elements[-1].value
            elements[:] = [e for e in elements if self.delta_function(e.value, last) < self.threshold]
