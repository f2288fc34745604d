"""How long a record takes in PyFlink from Kafka through a count per key in Python to Kafka.

Promises: the same program and guarantee as millstream's; with `--tuned 1`, no buffer timeout and bundles of one record,
which is PyFlink at its best here.
Does not know: other peers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks import common, kafka_peers
from pyflink.common import Configuration, SimpleStringSchema, Types, WatermarkStrategy
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.connectors import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from pyflink.datastream.state import ValueState, ValueStateDescriptor

KEYS = 100
TUNED = {
    "execution.buffer-timeout.interval": "0 ms",
    "python.fn-execution.bundle.size": "1",
    "python.fn-execution.bundle.time": "1",
}


class Count(KeyedProcessFunction):
    """Counts the records of a key, and emits them unchanged."""

    state: ValueState

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        self.state.update((self.state.value() or 0) + 1)
        yield value


def main() -> None:
    """Measure."""
    args = common.arguments(__doc__, rate=20, seconds=20, once=0, mode="thread", tuned=0)
    cache = Path(__file__).resolve().parent.parent / ".bench" / "jars"
    cache.mkdir(parents=True, exist_ok=True)
    with kafka_peers.served(0, 2, cache) as server:
        configuration = Configuration()
        settings = {"python.execution-mode": args.mode, "pipeline.jars": f"file://{server.jar}"}
        for key, value in {**settings, **(TUNED if args.tuned else {})}.items():
            configuration.set_string(key, value)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(common.PARALLELISM)
        env.enable_checkpointing(1_000 if args.once else 10_000)
        source = KafkaSource.builder().set_bootstrap_servers(server.servers).set_topics("in").set_group_id("latency")
        source.set_starting_offsets(KafkaOffsetsInitializer.earliest())
        source.set_value_only_deserializer(SimpleStringSchema())
        records = KafkaRecordSerializationSchema.builder().set_topic("out")
        sink = KafkaSink.builder().set_bootstrap_servers(server.servers)
        sink.set_record_serializer(records.set_value_serialization_schema(SimpleStringSchema()).build())
        guarantee = DeliveryGuarantee.EXACTLY_ONCE if args.once else DeliveryGuarantee.AT_LEAST_ONCE
        sink.set_delivery_guarantee(guarantee).set_transactional_id_prefix("flink-latency")
        sink.set_property("transaction.timeout.ms", "600000")
        lines = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "in")
        keyed = lines.key_by(lambda line: int(line.split(" ", 1)[0]) % KEYS, key_type=Types.LONG())
        keyed.process(Count(), output_type=Types.STRING()).sink_to(sink.build())
        client = env.execute_async("kafka latency")
        answer = server.latency(args.rate, args.seconds)
        client.cancel().result()
    common.answer(answer)


if __name__ == "__main__":
    main()
