"""Evictors: which records of a window are left out before or after it is evaluated.

Promises: an evictor removes from the list it is given, in place, and keeps the order of the rest.
Does not know: how the window keeps its records."""

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
    """A record of a window with its event time, or None."""

    value: T
    timestamp: int | None = None


class EvictorContext(ABC):
    """Time as an evictor sees it."""

    @abstractmethod
    def get_current_processing_time(self) -> int:
        """Processing time, in milliseconds."""

    @abstractmethod
    def get_metric_group(self) -> Any:
        """The `MetricGroup` in which the evictor registers its metrics."""

    @abstractmethod
    def get_current_watermark(self) -> int:
        """The watermark the operator has seen."""


class Evictor(ABC, Generic[T, W]):
    """Removes records of a window. `elements` is a list in order of arrival; remove from it in place."""

    EvictorContext: TypeAlias = EvictorContext

    @abstractmethod
    def evict_before(self, elements: list[TimestampedValue[T]], size: int, window: W, ctx: EvictorContext) -> None:
        """Remove before the window is evaluated."""

    @abstractmethod
    def evict_after(self, elements: list[TimestampedValue[T]], size: int, window: W, ctx: EvictorContext) -> None:
        """Remove after the window was evaluated."""


class BuiltInEvictor(Evictor[Any, Any]):
    """An evictor that does the same before or after, as `do_evict_after` says."""

    do_evict_after: bool

    @abstractmethod
    def evict(self, elements: list[TimestampedValue[Any]]) -> None:
        """Remove."""

    def evict_before(self, elements: list[TimestampedValue[Any]], size: int, window: Any, ctx: EvictorContext) -> None:
        """Remove, unless that is to be done after."""
        if not self.do_evict_after:
            self.evict(elements)

    def evict_after(self, elements: list[TimestampedValue[Any]], size: int, window: Any, ctx: EvictorContext) -> None:
        """Remove, where that is to be done after."""
        if self.do_evict_after:
            self.evict(elements)


@dataclass(frozen=True)
class CountEvictor(BuiltInEvictor):
    """Keeps the last `max_count` records."""

    max_count: int
    do_evict_after: bool = False

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """The evictor with that count."""
        return CountEvictor(max_count, do_evict_after)

    def evict(self, elements: list[TimestampedValue[Any]]) -> None:
        """Remove the first ones."""
        del elements[: max(0, len(elements) - self.max_count)]


@dataclass(frozen=True)
class TimeEvictor(BuiltInEvictor):
    """Keeps the records of the last `window_size` milliseconds before the newest one."""

    window_size: int
    do_evict_after: bool = False

    @staticmethod
    def of(window_size: Time | Duration | timedelta, do_evict_after: bool = False) -> TimeEvictor:
        """The evictor with that length of time."""
        return TimeEvictor(millis(window_size), do_evict_after)

    def evict(self, elements: list[TimestampedValue[Any]]) -> None:
        """Remove what is older; nothing where records have no timestamps."""
        times = [element.timestamp for element in elements if element.timestamp is not None]
        if times:
            cutoff = max(times) - self.window_size
            elements[:] = [e for e in elements if e.timestamp is not None and e.timestamp > cutoff]


@dataclass(frozen=True)
class DeltaEvictor(BuiltInEvictor):
    """Keeps the records that differ from the last one by less than `threshold`."""

    threshold: float
    delta_function: Callable[[Any, Any], float]
    do_evict_after: bool = False

    @staticmethod
    def of(threshold: float, delta_function: Callable[[Any, Any], float], do_evict_after: bool = False) -> DeltaEvictor:
        """The evictor; `delta_function(record, last)` says how far apart two records are."""
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def evict(self, elements: list[TimestampedValue[Any]]) -> None:
        """Remove what differs too much."""
        if elements:
            last = elements[-1].value
            elements[:] = [e for e in elements if self.delta_function(e.value, last) < self.threshold]
