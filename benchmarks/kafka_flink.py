"""Kafka to Kafka in PyFlink: its KafkaSource and KafkaSink, which are Java, and no Python function between them.

Promises: the same records and guarantee as the others; with `--once 1`, checkpoints every second.
Does not know: peers."""

from __future__ import annotations

from pathlib import Path

from benchmarks import common, kafka_peers
from pyflink.common import Configuration, SimpleStringSchema, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)


def copy(server: kafka_peers.Served, topic: str, records: int, *, once: bool) -> None:
    """The first records of `in` to a topic."""
    configuration = Configuration()
    configuration.set_string("pipeline.object-reuse", "true")
    configuration.set_string("pipeline.jars", f"file://{server.jar}")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(common.PARALLELISM)
    if once:
        env.enable_checkpointing(1000)
    ends = {
        KafkaTopicPartition("in", partition): end
        for partition, end in enumerate(kafka_peers.ends(records, common.PARALLELISM))
    }
    source = KafkaSource.builder().set_bootstrap_servers(server.servers).set_topics("in").set_group_id("flink")
    for key, value in kafka_peers.JAVA_CONSUMER.items():
        source.set_property(key, value)
    source.set_value_only_deserializer(SimpleStringSchema()).set_bounded(KafkaOffsetsInitializer.offsets(ends))
    message = KafkaRecordSerializationSchema.builder().set_topic(topic)
    message.set_value_serialization_schema(SimpleStringSchema())
    sink = KafkaSink.builder().set_bootstrap_servers(server.servers).set_record_serializer(message.build())
    sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE if once else DeliveryGuarantee.AT_LEAST_ONCE)
    sink.set_transactional_id_prefix(f"flink-{topic}").set_property("transaction.timeout.ms", "600000")
    for key, value in kafka_peers.JAVA_PRODUCER.items():
        sink.set_property(key, value)
    env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "in").sink_to(sink.build())
    env.execute("kafka")


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, base=500_000, records=5_000_000, once=0)
    cache = Path(__file__).resolve().parent.parent / ".bench" / "jars"
    cache.mkdir(parents=True, exist_ok=True)
    with kafka_peers.served(args.records, common.PARALLELISM, cache) as server:

        def run(topic: str, records: int) -> None:
            copy(server, topic, records, once=bool(args.once))

        kafka_peers.measure(server, run, args)


if __name__ == "__main__":
    main()
