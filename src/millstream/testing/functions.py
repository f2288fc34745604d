"""A harness for one user function.

Promises: the function is applied to the stream that it is for, so it runs in the operator that it has in a program.
Does not know: how a harness works."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.errors import UserError
from millstream.functions import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
)
from millstream.state_descriptors.descriptors import MapStateDescriptor
from millstream.testing.harness import OperatorHarness
from millstream.types.factory import TypeInformation

Selector = Callable[[Any], Any] | str | int


class NoHarness(UserError):
    """A function cannot be applied to a stream by itself."""


def harness_for(
    function: Any,
    *,
    key: Selector | tuple[Selector, Selector] | None = None,
    key_type: TypeInformation | None = None,
    input_type: TypeInformation | None = None,
    second_type: TypeInformation | None = None,
    output_type: TypeInformation | None = None,
    broadcast: Sequence[MapStateDescriptor] = (),
    **options: Any,
) -> OperatorHarness:
    """Create a harness of one map, filter, flat map, reduce, process, co or broadcast function.

    Args:
        function: The function, or a callable that maps records.
        key: Makes the stream keyed: a function of the record, or the name or index of a field. A pair has one for each
            of two inputs.
        key_type: The type of the key.
        input_type: The type of the first input; None for any Python object.
        second_type: The type of the second input, if there is one.
        output_type: The type of the emitted records.
        broadcast: The descriptors of the broadcast state, for a broadcast function.
        options: Further arguments of `OperatorHarness`, such as side_outputs, parallelism, backend and clock.

    Raises:
        NoHarness: The function needs more than this, such as a key.

    Example:
        >>> with harness_for(lambda number: number * 2) as harness:
        ...     harness.process(21)
        ...     harness.values()
        [42]

    """
    has_two_inputs = isinstance(function, (*_CONNECTED, *_BROADCAST))
    keys = key if isinstance(key, tuple) else (key, key)
    input_types = (input_type, second_type) if has_two_inputs else (input_type,)
    _check(function, key, broadcast)

    def key_stream(stream: DataStream, side: int) -> DataStream:
        return stream if keys[side] is None else stream.key_by(keys[side], key_type)  # type: ignore[arg-type]

    def connect(first: DataStream, second: DataStream) -> DataStream:
        if isinstance(function, _BROADCAST):
            return key_stream(first, 0).connect(second.broadcast(*broadcast)).process(function, output_type)  # type: ignore[no-any-return]
        both = key_stream(first, 0).connect(key_stream(second, 1))
        methods = {CoMapFunction: "map", CoFlatMapFunction: "flat_map"}
        name = next((method for cls, method in methods.items() if isinstance(function, cls)), "process")
        return getattr(both, name)(function, output_type)  # type: ignore[no-any-return]

    def apply(stream: DataStream) -> DataStream:
        source: Any = key_stream(stream, 0)
        if isinstance(function, ReduceFunction):
            return source.reduce(function)  # type: ignore[no-any-return]
        if isinstance(function, FilterFunction):
            return source.filter(function)  # type: ignore[no-any-return]
        if isinstance(function, FlatMapFunction):
            return source.flat_map(function, output_type)  # type: ignore[no-any-return]
        if isinstance(function, ProcessFunction | KeyedProcessFunction):
            return source.process(function, output_type)  # type: ignore[no-any-return]
        return source.map(function, output_type)  # type: ignore[no-any-return]

    return OperatorHarness(connect if has_two_inputs else apply, input_types=input_types, **options)


_CONNECTED = (CoMapFunction, CoFlatMapFunction, CoProcessFunction, KeyedCoProcessFunction)
_BROADCAST = (BroadcastProcessFunction, KeyedBroadcastProcessFunction)
_KEYED = (KeyedProcessFunction, KeyedCoProcessFunction, KeyedBroadcastProcessFunction, ReduceFunction)
_SINGLE = (MapFunction, FlatMapFunction, FilterFunction, ProcessFunction)


def _check(function: Any, key: Any, broadcast: Sequence[MapStateDescriptor]) -> None:
    name = type(function).__name__
    if not isinstance(function, (*_CONNECTED, *_BROADCAST, *_KEYED, *_SINGLE)) and not callable(function):
        msg = f"{name} cannot be tested by itself"
        raise NoHarness(msg, hint="build a pipeline: OperatorHarness(lambda stream: stream...)")
    if isinstance(function, _KEYED) and key is None:
        msg = f"{name} needs a keyed stream"
        raise NoHarness(msg, hint="pass key=lambda record: ...")
    if isinstance(function, _BROADCAST) and not broadcast:
        msg = f"{name} needs the descriptors of its broadcast state"
        raise NoHarness(msg, hint="pass broadcast=[descriptor]")
