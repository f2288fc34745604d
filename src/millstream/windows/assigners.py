"""Window assigners: which windows a record belongs to.

Promises: an assigner is frozen, comparable and picklable. Vectorized operators read the fields of built-in assigners
(in milliseconds); the general window operator calls `assign_windows`, of built-in and of user-defined assigners.
Does not know: when a window fires or where its content is stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
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
    """A window assigner has lengths that are not valid."""

    def __init__(self, assigner: type, rule: str, **lengths: int) -> None:
        self.assigner, self.rule, self.lengths = assigner, rule, lengths
        values = ", ".join(f"{name}={value}" for name, value in lengths.items())
        super().__init__(f"{assigner.__name__} must satisfy {rule}, not {values}")


class NoTimestamp(UserError):
    """A record without a timestamp reached an event-time window."""

    hint = "call assign_timestamps_and_watermarks before the window, or use processing-time windows"

    def __init__(self, assigner: object) -> None:
        self.assigner = assigner
        super().__init__(f"a record without a timestamp reached the event-time window {assigner}")


class WindowAssignerContext(ABC):
    """What an assigner can read beside the record.

    Example:
        >>> class ArrivalHours(WindowAssigner):
        ...     def assign_windows(self, element, timestamp, context):
        ...         now = context.get_current_processing_time()
        ...         return assign_tumbling_windows(now, 3_600_000, 0)

    """

    @abstractmethod
    def get_current_processing_time(self) -> int:
        """Return the processing time in milliseconds."""

    @abstractmethod
    def get_runtime_context(self) -> RuntimeContext:
        """Return the runtime context, which gives access to state of the current key."""


class WindowAssigner(ABC, Generic[T, W]):
    """Assigns each record to zero, one or more windows.

    Example:
        >>> from millstream.windows.serializers import TimeWindowSerializer
        >>> from millstream.windows.triggers import EventTimeTrigger
        >>> class Days(WindowAssigner):
        ...     def assign_windows(self, element, timestamp, context):
        ...         start = timestamp - timestamp % 86_400_000
        ...         return [TimeWindow(start, start + 86_400_000)]
        ...     def get_default_trigger(self, env):
        ...         return EventTimeTrigger.create()
        ...     def get_window_serializer(self):
        ...         return TimeWindowSerializer()
        ...     def is_event_time(self):
        ...         return True
        >>> Days().assign_windows("order", 90_000_000, None)
        [TimeWindow(start=86400000, end=172800000)]

    """

    WindowAssignerContext: TypeAlias = WindowAssignerContext

    @abstractmethod
    def assign_windows(self, element: T, timestamp: int, context: WindowAssignerContext) -> Collection[W]:
        """Return the windows of a record.

        Args:
            element: The record.
            timestamp: Its timestamp in milliseconds.
            context: The processing time and the runtime context.

        """

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """Return the trigger that is used if none is set.

        Args:
            env: Ignored, as in Flink.

        """

    @abstractmethod
    def get_window_serializer(self) -> TypeSerializer[W]:
        """Return the serializer of the windows."""

    @abstractmethod
    def is_event_time(self) -> bool:
        """Return whether windows end by event time, so that the watermark determines which records are late."""

    def __repr__(self) -> str:
        declared = getattr(self, "__dataclass_fields__", None)  # an assigner of a program may be no dataclass
        if declared is None:
            return super().__repr__()
        values = (str(getattr(self, name)) for name, field in declared.items() if field.repr)
        return f"{type(self).__name__}({', '.join(values)})"


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows can be merged, such as session windows.

    Example:
        >>> from millstream.datastream.window import EventTimeSessionWindows
        >>> from millstream.common import Time
        >>> isinstance(EventTimeSessionWindows.with_gap(Time.minutes(30)), MergingWindowAssigner)
        True

    """

    MergeCallback: TypeAlias = MergeCallback

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergeCallback[W]) -> None:
        """Determine which windows are merged, and call `callback` for each group of them.

        Args:
            windows: The windows of one key.
            callback: Gets the windows of a group, and the window that replaces them.

        """


