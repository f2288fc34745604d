"""Triggers: when the content of a window is evaluated, and when it is dropped.

Promises: the built-in triggers act through the same context as user-written ones and hold no state of their own,
so they are frozen, comparable and picklable.
Does not know: the window operator, allowed lateness."""

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
    """A trigger was given a number that makes no sense."""

    def __init__(self, trigger: type, parameter: str, value: object) -> None:
        self.trigger, self.parameter, self.value = trigger, parameter, value
        super().__init__(f"{trigger.__name__}: {parameter} must be greater than zero, not {value}")


class CannotMerge(UserError):
    """Windows merge, but their trigger cannot."""

    def __init__(self, trigger: object) -> None:
        self.trigger = trigger
        super().__init__(
            f"{trigger} cannot be used with windows that merge",
            hint="override can_merge and on_merge, or choose another trigger",
        )


class TriggerResult(Enum):
    """What a trigger decides: evaluate the window, drop its content, both or neither."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Whether the window is evaluated."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Whether its content is dropped."""
        return self.value[1]


class TriggerContext(ABC):
    """Time, timers and state of one key and window."""

    @abstractmethod
    def get_current_processing_time(self) -> int:
        """Processing time, in milliseconds."""

    @abstractmethod
    def get_metric_group(self) -> Any:
        """The `MetricGroup` in which the trigger registers its metrics."""

    @abstractmethod
    def get_current_watermark(self) -> int:
        """The watermark the operator has seen."""

    @abstractmethod
    def register_processing_time_timer(self, time: int) -> None:
        """Call `on_processing_time` when processing time reaches `time`."""

    @abstractmethod
    def register_event_time_timer(self, time: int) -> None:
        """Call `on_event_time` when the watermark reaches `time`."""

    @abstractmethod
    def delete_processing_time_timer(self, time: int) -> None:
        """Forget that timer."""

    @abstractmethod
    def delete_event_time_timer(self, time: int) -> None:
        """Forget that timer."""

    @abstractmethod
    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
        """State of this key and window."""


class OnMergeContext(TriggerContext):
    """A `TriggerContext` of a window that others were merged into."""

    @abstractmethod
    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        """Fold the state of the windows merged into that of the result."""


class Trigger(ABC, Generic[T, W]):
    """Decides for each record and timer of a window."""

    TriggerContext: TypeAlias = TriggerContext
    OnMergeContext: TypeAlias = OnMergeContext

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: TriggerContext) -> TriggerResult:
        """A record was added to the window."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: TriggerContext) -> TriggerResult:
        """A processing-time timer of the trigger fires."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: TriggerContext) -> TriggerResult:
        """An event-time timer of the trigger fires."""

    def can_merge(self) -> bool:
        """Whether the trigger works with windows that merge; then it implements `on_merge`."""
        return False

    @abstractmethod
    def on_merge(self, window: W, ctx: OnMergeContext) -> None:
        """Several windows became `window`."""

    @abstractmethod
    def clear(self, window: W, ctx: TriggerContext) -> None:
        """Forget timers and state of a window that is dropped."""


@dataclass(frozen=True)
class EventTimeTrigger(Trigger[Any, TimeWindow]):
    """Fires when the watermark passes the end of the window; and at once for a late record."""

    @staticmethod
    def create() -> EventTimeTrigger:
        """The trigger."""
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Wait for the end of the window, unless it has passed."""
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Not this trigger's clock."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Fire at the end of the window."""
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """It can."""
        return True

    def on_merge(self, window: TimeWindow, ctx: OnMergeContext) -> None:
        """Wait for the end of the merged window."""
        # no timer where the watermark has passed: on_element fires such a window itself
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: TriggerContext) -> None:
        """Forget the timer."""
        ctx.delete_event_time_timer(window.max_timestamp())


