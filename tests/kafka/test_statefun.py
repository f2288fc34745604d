"""Stateful functions between topics: an ingress reads Kafka, and a Kafka egress writes what functions send, once."""

from __future__ import annotations

from typing import Any

import pytest
from kafka_running import LATEST, environment, reading

from millstream.common import WatermarkStrategy
from millstream.datastream.connectors import DeliveryGuarantee
from millstream.datastream.connectors.kafka import KafkaSink
from millstream.statefun import (
    IntType,
    KafkaRecordType,
    StatefulFunctionDataStreamBuilder,
    StatefulFunctions,
    ValueSpec,
    kafka_egress_message,
    kafka_record_serializer,
    message_builder,
)

pytestmark = pytest.mark.usefixtures("inline_engine")

functions = StatefulFunctions()
TOPICS: dict[str, str] = {}


@functions.bind("test/greeter", [ValueSpec("seen", IntType)])
def greet(context: Any, message: Any) -> None:
    seen = (context.storage.seen or 0) + 1
    context.storage.seen = seen
    name = message.as_string()
    key = None if seen == 1 else name
    topic = TOPICS["first" if seen == 1 else "again"]
    context.send_egress(kafka_egress_message("test/greets", topic, f"hello {name} {seen}", key=key))


def test_messages_come_from_one_topic_and_go_to_those_that_functions_name(broker, new_topic):
    names = new_topic("names")
    TOPICS.update(first=new_topic("first"), again=new_topic("again"))
    broker.produce(names, ["Ann", "Bob", "Ann"])
    env = environment()
    source = reading(broker, names).set_bounded(LATEST).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "names")
    egresses = (
        StatefulFunctionDataStreamBuilder.builder("greetings")
        .with_data_stream_as_ingress(stream, lambda name: message_builder("test/greeter", name, str_value=name))
        .with_functions(functions)
        .with_egress_id("test/greets", KafkaRecordType)
        .build(env)
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(broker.bootstrap_servers)
        .set_record_serializer(kafka_record_serializer())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .build()
    )
    egresses.get_data_stream_for_egress_id("test/greets").sink_to(sink)
    env.execute("greetings")
    found = [(m.topic(), m.key(), m.value()) for topic in TOPICS.values() for m in broker.read(topic)]
    assert sorted(found[:2]) == [(TOPICS["first"], None, f"hello {name} 1".encode()) for name in ("Ann", "Bob")]
    assert found[2:] == [(TOPICS["again"], b"Ann", b"hello Ann 2")]