class SessionWindowTimeGapExtractor(ABC):
    """Extracts the gap of a session from a record.

    Example:
        >>> class GapOfDevice(SessionWindowTimeGapExtractor):
        ...     def extract(self, element):
        ...         return 60_000 if element["battery"] else 10_000
        >>> GapOfDevice().extract({"battery": True})
        60000

    """

    @abstractmethod
    def extract(self, element: Any) -> int:
        """Return the gap after this record in milliseconds; it must be positive.

        Args:
            element: The record.

        """


class EventTimeAssigner(WindowAssigner[T, TimeWindow]):
    """The base class of assigners of event-time windows."""

    def get_default_trigger(self, env: Any) -> Trigger[T, TimeWindow]:
        """Return a trigger that fires when the watermark passes the end of the window."""
        return EventTimeTrigger()

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        """Return the serializer of `TimeWindow`."""
        return TimeWindowSerializer()

    def is_event_time(self) -> bool:
        """Return True."""
        return True

    def require_time(self, timestamp: int | None, context: WindowAssignerContext) -> int:
        """Return the timestamp of the record.

        Raises:
            NoTimestamp: If the record has none.

        """
        if timestamp is None or timestamp == MIN_WATERMARK:
            raise NoTimestamp(self)
        return timestamp


class ProcessingTimeAssigner(WindowAssigner[T, TimeWindow]):
    """The base class of assigners of processing-time windows."""

    def get_default_trigger(self, env: Any) -> Trigger[T, TimeWindow]:
        """Return a trigger that fires when the processing time passes the end of the window."""
        return ProcessingTimeTrigger()

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        """Return the serializer of `TimeWindow`."""
        return TimeWindowSerializer()

    def is_event_time(self) -> bool:
        """Return False."""
        return False

    def require_time(self, timestamp: int | None, context: WindowAssignerContext) -> int:
        """Return the processing time."""
        return context.get_current_processing_time()


@dataclass(frozen=True, repr=False)
class TumblingEventTimeWindows(EventTimeAssigner[Any]):
    """Assign records to tumbling windows by event time: windows of a fixed size that do not overlap.

    Windows are aligned to 1970-01-01 00:00 UTC plus `offset`.

    Example:
        >>> from millstream.common import Time
        >>> TumblingEventTimeWindows.of(Time.seconds(10)).assign_windows("a", 12_000, None)
        [TimeWindow(start=10000, end=20000)]

    """

    size: int
    offset: int

    def __post_init__(self) -> None:
        check_tumbling(type(self), self.size, self.offset)

    @staticmethod
    def of(
        size: Time | Duration | timedelta, offset: Time | Duration | timedelta | None = None
    ) -> TumblingEventTimeWindows:
        """Create the assigner.

        Args:
            size: The size of the windows.
            offset: The offset of window starts; its absolute value is less than the size.

        Raises:
            InvalidWindowAssigner: If the lengths do not satisfy these rules.

        """
        return TumblingEventTimeWindows(millis(size), 0 if offset is None else millis(offset))

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        """Return the window that contains the timestamp."""
        return assign_tumbling_windows(self.require_time(timestamp, context), self.size, self.offset)


@dataclass(frozen=True, repr=False)
class TumblingProcessingTimeWindows(ProcessingTimeAssigner[Any]):
    """Assign records to tumbling windows by processing time: windows of a fixed size that do not overlap.

    Windows are aligned to 1970-01-01 00:00 UTC plus `offset`.

    Example:
        >>> from millstream.common import Time
        >>> TumblingProcessingTimeWindows.of(Time.minutes(1)).size
        60000

    """

    size: int
    offset: int

    def __post_init__(self) -> None:
        check_tumbling(type(self), self.size, self.offset)

    @staticmethod
    def of(
        size: Time | Duration | timedelta, offset: Time | Duration | timedelta | None = None
    ) -> TumblingProcessingTimeWindows:
        """Create the assigner.

        Args:
            size: The size of the windows.
            offset: The offset of window starts; its absolute value is less than the size.

        Raises:
            InvalidWindowAssigner: If the lengths do not satisfy these rules.

        """
        return TumblingProcessingTimeWindows(millis(size), 0 if offset is None else millis(offset))

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        """Return the window that contains the processing time."""
        return assign_tumbling_windows(self.require_time(timestamp, context), self.size, self.offset)


