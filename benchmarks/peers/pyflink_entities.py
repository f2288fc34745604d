"""The same messages in PyFlink: a keyed function with a ValueState for each time that a message is passed on.

Promises: the DataStream API of PyFlink has no feedback, so the loop is unrolled, and each function counts apart. The
input is generated in the JVM and the output discarded there.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyflink.common import Configuration, Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import Sink
from pyflink.datastream.state import ValueState, ValueStateDescriptor
from pyflink.java_gateway import get_gateway
from pyflink.table import StreamTableEnvironment

from benchmarks import common, entity_messages

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])


class Hop(KeyedProcessFunction):
    """Counts the messages of an entity, and passes them on."""

    count: ValueState

    def __init__(self, entities: int, *, is_last: bool) -> None:
        self.entities, self.is_last = entities, is_last

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[tuple[int, int]]:
        self.count.update((self.count.value() or 0) + 1)
        entity, number = value
        yield (entity if self.is_last else entity_messages.next_entity(entity, number, self.entities)), number


def pipeline(mode: str, records: int, entities: int) -> tuple[StreamExecutionEnvironment, DataStream]:
    """The environment, and the stream of (last entity, message)."""
    configuration = Configuration()
    configuration.set_string("python.execution-mode", mode)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(common.PARALLELISM)
    tables = StreamTableEnvironment.create(env)
    tables.execute_sql(
        "CREATE TABLE numbers (i BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000000000', "
        f"'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.i.end' = '{records - 1}')"
    )
    table = tables.sql_query(f"SELECT MOD(i, CAST({entities} AS BIGINT)) AS entity, i FROM numbers")
    messages = tables.to_data_stream(table).map(lambda row: (row[0], row[1]), output_type=PAIR)
    for number in range(entity_messages.HOPS):
        is_last = number == entity_messages.HOPS - 1
        messages = messages.key_by(lambda pair: pair[0], key_type=Types.LONG()).process(
            Hop(entities, is_last=is_last), output_type=PAIR
        )
    return env, messages


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, mode="thread", base=5_000, records=50_000)
    mode: str = args.mode

    def run(records: int) -> None:
        env, messages = pipeline(mode, records, entity_messages.ENTITIES)
        messages.sink_to(Sink(get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink()))
        env.execute(f"entities-{mode}")

    def check() -> dict[str, int]:
        _, messages = pipeline(mode, common.CHECK_RECORDS, common.CHECK_KEYS)
        with messages.execute_and_collect() as rows:
            return common.digest(tuple(row) for row in rows)

    def measure() -> dict[str, Any]:
        result = common.rate_of(run, args)
        return {**result, "rate": result["rate"] * entity_messages.HOPS}

    common.contest(args, check, measure)


if __name__ == "__main__":
    main()
