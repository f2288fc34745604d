"""Triggers that fire repeatedly while a window is open.

Promises: a window fires at each interval of its time domain for which a timer is registered, and at its end.
Does not know: what is done with early results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from millstream.state_descriptors.descriptors import ReducingState, ReducingStateDescriptor
from millstream.times import Duration, Time, millis
from millstream.types.factory import Types
from millstream.windows.triggers import InvalidTrigger, OnMergeContext, Trigger, TriggerContext, TriggerResult
from millstream.windows.window import TimeWindow

FIRE_TIME = ReducingStateDescriptor("fire-time", min, Types.LONG())


@dataclass(frozen=True)
class ContinuousEventTimeTrigger(Trigger[Any, TimeWindow]):
    """Fires each time the watermark has advanced by an interval, and at the end of the window.

    Example:
        >>> from millstream.common import Time
        >>> ContinuousEventTimeTrigger.of(Time.minutes(5)).interval
        300000

    """

    interval: int

    def __post_init__(self) -> None:
        if self.interval <= 0:
            raise InvalidTrigger(type(self), "interval", self.interval)

    @staticmethod
    def of(interval: Time | Duration | timedelta) -> ContinuousEventTimeTrigger:
        """Create the trigger.

        Args:
            interval: The interval of event time.

        Raises:
            InvalidTrigger: If it is not positive.

        """
        return ContinuousEventTimeTrigger(millis(interval))

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Register timers for the end of the window and for the next multiple of the interval."""
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        fire_time = _fire_time(ctx)
        if fire_time.get() is None:
            self.register_next_fire_timestamp(timestamp - timestamp % self.interval, window, ctx, fire_time)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Fire at the end of the window or at the registered time, then register the next time."""
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        fire_time = _fire_time(ctx)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        self.register_next_fire_timestamp(time, window, ctx, fire_time)
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: TimeWindow, ctx: OnMergeContext) -> None:
        """Register the earliest of the times of the merged windows."""
        ctx.merge_partitioned_state(FIRE_TIME)
        earliest = _fire_time(ctx).get()
        if earliest is not None:
            ctx.register_event_time_timer(earliest)

    def clear(self, window: TimeWindow, ctx: TriggerContext) -> None:
        """Delete the registered timer and its time."""
        fire_time = _fire_time(ctx)
        registered_time = fire_time.get()
        if registered_time is not None:
            ctx.delete_event_time_timer(registered_time)
            fire_time.clear()

    def register_next_fire_timestamp(
        self, time: int, window: TimeWindow, ctx: TriggerContext, fire_timestamp_state: ReducingState[int]
    ) -> None:
        """Register a timer for `time` plus the interval, but not after the end of the window.

        Args:
            time: The time of the fire before, or of the first record.
            window: The window.
            ctx: Registers the timer.
            fire_timestamp_state: Holds the time of the registered timer.

        """
        next_time = min(time + self.interval, window.max_timestamp())
        fire_timestamp_state.add(next_time)
        ctx.register_event_time_timer(next_time)


@dataclass(frozen=True)
class ContinuousProcessingTimeTrigger(Trigger[Any, TimeWindow]):
    """Fires at each multiple of an interval of processing time, and at the end of the window.

    Example:
        >>> from millstream.common import Time
        >>> ContinuousProcessingTimeTrigger.of(Time.seconds(30)).interval
        30000

    """

    interval: int

    def __post_init__(self) -> None:
        if self.interval <= 0:
            raise InvalidTrigger(type(self), "interval", self.interval)

    @staticmethod
    def of(interval: Time | Duration | timedelta) -> ContinuousProcessingTimeTrigger:
        """Create the trigger.

        Args:
            interval: The interval of processing time.

        Raises:
            InvalidTrigger: If it is not positive.

        """
        return ContinuousProcessingTimeTrigger(millis(interval))

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Register a timer for the next multiple of the interval."""
        fire_time = _fire_time(ctx)
        if fire_time.get() is None:
            now = ctx.get_current_processing_time()
            self.register_next_fire_timestamp(now - now % self.interval, window, ctx, fire_time)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Fire at the registered time, then register the next time."""
        fire_time = _fire_time(ctx)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        # At the end of the window the next time would be the same again, so none is registered.
        if time < window.max_timestamp():
            self.register_next_fire_timestamp(time, window, ctx, fire_time)
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: TimeWindow, ctx: OnMergeContext) -> None:
        """Register the earliest of the times of the merged windows."""
        ctx.merge_partitioned_state(FIRE_TIME)
        earliest = _fire_time(ctx).get()
        if earliest is not None:
            ctx.register_processing_time_timer(earliest)

    def clear(self, window: TimeWindow, ctx: TriggerContext) -> None:
        """Delete the registered timer and its time."""
        fire_time = _fire_time(ctx)
        registered_time = fire_time.get()
        if registered_time is not None:
            ctx.delete_processing_time_timer(registered_time)
            fire_time.clear()

    def register_next_fire_timestamp(
        self, time: int, window: TimeWindow, ctx: TriggerContext, fire_timestamp_state: ReducingState[int]
    ) -> None:
        """Register a timer for `time` plus the interval, but not after the end of the window.

        Args:
            time: The time of the fire before, or of the first record.
            window: The window.
            ctx: Registers the timer.
            fire_timestamp_state: Holds the time of the registered timer.

        """
        next_time = min(time + self.interval, window.max_timestamp())
        fire_timestamp_state.add(next_time)
        ctx.register_processing_time_timer(next_time)


def _fire_time(ctx: TriggerContext) -> ReducingState[int]:
    return cast("ReducingState[int]", ctx.get_partitioned_state(FIRE_TIME))