@dataclass(frozen=True)
class ProcessingTimeTrigger(Trigger[Any, TimeWindow]):
    """Fires when processing time passes the end of the window."""

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """The trigger."""
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Wait for the end of the window."""
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Fire."""
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: TimeWindow, ctx: TriggerContext) -> TriggerResult:
        """Not this trigger's clock."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """It can."""
        return True

    def on_merge(self, window: TimeWindow, ctx: OnMergeContext) -> None:
        """Wait for the end of the merged window."""
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: TriggerContext) -> None:
        """Forget the timer."""
        ctx.delete_processing_time_timer(window.max_timestamp())


@dataclass(frozen=True)
class PurgingTrigger(Trigger[Any, Any]):
    """Another trigger, that also drops the content of the window whenever it fires."""

    nested_trigger: Trigger[Any, Any]

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        """The trigger around another."""
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        """As the other decides."""
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        """As the other decides."""
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        """As the other decides."""
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        """Where the other can."""
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Window, ctx: OnMergeContext) -> None:
        """As the other does."""
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Window, ctx: TriggerContext) -> None:
        """As the other does."""
        self.nested_trigger.clear(window, ctx)


COUNT = ReducingStateDescriptor("count", operator.add, Types.LONG())


@dataclass(frozen=True)
class CountTrigger(Trigger[Any, Any]):
    """Fires at every `window_size` records, and counts anew."""

    window_size: int

    def __post_init__(self) -> None:
        if self.window_size <= 0:
            raise InvalidTrigger(type(self), "window_size", self.window_size)

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """The trigger with that count."""
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: CountWindow, ctx: TriggerContext) -> TriggerResult:
        """Count, and fire when the count is reached."""
        count = cast("ReducingState[int]", ctx.get_partitioned_state(COUNT))
        count.add(1)
        if (count.get() or 0) < self.window_size:
            return TriggerResult.CONTINUE
        count.clear()
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: CountWindow, ctx: TriggerContext) -> TriggerResult:
        """Time does not matter."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: CountWindow, ctx: TriggerContext) -> TriggerResult:
        """Time does not matter."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """It can."""
        return True

    def on_merge(self, window: CountWindow, ctx: OnMergeContext) -> None:
        """Add up the counts."""
        ctx.merge_partitioned_state(COUNT)

    def clear(self, window: CountWindow, ctx: TriggerContext) -> None:
        """Forget the count."""
        ctx.get_partitioned_state(COUNT).clear()


@dataclass(frozen=True)
class NeverTrigger(Trigger[Any, GlobalWindow]):
    """Never fires: the default of a global window."""

    def on_element(self, element: Any, timestamp: int, window: GlobalWindow, ctx: TriggerContext) -> TriggerResult:
        """Never."""
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: GlobalWindow, ctx: TriggerContext) -> TriggerResult:
        """Never."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: GlobalWindow, ctx: TriggerContext) -> TriggerResult:
        """Never."""
        return TriggerResult.CONTINUE

    def on_merge(self, window: GlobalWindow, ctx: OnMergeContext) -> None:
        """Nothing to merge."""

    def clear(self, window: GlobalWindow, ctx: TriggerContext) -> None:
        """Nothing to forget."""


@dataclass(frozen=True)
class EndOfStreamTrigger(Trigger[Any, GlobalWindow]):
    """Fires a global window once, when the input has ended."""

    def on_element(self, element: Any, timestamp: int, window: GlobalWindow, ctx: TriggerContext) -> TriggerResult:
        """Wait for the final watermark."""
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: GlobalWindow, ctx: TriggerContext) -> TriggerResult:
        """Not this trigger's clock."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: GlobalWindow, ctx: TriggerContext) -> TriggerResult:
        """Fire at the final watermark."""
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window: GlobalWindow, ctx: OnMergeContext) -> None:
        """Nothing to merge."""

    def clear(self, window: GlobalWindow, ctx: TriggerContext) -> None:
        """Forget the timer."""
        ctx.delete_event_time_timer(window.max_timestamp())


@dataclass(frozen=True)
class DeltaTrigger(Trigger[Any, Any]):
    """Fires when a record differs from the one that fired last by more than `threshold`."""

    threshold: float
    delta_function: Callable[[Any, Any], float]
    type_info: TypeInformation | None = None

    @staticmethod
    def of(
        threshold: float, delta_function: Callable[[Any, Any], float], type_info: TypeInformation | None = None
    ) -> DeltaTrigger:
        """The trigger; `delta_function(older, newer)` says how far apart two records are."""
        return DeltaTrigger(threshold, delta_function, type_info)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Compare with the last one remembered."""
        last = self._last_element(ctx)
        older = last.value()
        if older is None:
            last.update(element)
            return TriggerResult.CONTINUE
        if self.delta_function(older, element) <= self.threshold:
            return TriggerResult.CONTINUE
        last.update(element)
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Time does not matter."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """Time does not matter."""
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: OnMergeContext) -> None:
        """Refused: which of two remembered records is the last is not known."""
        raise CannotMerge(self)

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        """Forget the record."""
        self._last_element(ctx).clear()

    @cached_property
    def last_element(self) -> ValueStateDescriptor:
        """Where the record that fired last is remembered."""
        return ValueStateDescriptor("last-element", self.type_info)

    def _last_element(self, ctx: TriggerContext) -> ValueState[Any]:
        return cast("ValueState[Any]", ctx.get_partitioned_state(self.last_element))


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result
