"""Contexts of user functions: the runtime context, timer services and the contexts of calls.

Promises: PyFlink's methods; state is that of the key of the current record.
Does not know: how functions are called, or when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from millstream import functions
from millstream.errors import UserError
from millstream.event_time.timers import TimeDomain, TimerService
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.job.accumulators import (
    Accumulator,
    AccumulatorsDisagree,
    DoubleCounter,
    Histogram,
    IntCounter,
    LongCounter,
)
from millstream.runtime.batch import NO_TIMESTAMP
from millstream.runtime.metrics import UserMetrics
from millstream.runtime.operator import OperatorContext
from millstream.runtime.timers import Timers
from millstream.state.views import Scope, create_broadcast_view, create_operator_list_view, create_view
from millstream.state_descriptors import descriptors as state

TIMERS_DROPPED = "numTimersDropped"


class StateNameTaken(UserError):
    """Two different state descriptors of one operator have the same name."""

    def __init__(self, operator: str, name: str, first: object, second: object) -> None:
        super().__init__(
            f"state name '{name}' is used twice in operator '{operator}': as {first} and as {second}",
            hint="give each state of a function its own name",
        )


class KeyedStateNeedsKey(UserError):
    """A function on a stream without a key uses keyed state."""

    def __init__(self, operator: str, name: str) -> None:
        super().__init__(
            f"operator '{operator}' uses keyed state '{name}', but its input is not keyed", hint="call key_by first"
        )


class CachedFileUnknown(UserError):
    """The program did not register a cached file of this name."""

    def __init__(self, name: str, registered: Iterable[str]) -> None:
        self.name = name
        super().__init__(
            f"no cached file is registered as '{name}'; registered files: {', '.join(sorted(registered)) or 'none'}",
            hint="call register_cached_file(path, name) on the environment",
        )


class DistributedCache(functions.DistributedCache):
    """The cached files of this worker."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def get_file(self, name: str) -> Path:
        """Return the local copy of a file or directory."""
        if name not in self._files:
            raise CachedFileUnknown(name, self._files)
        return Path(self._files[name])


class KeyedStates:
    """Views by descriptor, in one scope; used for functions, windows and triggers."""

    def __init__(self, context: OperatorContext, scope: Scope, *, scoped: bool = False, prefix: str = "") -> None:
        self._context, self._scope, self._scoped, self._prefix = context, scope, scoped, prefix
        self._views: dict[str, tuple[state.StateDescriptor, Any]] = {}

    def _view(self, descriptor: state.StateDescriptor) -> Any:
        name = self._prefix + descriptor.name
        declared = self._views.get(name)
        if declared is None:
            view = create_view(descriptor, self._context.state, self._scope, scoped=self._scoped, name=name)
            declared = self._views[name] = (descriptor, view)
        elif type(declared[0]) is not type(descriptor) or declared[0].type_info != descriptor.type_info:
            raise StateNameTaken(self._context.name, descriptor.name, declared[0], descriptor)
        return declared[1]

    get_state = get_list_state = get_map_state = get_reducing_state = get_aggregating_state = _view


