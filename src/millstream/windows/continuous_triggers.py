"""Triggers that fire again and again while a window is open.

Promises: a window fires at each interval of its clock in which it has something to wait for, and at its end.
Does not know: what is done with an early result."""

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
    """Fires each time the watermark has moved by `interval` milliseconds, and at the end of the window."""

    interval: int

    def __post_init__(self) -> None:
        if self.interval <= 0:
            raise InvalidTrigger(type(self), "interval", self.interval)

    @staticmethod
    def of(interval: Time | Duration | timedelta) -> ContinuousEventTimeTrigger:
        """The trigger with that interval."""
        return ContinuousEventTimeTrigger(millis(interval))

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Wait for the end of the window and for the next multiple of the interval."""
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        fire_time = _fire_time(ctx)
        if fire_time.get() is None:
            self.register_next_fire_timestamp(timestamp - timestamp % self.interval, window, ctx, fire_time)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Not this trigger's clock."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Fire at the end, or at the time waited for; then wait for the next."""
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        fire_time = _fire_time(ctx)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        self.register_next_fire_timestamp(time, window, ctx, fire_time)
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        """It can."""
        return True

    def on_merge(self, window: TimeWindow, ctx: OnMergeContext) -> None:
        """Wait for the earliest of the times waited for."""
        ctx.merge_partitioned_state(FIRE_TIME)
        earliest = _fire_time(ctx).get()
        if earliest is not None:
            ctx.register_event_time_timer(earliest)

    def clear(self, window: TimeWindow, ctx: TriggerContext) -> None:
        """Forget the time waited for."""
        fire_time = _fire_time(ctx)
        waiting_for = fire_time.get()
        if waiting_for is not None:
            ctx.delete_event_time_timer(waiting_for)
            fire_time.clear()

    def register_next_fire_timestamp(
        self, time: int, window: TimeWindow, ctx: TriggerContext, fire_timestamp_state: ReducingState[int]
    ) -> None:
        """Wait for `time` plus the interval, or the end of the window where that is earlier."""
        upcoming = min(time + self.interval, window.max_timestamp())
        fire_timestamp_state.add(upcoming)
        ctx.register_event_time_timer(upcoming)


@dataclass(frozen=True)
class ContinuousProcessingTimeTrigger(Trigger[Any, TimeWindow]):
    """Fires at each multiple of `interval` milliseconds of processing time, and at the end of the window."""

    interval: int

    def __post_init__(self) -> None:
        if self.interval <= 0:
            raise InvalidTrigger(type(self), "interval", self.interval)

    @staticmethod
    def of(interval: Time | Duration | timedelta) -> ContinuousProcessingTimeTrigger:
        """The trigger with that interval."""
        return ContinuousProcessingTimeTrigger(millis(interval))

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Wait for the next multiple of the interval."""
        fire_time = _fire_time(ctx)
        if fire_time.get() is None:
            now = ctx.get_current_processing_time()
            self.register_next_fire_timestamp(now - now % self.interval, window, ctx, fire_time)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Fire at the time waited for; then wait for the next."""
        fire_time = _fire_time(ctx)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        # past the end of the window the next time would be this very one, again and again
        if time < window.max_timestamp():
            self.register_next_fire_timestamp(time, window, ctx, fire_time)
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Not this trigger's clock."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """It can."""
        return True

    def on_merge(self, window: TimeWindow, ctx: OnMergeContext) -> None:
        """Wait for the earliest of the times waited for."""
        ctx.merge_partitioned_state(FIRE_TIME)
        earliest = _fire_time(ctx).get()
        if earliest is not None:
            ctx.register_processing_time_timer(earliest)

    def clear(self, window: TimeWindow, ctx: TriggerContext) -> None:
        """Forget the time waited for."""
        fire_time = _fire_time(ctx)
        waiting_for = fire_time.get()
        if waiting_for is not None:
            ctx.delete_processing_time_timer(waiting_for)
            fire_time.clear()

    def register_next_fire_timestamp(
        self, time: int, window: TimeWindow, ctx: TriggerContext, fire_timestamp_state: ReducingState[int]
    ) -> None:
        """Wait for `time` plus the interval, or the end of the window where that is earlier."""
        upcoming = min(time + self.interval, window.max_timestamp())
        fire_timestamp_state.add(upcoming)
        ctx.register_processing_time_timer(upcoming)


def _fire_time(ctx: TriggerContext) -> ReducingState[int]:
    return cast("ReducingState[int]", ctx.get_partitioned_state(FIRE_TIME))
