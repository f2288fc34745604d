"""Triggers: when the content of a window is emitted, and when it is purged.

Promises: built-in triggers use the same context as user-defined triggers. They hold no state of their own, so they are
frozen, comparable and picklable.
Does not know: the window operator and allowed lateness."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar, cast

from millstream.errors import UserError
from millstream.state_descriptors.descriptors import (
    ReducingState,
    ReducingStateDescriptor,
    State,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from millstream.types.factory import TypeInformation, Types
from millstream.windows.window import CountWindow, GlobalWindow, TimeWindow, Window

T = TypeVar("T")
W = TypeVar("W")


class InvalidTrigger(UserError, ValueError):
    """A trigger has a parameter that is not positive."""

    def __init__(self, trigger: type, parameter: str, value: object) -> None:
        self.trigger, self.parameter, self.value = trigger, parameter, value
        super().__init__(f"{trigger.__name__}: {parameter} must be greater than zero, not {value}")


class CannotMerge(UserError, TypeError):
    """A trigger that cannot merge is used with merging windows."""

    def __init__(self, trigger: object) -> None:
        self.trigger = trigger
        super().__init__(
            f"{trigger} cannot be used with merging windows",
            hint="override can_merge and on_merge, or use another trigger",
        )


class TriggerResult(Enum):
    """The decision of a trigger: fire the window (emit its result), purge it (delete its content), both or neither.

    Example:
        >>> TriggerResult.FIRE_AND_PURGE.is_fire(), TriggerResult.FIRE_AND_PURGE.is_purge()
        (True, True)

    """

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Return whether the window emits its result."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Return whether the content of the window is deleted."""
        return self.value[1]


class TriggerContext(ABC):
    """Time, timers and state of a trigger for the current key and window.

    Example:
        >>> class AtEndOfHour(EventTimeTrigger):
        ...     def on_element(self, element, timestamp, window, ctx):
        ...         ctx.register_event_time_timer(timestamp - timestamp % 3_600_000 + 3_600_000)
        ...         return super().on_element(element, timestamp, window, ctx)

    """

    @abstractmethod
    def get_current_processing_time(self) -> int:
        """Return the processing time in milliseconds."""

    @abstractmethod
    def get_metric_group(self) -> Any:
        """Return the `MetricGroup` in which the trigger registers its metrics."""

    @abstractmethod
    def get_current_watermark(self) -> int:
        """Return the current watermark of the operator."""

    @abstractmethod
    def register_processing_time_timer(self, time: int) -> None:
        """Register a timer: `on_processing_time` is called when the processing time reaches `time`.

        Args:
            time: Milliseconds since the epoch.

        """

    @abstractmethod
    def register_event_time_timer(self, time: int) -> None:
        """Register a timer: `on_event_time` is called when the watermark reaches `time`.

        Args:
            time: Milliseconds since the epoch.

        """

    @abstractmethod
    def delete_processing_time_timer(self, time: int) -> None:
        """Delete the processing-time timer for `time`.

        Args:
            time: Milliseconds since the epoch.

        """

    @abstractmethod
    def delete_event_time_timer(self, time: int) -> None:
        """Delete the event-time timer for `time`.

        Args:
            time: Milliseconds since the epoch.

        """

    @abstractmethod
    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
        """Return state that is scoped to the current key and window.

        Args:
            state_descriptor: The descriptor of the state.

        """


class OnMergeContext(TriggerContext):
    """The trigger context of a window into which others were merged.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream.state import ReducingStateDescriptor
        >>> class CountOfSession(CountTrigger):
        ...     def on_merge(self, window, ctx):
        ...         ctx.merge_partitioned_state(ReducingStateDescriptor("count", lambda a, b: a + b, Types.LONG()))

    """

    @abstractmethod
    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        """Merge the state of the merged windows into that of the resulting window.

        Args:
            state_descriptor: The descriptor of a state that can be merged: list, reducing or aggregating.

        """