@dataclass(frozen=True, repr=False)
class SlidingEventTimeWindows(EventTimeAssigner[Any]):
    """Assign records to sliding windows by event time: windows of a fixed size that start at every `slide`.

    Windows are aligned to 1970-01-01 00:00 UTC plus `offset`.

    Example:
        >>> from millstream.common import Time
        >>> windows = SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5)).assign_windows("a", 12_000, None)
        >>> sorted(windows)
        [TimeWindow(start=5000, end=15000), TimeWindow(start=10000, end=20000)]

    """

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
        """Create the assigner.

        Args:
            size: The size of the windows.
            slide: The interval between the starts of two windows.
            offset: The offset of window starts; its absolute value is less than the slide.

        Raises:
            InvalidWindowAssigner: If the lengths do not satisfy these rules.

        """
        return SlidingEventTimeWindows(millis(size), millis(slide), 0 if offset is None else millis(offset))

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        """Return the windows that contain the timestamp, the latest first."""
        return assign_sliding_windows(self.require_time(timestamp, context), self.size, self.slide, self.offset)


@dataclass(frozen=True, repr=False)
class SlidingProcessingTimeWindows(ProcessingTimeAssigner[Any]):
    """Assign records to sliding windows by processing time: windows of a fixed size that start at every `slide`.

    Windows are aligned to 1970-01-01 00:00 UTC plus `offset`.

    Example:
        >>> from millstream.common import Time
        >>> SlidingProcessingTimeWindows.of(Time.minutes(1), Time.seconds(10)).slide
        10000

    """

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
        """Create the assigner.

        Args:
            size: The size of the windows.
            slide: The interval between the starts of two windows.
            offset: The offset of window starts; its absolute value is less than the slide.

        Raises:
            InvalidWindowAssigner: If the lengths do not satisfy these rules.

        """
        return SlidingProcessingTimeWindows(millis(size), millis(slide), 0 if offset is None else millis(offset))

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[TimeWindow]:
        """Return the windows that contain the processing time, the latest first."""
        return assign_sliding_windows(self.require_time(timestamp, context), self.size, self.slide, self.offset)


@dataclass(frozen=True, repr=False)
class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """Assign all records of a key to the same global window, which never ends; it needs a trigger.

    Example:
        >>> GlobalWindows.create().assign_windows("a", 12_000, None)
        [GlobalWindow]

    """

    ends_with_stream: bool = field(default=False, repr=False)

    @staticmethod
    def create() -> GlobalWindows:
        """Create an assigner whose default trigger never fires."""
        return GlobalWindows()

    @staticmethod
    def create_with_end_of_stream_trigger() -> GlobalWindows:
        """Create an assigner whose default trigger fires at the end of the input."""
        return GlobalWindows(ends_with_stream=True)

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[GlobalWindow]:
        """Return the global window."""
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any) -> Trigger[Any, GlobalWindow]:
        """Return a trigger that never fires, or that fires at the end of the input."""
        return EndOfStreamTrigger() if self.ends_with_stream else NeverTrigger()

    def get_window_serializer(self) -> TypeSerializer[GlobalWindow]:
        """Return the serializer of `GlobalWindow`."""
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        """Return False: the window does not end by time."""
        return False


