"""The general window operator of keyed streams: any assigner, trigger, evictor and lateness, with merging.

Promises: Flink's window semantics: a window fires when its trigger fires, is kept until the watermark passes its end
by the allowed lateness, and a record all of whose windows are gone is late: counted, and sent to the side output.
Does not know: columns; built-in aggregates over fixed windows have an operator that does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from millstream.errors import UserError
from millstream.event_time.timers import TimeDomain
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.functions import AggregateFunction, ProcessAllWindowFunction, ProcessWindowFunction, ReduceFunction
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.context import KeyedTimerService
from millstream.runtime.keys import KeySelection
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.operators.map import FunctionOperator
from millstream.runtime.windows.contents import create_contents
from millstream.runtime.windows.contexts import AssignerContext, FiringContext, WindowCallContext
from millstream.runtime.windows.evict import Eviction
from millstream.runtime.windows.merging import MergingWindows
from millstream.runtime.windows.sessions import Sessions, session_gap
from millstream.state.views import ListView, Scope
from millstream.types.factory import TypeInformation
from millstream.windows.assigners import MergingWindowAssigner, WindowAssigner
from millstream.windows.evictors import Evictor
from millstream.windows.triggers import Trigger, TriggerResult

LATE_COUNT = "numLateRecordsDropped"
_DEFAULT_CLEAR = (ProcessWindowFunction.clear, ProcessAllWindowFunction.clear)  # they do nothing


class BadTriggerResult(UserError):
    """A trigger returned a value that is not a TriggerResult."""

    def __init__(self, trigger: object, result: object) -> None:
        super().__init__(
            f"{trigger} returned {result!r}", hint="return TriggerResult.CONTINUE, FIRE, PURGE or FIRE_AND_PURGE"
        )


@dataclass(frozen=True)
class WindowSpec(OperatorSpec):
    """A window over a keyed stream.

    `fold` pre-aggregates (reduce or aggregate); without it, or with an evictor, a window keeps its elements. `function`
    is called with the content of a window: (key, context, elements) -> results."""

    key: KeySelection
    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    input_type: TypeInformation
    fold: ReduceFunction | AggregateFunction | None = None
    accumulator_type: TypeInformation | None = None
    function: Any = None
    keyed: bool = True
    allowed_lateness: int = 0
    late_tag: str | None = None
    evictor: Evictor[Any, Any] | None = None
    weight: Callable[[Any], int] | None = None  # the number of records that an element represents; None: one

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return WindowOperator(context, self)


class WindowOperator(FunctionOperator):
    """Passes each record to the assigner, the contents of its windows and the trigger."""

    def __init__(self, context: OperatorContext, spec: WindowSpec) -> None:
        window_function = getattr(spec.function, "function", spec.function)
        super().__init__(context, spec.fold, window_function, keyed=True)
        self.spec = spec
        self.scope = Scope()
        self.timers = KeyedTimerService(context, self.scope)
        window_contents = create_contents(
            context.state, spec.fold, spec.input_type, spec.accumulator_type, evictable=spec.evictor is not None
        )
        self._contents = window_contents.view(self.scope)
        self._elements = window_contents.elements
        self._eviction = None if spec.evictor is None else Eviction(self, spec.evictor, spec.fold)
        gap = session_gap(spec.assigner, spec.trigger, spec.allowed_lateness) if spec.evictor is None else None
        self._sessions = (
            None if gap is None else Sessions(context.state, gap, window_contents, self.timers.event, self._late)
        )
        self._merging = (
            MergingWindows(context.state, spec.assigner) if isinstance(spec.assigner, MergingWindowAssigner) else None
        )
        self._assigning = AssignerContext(self)
        self._triggering = FiringContext(self)
        self._calling = WindowCallContext(self)
        clear = getattr(type(window_function), "clear", None)
        self._clear_window = None if clear is None or clear in _DEFAULT_CLEAR else spec.function.clear
        self._event_time = spec.assigner.is_event_time()
        self._collector = rowwise.Collector(context)

    def begin_epoch(self) -> None:
        """Fire the processing-time timers that are due."""
        self.scope.now = self.context.now
        self._collector = rowwise.Collector(self.context)  # a failed attempt may have left results
        if self._sessions is not None:
            self._sessions.begin()
        self._fire(TimeDomain.PROCESSING_TIME, self.timers.processing.due(self.context.now))

    def on_watermark(self, watermark: int) -> None:
        """Fire the event-time timers that are due, then pass the watermark on."""
        self.context.memory.watermark = watermark
        if self._sessions is None:
            self._fire(TimeDomain.EVENT_TIME, self.timers.event.due(watermark))
        else:
            rowwise.visit_windows(self.context, self._end_session, self._sessions.pop_ended(watermark))
            self._collector.flush()
        super().on_watermark(watermark)

    def finish_keys(self) -> None:
        """Fire all timers of the keys that end, those of processing time last."""
        super().finish_keys()
        self._fire(TimeDomain.PROCESSING_TIME, self.timers.processing.due(MAX_WATERMARK))

    def next_timer(self) -> int | None:
        """Return the time of the next processing-time timer."""
        return self.timers.processing.next()

    def on_batch(self, batch: Batch, side: int) -> None:
        """Add every record to its windows."""
        self._take(batch, self.spec.key.keys(batch, self.context.name))

    def _take(self, batch: Batch, keys: list[Any]) -> None:
        sessions, scope = self._sessions, self.context.scope
        if sessions is not None and sessions.can_take(batch.timestamps):
            rowwise.visit_keyed_rows(self.context, sessions.visitor(scope, self.watermark), batch, keys, scope)
            sessions.flush_timers()
        else:
            rowwise.visit_keyed_rows(self.context, self._element, batch, keys, scope)
        self._collector.flush()

    def _element(self, value: Any, time: int) -> None:
        key = self.scope.key = self.context.scope.key
        windows = self.spec.assigner.assign_windows(value, time, self._assigning)
        is_skipped = True
        for window in windows:
            merged_window = window if self._merging is None else self._merging.add(key, window, self._merge)
            if self._is_late(merged_window):
                if self._merging is not None:
                    self._merging.retire(key, merged_window)
                continue
            is_skipped = False
            self.scope.namespace = self._state_window(merged_window)
            self._contents.add(value if self._eviction is None else (time, value))
            self.scope.namespace = merged_window
            self._act(self.spec.trigger.on_element(value, time, merged_window, self._triggering), merged_window)
            self._register_cleanup(merged_window)
        if is_skipped and self._event_time and time + self.spec.allowed_lateness <= self.watermark:
            self._late(value, time)

    def _late(self, value: Any, time: int) -> None:
        self.context.metrics.count(LATE_COUNT, 1 if self.spec.weight is None else self.spec.weight(value))
        if self.spec.late_tag is not None:
            self._collector.side(self.spec.late_tag, value, time)
        else:
            self.context.metrics.sample(f"late: its time is {time}", value, self.context.scope.key)

    def _merge(
        self, result: Any, merged: Collection[Any], kept_state_window: Any, other_state_windows: Collection[Any]
    ) -> None:
        self._triggering.merged = merged
        self.scope.namespace = result
        self.spec.trigger.on_merge(result, self._triggering)
        for window in merged:
            if window != result:
                self.scope.namespace = window
                self.spec.trigger.clear(window, self._triggering)
                self._delete_cleanup(window)
        self._contents.merge_namespaces(kept_state_window, other_state_windows)
        self.scope.namespace = result

    def _state_window(self, window: Any) -> Any:
        return window if self._merging is None else self._merging.state_window(self.scope.key, window)

    def _act(self, result: Any, window: Any) -> None:
        if not isinstance(result, TriggerResult):
            raise BadTriggerResult(self.spec.trigger, result)
        if result.is_fire():
            self._emit(window)
        if result.is_purge():
            self.scope.namespace = self._state_window(window)
            self._contents.clear()
            self.scope.namespace = window

    def _emit(self, window: Any) -> None:
        self.scope.namespace = self._state_window(window)
        content = self._contents.get()
        self.scope.namespace = window
        if content is None:
            return
        elements = list(content) if isinstance(self._contents, ListView) else [content]
        if not elements:
            return
        self._calling.current = window
        if self._eviction is None:
            self._evaluate(window, elements)
            return
        remaining = self._eviction.before(elements, window)
        self._evaluate(window, self._eviction.evaluate(remaining))
        self.scope.namespace = self._state_window(window)
        self._contents.update(self._eviction.after(remaining, window))
        self.scope.namespace = window

    def _evaluate(self, window: Any, elements: list[Any] | None) -> None:
        function = self.spec.function
        if elements is None or function is None:
            self._collector.take(elements, window.max_timestamp())
        else:
            self._collector.take(function(self.scope.key, self._calling, elements), window.max_timestamp())

    def _fire(self, domain: TimeDomain, due: Iterable[tuple[int, Any, Any]]) -> None:
        fired = 0
        for time, window, key in due:
            fired += 1
            self.scope.key = self.context.scope.key = key
            self.scope.namespace = window
            rowwise.call_user_code(self.context, self._timer, domain, time, window, key=key)
        if fired:
            self.context.metrics.count("numFiredTimers", fired)
        self._collector.flush()

    def _timer(self, domain: TimeDomain, time: int, window: Any) -> None:
        if self._merging is not None and self._merging.state_window(self.scope.key, window) is None:
            return
        is_event_time = domain is TimeDomain.EVENT_TIME
        on_time = self.spec.trigger.on_event_time if is_event_time else self.spec.trigger.on_processing_time
        self._act(on_time(time, window, self._triggering), window)
        if is_event_time == self._event_time and time == self._cleanup_time(window):
            self._clear(window)

    def _clear(self, window: Any) -> None:
        self.scope.namespace = self._state_window(window)
        self._contents.clear()
        self.scope.namespace = window
        self.spec.trigger.clear(window, self._triggering)
        if self._clear_window is not None:
            self._calling.current = window
            self._clear_window(self._calling)
        if self._merging is not None:
            self._merging.retire(self.scope.key, window)

    def _end_session(self, key: Any, window: Any, content: Any) -> None:
        self.scope.key = self.context.scope.key = key
        self.scope.namespace = self._calling.current = window
        elements = self._elements(content)
        if elements:
            self._evaluate(window, elements)
        if self._clear_window is not None:
            self._clear_window(self._calling)

    def _cleanup_time(self, window: Any) -> int:
        end: int = window.max_timestamp()
        if not self._event_time:
            return end
        return min(end + self.spec.allowed_lateness, MAX_WATERMARK)

    def _is_late(self, window: Any) -> bool:
        return self._event_time and self._cleanup_time(window) <= self.watermark

    def _register_cleanup(self, window: Any) -> None:
        time = self._cleanup_time(window)
        if time == MAX_WATERMARK:
            return
        if self._event_time:
            self.timers.register_event_time_timer(time)
        else:
            self.timers.register_processing_time_timer(time)

    def _delete_cleanup(self, window: Any) -> None:
        time = self._cleanup_time(window)
        if self._event_time:
            self.timers.delete_event_time_timer(time)
        else:
            self.timers.delete_processing_time_timer(time)


@dataclass(frozen=True)
class CallProcess:
    """Calls a ProcessWindowFunction, or ProcessAllWindowFunction when the stream was not keyed."""

    function: Any
    keyed: bool = True

    def __call__(self, key: Any, context: WindowCallContext, elements: list[Any]) -> Any:
        """Return the results of one firing."""
        return self.function.process(key, context, elements) if self.keyed else self.function.process(context, elements)

    def clear(self, context: WindowCallContext) -> None:
        """Clear state of the window, which has ended."""
        self.function.clear(context)


@dataclass(frozen=True)
class CallApply:
    """Calls a WindowFunction, or AllWindowFunction when the stream was not keyed."""

    function: Any
    keyed: bool = True

    def __call__(self, key: Any, context: WindowCallContext, elements: list[Any]) -> Any:
        """Return the results of one firing."""
        window = context.window()
        return self.function.apply(key, window, elements) if self.keyed else self.function.apply(window, elements)
