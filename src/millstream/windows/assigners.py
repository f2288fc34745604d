"""Window assigners: which windows a record belongs to.

Promises: an assigner is frozen, comparable and picklable; its fields (in milliseconds) are what vectorised
operators read, its `assign_windows` is what the general one calls, for built-in and user-written ones alike.
Does not know: when a window fires or where its content is kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeAlias, TypeVar

from millstream.errors import UserError
from millstream.event_time.watermarks import MIN_WATERMARK
from millstream.functions import RuntimeContext
from millstream.serialization.serializer import TypeSerializer
from millstream.state_descriptors.descriptors import ValueStateDescriptor
from millstream.times import Duration, Time, millis
from millstream.types.factory import Types
from millstream.windows.serializers import CountWindowSerializer, GlobalWindowSerializer, TimeWindowSerializer
from millstream.windows.triggers import (
    CountTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    Trigger,
)
from millstream.windows.window import CountWindow, GlobalWindow, MergeCallback, TimeWindow

T = TypeVar("T")
W = TypeVar("W")


class InvalidWindowAssigner(UserError, ValueError):
    """A window assigner was given lengths that do not fit."""

    def __init__(self, assigner: type, rule: str, **given: int) -> None:
        self.assigner, self.rule, self.given = assigner, rule, given
        values = ", ".join(f"{name}={value}" for name, value in given.items())
        super().__init__(f"{assigner.__name__} must satisfy {rule}, not {values}")


class NoTimestamp(UserError):
    """An event-time window was asked for by a record that has no event time."""

    hint = "call assign_timestamps_and_watermarks before the window, or use processing-time windows"

    def __init__(self, assigner: object) -> None:
        self.assigner = assigner
        super().__init__(f"a record without a timestamp reached {assigner}")


class WindowAssignerContext(ABC):
    """What an assigner may ask."""

    @abstractmethod
    def get_current_processing_time(self) -> int:
        """Processing time, in milliseconds."""

    @abstractmethod
    def get_runtime_context(self) -> RuntimeContext:
        """The runtime context, for state of the current key."""


class WindowAssigner(ABC, Generic[T, W]):
    """Gives each record its windows."""

    WindowAssignerContext: TypeAlias = WindowAssignerContext

    @abstractmethod
    def assign_windows(self, element: T, timestamp: int, context: WindowAssignerContext) -> Collection[W]:
        """The windows of a record."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """The trigger where none is set."""

    @abstractmethod
    def get_window_serializer(self) -> TypeSerializer[W]:
        """How a window becomes bytes."""

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows end by the watermark; else by processing time, or never."""


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows may become one, such as sessions."""

    MergeCallback: TypeAlias = MergeCallback

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergeCallback[W]) -> None:
        """Tell `callback` which windows become one."""


class SessionWindowTimeGapExtractor(ABC):
    """Takes the gap of a session out of a record."""

    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap after this record, in milliseconds; positive."""


class EventTimeAssigner(WindowAssigner[T, TimeWindow]):
    """Time windows that end by the watermark."""

    def get_default_trigger(self, env: Any) -> Trigger[T, TimeWindow]:
        """Fires at the end of the window."""
        return EventTimeTrigger()

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        """That of `TimeWindow`."""
        return TimeWindowSerializer()

    def is_event_time(self) -> bool:
        """They do."""
        return True

    def time_of(self, timestamp: int | None, context: WindowAssignerContext) -> int:
        """The record's timestamp, which must be there."""
        if timestamp is None or timestamp == MIN_WATERMARK:
            raise NoTimestamp(self)
        return timestamp


class ProcessingTimeAssigner(WindowAssigner[T, TimeWindow]):
    """Time windows that end by processing time."""

    def get_default_trigger(self, env: Any) -> Trigger[T, TimeWindow]:
        """Fires at the end of the window."""
        return ProcessingTimeTrigger()

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        """That of `TimeWindow`."""
        return TimeWindowSerializer()

    def is_event_time(self) -> bool:
        """They do not."""
        return False

    def time_of(self, timestamp: int | None, context: WindowAssignerContext) -> int:
        """Processing time."""
        return context.get_current_processing_time()


@dataclass(frozen=True)
class TumblingEventTimeWindows(EventTimeAssigner[Any]):
    """Windows of `size`, one after the other, aligned to the epoch plus `offset`."""

    size: int
    offset: int

    def __post_init__(self) -> None:
        check_tumbling(type(self), self.size, self.offset)

    @staticmethod
    def of(
        size: Time | Duration | timedelta, offset: Time | Duration | timedelta | None = None
    ) -> TumblingEventTimeWindows:
        """The assigner with that size and offset."""
        return TumblingEventTimeWindows(millis(size), 0 if offset is None else millis(offset))

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        """The one window that holds the timestamp."""
        return tumbling(self.time_of(timestamp, context), self.size, self.offset)


@dataclass(frozen=True)
class TumblingProcessingTimeWindows(ProcessingTimeAssigner[Any]):
    """Windows of `size`, one after the other, aligned to the epoch plus `offset`."""

    size: int
    offset: int

    def __post_init__(self) -> None:
        check_tumbling(type(self), self.size, self.offset)

    @staticmethod
    def of(
        size: Time | Duration | timedelta, offset: Time | Duration | timedelta | None = None
    ) -> TumblingProcessingTimeWindows:
        """The assigner with that size and offset."""
        return TumblingProcessingTimeWindows(millis(size), 0 if offset is None else millis(offset))

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        """The one window that holds the present."""
        return tumbling(self.time_of(timestamp, context), self.size, self.offset)