class CountAssigner(WindowAssigner[Any, CountWindow]):
    """The base class of assigners of count windows, which end after a number of records of a key."""

    window_size: int

    def get_default_trigger(self, env: Any) -> Trigger[Any, CountWindow]:
        """Return a trigger that fires when the window is full."""
        return CountTrigger(self.window_size)

    def get_window_serializer(self) -> TypeSerializer[CountWindow]:
        """Return the serializer of `CountWindow`."""
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        """Return False: the windows do not end by time."""
        return False


TUMBLE_COUNT = ValueStateDescriptor("tumble-count-assigner", Types.LONG())
SLIDE_COUNT = ValueStateDescriptor("slide-count-assigner", Types.LONG())


@dataclass(frozen=True, repr=False)
class CountTumblingWindowAssigner(CountAssigner):
    """Assign every `window_size` records of a key to a window.

    Example:
        >>> CountTumblingWindowAssigner.of(100).window_size
        100

    """

    window_size: int

    def __post_init__(self) -> None:
        if self.window_size <= 0:
            raise InvalidWindowAssigner(type(self), "0 < window_size", window_size=self.window_size)

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """Create the assigner.

        Args:
            window_size: The number of records of a window.

        Raises:
            InvalidWindowAssigner: If the size is not positive.

        """
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[CountWindow]:
        """Return the window of the record by its number in the key."""
        return [CountWindow(count_record(context, TUMBLE_COUNT) // self.window_size)]


@dataclass(frozen=True, repr=False)
class CountSlidingWindowAssigner(CountAssigner):
    """Assign records of a key to windows of `window_size` records, which start at every `window_slide` records.

    Example:
        >>> CountSlidingWindowAssigner.of(100, 10).window_slide
        10

    """

    window_size: int
    window_slide: int

    def __post_init__(self) -> None:
        if self.window_size <= 0 or self.window_slide <= 0:
            lengths = {"window_size": self.window_size, "window_slide": self.window_slide}
            raise InvalidWindowAssigner(type(self), "0 < window_size and 0 < window_slide", **lengths)

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """Create the assigner.

        Args:
            window_size: The number of records of a window.
            window_slide: The number of records between the starts of two windows.

        Raises:
            InvalidWindowAssigner: If one of them is not positive.

        """
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[CountWindow]:
        """Return the windows that contain the record by its number in the key, the latest first."""
        number = count_record(context, SLIDE_COUNT)
        last = number // self.window_slide
        first = max(0, (number - self.window_size) // self.window_slide + 1)
        return [CountWindow(index) for index in range(last, first - 1, -1)]


def assign_tumbling_windows(time: int, size: int, offset: int) -> list[TimeWindow]:
    """Return the tumbling window that contains `time`."""
    start = TimeWindow.get_window_start_with_offset(time, offset, size)
    return [TimeWindow(start, start + size)]


def assign_sliding_windows(time: int, size: int, slide: int, offset: int) -> list[TimeWindow]:
    """Return the sliding windows that contain `time`, the latest first."""
    last = TimeWindow.get_window_start_with_offset(time, offset, slide)
    return [TimeWindow(start, start + size) for start in range(last, time - size, -slide)]


def check_tumbling(assigner: type, size: int, offset: int) -> None:
    """Raise if the offset is not less than the size."""
    if abs(offset) >= size:
        raise InvalidWindowAssigner(assigner, "abs(offset) < size", size=size, offset=offset)


def check_sliding(assigner: type, size: int, slide: int, offset: int) -> None:
    """Raise if the offset is not less than the slide, or the size is not positive."""
    if abs(offset) >= slide or size <= 0:
        rule = "abs(offset) < slide and 0 < size"
        raise InvalidWindowAssigner(assigner, rule, size=size, slide=slide, offset=offset)


def count_record(context: WindowAssignerContext, descriptor: ValueStateDescriptor) -> int:
    """Count a record of the current key and return its number, from 0."""
    counter = context.get_runtime_context().get_state(descriptor)
    number = int(counter.value() or 0)
    counter.update(number + 1)
    return number
