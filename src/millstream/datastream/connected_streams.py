"""Two streams side by side: connected, or one with broadcast state.

Promises: PyFlink's names; the first stream is input 0, the second input 1.
Does not know: DataStream's class; results are made by the streams it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from millstream.datastream.call_types import result_type
from millstream.errors import UserError
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


def _second(inputs: tuple[Input, ...]) -> tuple[Input, ...]:
    return tuple(Input(each.upstream, 1, each.tag, each.partitioner) for each in inputs)


class ConnectedStreams:
    """Two streams with types of their own that one function sees."""

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(
        self,
        key_selector1: Callable[[Any], Any] | KeySelector,
        key_selector2: Callable[[Any], Any] | KeySelector,
        key_type: TypeInformation | None = None,
    ) -> ConnectedStreams:
        """Group both streams by key, so that equal keys meet."""
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type), self.stream2.key_by(key_selector2, key_type)
        )

    def _keys(self) -> tuple[KeySelection, ...]:
        one, other = self.stream1._key_selection(), self.stream2._key_selection()
        if (one is None) != (other is None):
            msg = "one of the connected streams is keyed and the other is not"
            raise UserError(msg, hint="key both or neither")
        return () if one is None or other is None else (one, other)

    def _apply(self, name: str, spec: Any, kind: TypeInformation) -> DataStream:
        inputs = self.stream1._inputs + _second(self.stream2._inputs)
        env = self.stream1._env
        number = env._program.add(name, spec, kind, inputs, **self.stream1._keyed())
        return env._stream(number)

    def map(self, func: CoMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One result per record, by the function of its side."""
        function: CoMapFunction = as_function(func, CoMapFunction)
        kind = result_type(output_type, function.map1, element=False)
        return self._apply("Co-Map", CoElementwiseSpec(function, self._keys()), kind)

    def flat_map(self, func: CoFlatMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Any number of results per record, by the function of its side."""
        function: CoFlatMapFunction = as_function(func, CoFlatMapFunction)
        kind = result_type(output_type, function.flat_map1, element=True)
        return self._apply("Co-Flat Map", CoElementwiseSpec(function, self._keys()), kind)

    def process(
        self, func: CoProcessFunction | KeyedCoProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """A function with state, timers and side outputs on both streams."""
        keys = self._keys()
        function: Any = as_function(func, KeyedCoProcessFunction if keys else CoProcessFunction)
        kind = result_type(output_type, function.process_element1, element=True)
        return self._apply("Keyed Co-Process" if keys else "Co-Process", ProcessSpec(function, keys), kind)


class BroadcastStream:
    """A stream that goes to every subtask, with the state it is kept in."""

    def __init__(self, input_stream: DataStream, broadcast_state_descriptors: Sequence[Any]) -> None:
        for descriptor in broadcast_state_descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                msg = f"broadcast state is a map, not {descriptor!r}"
                raise UserError(msg, hint="give MapStateDescriptors")
        self.input_stream = input_stream
        self.broadcast_state_descriptors = tuple(broadcast_state_descriptors)


class BroadcastConnectedStream:
    """A stream beside a broadcast stream."""

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
        """A function that reads broadcast state on one side and changes it on the other."""
        stream = self.non_broadcast_stream
        key = stream._key_selection()
        wanted: Any = BroadcastProcessFunction if key is None else KeyedBroadcastProcessFunction
        function = as_function(func, wanted)
        kind = result_type(output_type, function.process_element, element=True)
        spec = BroadcastSpec(function, self.broadcast_state_descriptors, key)
        inputs = stream._inputs + _second(self.broadcast_stream.input_stream._inputs)
        number = stream._env._program.add("Co-Process-Broadcast", spec, kind, inputs, **stream._keyed())
        return stream._env._stream(number)
