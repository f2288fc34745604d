"""Connected streams: two streams that one function processes, or a stream with broadcast state.

Promises: PyFlink's names; the first stream is input 0, the second input 1.
Does not know: the class DataStream; the environment creates the resulting streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from millstream.datastream.call_types import result_type
from millstream.errors import InvalidArgumentType, UserError
from millstream.functions import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeySelector,
    as_function,
)
from millstream.graph.transformations import Input
from millstream.runtime.keys import KeySelection
from millstream.runtime.operators.broadcast import BroadcastSpec
from millstream.runtime.operators.process import CoElementwiseSpec, ProcessSpec
from millstream.state_descriptors.descriptors import MapStateDescriptor
from millstream.types.factory import TypeInformation

if TYPE_CHECKING:
    from millstream.datastream.data_stream import DataStream


def _as_second_input(inputs: tuple[Input, ...]) -> tuple[Input, ...]:
    return tuple(Input(edge.upstream, 1, edge.tag, edge.partitioner) for edge in inputs)


class ConnectedStreams:
    """Two streams, each with its own type, that one function processes.

    Example:
        >>> from millstream.datastream import CoMapFunction, StreamExecutionEnvironment
        >>> class Label(CoMapFunction):
        ...     def map1(self, value):
        ...         return f"number {value}"
        ...     def map2(self, value):
        ...         return f"word {value}"
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> labels = env.from_collection([1]).connect(env.from_collection(["a"])).map(Label())

    """

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(
        self,
        key_selector1: Callable[[Any], Any] | KeySelector,
        key_selector2: Callable[[Any], Any] | KeySelector,
        key_type: TypeInformation | None = None,
    ) -> ConnectedStreams:
        """Partition both streams by key: records with equal keys are processed by the same subtask.

        Args:
            key_selector1: A function that returns the key of a record of the first stream.
            key_selector2: A function that returns the key of a record of the second stream.
            key_type: The type of the keys.

        """
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type), self.stream2.key_by(key_selector2, key_type)
        )

    def _keys(self) -> tuple[KeySelection, ...]:
        first_key, second_key = self.stream1._key_selection(), self.stream2._key_selection()
        if (first_key is None) != (second_key is None):
            msg = "one of the connected streams is keyed and the other is not"
            raise UserError(msg, hint="key both or neither")
        return () if first_key is None or second_key is None else (first_key, second_key)

    def _apply(self, name: str, spec: Any, output_type: TypeInformation) -> DataStream:
        inputs = self.stream1._inputs + _as_second_input(self.stream2._inputs)
        env = self.stream1._env
        transformation = env._program.add(name, spec, output_type, inputs, **self.stream1._keyed())
        return env._stream(transformation)

    def map(self, func: CoMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Replace each record by one result: of `map1` in the first stream, of `map2` in the second.

        Args:
            func: The function.
            output_type: The type of the results; see `DataStream.map`.

        """
        function: CoMapFunction = as_function(func, CoMapFunction)
        result_type_info = result_type(output_type, function.map1, element=False)
        return self._apply("Co-Map", CoElementwiseSpec(function, self._keys()), result_type_info)

    def flat_map(self, func: CoFlatMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Replace each record by any number of results: of `flat_map1` in the first stream, of `flat_map2` in the
        second.

        Args:
            func: The function.
            output_type: The type of the results; None means that they are pickled.

        """
        function: CoFlatMapFunction = as_function(func, CoFlatMapFunction)
        result_type_info = result_type(output_type, function.flat_map1, element=True)
        return self._apply("Co-Flat Map", CoElementwiseSpec(function, self._keys()), result_type_info)

    def process(
        self, func: CoProcessFunction | KeyedCoProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Apply a function that can use state, timers and side outputs to both streams.

        Args:
            func: A `KeyedCoProcessFunction` if both streams are keyed, otherwise a `CoProcessFunction`.
            output_type: The type of the results; see `DataStream.map`.

        """
        keys = self._keys()
        function: Any = as_function(func, KeyedCoProcessFunction if keys else CoProcessFunction)
        result_type_info = result_type(output_type, function.process_element1, element=True)
        return self._apply("Keyed Co-Process" if keys else "Co-Process", ProcessSpec(function, keys), result_type_info)


class BroadcastStream:
    """A stream that every subtask receives, with the descriptors of its broadcast state.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.datastream.state import MapStateDescriptor
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> rates = env.from_collection([("EUR", 1.1)]).broadcast(MapStateDescriptor("rates", str, float))

    """

    def __init__(self, input_stream: DataStream, broadcast_state_descriptors: Sequence[Any]) -> None:
        for descriptor in broadcast_state_descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                msg = f"broadcast state needs a MapStateDescriptor, not {descriptor!r}"
                raise InvalidArgumentType(msg, hint="pass MapStateDescriptors to broadcast()")
        self.input_stream = input_stream
        self.broadcast_state_descriptors = tuple(broadcast_state_descriptors)


class BroadcastConnectedStream:
    """A stream connected with a broadcast stream.

    Example:
        >>> from millstream.datastream import BroadcastProcessFunction, StreamExecutionEnvironment
        >>> from millstream.datastream.state import MapStateDescriptor
        >>> RATES = MapStateDescriptor("rates", str, float)
        >>> class Convert(BroadcastProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield value[1] * (ctx.get_broadcast_state(RATES).get(value[0]) or 1.0)
        ...     def process_broadcast_element(self, value, ctx):
        ...         ctx.get_broadcast_state(RATES).put(*value)
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> rates = env.from_collection([("EUR", 1.1)]).broadcast(RATES)
        >>> amounts = env.from_collection([("EUR", 100.0)]).connect(rates).process(Convert())

    """

    def __init__(
        self,
        non_broadcast_stream: DataStream,
        broadcast_stream: BroadcastStream,
        broadcast_state_descriptors: Sequence[MapStateDescriptor],
    ) -> None:
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = tuple(broadcast_state_descriptors)

    def process(
        self,
        func: BroadcastProcessFunction[Any, Any, Any] | KeyedBroadcastProcessFunction[Any, Any, Any, Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Apply a function whose broadcast side updates broadcast state and whose other side reads it.

        Args:
            func: A `KeyedBroadcastProcessFunction` if the stream is keyed, otherwise a `BroadcastProcessFunction`.
            output_type: The type of the results; see `DataStream.map`.

        """
        stream = self.non_broadcast_stream
        key = stream._key_selection()
        function_class: Any = BroadcastProcessFunction if key is None else KeyedBroadcastProcessFunction
        function = as_function(func, function_class)
        result_type_info = result_type(output_type, function.process_element, element=True)
        spec = BroadcastSpec(function, self.broadcast_state_descriptors, key)
        inputs = stream._inputs + _as_second_input(self.broadcast_stream.input_stream._inputs)
        transformation = stream._env._program.add(
            "Co-Process-Broadcast", spec, result_type_info, inputs, **stream._keyed()
        )
        return stream._env._stream(transformation)