@dataclass(frozen=True)
class SlidingEventTimeWindows(EventTimeAssigner[Any]):
    """Windows of `size`, one starting every `slide`, aligned to the epoch plus `offset`."""

    size: int
    slide: int
    offset: int

    def __post_init__(self) -> None:
        check_sliding(type(self), self.size, self.slide, self.offset)

    @staticmethod
    def of(
        size: Time | Duration | timedelta,
        slide: Time | Duration | timedelta,
        offset: Time | Duration | timedelta | None = None,
    ) -> SlidingEventTimeWindows:
        """The assigner with that size, slide and offset."""
        return SlidingEventTimeWindows(millis(size), millis(slide), 0 if offset is None else millis(offset))

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        """The windows that hold the timestamp, the latest first."""
        return sliding(self.time_of(timestamp, context), self.size, self.slide, self.offset)


@dataclass(frozen=True)
class SlidingProcessingTimeWindows(ProcessingTimeAssigner[Any]):
    """Windows of `size`, one starting every `slide`, aligned to the epoch plus `offset`."""

    size: int
    slide: int
    offset: int

    def __post_init__(self) -> None:
        check_sliding(type(self), self.size, self.slide, self.offset)

    @staticmethod
    def of(
        size: Time | Duration | timedelta,
        slide: Time | Duration | timedelta,
        offset: Time | Duration | timedelta | None = None,
    ) -> SlidingProcessingTimeWindows:
        """The assigner with that size, slide and offset."""
        return SlidingProcessingTimeWindows(millis(size), millis(slide), 0 if offset is None else millis(offset))

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        """The windows that hold the present, the latest first."""
        return sliding(self.time_of(timestamp, context), self.size, self.slide, self.offset)


@dataclass(frozen=True)
class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """One window for everything. It never ends by itself: it needs a trigger."""

    ends_with_stream: bool = False

    @staticmethod
    def create() -> GlobalWindows:
        """The assigner; its default trigger never fires."""
        return GlobalWindows()

    @staticmethod
    def create_with_end_of_stream_trigger() -> GlobalWindows:
        """The assigner; its default trigger fires when the input has ended."""
        return GlobalWindows(ends_with_stream=True)

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[GlobalWindow]:
        """The global window."""
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any) -> Trigger[Any, GlobalWindow]:
        """Never fires, or at the end of the input."""
        return EndOfStreamTrigger() if self.ends_with_stream else NeverTrigger()

    def get_window_serializer(self) -> TypeSerializer[GlobalWindow]:
        """That of `GlobalWindow`."""
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        """It does not end by time."""
        return False


class CountAssigner(WindowAssigner[Any, CountWindow]):
    """Windows that end by the number of records of a key."""

    window_size: int

    def get_default_trigger(self, env: Any) -> Trigger[Any, CountWindow]:
        """Fires when the window is full."""
        return CountTrigger(self.window_size)

    def get_window_serializer(self) -> TypeSerializer[CountWindow]:
        """That of `CountWindow`."""
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        """They do not end by time."""
        return False


TUMBLE_COUNT = ValueStateDescriptor("tumble-count-assigner", Types.LONG())
SLIDE_COUNT = ValueStateDescriptor("slide-count-assigner", Types.LONG())


@dataclass(frozen=True)
class CountTumblingWindowAssigner(CountAssigner):
    """Every `window_size` records of a key are a window."""

    window_size: int

    def __post_init__(self) -> None:
        if self.window_size <= 0:
            raise InvalidWindowAssigner(type(self), "0 < window_size", window_size=self.window_size)

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """The assigner with that size."""
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[CountWindow]:
        """The window of the record's number."""
        return [CountWindow(count_up(context, TUMBLE_COUNT) // self.window_size)]


@dataclass(frozen=True)
class CountSlidingWindowAssigner(CountAssigner):
    """Windows of `window_size` records of a key, one starting every `window_slide` records."""

    window_size: int
    window_slide: int

    def __post_init__(self) -> None:
        if self.window_size <= 0 or self.window_slide <= 0:
            given = {"window_size": self.window_size, "window_slide": self.window_slide}
            raise InvalidWindowAssigner(type(self), "0 < window_size and 0 < window_slide", **given)

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """The assigner with that size and slide."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[CountWindow]:
        """The windows that hold the record's number, the latest first."""
        number = count_up(context, SLIDE_COUNT)
        last = number // self.window_slide
        first = max(0, (number - self.window_size) // self.window_slide + 1)
        return [CountWindow(index) for index in range(last, first - 1, -1)]


def tumbling(time: int, size: int, offset: int) -> list[TimeWindow]:
    """The tumbling window that holds `time`."""
    start = TimeWindow.get_window_start_with_offset(time, offset, size)
    return [TimeWindow(start, start + size)]


def sliding(time: int, size: int, slide: int, offset: int) -> list[TimeWindow]:
    """The sliding windows that hold `time`, the latest first."""
    last = TimeWindow.get_window_start_with_offset(time, offset, slide)
    return [TimeWindow(start, start + size) for start in range(last, time - size, -slide)]


def check_tumbling(assigner: type, size: int, offset: int) -> None:
    """Refuse an offset that is not smaller than the size."""
    if abs(offset) >= size:
        raise InvalidWindowAssigner(assigner, "abs(offset) < size", size=size, offset=offset)


def check_sliding(assigner: type, size: int, slide: int, offset: int) -> None:
    """Refuse an offset that is not smaller than the slide, and a window without length."""
    if abs(offset) >= slide or size <= 0:
        rule = "abs(offset) < slide and 0 < size"
        raise InvalidWindowAssigner(assigner, rule, size=size, slide=slide, offset=offset)


def count_up(context: WindowAssignerContext, descriptor: ValueStateDescriptor) -> int:
    """The number of this record of the current key, from 0."""
    counter = context.get_runtime_context().get_state(descriptor)
    number = int(counter.value() or 0)
    counter.update(number + 1)
    return number
