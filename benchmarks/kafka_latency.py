"""How long a record takes in millstream from Kafka through a count per key in Python to Kafka.

Promises: the default settings, but for the engine; with `--once 1`, exactly once with a checkpoint every second.
Does not know: peers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

from benchmarks import common, kafka_peers

from millstream.common import Configuration, SimpleStringSchema, Types, WatermarkStrategy
from millstream.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from millstream.datastream.connectors import DeliveryGuarantee
from millstream.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from millstream.datastream.state import ValueState, ValueStateDescriptor

KEYS = 100


class Count(KeyedProcessFunction):
    """Counts the records of a key, and emits them unchanged."""

    state: ValueState

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        self.state.update((self.state.value() or 0) + 1)
        yield value


def environment(engine: str, directory: str, *, once: bool) -> StreamExecutionEnvironment:
    """The benchmark's parallelism, and checkpoints."""
    configuration = Configuration()
    configuration.set_string("millstream.engine", engine)
    configuration.set_string("execution.checkpointing.dir", directory)
    configuration.set_string("execution.checkpointing.interval", "1 s" if once else "10 s")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    return env.set_parallelism(common.PARALLELISM)


def main() -> None:
    """Measure."""
    args = common.arguments(__doc__, rate=20, seconds=20, once=0, engine="jobs")
    with kafka_peers.served(0, 2) as server, tempfile.TemporaryDirectory() as directory:
        env = environment(args.engine, directory, once=bool(args.once))
        source = KafkaSource.builder().set_bootstrap_servers(server.servers).set_topics("in").set_group_id("latency")
        source.set_starting_offsets(KafkaOffsetsInitializer.earliest())
        source.set_value_only_deserializer(SimpleStringSchema())
        records = KafkaRecordSerializationSchema.builder().set_topic("out")
        sink = KafkaSink.builder().set_bootstrap_servers(server.servers)
        sink.set_record_serializer(records.set_value_serialization_schema(SimpleStringSchema()).build())
        guarantee = DeliveryGuarantee.EXACTLY_ONCE if args.once else DeliveryGuarantee.AT_LEAST_ONCE
        sink.set_delivery_guarantee(guarantee)
        lines = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "in")
        keyed = lines.key_by(lambda line: int(line.split(" ", 1)[0]) % KEYS, Types.LONG())
        keyed.process(Count(), Types.STRING()).sink_to(sink.build())
        client = env.execute_async("kafka latency")
        answer = server.latency(args.rate, args.seconds)
        client.cancel().result(60)
    common.answer(answer)


if __name__ == "__main__":
    main()
