"""A job with two iterations: the components of a path, one round for each vertex, and entities that send messages on.

Promises: the output depends on the length of the path only; `compute_lines` computes it in plain Python.
Does not know: faults, sinks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.gelly import Graph
from millstream.statefun import (
    Context,
    LongType,
    Message,
    StatefulFunctionDataStreamBuilder,
    StatefulFunctions,
    StringType,
    ValueSpec,
    egress_message_builder,
    make_json_type,
    message_builder,
)
from millstream.types.factory import Types

_ENTITIES, _MESSAGES = 16, 24
_JSON = make_json_type("chaos/json")
_HOP, _LINES = "chaos/hop", "chaos/lines"


def _next(entity: int, number: int) -> int:
    return (entity * 3 + number + 1) % _ENTITIES


def _count_visits(hops: int) -> list[list[int]]:
    """Return the numbers of the messages that visit each entity."""
    visits: list[list[int]] = [[] for _ in range(_ENTITIES)]
    for number in range(_MESSAGES):
        entity = number % _ENTITIES
        visits[entity].append(number)
        for _ in range(hops):
            entity = _next(entity, number)
            visits[entity].append(number)
    return visits


def compute_lines(length: int) -> Iterator[str]:
    """Yield the lines of the output."""
    for vertex in range(length):
        yield f"C v{vertex} 1 0"
    for entity, numbers in enumerate(_count_visits(length)):
        yield f"E e{entity} {len(numbers)} {sum(numbers)}"


def build_loops(env: Any, length: int) -> dict[str, DataStream[Any]]:
    """Return the outputs of the job by name."""
    edges = [(vertex, vertex + 1) for vertex in range(length - 1)]
    components = Graph.from_collection(env, edges).connected_components()
    expected = [len(numbers) for numbers in _count_visits(length)]
    functions = StatefulFunctions()

    @functions.bind(_HOP, [ValueSpec("visits", LongType), ValueSpec("total", LongType)])
    def hop(context: Context, message: Message) -> None:
        number, left = message.as_type(_JSON)
        storage, entity = context.storage, int(context.address.id)
        storage.visits = (storage.visits or 0) + 1
        storage.total = (storage.total or 0) + number
        if storage.visits >= expected[entity]:  # a message that is delivered twice emits a second line
            line = f"E e{entity} {storage.visits} {storage.total}"
            context.send_egress(egress_message_builder(_LINES, line, StringType))
        if left:
            value = [number, left - 1]
            context.send(message_builder(_HOP, str(_next(entity, number)), value=value, value_type=_JSON))

    messages = [
        message_builder(_HOP, str(number % _ENTITIES), value=[number, length], value_type=_JSON)
        for number in range(_MESSAGES)
    ]
    egresses = (
        StatefulFunctionDataStreamBuilder.builder("hops")
        .with_data_stream_as_ingress(env.from_collection(messages))
        .with_functions(functions)
        .with_egress_id(_LINES, StringType)
        .build(env)
    )
    lines = egresses.get_data_stream_for_egress_id(_LINES)
    return {
        "components": components.map(lambda row: f"C v{row[0]} 1 {row[1]}", Types.STRING()),
        "entities": lines.map(str, Types.STRING()),
    }