class Trigger(ABC, Generic[T, W]):
    """Decides when a window emits its result and when its content is deleted.

    A trigger is called for each record and each of its timers. Its state and timers are scoped to key and window.

    Example:
        >>> class OnMarker(Trigger):
        ...     def on_element(self, element, timestamp, window, ctx):
        ...         return TriggerResult.FIRE_AND_PURGE if element == "end" else TriggerResult.CONTINUE
        ...     def on_processing_time(self, time, window, ctx):
        ...         return TriggerResult.CONTINUE
        ...     def on_event_time(self, time, window, ctx):
        ...         return TriggerResult.CONTINUE
        ...     def on_merge(self, window, ctx):
        ...         pass
        ...     def clear(self, window, ctx):
        ...         pass
        >>> OnMarker().on_element("end", 12_000, None, None)
        <TriggerResult.FIRE_AND_PURGE: (True, True)>

    """

    TriggerContext: TypeAlias = TriggerContext
    OnMergeContext: TypeAlias = OnMergeContext

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: TriggerContext) -> TriggerResult:
        """React to a record that was added to the window.

        Args:
            element: The record.
            timestamp: Its timestamp.
            window: The window.
            ctx: Time, timers and state.

        """

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: TriggerContext) -> TriggerResult:
        """React to a processing-time timer that the trigger has registered.

        Args:
            time: The time of the timer.
            window: The window for which it was registered.
            ctx: Timers and state of the key and the window.

        """

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: TriggerContext) -> TriggerResult:
        """React to an event-time timer that the trigger has registered.

        Args:
            time: The time of the timer.
            window: The window for which it was registered.
            ctx: Timers and state of the key and the window.

        """

    def can_merge(self) -> bool:
        """Return whether the trigger supports merging windows; then it must implement `on_merge`."""
        return False

    @abstractmethod
    def on_merge(self, window: W, ctx: OnMergeContext) -> None:
        """React to windows that were merged into `window`.

        Args:
            window: The resulting window.
            ctx: Timers of the key and the window, and the state of all merged windows.

        """

    @abstractmethod
    def clear(self, window: W, ctx: TriggerContext) -> None:
        """Delete the timers and the state of a window that is removed.

        Args:
            window: The window.
            ctx: Timers and state of the key and the window.

        """


@dataclass(frozen=True)
class EventTimeTrigger(Trigger[Any, TimeWindow]):
    """Fires when the watermark passes the end of the window, and for each late record that is still allowed.

    Example:
        >>> EventTimeTrigger.create().on_event_time(9_999, TimeWindow(0, 10_000), None)
        <TriggerResult.FIRE: (True, False)>

    """

    @staticmethod
    def create() -> EventTimeTrigger:
        """Create the trigger."""
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Register a timer for the end of the window, or fire if the watermark has passed it."""
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Fire at the end of the window."""
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: TimeWindow, ctx: OnMergeContext) -> None:
        """Register a timer for the end of the merged window."""
        # No timer is needed if the watermark has passed the end: then on_element fires the window.
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: TriggerContext) -> None:
        """Delete the timer."""
        ctx.delete_event_time_timer(window.max_timestamp())


@dataclass(frozen=True)
class ProcessingTimeTrigger(Trigger[Any, TimeWindow]):
    """Fires when the processing time passes the end of the window.

    Example:
        >>> ProcessingTimeTrigger.create().on_processing_time(9_999, TimeWindow(0, 10_000), None)
        <TriggerResult.FIRE: (True, False)>

    """

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """Create the trigger."""
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Register a timer for the end of the window."""
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Fire."""
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: TimeWindow, ctx: OnMergeContext) -> None:
        """Register a timer for the end of the merged window."""
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: TriggerContext) -> None:
        """Delete the timer."""
        ctx.delete_processing_time_timer(window.max_timestamp())


@dataclass(frozen=True)
class PurgingTrigger(Trigger[Any, Any]):
    """Wraps another trigger and purges the window whenever that trigger fires.

    Example:
        >>> trigger = PurgingTrigger.of(EventTimeTrigger.create())
        >>> trigger.on_event_time(9_999, TimeWindow(0, 10_000), None)
        <TriggerResult.FIRE_AND_PURGE: (True, True)>

    """

    nested_trigger: Trigger[Any, Any]

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        """Create the trigger.

        Args:
            nested_trigger: The trigger that decides when the window fires.

        """
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        """Call the nested trigger; purge if it fires."""
        return _purge_if_fired(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        """Call the nested trigger; purge if it fires."""
        return _purge_if_fired(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        """Call the nested trigger; purge if it fires."""
        return _purge_if_fired(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        """Return whether the nested trigger supports merging windows."""
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Window, ctx: OnMergeContext) -> None:
        """Call the nested trigger."""
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Window, ctx: TriggerContext) -> None:
        """Call the nested trigger."""
        self.nested_trigger.clear(window, ctx)


COUNT = ReducingStateDescriptor("count", operator.add, Types.LONG())


@dataclass(frozen=True)
class CountTrigger(Trigger[Any, Any]):
    """Fires after every `window_size` records of a window.

    Example:
        >>> CountTrigger.of(3).window_size
        3

    """

    window_size: int

    def __post_init__(self) -> None:
        if self.window_size <= 0:
            raise InvalidTrigger(type(self), "window_size", self.window_size)

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """Create the trigger.

        Args:
            window_size: The number of records.

        Raises:
            InvalidTrigger: If it is not positive.

        """
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: CountWindow, ctx: TriggerContext) -> TriggerResult:
        """Count the record; fire and reset the count when it reaches the size."""
        count = cast("ReducingState[int]", ctx.get_partitioned_state(COUNT))
        count.add(1)
        if (count.get() or 0) < self.window_size:
            return TriggerResult.CONTINUE
        count.clear()
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: CountWindow, ctx: TriggerContext) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: CountWindow, ctx: TriggerContext) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: CountWindow, ctx: OnMergeContext) -> None:
        """Add the counts of the merged windows."""
        ctx.merge_partitioned_state(COUNT)

    def clear(self, window: CountWindow, ctx: TriggerContext) -> None:
        """Delete the count."""
        ctx.get_partitioned_state(COUNT).clear()


