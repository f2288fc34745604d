"""A harness for one user function.

Promises: the function is put on the kind of stream it is for, so it runs in the operator that a program would have.
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
    """A function cannot be put on a stream by itself."""


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
    """A harness of one function: of a map, filter, flat map, reduce, process, co or broadcast function.

    `key` makes the stream keyed, by a function of the record or a field; a pair has one for each of two inputs.
    `options` are those of `OperatorHarness`: side_outputs, parallelism, backend, clock, ..."""
    two = isinstance(function, (*_CONNECTED, *_BROADCAST))
    keys = key if isinstance(key, tuple) else (key, key)
    kinds = (input_type, second_type) if two else (input_type,)
    _check(function, key, broadcast)

    def keyed(stream: DataStream, side: int) -> DataStream:
        return stream if keys[side] is None else stream.key_by(keys[side], key_type)  # type: ignore[arg-type]

    def connected(first: DataStream, second: DataStream) -> DataStream:
        if isinstance(function, _BROADCAST):
            return keyed(first, 0).connect(second.broadcast(*broadcast)).process(function, output_type)  # type: ignore[no-any-return]
        both = keyed(first, 0).connect(keyed(second, 1))
        method = {CoMapFunction: "map", CoFlatMapFunction: "flat_map"}
        name = next((called for kind, called in method.items() if isinstance(function, kind)), "process")
        return getattr(both, name)(function, output_type)  # type: ignore[no-any-return]

    def single(stream: DataStream) -> DataStream:
        source: Any = keyed(stream, 0)
        if isinstance(function, ReduceFunction):
            return source.reduce(function)  # type: ignore[no-any-return]
        if isinstance(function, FilterFunction):
            return source.filter(function)  # type: ignore[no-any-return]
        if isinstance(function, FlatMapFunction):
            return source.flat_map(function, output_type)  # type: ignore[no-any-return]
        if isinstance(function, ProcessFunction | KeyedProcessFunction):
            return source.process(function, output_type)  # type: ignore[no-any-return]
        return source.map(function, output_type)  # type: ignore[no-any-return]

    return OperatorHarness(connected if two else single, input_types=kinds, **options)


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
        raise NoHarness(msg, hint="say key=lambda record: ...")
    if isinstance(function, _BROADCAST) and not broadcast:
        msg = f"{name} needs the descriptors of its broadcast state"
        raise NoHarness(msg, hint="say broadcast=[descriptor]")
