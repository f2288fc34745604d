"""Messages between entities in millstream: each is passed on a few times, and every entity counts its messages.

Promises: a message that is passed on goes to another entity; the rate is that of all messages, passed on or not.
Does not know: peers, or how the rate is compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks import common, entity_messages
from benchmarks.jobs.epochs import environment

from millstream.common import WatermarkStrategy
from millstream.datastream import DataStream
from millstream.datastream.connectors import NumberSequenceSource
from millstream.datastream.connectors.blackhole import BlackHoleSink
from millstream.statefun import (
    Context,
    LongType,
    Message,
    StatefulFunctionDataStreamBuilder,
    StatefulFunctions,
    StringType,
    ValueSpec,
    egress_message_builder,
    message_builder,
)

HOP, LAST = "bench/hop", "bench/last"


def build(engine: str, records: int, entities: int) -> DataStream:
    """The stream of the last messages: as text, entity and message."""
    env = environment(**{"millstream.engine": engine})
    functions = StatefulFunctions()

    @functions.bind(HOP, [ValueSpec("count", LongType)])
    def hop(context: Context, message: Message) -> None:
        storage = context.storage
        storage.count = (storage.count or 0) + 1
        number, left = divmod(message.as_long(), entity_messages.HOPS)
        entity = int(context.address.id)
        if left:
            target = entity_messages.next_entity(entity, number, entities)
            context.send(message_builder(HOP, str(target), long_value=number * entity_messages.HOPS + left - 1))
        else:
            context.send_egress(egress_message_builder(LAST, f"{entity} {number}", StringType))

    numbers = env.from_source(NumberSequenceSource(0, records - 1), WatermarkStrategy.no_watermarks(), "numbers")
    egresses = (
        StatefulFunctionDataStreamBuilder.builder("hops")
        .with_data_stream_as_ingress(
            numbers,
            lambda number: message_builder(
                HOP, str(number % entities), long_value=number * entity_messages.HOPS + entity_messages.HOPS - 1
            ),
        )
        .with_functions(functions)
        .with_egress_id(LAST, StringType)
        .build(env)
    )
    return egresses.get_data_stream_for_egress_id(LAST)


def parse(lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    """(entity, message) of each line."""
    for line in lines:
        entity, number = line.split()
        yield int(entity), int(number)


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, engine="resident", base=20_000, records=200_000)

    def run(records: int) -> None:
        output = build(args.engine, records, entity_messages.ENTITIES)
        output.sink_to(BlackHoleSink())
        output.get_execution_environment().execute("entities")

    def check() -> dict[str, int]:
        with build(args.engine, common.CHECK_RECORDS, common.CHECK_KEYS).execute_and_collect() as lines:
            return common.digest(parse(lines))

    def measure() -> dict[str, Any]:
        result = common.rate_of(run, args)
        return {**result, "rate": result["rate"] * entity_messages.HOPS}

    common.contest(args, check, measure)


if __name__ == "__main__":
    main()
