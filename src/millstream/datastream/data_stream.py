"""DataStream, KeyedStream and their kin: a program is written by calling their methods.

Promises: PyFlink's names, signatures and defaults; each call records one transformation and gives the stream after it.
Does not know: graphs beyond transformations, engines, state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from millstream.connector.sink import Sink
from millstream.connectors.printing import PrintSink, Spelling
from millstream.datastream.caching import Cache
from millstream.datastream.call_types import key_selection, output_type_of
from millstream.datastream.collecting import CloseableIterator, collect
from millstream.datastream.connected_streams import BroadcastConnectedStream, BroadcastStream, ConnectedStreams
from millstream.datastream.joined_streams import CoGroupedStreams, IntervalJoin, JoinedStreams
from millstream.datastream.operator_settings import Named, NoOperator, NotHere
from millstream.datastream.running_aggregates import RunningAggregates
from millstream.datastream.windowed_stream import AllWindowedStream, WindowedStream
from millstream.errors import UserError
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

S = TypeVar("S", bound="DataStream")


class DataStream(Named):
    """A stream of records."""

    def __init__(self, env: StreamExecutionEnvironment, inputs: tuple[Input, ...]) -> None:
        self._env = env
        self._inputs = inputs

    # ------------------------------------------------------------------------------------ about the stream itself

    def get_name(self) -> str:
        """The operator's name."""
        return self._env._program.get(self._id).name

    def get_type(self) -> TypeInformation:
        """The type of the records."""
        kinds = {self._env._program.type_of(given) for given in self._inputs}
        return kinds.pop() if len(kinds) == 1 else Types.PICKLED_BYTE_ARRAY()

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment the stream belongs to."""
        return self._env

    def get_execution_config(self) -> ExecutionConfig:
        """The environment's execution config."""
        return self._env.get_config()

    def set_max_parallelism(self: S, max_parallelism: int) -> S:
        """The most subtasks the operator may ever be rescaled to."""
        if not isinstance(max_parallelism, int) or not 0 < max_parallelism <= 32768:
            msg = f"a max parallelism of {max_parallelism!r} is not possible"
            raise UserError(msg, hint="give 1 to 32768")
        return self._change(max_parallelism=max_parallelism)

    def force_non_parallel(self: S) -> S:
        """Run the operator in one subtask."""
        return self._change(parallelism=1, max_parallelism=1)

    def set_buffer_timeout(self: S, timeout_millis: int) -> S:
        """Accepted for PyFlink programs: epochs have no buffers that could wait."""
        if timeout_millis < -1:
            msg = f"a buffer timeout of {timeout_millis} ms is not possible"
            raise UserError(msg)
        return self

    def start_new_chain(self: S) -> S:
        """Begin a new chain with this operator."""
        return self._change(chaining=Chaining.HEAD)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.get_name()!r}, {self.get_type()})"

    # ---------------------------------------------------------------------------------------------- record by record

    def _apply(self, name: str, spec: Any, kind: TypeInformation, **more: Any) -> DataStream:
        number = self._env._program.add(name, spec, kind, self._inputs, **more)
        return DataStream(self._env, (Input(number),))

    def _keyed(self) -> dict[str, Any]:
        """What a transformation of this stream must know of its key."""
        return {}

    def _key_selection(self) -> KeySelection | None:
        return None

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One record in, one out."""
        function = as_function(func, MapFunction)
        kind = output_type_of(output_type, func, "map")
        return self._apply("Map", ElementwiseSpec(function, self._key_selection()), kind, **self._keyed())

    def flat_map(
        self, func: Callable[[Any], Iterable[Any]] | FlatMapFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """One record in, any number out."""
        function = as_function(func, FlatMapFunction)
        kind = output_type_of(output_type, func, "flat_map", element=True)
        return self._apply("Flat Map", ElementwiseSpec(function, self._key_selection()), kind, **self._keyed())

    def filter(self, func: Callable[[Any], bool] | FilterFunction) -> DataStream:
        """Keep the records the function says yes to."""
        function = as_function(func, FilterFunction)
        return self._apply("Filter", ElementwiseSpec(function, self._key_selection()), self.get_type(), **self._keyed())

    def project(self, *field_indexes: int) -> DataStream:
        """Keep some fields of tuples, in the order given."""
        kind = self.get_type()
        fields = getattr(kind, "field_types", None)
        if fields is None:
            msg = f"project needs a stream of tuples or rows, not of {kind}"
            raise UserError(msg, hint="give output_type=Types.TUPLE")
        wrong = [index for index in field_indexes if not 0 <= index < len(fields)]
        if wrong or not field_indexes:
            msg = f"project({', '.join(map(str, field_indexes))}): fields are 0 to {len(fields) - 1}"
            raise UserError(msg)
        chosen = tuple(field_indexes)
        kept = Types.TUPLE([fields[index] for index in chosen])
        return self.map(lambda record: tuple(record[index] for index in chosen), kept).name("Projection")

    def process(self, func: ProcessFunction, output_type: TypeInformation | None = None) -> DataStream:
        """A function with side outputs and the time in its hands."""
        function = as_function(func, ProcessFunction)
        return self._apply("PROCESS", ProcessSpec(function), output_type_of(output_type, func, "process_element", True))

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        """Give records timestamps and the stream watermarks."""
        return self._apply("Timestamps/Watermarks", TimestampsSpec(watermark_strategy), self.get_type())

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """The records a function before sent to a tag."""
        kind = output_tag.type_info or Types.PICKLED_BYTE_ARRAY()
        self._env._program.declare_side(self._id, output_tag.tag_id, kind)
        return DataStream(self._env, (Input(self._id, tag=output_tag.tag_id),))

    # ------------------------------------------------------------------------------------------------ partitioning

    def _through(self, partitioner: partitioners.Partitioner) -> DataStream:
        return DataStream(
            self._env, tuple(Input(each.upstream, tag=each.tag, partitioner=partitioner) for each in self._inputs)
        )

    def rebalance(self) -> DataStream:
        """Deal records out in turn."""
        return self._through(partitioners.Rebalance())

    def rescale(self) -> DataStream:
        """Deal records out in turn, to near subtasks only."""
        return self._through(partitioners.Rescale())

    def shuffle(self) -> DataStream:
        """Deal records out evenly by a seeded choice."""
        return self._through(partitioners.Shuffle())

    def forward(self) -> DataStream:
        """Keep records in their subtask."""
        return self._through(partitioners.Forward())

    def global_(self) -> DataStream:
        """Send everything to the first subtask."""
        return self._through(partitioners.Global())

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> Any:
        """Send every record to every subtask; with descriptors, for the broadcast state pattern."""
        stream = self._through(partitioners.Broadcast())
        if broadcast_state_descriptor is None:
            return stream
        return BroadcastStream(stream, (broadcast_state_descriptor, *other_broadcast_state_descriptors))

    def partition_custom(
        self,
        partitioner: Callable[[Any, int], int] | Partitioner,
        key_selector: Callable[[Any], Any] | KeySelector,
    ) -> DataStream:
        """Send each record to the subtask a function of its key names."""
        choose = as_function(partitioner, Partitioner).partition
        return self._through(partitioners.Custom(key_selection(self, key_selector, None), choose))

    def key_by(
        self, key_selector: Callable[[Any], Any] | KeySelector | str | int, key_type: TypeInformation | None = None
    ) -> KeyedStream:
        """Group records by key: by a function of the record, or by the name or position of a field."""
        return KeyedStream(self, key_selection(self, key_selector, key_type))

    # --------------------------------------------------------------------------------------------- several streams

    def union(self, *streams: DataStream) -> DataStream:
        """The records of this and other streams of the same type."""
        return DataStream(self._env, tuple(each for stream in (self, *streams) for each in stream._inputs))

    def connect(self, ds: DataStream | BroadcastStream) -> Any:
        """Two streams side by side, with their types kept, or a stream beside broadcast state."""
        if isinstance(ds, BroadcastStream):
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        return ConnectedStreams(self, ds)

    def join(self, other_stream: DataStream) -> JoinedStreams:
        """Pairs of records of two streams: `join(other).where(key).equal_to(key).window(assigner).apply(function)`."""
        return JoinedStreams(self, other_stream)

    def co_group(self, other_stream: DataStream) -> CoGroupedStreams:
        """Groups of records of two streams: `co_group(other).where(key).equal_to(key).window(assigner).apply(...)`."""
        return CoGroupedStreams(self, other_stream)

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Windows over the whole stream, in one subtask."""
        return AllWindowedStream(self, window_assigner)

    # ----------------------------------------------------------------------------------------------------- the end

    def sink_to(self, sink: Any) -> DataStreamSink:
        """Send the records to a sink."""
        if not isinstance(sink, Sink):
            msg = f"{sink!r} is not a sink"
            raise UserError(msg, hint="build it first: FileSink...build()")
        name = f"Sink: {type(sink).__name__}"
        number = self._env._program.add(name, SinkSpec(sink), self.get_type(), self._inputs, sink=sink)
        return DataStreamSink(self._env, (Input(number),))

    def add_sink(self, sink_func: SinkFunction | Sink | Callable[[Any], Any]) -> DataStreamSink:
        """Give every record to a function, at least once; `sink_to` is for sinks that show each record once."""
        if isinstance(sink_func, Sink):
            return self.sink_to(sink_func)
        given = sink_func if isinstance(sink_func, Function | type) else SinkFunction(sink_func)
        spec = SinkFunctionSpec(as_function(given, SinkFunction))
        number = self._env._program.add("Sink: Unnamed", spec, self.get_type(), self._inputs)
        return DataStreamSink(self._env, (Input(number),))

    def cache(self) -> CachedDataStream:
        """Keep the records of this bounded stream with the first job that uses the result, for jobs that follow."""
        return CachedDataStream(self._env, Cache(self._env._caches, self._env._program, self._inputs, self.get_type()))

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print the records on standard output."""
        sink = PrintSink(sink_identifier, spelling=Spelling.of(self.get_type()))
        return self.sink_to(sink).name("Sink: Print to Std. Out")

    def execute_and_collect(self, job_execution_name: str | None = None, limit: int | None = None) -> Any:
        """Run the program and read its results: an iterator, or with a limit a list of the first ones."""
        return collect(self, job_execution_name, limit)


class DataStreamSink(Named):
    """The end of a stream."""

    def __init__(self, env: StreamExecutionEnvironment, inputs: tuple[Input, ...]) -> None:
        self._env = env
        self._inputs = inputs

    def __repr__(self) -> str:
        return f"DataStreamSink({self._env._program.get(self._id).name!r})"


class KeyedStream(NoOperator, RunningAggregates, DataStream):
    """A stream whose records are grouped by key: functions on it may use keyed state and timers."""

    def __init__(
        self, stream: DataStream, key: KeySelection, partitioner: partitioners.Partitioner | None = None
    ) -> None:
        by_key = partitioner or partitioners.Hash(key)
        exchange = tuple(Input(each.upstream, tag=each.tag, partitioner=by_key) for each in stream._inputs)
        super().__init__(stream._env, exchange)
        self._origin = stream
        self._key = key

    def _keyed(self) -> dict[str, Any]:
        return {"key_type": self._key.key_type}

    def _key_selection(self) -> KeySelection:
        return self._key

    def process(self, func: Any, output_type: TypeInformation | None = None) -> DataStream:
        """A function with state, timers and side outputs."""
        if isinstance(func, ProcessFunction):
            kind = output_type_of(output_type, func, "process_element", True)
            return self._apply("PROCESS", ProcessSpec(func), kind, **self._keyed())
        function = as_function(func, KeyedProcessFunction)
        kind = output_type_of(output_type, func, "process_element", True)
        return self._apply("KEYED PROCESS", ProcessSpec(function, (self._key,)), kind, **self._keyed())

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """A running reduce: the new value of the key after every record."""
        function = as_function(func, ReduceFunction)
        return self._apply("Reduce", ReduceSpec(function, self._key), self.get_type(), **self._keyed())

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """Windows by key."""
        return WindowedStream(self, window_assigner)

    def interval_join(self, other_stream: KeyedStream) -> IntervalJoin:
        """Pairs whose times are near: `interval_join(other).between(lower, upper).process(function)`."""
        return IntervalJoin(self, other_stream)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Windows of a number of records by key."""
        if slide == 0:
            return WindowedStream(self, CountTumblingWindowAssigner(size))
        return WindowedStream(self, CountSlidingWindowAssigner(size, slide))

    def key_by(
        self, key_selector: Callable[[Any], Any] | KeySelector | str | int, key_type: TypeInformation | None = None
    ) -> KeyedStream:
        """Group by another key."""
        return self._origin.key_by(key_selector, key_type)

    def union(self, *streams: DataStream) -> DataStream:
        """The records of this and other streams; the result has no key."""
        return self._origin.union(*(each._origin if isinstance(each, KeyedStream) else each for each in streams))

    def _refused(self) -> Any:
        msg = "this is not possible on a keyed stream"
        raise NotHere(msg, hint="call it before key_by, or on the result of process")

    def get_name(self) -> str:
        """The name of the operator before."""
        return self._origin.get_name()

    def rebalance(self) -> Any:
        """A keyed stream is partitioned already."""
        return self._refused()

    def rescale(self) -> Any:
        """A keyed stream is partitioned already."""
        return self._refused()

    def shuffle(self) -> Any:
        """A keyed stream is partitioned already."""
        return self._refused()

    def forward(self) -> Any:
        """A keyed stream is partitioned already."""
        return self._refused()

    def broadcast(self, *args: Any) -> Any:
        """A keyed stream is partitioned already."""
        return self._refused()

    def cache(self) -> Any:
        """A keyed stream is no operator; cache the one before or after."""
        return self._refused()

    def partition_custom(
        self,
        partitioner: Callable[[Any, int], int] | Partitioner,
        key_selector: Callable[[Any], Any] | KeySelector,
    ) -> Any:
        """A keyed stream is partitioned already."""
        return self._refused()


class CachedDataStream(NoOperator, DataStream):
    """A stream whose records are kept by the first job that uses it, until the environment is closed.

    Later jobs of the environment read what was kept. It is no operator: name or scale the one before."""

    def __init__(self, env: StreamExecutionEnvironment, cache: Cache) -> None:
        self._env = env
        self._cache = cache

    @property
    def _inputs(self) -> tuple[Input, ...]:  # type: ignore[override]
        return self._cache.inputs()

    def get_type(self) -> TypeInformation:
        """The type of the records."""
        return self._cache.kind

    def invalidate(self) -> None:
        """Delete what was kept; the stream is computed, and kept, again when it is used again."""
        self._cache.invalidate()

    def __repr__(self) -> str:
        return f"CachedDataStream({self._cache.kind})"

    def _refused(self) -> Any:
        msg = "this is not possible on a cached stream"
        raise NotHere(msg, hint="call it before cache()")

    def get_name(self) -> str:
        """A cached stream is no operator."""
        return self._refused()  # type: ignore[no-any-return]

    def set_description(self, description: str) -> Any:
        """A cached stream is no operator."""
        return self._refused()
