"""Contexts of window assigners, triggers and window functions.

Promises: Flink's contexts; what they show belongs to the key and window that the operator's scope is at.
Does not know: how windows are kept, when anyone is called."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from millstream import functions
from millstream.runtime.context import KeyedStates, KeyedTimerService, StreamingRuntimeContext
from millstream.runtime.metrics import UserMetrics
from millstream.runtime.operator import OperatorContext
from millstream.state.views import Scope
from millstream.state_descriptors import descriptors as state
from millstream.windows.assigners import WindowAssignerContext
from millstream.windows.triggers import OnMergeContext


class Windowing(Protocol):
    """The operator, as contexts see it; `scope` is of the current key, in the namespace of the current window."""

    context: OperatorContext
    scope: Scope
    timers: KeyedTimerService

    @property
    def watermark(self) -> int:
        """The last watermark seen."""


class AssignerContext(WindowAssignerContext):
    """What assigners see."""

    def __init__(self, operator: Windowing) -> None:
        self._operator = operator
        self._runtime = StreamingRuntimeContext(operator.context, keyed=True)

    def get_current_processing_time(self) -> int:
        """The processing time of the epoch."""
        return self._operator.context.now

    def get_runtime_context(self) -> functions.RuntimeContext:
        """The runtime context of the operator."""
        return self._runtime


class FiringContext(OnMergeContext):
    """What triggers see; the operator moves the scope to the key and window first."""

    def __init__(self, operator: Windowing) -> None:
        self._operator = operator
        self._states = KeyedStates(operator.context, operator.scope, scoped=True, prefix="trigger/")
        self.merged: Collection[Any] = ()

    def get_current_processing_time(self) -> int:
        """The processing time of the epoch."""
        return self._operator.context.now

    def get_metric_group(self) -> Any:
        """The group to count in."""
        return UserMetrics(self._operator.context.metrics)

    def get_current_watermark(self) -> int:
        """The operator's watermark."""
        return self._operator.watermark

    def register_processing_time_timer(self, time: int) -> None:
        """Have the trigger called at a processing time."""
        self._operator.timers.register_processing_time_timer(time)

    def register_event_time_timer(self, time: int) -> None:
        """Have the trigger called at an event time."""
        self._operator.timers.register_event_time_timer(time)

    def delete_processing_time_timer(self, time: int) -> None:
        """Take a processing-time timer back."""
        self._operator.timers.delete_processing_time_timer(time)

    def delete_event_time_timer(self, time: int) -> None:
        """Take an event-time timer back."""
        self._operator.timers.delete_event_time_timer(time)

    def get_partitioned_state(self, state_descriptor: state.StateDescriptor) -> Any:
        """State of this key and window."""
        return self._states._view(state_descriptor)

    def merge_partitioned_state(self, state_descriptor: state.StateDescriptor) -> None:
        """Fold the state of the merged windows into that of the result."""
        self._states._view(state_descriptor).merge_namespaces(self._operator.scope.namespace, self.merged)


class WindowCallContext:
    """The context of ProcessWindowFunction and ProcessAllWindowFunction."""

    def __init__(self, operator: Windowing) -> None:
        self._operator = operator
        self._window_states = KeyedStates(operator.context, operator.scope, scoped=True, prefix="window/")
        self._global_states = KeyedStates(operator.context, operator.context.scope, prefix="global/")
        self.current: Any = None

    def window(self) -> Any:
        """The window at hand."""
        return self.current

    def current_processing_time(self) -> int:
        """The processing time of the epoch."""
        return self._operator.context.now

    def current_watermark(self) -> int:
        """The operator's watermark."""
        return self._operator.watermark

    def window_state(self) -> KeyedStates:
        """State of this key in this window."""
        return self._window_states

    def global_state(self) -> KeyedStates:
        """State of this key over all windows."""
        return self._global_states