class StreamingRuntimeContext(functions.RuntimeContext):
    """The RuntimeContext of one function in one subtask."""

    def __init__(self, context: OperatorContext, *, keyed: bool) -> None:
        self._context = context
        self._states = KeyedStates(context, context.scope) if keyed else None

    def get_task_name(self) -> str:
        """Return the name of the operator."""
        return self._context.name

    def get_number_of_parallel_subtasks(self) -> int:
        """Return the parallelism of the operator."""
        return self._context.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the max parallelism of the operator."""
        return self._context.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """Return the index of this subtask, from 0."""
        return self._context.subtask

    def get_attempt_number(self) -> int:
        """Return how often the job was restarted."""
        return self._context.restarts

    def get_task_name_with_subtasks(self) -> str:
        """Return the name of the operator with its subtask, as in logs."""
        return f"{self._context.name} ({self._context.subtask + 1}/{self._context.parallelism})"

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return a job parameter, or the default value."""
        return self._context.parameters.get(key, default_value)

    def get_metrics_group(self) -> UserMetrics:
        """Return the metric group of the function."""
        return UserMetrics(self._context.metrics)

    def get_distributed_cache(self) -> DistributedCache:
        """Return the files that the program registered."""
        return DistributedCache(self._context.cached_files)

    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Register an accumulator; the result of the job merges those of all subtasks."""
        self._context.metrics.add_accumulator(name, accumulator)

    def get_accumulator(self, name: str) -> Accumulator[Any, Any] | None:
        """Return the accumulator of a name; None if there is none."""
        return self._context.metrics.accumulators.get(name)

    def _accumulator(self, name: str, accumulator_type: type[Accumulator[Any, Any]]) -> Any:
        accumulator = self.get_accumulator(name)
        if accumulator is None:
            accumulator = accumulator_type()
            self.add_accumulator(name, accumulator)
        if not isinstance(accumulator, accumulator_type):
            raise AccumulatorsDisagree(name, accumulator, accumulator_type())
        return accumulator

    def get_int_counter(self, name: str) -> IntCounter:
        """Return the counter with a name; it is created on first use."""
        return self._accumulator(name, IntCounter)  # type: ignore[no-any-return]

    def get_long_counter(self, name: str) -> LongCounter:
        """Return the counter with a name; it is created on first use."""
        return self._accumulator(name, LongCounter)  # type: ignore[no-any-return]

    def get_double_counter(self, name: str) -> DoubleCounter:
        """Return the counter with a name; it is created on first use."""
        return self._accumulator(name, DoubleCounter)  # type: ignore[no-any-return]

    def get_histogram(self, name: str) -> Histogram:
        """Return the histogram with a name; it is created on first use."""
        return self._accumulator(name, Histogram)  # type: ignore[no-any-return]

    def _keyed_state(self, state_descriptor: Any) -> Any:
        if self._states is None:
            raise KeyedStateNeedsKey(self._context.name, state_descriptor.name)
        return self._states._view(state_descriptor)

    get_state = get_list_state = get_map_state = get_reducing_state = get_aggregating_state = _keyed_state

    def get_operator_list_state(self, state_descriptor: state.ListStateDescriptor) -> Any:
        """Return list state of this subtask; its elements are redistributed when the parallelism changes."""
        return create_operator_list_view(state_descriptor, self._context.state, union=False)

    def get_union_list_state(self, state_descriptor: state.ListStateDescriptor) -> Any:
        """Return list state of this subtask; after a restore every subtask has the elements of all."""
        self._context.memory.has_union_state = True
        return create_operator_list_view(state_descriptor, self._context.state, union=True)

    def get_broadcast_state(self, state_descriptor: state.MapStateDescriptor) -> Any:
        """Return broadcast state."""
        return create_broadcast_view(state_descriptor, self._context.state)


class TimersNeedKeyedStream(UserError):
    """A timer was registered on a stream that has no key."""

    def __init__(self, operator: str) -> None:
        super().__init__(
            f"operator '{operator}' sets a timer, but timers need a keyed stream", hint="call key_by first"
        )


class KeyedTimerService(TimerService):
    """Timers of the current key and namespace."""

    def __init__(self, context: OperatorContext, scope: Scope) -> None:
        self._context = context
        self._scope = scope
        self.event = Timers(context.state, "event")
        self.processing = Timers(context.state, "processing")

    def current_processing_time(self) -> int:
        """Return the processing time of the epoch."""
        return self._scope.now

    def current_watermark(self) -> int:
        """Return the watermark of the operator."""
        return self._context.watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Call on_timer when processing time reaches `timestamp`."""
        if not self._drops_timers():
            self.processing.register(self._scope.namespace, self._scope.key, timestamp)

    def register_event_time_timer(self, timestamp: int) -> None:
        """Call on_timer when the watermark reaches `timestamp`."""
        if not self._drops_timers():
            self.event.register(self._scope.namespace, self._scope.key, timestamp)

    def _drops_timers(self) -> bool:
        """Return whether the key's input has ended in a batch job: timers registered now are dropped, as in Flink."""
        context = self._context
        if not context.batch or context.watermark != MAX_WATERMARK:
            return False
        context.metrics.count(TIMERS_DROPPED)
        return True

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Delete a processing-time timer."""
        self.processing.delete(self._scope.namespace, self._scope.key, timestamp)

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Delete an event-time timer."""
        self.event.delete(self._scope.namespace, self._scope.key, timestamp)


class TimeOnly(TimerService):
    """The timer service of a stream without keys: it returns the time and refuses timers."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def current_processing_time(self) -> int:
        """Return the processing time of the epoch."""
        return self._context.now

    def current_watermark(self) -> int:
        """Return the watermark of the operator."""
        return self._context.watermark

    def _refuse(self, timestamp: int) -> None:
        raise TimersNeedKeyedStream(self._context.name)

    register_processing_time_timer = register_event_time_timer = _refuse
    delete_processing_time_timer = delete_event_time_timer = _refuse


class Call:
    """The context of one call of a process function, keyed or not.

    The loop sets `time` and the scope's key before each call."""

    __slots__ = ("_scope", "_timers", "domain", "time")

    def __init__(self, scope: Scope, timers: TimerService) -> None:
        self._scope, self._timers = scope, timers
        self.time = NO_TIMESTAMP
        self.domain: TimeDomain | None = None

    def timer_service(self) -> TimerService:
        """Return the timer service of the current key."""
        return self._timers

    def timestamp(self) -> int:
        """Return the timestamp of the record or the timer; the smallest long if there is none, as in PyFlink."""
        return self.time

    def get_current_key(self) -> Any:
        """Return the key of the record."""
        return self._scope.key

    def time_domain(self) -> TimeDomain | None:
        """Return the time domain of the timer that fired."""
        return self.domain

    def current_processing_time(self) -> int:
        """Return the processing time of the epoch."""
        return self._timers.current_processing_time()

    def current_watermark(self) -> int:
        """Return the watermark of the operator."""
        return self._timers.current_watermark()
