"""DataStream, KeyedStream and CachedDataStream: the streams of the DataStream API.

Promises: PyFlink's names, signatures and defaults; each call records a transformation and returns a new stream.
Does not know: graphs beyond transformations, engines, state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, overload

from millstream.client import html
from millstream.connector.sink import Sink
from millstream.connectors.printing import PrintSink, RecordFormat
from millstream.datastream.caching import Cache
from millstream.datastream.call_types import key_selection, output_type_of
from millstream.datastream.collecting import CloseableIterator, PairWithKey, collect
from millstream.datastream.connected_streams import BroadcastConnectedStream, BroadcastStream, ConnectedStreams
from millstream.datastream.data_stream_sink import DataStreamSink
from millstream.datastream.joined_streams import CoGroupedStreams, IntervalJoin, JoinedStreams
from millstream.datastream.missing_methods import explain_missing_method
from millstream.datastream.operator_settings import NotSupportedHere, OperatorSettings, WithoutOperator
from millstream.datastream.projection import select_fields
from millstream.datastream.running_aggregates import RunningAggregates
from millstream.datastream.windowed_stream import AllWindowedStream, WindowedStream
from millstream.errors import InvalidArgument, InvalidArgumentType
from millstream.event_time.watermarks import WatermarkStrategy
from millstream.functions import (
    FilterFunction,
    FlatMapFunction,
    Function,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
    SinkFunction,
    as_function,
)
from millstream.functions.type_variables import K, T
from millstream.graph.transformations import Chaining, Input
from millstream.runtime import partitioners
from millstream.runtime.keys import KeySelection
from millstream.runtime.operators.map import ElementwiseSpec
from millstream.runtime.operators.process import ProcessSpec
from millstream.runtime.operators.reduce import ReduceSpec
from millstream.runtime.operators.sink import SinkSpec
from millstream.runtime.operators.sink_function import SinkFunctionSpec
from millstream.runtime.operators.timestamps import TimestampsSpec
from millstream.state_descriptors.descriptors import MapStateDescriptor
from millstream.state_descriptors.output_tag import OutputTag
from millstream.types.factory import TypeInformation, Types
from millstream.windows.assigners import CountSlidingWindowAssigner, CountTumblingWindowAssigner, WindowAssigner

if TYPE_CHECKING:
    from millstream.common.execution_config import ExecutionConfig
    from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = [
    "AllWindowedStream",
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CachedDataStream",
    "CloseableIterator",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "KeyedStream",
    "WindowedStream",
]

S = TypeVar("S", bound="DataStream[Any]")
R = TypeVar("R")
KEY = TypeVar("KEY")


class DataStream(OperatorSettings, Generic[T]):
    """A stream of records of type `T`.

    Streams are immutable: each method records an operation and returns the stream of its results. Nothing runs until
    `StreamExecutionEnvironment.execute` or `execute_and_collect` is called. Element types are for type checkers only;
    without annotations they are `Any`.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> lengths = env.from_collection(["to be", "or not"]).map(len)

    """

    def __init__(self, env: StreamExecutionEnvironment, inputs: tuple[Input, ...]) -> None:
        self._env = env
        self._inputs = inputs

    # ------------------------------------------------------------------------------------ about the stream itself

    def get_name(self) -> str:
        """Return the name of the operator that creates the stream."""
        return self._env._program.get(self._id).name

    def get_type(self) -> TypeInformation:
        """Return the type of the records."""
        types = {self._env._program.type_of(edge) for edge in self._inputs}
        return types.pop() if len(types) == 1 else Types.PICKLED_BYTE_ARRAY()

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment that the stream belongs to."""
        return self._env

    def get_execution_config(self) -> ExecutionConfig:
        """Return the execution config of the environment."""
        return self._env.get_config()

    def set_max_parallelism(self: S, max_parallelism: int) -> S:
        """Set the max parallelism: the number of key groups, and the highest parallelism after a rescale.

        Args:
            max_parallelism: From 1 to 32768.

        Raises:
            UserError: The number is not possible.

        """
        if not isinstance(max_parallelism, int) or not 0 < max_parallelism <= 32768:
            msg = f"a max parallelism of {max_parallelism!r} is not possible"
            raise InvalidArgument(msg, hint="use a number from 1 to 32768")
        return self._change(max_parallelism=max_parallelism)

    def force_non_parallel(self: S) -> S:
        """Run the operator with a parallelism and a max parallelism of 1."""
        return self._change(parallelism=1, max_parallelism=1)

    def set_buffer_timeout(self: S, timeout_millis: int) -> S:
        """Accept the timeout without effect: epochs have no network buffers that could wait.

        Args:
            timeout_millis: Milliseconds.

        """
        if timeout_millis < -1:
            msg = f"a buffer timeout of {timeout_millis} ms is not possible"
            raise InvalidArgument(msg)
        return self

    def start_new_chain(self: S) -> S:
        """Start a new operator chain with this operator."""
        return self._change(chaining=Chaining.HEAD)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.get_name()!r}, {self.get_type()})"

    def _repr_html_(self) -> str:
        """Show the stream in a notebook, with the plan of its program."""
        return html.text(repr(self)) + self._env._repr_html_()

    # ---------------------------------------------------------------------------------------------- record by record

    def _apply(self, name: str, spec: Any, output_type: TypeInformation, **more: Any) -> DataStream:
        transformation = self._env._program.add(name, spec, output_type, self._inputs, **more)
        return DataStream(self._env, (Input(transformation),))

    def _keyed(self) -> dict[str, Any]:
        """Return the arguments that describe the stream's key to a transformation."""
        return {}

    def _key_selection(self) -> KeySelection | None:
        return None

    def map(
        self, func: Callable[[T], R] | MapFunction[T, R], output_type: TypeInformation | None = None
    ) -> DataStream[R]:
        """Replace each record by the result of a function.

        Args:
            func: A function of one record, or a `MapFunction`.
            output_type: The type of the results. Without it, the annotation of the function counts; without an
                annotation, results are untyped Python objects.

        Returns:
            The stream of the results.

        Example:
            >>> from millstream.common import Types
            >>> from millstream.datastream import StreamExecutionEnvironment
            >>> env = StreamExecutionEnvironment.get_execution_environment()
            >>> doubled = env.from_collection([1, 2]).map(lambda number: 2 * number, Types.LONG())

        """
        function: MapFunction = as_function(func, MapFunction)
        result_type = output_type_of(output_type, func, "map")
        return self._apply("Map", ElementwiseSpec(function, self._key_selection()), result_type, **self._keyed())

    def flat_map(
        self, func: Callable[[T], Iterable[R]] | FlatMapFunction[T, R], output_type: TypeInformation | None = None
    ) -> DataStream[R]:
        """Replace each record by any number of records.

        Args:
            func: A function that returns or yields records, or a `FlatMapFunction`.
            output_type: The type of one result; see `map`.

        Returns:
            The stream of the results.

        """
        function: FlatMapFunction = as_function(func, FlatMapFunction)
        result_type = output_type_of(output_type, func, "flat_map", element=True)
        return self._apply("Flat Map", ElementwiseSpec(function, self._key_selection()), result_type, **self._keyed())

    def filter(self, func: Callable[[T], bool] | FilterFunction[T]) -> DataStream[T]:
        """Keep the records for which a function returns True.

        Args:
            func: A function of the record, or a `FilterFunction`.

        """
        function: FilterFunction = as_function(func, FilterFunction)
        return self._apply("Filter", ElementwiseSpec(function, self._key_selection()), self.get_type(), **self._keyed())

    def project(self, *field_indexes: int) -> DataStream[tuple[Any, ...]]:
        """Keep some fields of tuples or rows.

        Args:
            *field_indexes: The indexes of the fields, in the order of the result.

        Raises:
            UserError: The stream has no fields, or an index is out of range.

        """
        return self.map(*select_fields(self.get_type(), field_indexes)).name("Projection")

    def process(self, func: ProcessFunction[T, R], output_type: TypeInformation | None = None) -> DataStream[R]:
        """Apply a `ProcessFunction`, which can emit to side outputs and read the time.

        Args:
            func: The function.
            output_type: The type of one result; see `map`.

        """
        function: ProcessFunction = as_function(func, ProcessFunction)
        return self._apply("PROCESS", ProcessSpec(function), output_type_of(output_type, func, "process_element", True))

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream[T]:
        """Assign event-time timestamps to records, and generate watermarks.

        Args:
            watermark_strategy: How timestamps are extracted and watermarks generated.

        """
        return self._apply("Timestamps/Watermarks", TimestampsSpec(watermark_strategy), self.get_type())

    def get_side_output(self, output_tag: OutputTag) -> DataStream[Any]:
        """Return the side output with this tag of the operator that creates the stream.

        Args:
            output_tag: The tag of the side output.

        """
        side_type = output_tag.type_info or Types.PICKLED_BYTE_ARRAY()
        self._env._program.declare_side(self._id, output_tag.tag_id, side_type)
        return DataStream(self._env, (Input(self._id, tag=output_tag.tag_id),))

    # ------------------------------------------------------------------------------------------------ partitioning

    def _through(self, partitioner: partitioners.Partitioner) -> DataStream[T]:
        return DataStream(
            self._env, tuple(Input(edge.upstream, tag=edge.tag, partitioner=partitioner) for edge in self._inputs)
        )

    def rebalance(self) -> DataStream[T]:
        """Partition records round-robin over all subtasks of the next operator."""
        return self._through(partitioners.Rebalance())

    def rescale(self) -> DataStream[T]:
        """Partition records round-robin over the subtasks of the next operator that belong to this subtask."""
        return self._through(partitioners.Rescale())

    def shuffle(self) -> DataStream[T]:
        """Partition records randomly and evenly; a replay of an epoch partitions them in the same way."""
        return self._through(partitioners.Shuffle())

    def forward(self) -> DataStream[T]:
        """Send records to the subtask of the next operator with the same index."""
        return self._through(partitioners.Forward())

    def global_(self) -> DataStream[T]:
        """Send all records to the first subtask of the next operator."""
        return self._through(partitioners.Global())

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> Any:
        """Send every record to every subtask of the next operator.

        Args:
            broadcast_state_descriptor: With a descriptor, the result is a `BroadcastStream` for `connect`.
            *other_broadcast_state_descriptors: Further broadcast states.

        """
        stream = self._through(partitioners.Broadcast())
        if broadcast_state_descriptor is None:
            return stream
        return BroadcastStream(stream, (broadcast_state_descriptor, *other_broadcast_state_descriptors))

    def partition_custom(
        self,
        partitioner: Callable[[KEY, int], int] | Partitioner[KEY],
        key_selector: Callable[[T], KEY] | KeySelector[T, KEY],
    ) -> DataStream[T]:
        """Send each record to the subtask that a function chooses.

        Args:
            partitioner: A function of the key and the number of subtasks that returns the index of a subtask.
            key_selector: A function that returns the key of a record.

        """
        custom: Partitioner = as_function(partitioner, Partitioner)
        return self._through(partitioners.Custom(key_selection(self, key_selector, None), custom.partition))

    @overload
    def key_by(
        self, key_selector: Callable[[T], KEY] | KeySelector[T, KEY], key_type: TypeInformation | None = None
    ) -> KeyedStream[KEY, T]: ...
    @overload
    def key_by(self, key_selector: str | int, key_type: TypeInformation | None = None) -> KeyedStream[Any, T]: ...

    def key_by(
        self,
        key_selector: Callable[[T], Any] | KeySelector[T, Any] | str | int,
        key_type: TypeInformation | None = None,
    ) -> KeyedStream[Any, T]:
        """Partition records by key.

        Args:
            key_selector: A function that returns the key of a record, a `KeySelector`, or the name or index of a
                field. Keys by field are computed on whole columns.
            key_type: The type of the key. Without it, the annotation of the function counts.

        Returns:
            A keyed stream, on which functions can use keyed state and timers.

        """
        return KeyedStream(self, key_selection(self, key_selector, key_type))

    if not TYPE_CHECKING:  # type checkers shall report unknown methods

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(explain_missing_method(name, type(self), KeyedStream))

    def __iter__(self) -> NoReturn:
        message = "a stream cannot be iterated over: its records exist when the job runs"
        raise InvalidArgumentType(message, hint="use execute_and_collect()")

    # --------------------------------------------------------------------------------------------- several streams

    def union(self, *streams: DataStream[Any]) -> DataStream[T]:
        """Merge this stream with other streams of the same type.

        Args:
            *streams: The other streams.

        """
        given: tuple[object, ...] = streams
        for stream in given:
            if not isinstance(stream, DataStream):
                message = f"union takes streams, not {type(stream).__name__}"
                raise InvalidArgumentType(message, hint="make a stream of the data first: env.from_collection(...)")
        return DataStream(self._env, tuple(edge for stream in (self, *streams) for edge in stream._inputs))

    def connect(self, ds: DataStream | BroadcastStream) -> Any:
        """Connect two streams, which keep their types, so that one function can process both.

        Args:
            ds: Another stream, or a `BroadcastStream`.

        Returns:
            `ConnectedStreams`, or a `BroadcastConnectedStream`.

        """
        if isinstance(ds, BroadcastStream):
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        return ConnectedStreams(self, ds)

    def join(self, other_stream: DataStream) -> JoinedStreams:
        """Join two streams in windows: `join(other).where(key).equal_to(key).window(assigner).apply(function)`.

        Args:
            other_stream: The other stream.

        """
        return JoinedStreams(self, other_stream)

    def co_group(self, other_stream: DataStream) -> CoGroupedStreams:
        """Group two streams in windows: `co_group(other).where(key).equal_to(key).window(assigner).apply(function)`.

        Args:
            other_stream: The other stream.

        """
        return CoGroupedStreams(self, other_stream)

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream[T]:
        """Group the whole stream into windows; one subtask processes them all.

        Args:
            window_assigner: Assigns records to windows.

        """
        return AllWindowedStream(self, window_assigner)

    # ----------------------------------------------------------------------------------------------------- the end

    def sink_to(self, sink: Any) -> DataStreamSink:
        """Write the records to a sink.

        Args:
            sink: A sink such as `FileSink`, `KafkaSink` or one of your own.

        Raises:
            UserError: The argument is not a sink, for example a builder without `.build()`.

        """
        if not isinstance(sink, Sink):
            msg = f"{sink!r} is not a sink"
            raise InvalidArgumentType(msg, hint="build it first: FileSink...build()")
        name = f"Sink: {type(sink).__name__}"
        transformation = self._env._program.add(name, SinkSpec(sink), self.get_type(), self._inputs, sink=sink)
        return DataStreamSink(self._env, (Input(transformation),))

    def add_sink(self, sink_func: SinkFunction | Sink | Callable[[Any], Any]) -> DataStreamSink:
        """Call a function for every record, at least once. Use `sink_to` for exactly-once output.

        Args:
            sink_func: The function, a sink function, or a sink.

        """
        if isinstance(sink_func, Sink):
            return self.sink_to(sink_func)
        if hasattr(sink_func, "to_sink"):  # an older name of a sink, such as FlinkKafkaProducer
            return self.sink_to(sink_func.to_sink())
        function = sink_func if isinstance(sink_func, Function | type) else SinkFunction(sink_func)
        spec = SinkFunctionSpec(as_function(function, SinkFunction))
        transformation = self._env._program.add("Sink: Unnamed", spec, self.get_type(), self._inputs)
        return DataStreamSink(self._env, (Input(transformation),))

    def cache(self) -> CachedDataStream[T]:
        """Store the records of this bounded stream when a job first uses the result; later jobs read them."""
        return CachedDataStream(self._env, Cache(self._env._caches, self._env._program, self._inputs, self.get_type()))

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print the records on standard output.

        Args:
            sink_identifier: A prefix of each line.

        """
        sink = PrintSink(RecordFormat.of(self.get_type()), sink_identifier)
        return self.sink_to(sink).name("Sink: Print to Std. Out")

    def execute_and_collect(self, job_execution_name: str | None = None, limit: int | None = None) -> Any:
        """Run the program and collect the records of this stream.

        Args:
            job_execution_name: The name of the job.
            limit: The number of records to wait for.

        Returns:
            An iterator that must be closed, or with a limit a list.

        """
        return collect(self, job_execution_name, limit)


class KeyedStream(WithoutOperator, RunningAggregates, DataStream[T], Generic[K, T]):
    """A stream that is partitioned by a key of type `K`: functions on it can use keyed state and timers.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> sales = env.from_collection([("ann", 3), ("bob", 5), ("ann", 4)]).key_by(lambda sale: sale[0])
        >>> totals = sales.reduce(lambda first, second: (first[0], first[1] + second[1]))
        >>> sorted(totals.execute_and_collect())
        [('ann', 3), ('ann', 7), ('bob', 5)]

    """

    def __init__(
        self, stream: DataStream[T], key: KeySelection, partitioner: partitioners.Partitioner | None = None
    ) -> None:
        by_key = partitioner or partitioners.Hash(key)
        exchange = tuple(Input(edge.upstream, tag=edge.tag, partitioner=by_key) for edge in stream._inputs)
        super().__init__(stream._env, exchange)
        self._origin = stream
        self._key = key

    def _keyed(self) -> dict[str, Any]:
        return {"key_type": self._key.key_type}

    def _key_selection(self) -> KeySelection:
        return self._key

    def execute_and_collect(self, job_execution_name: str | None = None, limit: int | None = None) -> Any:
        """Run the program and collect the records of this stream with their keys.

        Args:
            job_execution_name: The name of the job.
            limit: The number of records to wait for.

        Returns:
            An iterator that must be closed, or with a limit a list. Each item is a `Row(f0=key, f1=record)`, as in
            PyFlink; collect the stream before `key_by` for the records alone.

        """
        pair_type = Types.ROW([self._key.key_type, self.get_type()])
        return collect(self.process(PairWithKey(), pair_type).name("Pair with key"), job_execution_name, limit)

    def process(
        self, func: KeyedProcessFunction[K, T, R] | ProcessFunction[T, R], output_type: TypeInformation | None = None
    ) -> DataStream[R]:
        """Apply a `KeyedProcessFunction`, which can use keyed state, timers and side outputs.

        Args:
            func: The function; a `ProcessFunction` is possible too, and has no timers.
            output_type: The type of one result; see `map`.

        Returns:
            The stream of the results, without a key.

        """
        if isinstance(func, ProcessFunction):
            result_type = output_type_of(output_type, func, "process_element", True)
            return self._apply("PROCESS", ProcessSpec(func), result_type, **self._keyed())
        function: KeyedProcessFunction = as_function(func, KeyedProcessFunction)
        result_type = output_type_of(output_type, func, "process_element", True)
        return self._apply("KEYED PROCESS", ProcessSpec(function, (self._key,)), result_type, **self._keyed())

    def reduce(self, func: Callable[[T, T], T] | ReduceFunction[T]) -> DataStream[T]:
        """Reduce the records of each key, and emit the current value after every record."""
        function: ReduceFunction = as_function(func, ReduceFunction)
        return self._apply("Reduce", ReduceSpec(function, self._key), self.get_type(), **self._keyed())

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream[K, T]:
        """Group the records of each key into windows.

        Args:
            window_assigner: Assigns records to windows.

        """
        return WindowedStream(self, window_assigner)

    def interval_join(self, other_stream: KeyedStream[K, Any]) -> IntervalJoin:
        """Join records whose timestamps differ by a bounded interval: `.between(lower, upper).process(function)`.

        Args:
            other_stream: The other stream, with keys of the same type.

        """
        return IntervalJoin(self, other_stream)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream[K, T]:
        """Group the records of each key into windows of a number of records.

        Args:
            size: The number of records of a window.
            slide: With a slide, a window starts every `slide` records.

        """
        if slide == 0:
            return WindowedStream(self, CountTumblingWindowAssigner(size))
        return WindowedStream(self, CountSlidingWindowAssigner(size, slide))

    @overload
    def key_by(
        self, key_selector: Callable[[T], KEY] | KeySelector[T, KEY], key_type: TypeInformation | None = None
    ) -> KeyedStream[KEY, T]: ...
    @overload
    def key_by(self, key_selector: str | int, key_type: TypeInformation | None = None) -> KeyedStream[Any, T]: ...

    def key_by(
        self,
        key_selector: Callable[[T], Any] | KeySelector[T, Any] | str | int,
        key_type: TypeInformation | None = None,
    ) -> KeyedStream[Any, T]:
        """Partition records by another key."""
        return self._origin.key_by(key_selector, key_type)

    def union(self, *streams: DataStream[Any]) -> DataStream[T]:
        """Merge this stream with other streams; the result has no key."""
        return self._origin.union(
            *(stream._origin if isinstance(stream, KeyedStream) else stream for stream in streams)
        )

    def _refuse(self) -> Any:
        msg = "this is not possible on a keyed stream"
        raise NotSupportedHere(msg, hint="call it before key_by, or on the result of process")

    def get_name(self) -> str:
        """Return the name of the operator before `key_by`."""
        return self._origin.get_name()

    def rebalance(self) -> Any:
        """Refuse: a keyed stream is partitioned by its key."""
        return self._refuse()

    def rescale(self) -> Any:
        """Refuse: a keyed stream is partitioned by its key."""
        return self._refuse()

    def shuffle(self) -> Any:
        """Refuse: a keyed stream is partitioned by its key."""
        return self._refuse()

    def forward(self) -> Any:
        """Refuse: a keyed stream is partitioned by its key."""
        return self._refuse()

    def broadcast(self, *args: Any) -> Any:
        """Refuse: a keyed stream is partitioned by its key."""
        return self._refuse()

    def cache(self) -> Any:
        """Refuse: cache the stream before `key_by`, or the result of an operator after it."""
        return self._refuse()

    def partition_custom(
        self,
        partitioner: Callable[[KEY, int], int] | Partitioner[KEY],
        key_selector: Callable[[T], KEY] | KeySelector[T, KEY],
    ) -> Any:
        """Refuse: a keyed stream is partitioned by its key."""
        return self._refuse()


class CachedDataStream(WithoutOperator, DataStream[T]):
    """A stream whose records the first job that uses it stores; later jobs of the environment read the stored records.

    The records are deleted when the environment is closed. A cached stream is not an operator: set name and parallelism
    on the stream before `cache()`.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> lengths = env.from_collection(["to be", "or not"]).map(len).cache()
        >>> sum(lengths.execute_and_collect()), max(lengths.execute_and_collect())
        (11, 6)

    """

    def __init__(self, env: StreamExecutionEnvironment, cache: Cache) -> None:
        self._env = env
        self._cache = cache

    @property
    def _inputs(self) -> tuple[Input, ...]:  # type: ignore[override]
        return self._cache.inputs()

    def get_type(self) -> TypeInformation:
        """Return the type of the records."""
        return self._cache.output_type

    def invalidate(self) -> None:
        """Delete the stored records; the next job that uses the stream computes and stores them again."""
        self._cache.invalidate()

    def __repr__(self) -> str:
        return f"CachedDataStream({self._cache.output_type})"

    def _refuse(self) -> Any:
        msg = "this is not possible on a cached stream"
        raise NotSupportedHere(msg, hint="call it before cache()")

    def get_name(self) -> str:
        """Refuse: a cached stream is not an operator."""
        return self._refuse()  # type: ignore[no-any-return]

    def set_description(self, description: str) -> Any:
        """Refuse: a cached stream is not an operator."""
        return self._refuse()
