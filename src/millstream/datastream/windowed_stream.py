"""Windows of a stream, keyed or over the whole stream.

Promises: PyFlink's names and checks. Built-in aggregates by a field over tumbling and sliding event-time windows are
computed on columns, with the same results.
Does not know: how windows are evaluated; it creates their specs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from millstream import options
from millstream.errors import InvalidArgument, InvalidArgumentType
from millstream.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
    as_function,
)
from millstream.functions.aggregations import Aggregations
from millstream.functions.type_variables import ACC, K, T
from millstream.runtime.keys import KeySelection
from millstream.runtime.operators.columnar_window import ColumnarWindowSpec
from millstream.runtime.operators.pre_aggregate import (
    LocalColumnsSpec,
    LocalFoldSpec,
    MergePartials,
    count_records,
    has_panes,
    merging_aggregations,
)
from millstream.runtime.operators.window import CallApply, CallProcess, WindowSpec
from millstream.runtime.partitioners import Hash
from millstream.state_descriptors.descriptors import as_type
from millstream.state_descriptors.output_tag import OutputTag
from millstream.times import Duration, Time, millis
from millstream.types.factory import TypeInformation, Types
from millstream.types.row import Row
from millstream.types.type_hints import find_return_type
from millstream.windows.assigners import (
    MergingWindowAssigner,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from millstream.windows.evictors import Evictor
from millstream.windows.triggers import CannotMerge, Trigger

if TYPE_CHECKING:
    from datetime import timedelta

    from millstream.datastream.data_stream import DataStream

W = TypeVar("W", bound="Windows[Any]")
R = TypeVar("R")


class Windows(Generic[T]):
    """The settings of windows: trigger, evictor and lateness."""

    _keyed: bool

    def __init__(self, stream: DataStream, key: KeySelection, assigner: Any) -> None:
        if not isinstance(assigner, WindowAssigner):
            msg = f"{assigner!r} is not a window assigner"
            raise InvalidArgumentType(msg, hint="TumblingEventTimeWindows.of(Time.seconds(5))")
        self._stream = stream
        self._key = key
        self._assigner = assigner
        self._trigger: Trigger[Any, Any] | None = None
        self._lateness = 0
        self._late_tag: OutputTag | None = None
        self._evictor: Evictor[Any, Any] | None = None

    def get_execution_environment(self) -> Any:
        """Return the environment that the stream belongs to."""
        return self._stream._env

    def get_input_type(self) -> TypeInformation:
        """Return the type of the records that are assigned to windows."""
        return self._stream.get_type()

    def trigger(self: W, trigger: Trigger[Any, Any]) -> W:
        """Replace the default trigger of the window assigner.

        Args:
            trigger: When a window fires, and whether its content is purged.

        Raises:
            CannotMerge: The windows merge, as sessions do, and the trigger cannot.

        """
        if isinstance(self._assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise CannotMerge(trigger)
        self._trigger = trigger
        return self

    def allowed_lateness(self: W, time_ms: int | Duration | Time | timedelta) -> W:
        """Keep a window after the watermark has passed its end, and let it fire again for each late record.

        Args:
            time_ms: How long, in milliseconds or as a duration; 0 by default.

        """
        time = millis(time_ms)
        if time < 0:
            msg = f"an allowed lateness of {time} ms is not possible"
            raise InvalidArgument(msg, hint="use zero or more")
        self._lateness = time
        return self

    def side_output_late_data(self: W, output_tag: OutputTag) -> W:
        """Emit records that are too late for all of their windows to a side output; otherwise they are dropped."""
        self._late_tag = output_tag
        return self

    def evictor(self: W, evictor: Any) -> W:
        """Remove records from a window before or after it is evaluated.

        With an evictor a window keeps all of its records, also for `reduce` and `aggregate`."""
        if not isinstance(evictor, Evictor):
            msg = f"{evictor!r} is not an evictor"
            raise InvalidArgumentType(msg, hint="CountEvictor.of(10)")
        self._evictor = evictor
        return self

    def _apply(
        self,
        name: str,
        output_type: TypeInformation,
        fold: ReduceFunction | AggregateFunction | None = None,
        function: Any = None,
        accumulator: TypeInformation | None = None,
        weight: Callable[[Any], int] | None = None,
    ) -> DataStream:
        spec = WindowSpec(
            key=self._key,
            assigner=self._assigner,
            trigger=self._trigger or self._assigner.get_default_trigger(self._stream._env),
            input_type=self.get_input_type(),
            fold=fold,
            accumulator_type=accumulator,
            function=function,
            keyed=self._keyed,
            allowed_lateness=self._lateness,
            late_tag=None if self._late_tag is None else self._late_tag.tag_id,
            evictor=self._evictor,
            weight=weight,
        )
        return self._add(name, spec, output_type)

    def _add(self, name: str, spec: Any, output_type: TypeInformation) -> DataStream:
        env = self._stream._env
        settings: dict[str, Any] = {"key_type": self._key.key_type}
        if not self._keyed:
            settings.update(parallelism=1)
        inputs = self._stream._inputs
        if not self._keyed:
            inputs = tuple(type(edge)(edge.upstream, edge.side, edge.tag, Hash(self._key)) for edge in inputs)
        transformation = env._program.add(
            f"{type(self._assigner).__name__}, {name}", spec, output_type, inputs, **settings
        )
        return env._stream(transformation)


class _Windowed(Windows[T]):
    """The operations on windows, keyed or not."""

    def _function(self, window_function: Any) -> Any:
        """Return a window function in the form that the operator calls; None for None."""
        process, plain = (
            (ProcessWindowFunction, WindowFunction) if self._keyed else (ProcessAllWindowFunction, AllWindowFunction)
        )
        if window_function is None:
            return None
        if isinstance(window_function, process):
            return CallProcess(window_function, self._keyed)
        if isinstance(window_function, plain):
            return CallApply(window_function, self._keyed)
        return CallProcess(as_function(window_function, process), self._keyed)

    def reduce(
        self,
        reduce_function: Callable[[T, T], T] | ReduceFunction[T],
        window_function: Any = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream[Any]:
        """Reduce the records of each window to one, as they arrive.

        Args:
            reduce_function: A function of two records that returns one of the same type.
            window_function: Gets the reduced record and the window; its results are emitted.
            output_type: The type of the results of the window function.

        """
        function: ReduceFunction = as_function(reduce_function, ReduceFunction)
        result_type = self.get_input_type() if window_function is None else _output_type(output_type, window_function)
        if output_type is not None:
            result_type = as_type(output_type)
        return self._apply_fold("Reduce", result_type, function, self._function(window_function), self.get_input_type())

    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, ACC, R],
        window_function: Any = None,
        accumulator_type: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream[Any]:
        """Aggregate the records of each window into an accumulator, as they arrive.

        With built-in `Aggregations` and no window function the results are rows of the key, the start and the end of
        the window, and the aggregates.

        Args:
            aggregate_function: An `AggregateFunction`.
            window_function: Gets the result of the aggregate and the window; its results are emitted.
            accumulator_type: The type of the accumulator, which is kept in state.
            output_type: The type of the results.

        """
        function: AggregateFunction = as_function(aggregate_function, AggregateFunction)
        accumulator = None if accumulator_type is None else as_type(accumulator_type)
        if isinstance(function, Aggregations) and window_function is None and self._keyed:
            return self._aggregate_built_in(function)
        typed_function = window_function if window_function is not None else function
        method = "get_result" if window_function is None else None
        result_type = as_type(output_type) if output_type is not None else _output_type(None, typed_function, method)
        return self._apply_fold("Aggregate", result_type, function, self._function(window_function), accumulator)

    def _can_pre_aggregate(self) -> bool:
        """Return whether records may be aggregated before the exchange: no setting needs single records."""
        has_defaults = (
            self._trigger is None and self._lateness == 0 and self._evictor is None and self._late_tag is None
        )
        is_enabled = self._stream._env._configuration.get(options.PRE_AGGREGATION)
        has_exchange = all(isinstance(edge.partitioner, Hash) for edge in self._stream._inputs)
        return is_enabled and has_defaults and has_exchange and self._keyed and has_panes(self._assigner)

    def _apply_fold(
        self, name: str, output_type: TypeInformation, fold: Any, function: Any, accumulator: TypeInformation | None
    ) -> DataStream:
        if not self._can_pre_aggregate():
            return self._apply(name, output_type, fold, function, accumulator)
        accumulator_type = accumulator or Types.PICKLED_BYTE_ARRAY()
        partial = Types.TUPLE([self._key.key_type, accumulator_type, Types.LONG()])
        assigner: Any = self._assigner
        windows = self._before_exchange(LocalFoldSpec(self._key, fold, assigner), partial, 0)
        return windows._apply(name, output_type, MergePartials(fold), function, accumulator_type, count_records)

    def _before_exchange(self, spec: Any, output_type: TypeInformation, key: int | str) -> _Windowed[Any]:
        """Return these windows over the output of an operator before the exchange."""
        env = self._stream._env
        inputs = tuple(type(edge)(edge.upstream, tag=edge.tag) for edge in self._stream._inputs)
        transformation = env._program.add("Pre-Aggregation", spec, output_type, inputs, follows_input=True)
        windows: _Windowed[Any] = env._stream(transformation).key_by(key, self._key.key_type).window(self._assigner)
        return windows

    def _aggregate_built_in(self, aggregations: Aggregations) -> DataStream:
        assigner, key, record_type = self._assigner, self._key, self.get_input_type()
        result = _built_in_type(record_type, key, aggregations)
        has_fixed_windows = type(assigner) in (TumblingEventTimeWindows, SlidingEventTimeWindows)
        has_defaults = self._trigger is None and self._lateness == 0 and self._evictor is None
        fields = {aggregate.field for _, aggregate in aggregations.columns if aggregate.field is not None}
        names = set(getattr(record_type, "field_names", None) or ())
        has_fields = all(field in names or (isinstance(field, int) and field < len(names)) for field in fields)
        if (
            has_fixed_windows
            and has_defaults
            and key.field is not None
            and record_type.is_columnar
            and has_fields
            and names
        ):
            size: int = assigner.size  # type: ignore[attr-defined]
            spec = ColumnarWindowSpec(
                key=key.field,
                key_type=key.key_type,
                size=size,
                slide=getattr(assigner, "slide", size),
                offset=assigner.offset,  # type: ignore[attr-defined]
                aggregations=aggregations,
                late_tag=None if self._late_tag is None else self._late_tag.tag_id,
            )
            merged = merging_aggregations(aggregations) if self._can_pre_aggregate() else None
            return (
                self._add("Aggregations", spec, result)
                if merged is None
                else self._pre_aggregate_columns(spec, merged, result)
            )
        function = WithWindow(_names(key, aggregations))
        return self._apply_fold("Aggregations", result, aggregations, function, None)

    def _pre_aggregate_columns(self, spec: ColumnarWindowSpec, merged: Aggregations, result: Any) -> DataStream:
        """Apply built-in aggregates in two steps, the first of them before the exchange."""
        assigner: Any = self._assigner
        aggregates = tuple(aggregate for _, aggregate in spec.aggregations.columns)
        names = ["key", *(str(aggregate.field) for _, aggregate in merged.columns)]
        partial = Types.ROW_NAMED(names, [result.field_types[0], *result.field_types[3:]])
        windows = self._before_exchange(LocalColumnsSpec(spec.key, aggregates, assigner), partial, "key")
        return windows._add("Aggregations", dataclasses.replace(spec, key="key", aggregations=merged), result)

    def apply(self, window_function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Apply a `WindowFunction` (`AllWindowFunction` without a key) to all records of a window when it fires."""
        function_class: Any = WindowFunction if self._keyed else AllWindowFunction
        function = as_function(window_function, function_class)
        return self._apply(
            "Apply", _output_type(output_type, function, "apply"), None, CallApply(function, self._keyed)
        )

    def process(self, process_window_function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Apply a `ProcessWindowFunction` (`ProcessAllWindowFunction` without a key) when a window fires.

        The function can use the time, and state of the key and of the window."""
        function_class: Any = ProcessWindowFunction if self._keyed else ProcessAllWindowFunction
        function = as_function(process_window_function, function_class)
        return self._apply(
            "Process", _output_type(output_type, function, "process"), None, CallProcess(function, self._keyed)
        )


class WindowedStream(_Windowed[T], Generic[K, T]):
    """The windows of a keyed stream.

    Example:
        >>> from millstream.common import Time
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.datastream.window import TumblingEventTimeWindows
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> clicks = env.from_collection([("ann", 1), ("bob", 2)]).key_by(lambda click: click[0])
        >>> windows = clicks.window(TumblingEventTimeWindows.of(Time.minutes(1))).allowed_lateness(5_000)
        >>> latest = windows.reduce(lambda first, second: second)

    """

    _keyed = True

    def __init__(self, keyed_stream: Any, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(keyed_stream, keyed_stream._key_selection(), window_assigner)


class AllWindowedStream(_Windowed[T]):
    """The windows of a stream without keys; one subtask processes them all.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.datastream.window import CountTumblingWindowAssigner
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> windows = env.from_collection([1, 2, 3, 4]).window_all(CountTumblingWindowAssigner.of(2))
        >>> list(windows.reduce(lambda first, second: first + second).execute_and_collect())
        [3, 7]

    """

    _keyed = False

    def __init__(self, data_stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(data_stream, KeySelection(Types.INT(), selector=_same_key), window_assigner)


def _same_key(_: Any) -> int:
    return 0


class WithWindow:
    """A window function that adds the key and the window to the row of built-in aggregates."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def __call__(self, key: Any, context: Any, elements: list[Row]) -> list[Row]:
        """Return the rows of one firing."""
        window = context.window()
        start, end = getattr(window, "start", None), getattr(window, "end", None)
        return [Row._from(self._names, [key, start, end, *element]) for element in elements]


def _names(key: KeySelection, aggregations: Aggregations) -> list[str]:
    first = key.field if isinstance(key.field, str) else "key"
    return [first, "window_start", "window_end", *(name for name, _ in aggregations.columns)]


def _built_in_type(record_type: TypeInformation, key: KeySelection, aggregations: Aggregations) -> TypeInformation:
    names, field_types = getattr(record_type, "field_names", None), getattr(record_type, "field_types", None)
    aggregate_types: list[TypeInformation] = []
    for _, aggregate in aggregations.columns:
        if aggregate.kind == "count":
            aggregate_types.append(Types.LONG())
        elif aggregate.kind == "avg":
            aggregate_types.append(Types.DOUBLE())
        elif field_types is not None and names is not None and isinstance(aggregate.field, str):
            if aggregate.field not in names:
                msg = f"there is no field '{aggregate.field}' to aggregate in {record_type}"
                raise InvalidArgument(
                    msg,
                    hint=f"fields are {', '.join(names)}",
                )
            aggregate_types.append(_aggregate_type(field_types[list(names).index(aggregate.field)], aggregate.kind))
        elif field_types is not None and isinstance(aggregate.field, int) and aggregate.field < len(field_types):
            aggregate_types.append(_aggregate_type(field_types[aggregate.field], aggregate.kind))
        else:
            aggregate_types.append(Types.PICKLED_BYTE_ARRAY())
    return Types.ROW_NAMED(_names(key, aggregations), [key.key_type, Types.LONG(), Types.LONG(), *aggregate_types])


def _aggregate_type(field_type: TypeInformation, aggregate: str) -> TypeInformation:
    """Return the type of an aggregate of a field: sums of integers are LONG, sums of floats DOUBLE."""
    if aggregate != "sum":
        return field_type
    if field_type in (Types.BYTE(), Types.SHORT(), Types.INT()):
        return Types.LONG()
    return Types.DOUBLE() if field_type == Types.FLOAT() else field_type


def _output_type(declared_type: Any, function: Any, method: str | None = None) -> TypeInformation:
    if declared_type is not None:
        return as_type(declared_type)
    element = method != "get_result"
    for name in (method, "process", "apply"):
        if name is not None and hasattr(function, name):
            return find_return_type(getattr(function, name), element=element) or Types.PICKLED_BYTE_ARRAY()
    return Types.PICKLED_BYTE_ARRAY()