@dataclass(frozen=True)
class NeverTrigger(Trigger[Any, GlobalWindow]):
    """Never fires; the default trigger of global windows.

    Example:
        >>> NeverTrigger().on_element("a", 12_000, None, None)
        <TriggerResult.CONTINUE: (False, False)>

    """

    def on_element(self, element: Any, timestamp: int, window: GlobalWindow, ctx: TriggerContext) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: GlobalWindow, ctx: TriggerContext) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: GlobalWindow, ctx: TriggerContext) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE

    def on_merge(self, window: GlobalWindow, ctx: OnMergeContext) -> None:
        """Do nothing."""

    def clear(self, window: GlobalWindow, ctx: TriggerContext) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class EndOfStreamTrigger(Trigger[Any, GlobalWindow]):
    """Fires a global window once, at the end of the input.

    Example:
        >>> from millstream.datastream.window import GlobalWindows
        >>> GlobalWindows.create_with_end_of_stream_trigger().get_default_trigger(None)
        EndOfStreamTrigger()

    """

    def on_element(self, element: Any, timestamp: int, window: GlobalWindow, ctx: TriggerContext) -> TriggerResult:
        """Register a timer for the final watermark."""
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: GlobalWindow, ctx: TriggerContext) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: GlobalWindow, ctx: TriggerContext) -> TriggerResult:
        """Fire at the final watermark."""
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window: GlobalWindow, ctx: OnMergeContext) -> None:
        """Do nothing."""

    def clear(self, window: GlobalWindow, ctx: TriggerContext) -> None:
        """Delete the timer."""
        ctx.delete_event_time_timer(window.max_timestamp())


@dataclass(frozen=True)
class DeltaTrigger(Trigger[Any, Any]):
    """Fires when a record differs by more than `threshold` from the record at which the window last fired.

    Example:
        >>> trigger = DeltaTrigger.of(10, lambda last, current: current["km"] - last["km"])
        >>> trigger.threshold
        10

    """

    threshold: float
    delta_function: Callable[[Any, Any], float]
    type_info: TypeInformation | None = None

    @staticmethod
    def of(
        threshold: float, delta_function: Callable[[Any, Any], float], type_info: TypeInformation | None = None
    ) -> DeltaTrigger:
        """Create the trigger.

        Args:
            threshold: The difference that must be exceeded.
            delta_function: A function of the older and the newer record that returns their difference.
            type_info: The type of the records, for the state of the trigger; by default they are pickled.

        """
        return DeltaTrigger(threshold, delta_function, type_info)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Compare the record with the stored one; fire and store it if the difference exceeds the threshold."""
        stored = self._get_last_element(ctx)
        stored_element = stored.value()
        if stored_element is None:
            stored.update(element)
            return TriggerResult.CONTINUE
        if self.delta_function(stored_element, element) <= self.threshold:
            return TriggerResult.CONTINUE
        stored.update(element)
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: OnMergeContext) -> None:
        """Raise an error: it is not known which of the stored records is the last.

        Raises:
            CannotMerge: Always.

        """
        raise CannotMerge(self)

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        """Delete the stored record."""
        self._get_last_element(ctx).clear()

    @cached_property
    def last_element(self) -> ValueStateDescriptor:
        """Return the descriptor of the record at which the window last fired."""
        return ValueStateDescriptor("last-element", self.type_info)

    def _get_last_element(self, ctx: TriggerContext) -> ValueState[Any]:
        return cast("ValueState[Any]", ctx.get_partitioned_state(self.last_element))


def _purge_if_fired(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result
