"""Kafka to Kafka in millstream: records of 100 bytes, copied.

Promises: reads and writes the whole of each record; with `--once 1`, exactly once with a checkpoint every second.
Does not know: peers."""

from __future__ import annotations

import tempfile

from benchmarks import common, kafka_peers

from millstream.common import Configuration, SimpleStringSchema, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors import DeliveryGuarantee
from millstream.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)


def copy(servers: str, topic: str, records: int, directory: str, *, once: bool, partitions: int = 2) -> None:
    """The first records of `in` to a topic, with a slot for each partition."""
    configuration = Configuration()
    configuration.set_string("millstream.spark.master", f"local[{partitions}]")
    if once:
        configuration.set_string("execution.checkpointing.interval", "1 s")
        configuration.set_string("execution.checkpointing.dir", directory)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(partitions)
    ends = {
        KafkaTopicPartition("in", partition): end for partition, end in enumerate(kafka_peers.ends(records, partitions))
    }
    source = KafkaSource.builder().set_bootstrap_servers(servers).set_topics("in")
    source.set_value_only_deserializer(SimpleStringSchema()).set_bounded(KafkaOffsetsInitializer.offsets(ends))
    message = KafkaRecordSerializationSchema.builder().set_topic(topic)
    message.set_value_serialization_schema(SimpleStringSchema())
    sink = KafkaSink.builder().set_bootstrap_servers(servers).set_record_serializer(message.build())
    guarantee = DeliveryGuarantee.EXACTLY_ONCE if once else DeliveryGuarantee.AT_LEAST_ONCE
    sink.set_delivery_guarantee(guarantee)
    env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "in").sink_to(sink.build())
    env.execute("kafka")


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, base=500_000, records=5_000_000, once=0, partitions=2)
    with kafka_peers.served(args.records, args.partitions) as server, tempfile.TemporaryDirectory() as directory:

        def run(topic: str, records: int) -> None:
            copy(server.servers, topic, records, directory, once=bool(args.once), partitions=args.partitions)

        kafka_peers.measure(server, run, args)


if __name__ == "__main__":
    main()
