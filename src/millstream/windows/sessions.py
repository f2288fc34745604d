"""Session windows: records of a key that are separated by less than a gap.

Promises: the sessions do not depend on the order in which records arrive. Sessions that touch are merged.
Does not know: how the state of merged windows is moved."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from millstream.errors import UserError
from millstream.times import Duration, Time, millis
from millstream.windows.assigners import (
    EventTimeAssigner,
    InvalidWindowAssigner,
    MergingWindowAssigner,
    ProcessingTimeAssigner,
    SessionWindowTimeGapExtractor,
    WindowAssignerContext,
)
from millstream.windows.window import MergeCallback, TimeWindow

GapExtractor = SessionWindowTimeGapExtractor | Callable[[Any], int]


class InvalidSessionGap(UserError, ValueError):
    """The gap that was extracted from a record is not positive."""

    def __init__(self, gap: object, element: object) -> None:
        self.gap, self.element = gap, element
        super().__init__(f"the gap of a session must be positive, not {gap!r}, for the record {element!r}")


class SessionAssigner(MergingWindowAssigner[Any, TimeWindow]):
    """The base class of assigners of session windows."""

    def merge_windows(self, windows: Iterable[TimeWindow], callback: MergeCallback[TimeWindow]) -> None:
        """Merge windows that overlap or touch."""
        TimeWindow.merge_windows(windows, callback)


@dataclass(frozen=True, repr=False)
class EventTimeSessionWindows(EventTimeAssigner[Any], SessionAssigner):
    """Assign records to session windows by event time, with a fixed gap.

    Example:
        >>> from millstream.common import Time
        >>> EventTimeSessionWindows.with_gap(Time.seconds(30)).assign_windows("a", 12_000, None)
        [TimeWindow(start=12000, end=42000)]

    """

    session_gap: int

    def __post_init__(self) -> None:
        check_gap(type(self), self.session_gap)

    @staticmethod
    def with_gap(size: Time | Duration | timedelta) -> EventTimeSessionWindows:
        """Create the assigner.

        Args:
            size: The gap: a session ends when no record has a timestamp within this time after the last one.

        Raises:
            InvalidWindowAssigner: If the gap is not positive.

        """
        return EventTimeSessionWindows(millis(size))

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicEventTimeSessionWindows:
        """Create an assigner with a gap for each record.

        Args:
            extractor: A `SessionWindowTimeGapExtractor`, or a function of the record that returns milliseconds.

        """
        return DynamicEventTimeSessionWindows(extractor)

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        """Return a session of this record only; it is merged with others later."""
        start = self.require_time(timestamp, context)
        return [TimeWindow(start, start + self.session_gap)]


@dataclass(frozen=True, repr=False)
class ProcessingTimeSessionWindows(ProcessingTimeAssigner[Any], SessionAssigner):
    """Assign records to session windows by processing time, with a fixed gap.

    Example:
        >>> from millstream.common import Time
        >>> ProcessingTimeSessionWindows.with_gap(Time.minutes(5)).session_gap
        300000

    """

    session_gap: int

    def __post_init__(self) -> None:
        check_gap(type(self), self.session_gap)

    @staticmethod
    def with_gap(size: Time | Duration | timedelta) -> ProcessingTimeSessionWindows:
        """Create the assigner.

        Args:
            size: The gap: a session ends when no record arrives within this time after the last one.

        Raises:
            InvalidWindowAssigner: If the gap is not positive.

        """
        return ProcessingTimeSessionWindows(millis(size))

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicProcessingTimeSessionWindows:
        """Create an assigner with a gap for each record.

        Args:
            extractor: A `SessionWindowTimeGapExtractor`, or a function of the record that returns milliseconds.

        """
        return DynamicProcessingTimeSessionWindows(extractor)

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        """Return a session of this record only; it is merged with others later."""
        start = self.require_time(timestamp, context)
        return [TimeWindow(start, start + self.session_gap)]


@dataclass(frozen=True, repr=False)
class DynamicEventTimeSessionWindows(EventTimeAssigner[Any], SessionAssigner):
    """Assign records to session windows by event time, with a gap for each record.

    Example:
        >>> from millstream.windows.assigners import SessionWindowTimeGapExtractor
        >>> class GapOfRecord(SessionWindowTimeGapExtractor):
        ...     def extract(self, element):
        ...         return element["gap"]
        >>> assigner = DynamicEventTimeSessionWindows.with_dynamic_gap(GapOfRecord())
        >>> assigner.assign_windows({"gap": 5_000}, 12_000, None)
        [TimeWindow(start=12000, end=17000)]

    """

    session_window_time_gap_extractor: GapExtractor

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicEventTimeSessionWindows:
        """Create the assigner.

        Args:
            extractor: A `SessionWindowTimeGapExtractor`, or a function of the record that returns milliseconds.

        """
        return DynamicEventTimeSessionWindows(extractor)

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        """Return a session of this record only; it is merged with others later."""
        start = self.require_time(timestamp, context)
        return [TimeWindow(start, start + extract_gap(self.session_window_time_gap_extractor, element))]


@dataclass(frozen=True, repr=False)
class DynamicProcessingTimeSessionWindows(ProcessingTimeAssigner[Any], SessionAssigner):
    """Assign records to session windows by processing time, with a gap for each record.

    Example:
        >>> assigner = DynamicProcessingTimeSessionWindows.with_dynamic_gap(lambda element: element["gap"])
        >>> assigner.is_event_time()
        False

    """

    session_window_time_gap_extractor: GapExtractor

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicProcessingTimeSessionWindows:
        """Create the assigner.

        Args:
            extractor: A `SessionWindowTimeGapExtractor`, or a function of the record that returns milliseconds.

        """
        return DynamicProcessingTimeSessionWindows(extractor)

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        """Return a session of this record only; it is merged with others later."""
        start = self.require_time(timestamp, context)
        return [TimeWindow(start, start + extract_gap(self.session_window_time_gap_extractor, element))]


def check_gap(assigner: type, gap: int) -> None:
    """Raise if the gap is not positive."""
    if gap <= 0:
        raise InvalidWindowAssigner(assigner, "0 < gap", gap=gap)


def extract_gap(extractor: GapExtractor, element: Any) -> int:
    """Return the gap of a record in milliseconds.

    Raises:
        InvalidSessionGap: If the gap is not positive.

    """
    gap = extractor.extract(element) if isinstance(extractor, SessionWindowTimeGapExtractor) else extractor(element)
    if gap <= 0:
        raise InvalidSessionGap(gap, element)
    return gap
