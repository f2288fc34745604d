"""Adds stateful functions to a program: ingresses are data streams, and so are egresses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.errors import InvalidArgument, InvalidArgumentType
from millstream.functions import FlatMapFunction
from millstream.functions.entities.messages import Message, parse_typename
from millstream.functions.entities.registry import StatefulFunctions, UnknownFunctionType
from millstream.functions.entities.value_types import Type
from millstream.graph.transformations import Input
from millstream.iteration.construction import Construction
from millstream.runtime.entity_delays import RECORD
from millstream.runtime.keys import KeySelection
from millstream.runtime.operators.entities import EGRESS, EntitiesSpec, egress_type
from millstream.runtime.partitioners import Hash
from millstream.types.factory import Types

Router = Callable[[Any], Message | Iterable[Message] | None]


class StatefulFunctionEgressStreams:
    """The egresses of stateful functions, as data streams; `StatefulFunctionDataStreamBuilder.build` returns them.

    Example:
        >>> def greets_of(egresses: StatefulFunctionEgressStreams) -> DataStream[str]:
        ...     return egresses.get_data_stream_for_egress_id("com.example/greets")

    """

    def __init__(self, env: StreamExecutionEnvironment, operator: int, egresses: dict[str, Type | None]) -> None:
        self._env, self._operator, self._egresses = env, operator, egresses

    def get_data_stream_for_egress_id(self, egress_id: str) -> DataStream[Any]:
        """Return the stream of the records that functions send to an egress.

        Args:
            egress_id: The egress, as it was passed to `with_egress_id`.

        Returns:
            A stream of values of the egress's type; without a type, of pairs of the typename and the bytes of a value.

        """
        if egress_id not in self._egresses:
            msg = f"there is no egress '{egress_id}'"
            raise InvalidArgument(msg, hint=f"the egresses are {', '.join(self._egresses) or 'none'}")
        tag = EGRESS + egress_id
        self._env._program.declare_side(self._operator, tag, egress_type(self._egresses[egress_id]))
        return DataStream(self._env, (Input(self._operator, tag=tag),))


class StatefulFunctionDataStreamBuilder:
    """Builds the part of a program that consists of stateful functions.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.statefun import StatefulFunctions, StringType, egress_message_builder, message_builder
        >>> functions = StatefulFunctions()
        >>> @functions.bind("com.example/greeter")
        ... def greet(context, message):
        ...     text = f"Hello {message.as_string()}!"
        ...     context.send_egress(egress_message_builder("com.example/greets", text, StringType))
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> names = env.from_collection(["Ann", "Bob"])
        >>> egresses = (
        ...     StatefulFunctionDataStreamBuilder.builder("greetings")
        ...     .with_data_stream_as_ingress(names, lambda n: message_builder("com.example/greeter", n, str_value=n))
        ...     .with_functions(functions)
        ...     .with_egress_id("com.example/greets", StringType)
        ...     .build(env)
        ... )
        >>> greets = egresses.get_data_stream_for_egress_id("com.example/greets")

    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._ingresses: list[tuple[DataStream[Any], Router]] = []
        self._functions = StatefulFunctions()
        self._egresses: dict[str, Type | None] = {}
        self._spec = EntitiesSpec({}, {})

    @classmethod
    def builder(cls, pipeline_name: str) -> StatefulFunctionDataStreamBuilder:
        """Return a new builder.

        Args:
            pipeline_name: A name that is unique in the program.

        """
        return cls(pipeline_name)

    def with_data_stream_as_ingress(
        self, stream: Any, router: Router | None = None
    ) -> StatefulFunctionDataStreamBuilder:
        """Send the records of a stream to functions.

        Args:
            stream: Any stream.
            router: Returns the message, or messages, for a record; None to drop the record. Without a router, the
                records are messages.

        """
        if not isinstance(stream, DataStream):
            msg = f"{stream!r} is not a stream"
            raise InvalidArgumentType(msg, hint="pass a DataStream")
        self._ingresses.append((stream, router or _same))
        return self

    def with_functions(self, functions: StatefulFunctions) -> StatefulFunctionDataStreamBuilder:
        """Add functions. It can be called several times.

        Args:
            functions: Functions by type.

        """
        for typename, function in functions.functions().items():
            self._functions.register(typename, function.fun, function.specs)
        return self

    def with_egress_id(self, egress_id: str, value_type: Any = None) -> StatefulFunctionDataStreamBuilder:
        """Add an egress.

        Args:
            egress_id: The name of the egress, as `namespace/name`.
            value_type: The type of its messages; `KafkaRecordType` for those of `kafka_egress_message`. Without it,
                messages have any type, and the stream has pairs of the typename and the bytes of a value.

        """
        parse_typename(egress_id)
        if value_type is not None and not isinstance(value_type, Type):
            msg = f"egress '{egress_id}' has the type {value_type!r}"
            raise InvalidArgumentType(msg, hint="pass a Type, such as StringType or make_json_type(...)")
        self._egresses[egress_id] = value_type
        return self

    def with_async(
        self, *, capacity: int = 100, timeout: timedelta = timedelta(minutes=1)
    ) -> StatefulFunctionDataStreamBuilder:
        """Set how coroutine functions run.

        Args:
            capacity: The number of addresses of a subtask whose functions run at once.
            timeout: How long one call may take. A call that takes longer fails the job.

        """
        if capacity < 1 or timeout <= timedelta():
            msg = f"capacity is {capacity} and timeout is {timeout}"
            raise InvalidArgument(msg, hint="use positive values")
        self._spec = replace(self._spec, capacity=capacity, timeout=timeout.total_seconds())
        return self

    def without_waiting_for_delayed_messages(self) -> StatefulFunctionDataStreamBuilder:
        """End with the input although delayed messages are not due yet: they are dropped.

        By default, a program with bounded input runs until all delayed messages are delivered."""
        self._spec = replace(self._spec, waits=False)
        return self

    def build(self, env: StreamExecutionEnvironment) -> StatefulFunctionEgressStreams:
        """Add the functions to the program.

        Args:
            env: The environment of the ingresses.

        Raises:
            InvalidArgument: There is no ingress or no function.

        """
        functions = self._functions.functions()
        if not self._ingresses or not functions:
            msg = f"'{self._name}' has no {'functions' if self._ingresses else 'ingress'}"
            hint = "call with_functions" if self._ingresses else "call with_data_stream_as_ingress"
            raise InvalidArgument(msg, hint=hint)
        routed = [stream.flat_map(_Route(router, tuple(functions)), RECORD) for stream, router in self._ingresses]
        construction = Construction(routed[0], self._name, bounded=False)
        messages = construction.variable(routed[0].union(*routed[1:]) if routed[1:] else routed[0])
        partitioner = Hash(KeySelection(Types.STRING(), field=0))
        inputs = tuple(replace(edge, partitioner=partitioner) for edge in messages._inputs)
        spec = replace(self._spec, functions=functions, egresses=dict(self._egresses))
        operator = env._program.add(f"Stateful Functions: {self._name}", spec, RECORD, inputs, key_type=Types.STRING())
        construction.feed_back((DataStream(env, (Input(operator),)),))
        return StatefulFunctionEgressStreams(env, operator, dict(self._egresses))


def _same(record: Any) -> Any:
    return record


class _Route(FlatMapFunction[Any, Any]):
    """Returns the messages for a record of an ingress, as records of the feedback."""

    def __init__(self, router: Router, typenames: tuple[str, ...]) -> None:
        self._router, self._typenames = router, typenames

    def flat_map(self, value: Any) -> Iterable[Any]:
        routed: Any = self._router(value)
        if routed is None:
            return
        for message in (routed,) if isinstance(routed, Message) else routed:
            if not isinstance(message, Message):
                msg = f"the router returned {message!r}"
                raise InvalidArgumentType(msg, hint="return a message of message_builder, several, or None")
            if message.target_typename not in self._typenames:
                raise UnknownFunctionType(message.target_typename, self._typenames)
            value = message.typed_value
            yield message.target_id, message.target_typename, "", value.typename, value.value
