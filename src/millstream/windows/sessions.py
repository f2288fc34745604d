"""Session windows: records of a key that are closer together than a gap.

Promises: a session is as long as its records make it, however they arrive; a gap that touches merges.
Does not know: how state of merged windows is moved."""

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
    """A record gave its session a gap that is not positive."""

    def __init__(self, gap: object, element: object) -> None:
        self.gap, self.element = gap, element
        super().__init__(f"the gap of a session must be positive, not {gap!r}, for the record {element!r}")


class SessionAssigner(MergingWindowAssigner[Any, TimeWindow]):
    """Windows that grow while records arrive within the gap."""

    def merge_windows(self, windows: Iterable[TimeWindow], callback: MergeCallback[TimeWindow]) -> None:
        """Windows that overlap or touch become one."""
        TimeWindow.merge_windows(windows, callback)


@dataclass(frozen=True)
class EventTimeSessionWindows(EventTimeAssigner[Any], SessionAssigner):
    """Sessions by event time, with one gap for all."""

    session_gap: int

    def __post_init__(self) -> None:
        check_gap(type(self), self.session_gap)

    @staticmethod
    def with_gap(size: Time | Duration | timedelta) -> EventTimeSessionWindows:
        """The assigner with that gap."""
        return EventTimeSessionWindows(millis(size))

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicEventTimeSessionWindows:
        """An assigner with a gap of each record's own."""
        return DynamicEventTimeSessionWindows(extractor)

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        """A session of this record alone."""
        start = self.time_of(timestamp, context)
        return [TimeWindow(start, start + self.session_gap)]


@dataclass(frozen=True)
class ProcessingTimeSessionWindows(ProcessingTimeAssigner[Any], SessionAssigner):
    """Sessions by processing time, with one gap for all."""

    session_gap: int

    def __post_init__(self) -> None:
        check_gap(type(self), self.session_gap)

    @staticmethod
    def with_gap(size: Time | Duration | timedelta) -> ProcessingTimeSessionWindows:
        """The assigner with that gap."""
        return ProcessingTimeSessionWindows(millis(size))

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicProcessingTimeSessionWindows:
        """An assigner with a gap of each record's own."""
        return DynamicProcessingTimeSessionWindows(extractor)

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        """A session of this record alone."""
        start = self.time_of(timestamp, context)
        return [TimeWindow(start, start + self.session_gap)]


@dataclass(frozen=True)
class DynamicEventTimeSessionWindows(EventTimeAssigner[Any], SessionAssigner):
    """Sessions by event time, with a gap of each record's own."""

    session_window_time_gap_extractor: GapExtractor

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicEventTimeSessionWindows:
        """The assigner with that extractor."""
        return DynamicEventTimeSessionWindows(extractor)

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        """A session of this record alone."""
        start = self.time_of(timestamp, context)
        return [TimeWindow(start, start + gap_of(self.session_window_time_gap_extractor, element))]


@dataclass(frozen=True)
class DynamicProcessingTimeSessionWindows(ProcessingTimeAssigner[Any], SessionAssigner):
    """Sessions by processing time, with a gap of each record's own."""

    session_window_time_gap_extractor: GapExtractor

    @staticmethod
    def with_dynamic_gap(extractor: GapExtractor) -> DynamicProcessingTimeSessionWindows:
        """The assigner with that extractor."""
        return DynamicProcessingTimeSessionWindows(extractor)

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        """A session of this record alone."""
        start = self.time_of(timestamp, context)
        return [TimeWindow(start, start + gap_of(self.session_window_time_gap_extractor, element))]


def check_gap(assigner: type, gap: int) -> None:
    """Refuse a gap that is not positive."""
    if gap <= 0:
        raise InvalidWindowAssigner(assigner, "0 < gap", gap=gap)


def gap_of(extractor: GapExtractor, element: Any) -> int:
    """The gap that a record asks for, in milliseconds."""
    gap = extractor.extract(element) if isinstance(extractor, SessionWindowTimeGapExtractor) else extractor(element)
    if gap <= 0:
        raise InvalidSessionGap(gap, element)
    return gap
