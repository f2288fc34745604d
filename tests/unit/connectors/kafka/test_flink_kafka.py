"""FlinkKafkaConsumer and FlinkKafkaProducer become a KafkaSource and a KafkaSink with the same settings."""

from typing import Any

import pytest

from millstream.common import SimpleStringSchema, Types
from millstream.connectors.kafka.sink import Delivery
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.dynamic_kafka import (
    DynamicKafkaSource,
    KafkaStreamSetSubscriber,
    SingleClusterTopicMetadataService,
    StreamPatternSubscriber,
)
from millstream.datastream.connectors.kafka import (
    FlinkKafkaConsumer,
    FlinkKafkaProducer,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    Semantic,
)

SERVERS = {"bootstrap.servers": "broker:9092"}


@pytest.mark.parametrize(
    ("properties", "change", "starting"),
    [
        ({}, lambda consumer: consumer, KafkaOffsetsInitializer.latest()),
        ({"auto.offset.reset": "earliest"}, lambda consumer: consumer, KafkaOffsetsInitializer.earliest()),
        (
            {"group.id": "g", "auto.offset.reset": "earliest"},
            lambda consumer: consumer.set_start_from_latest().set_start_from_group_offsets(),
            KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST),
        ),
        ({"group.id": "g"}, lambda consumer: consumer.set_start_from_earliest(), KafkaOffsetsInitializer.earliest()),
        ({}, lambda consumer: consumer.set_start_from_timestamp(5), KafkaOffsetsInitializer.timestamp(5)),
    ],
)
def test_a_consumer_becomes_a_source(
    properties: dict[str, str], change: Any, starting: KafkaOffsetsInitializer
) -> None:
    consumer = change(FlinkKafkaConsumer(["a", "b"], SimpleStringSchema(), {**SERVERS, **properties}))
    consumer.set_commit_offsets_on_checkpoints(False).disable_filter_restored_partitions_with_subscribed_topics()
    source = consumer.to_source()
    assert source.subscription.topics == ("a", "b")
    assert source.subscription.starting == starting
    assert not source.subscription.commits
    assert consumer.get_produced_type() == source.type_info() == Types.STRING()


def test_a_producer_becomes_a_sink() -> None:
    producer = FlinkKafkaProducer(
        "out", SimpleStringSchema(), {**SERVERS, "acks": "all"}, semantic=Semantic.EXACTLY_ONCE
    )
    producer.set_flush_on_checkpoint(True).set_log_failures_only(False).ignore_failures_after_transaction_timeout()
    sink = producer.to_sink()
    assert sink.servers == "broker:9092"
    assert sink.delivery is Delivery.EXACTLY_ONCE
    assert sink.properties == {"acks": "all"}


def test_add_source_and_add_sink_accept_them() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.add_source(FlinkKafkaConsumer("a", SimpleStringSchema(), SERVERS), "consumer")
    assert stream.get_type() == Types.STRING()
    assert stream.get_name() == "Source: consumer"
    assert "KafkaSink" in repr(stream.add_sink(FlinkKafkaProducer("b", SimpleStringSchema(), SERVERS)))
    with pytest.raises(TypeError, match="cannot be read"):
        env.add_source(lambda ctx: None)


def test_subscribers_select_the_streams_of_a_dynamic_source() -> None:
    service = SingleClusterTopicMetadataService("c", SERVERS)
    for subscriber, ids, pattern in (
        (KafkaStreamSetSubscriber({"a", "b"}), {"a", "b"}, None),
        (StreamPatternSubscriber("a.*"), set(), "a.*"),
    ):
        builder = DynamicKafkaSource.builder().set_kafka_stream_subscriber(subscriber)
        builder.set_kafka_metadata_service(service).set_value_only_deserializer(SimpleStringSchema())
        streams = builder.set_properties({"group.id": "g"}).build().streams
        assert (set(streams.ids), streams.pattern) == (ids, pattern)
