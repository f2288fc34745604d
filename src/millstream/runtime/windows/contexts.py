"""Contexts of window assigners, triggers and window functions.

Promises: Flink's contexts; time, timers and state are those of the key and window of the operator's scope.
Does not know: how windows are stored, when functions are called."""

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


class WindowingOperator(Protocol):
    """What contexts need of the operator; `scope` has the current key, in the namespace of the current window."""

    context: OperatorContext
    scope: Scope
    timers: KeyedTimerService

    @property
    def watermark(self) -> int:
        """The last watermark."""


class AssignerContext(WindowAssignerContext):
    """The context of window assigners."""

    def __init__(self, operator: WindowingOperator) -> None:
        self._operator = operator
        self._runtime = StreamingRuntimeContext(operator.context, keyed=True)

    def get_current_processing_time(self) -> int:
        """Return the processing time of the epoch."""
        return self._operator.context.now

    def get_runtime_context(self) -> functions.RuntimeContext:
        """Return the runtime context of the operator."""
        return self._runtime


class FiringContext(OnMergeContext):
    """The context of triggers; the operator first sets the scope to the key and window."""

    def __init__(self, operator: WindowingOperator) -> None:
        self._operator = operator
        self._states = KeyedStates(operator.context, operator.scope, scoped=True, prefix="trigger/")
        self.merged: Collection[Any] = ()

    def get_current_processing_time(self) -> int:
        """Return the processing time of the epoch."""
        return self._operator.context.now

    def get_metric_group(self) -> Any:
        """Return the metric group of the operator."""
        return UserMetrics(self._operator.context.metrics)

    def get_current_watermark(self) -> int:
        """Return the watermark of the operator."""
        return self._operator.watermark

    def register_processing_time_timer(self, time: int) -> None:
        """Register a processing-time timer of the trigger."""
        self._operator.timers.register_processing_time_timer(time)

    def register_event_time_timer(self, time: int) -> None:
        """Register an event-time timer of the trigger."""
        self._operator.timers.register_event_time_timer(time)

    def delete_processing_time_timer(self, time: int) -> None:
        """Delete a processing-time timer."""
        self._operator.timers.delete_processing_time_timer(time)

    def delete_event_time_timer(self, time: int) -> None:
        """Delete an event-time timer."""
        self._operator.timers.delete_event_time_timer(time)

    def get_partitioned_state(self, state_descriptor: state.StateDescriptor) -> Any:
        """Return state of this key and window."""
        return self._states._view(state_descriptor)

    def merge_partitioned_state(self, state_descriptor: state.StateDescriptor) -> None:
        """Merge the state of the merged windows into that of the result."""
        self._states._view(state_descriptor).merge_namespaces(self._operator.scope.namespace, self.merged)


class WindowCallContext:
    """The context of ProcessWindowFunction and ProcessAllWindowFunction."""

    def __init__(self, operator: WindowingOperator) -> None:
        self._operator = operator
        self._window_states = KeyedStates(operator.context, operator.scope, scoped=True, prefix="window/")
        self._global_states = KeyedStates(operator.context, operator.context.scope, prefix="global/")
        self.current: Any = None

    def window(self) -> Any:
        """Return the current window."""
        return self.current

    def current_processing_time(self) -> int:
        """Return the processing time of the epoch."""
        return self._operator.context.now

    def current_watermark(self) -> int:
        """Return the watermark of the operator."""
        return self._operator.watermark

    def window_state(self) -> KeyedStates:
        """Return the store of state of this key in this window."""
        return self._window_states

    def global_state(self) -> KeyedStates:
        """Return the store of state of this key over all windows."""
        return self._global_states
