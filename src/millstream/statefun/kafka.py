"""The records of a Kafka egress, for the Kafka sink."""

from __future__ import annotations

from typing import Any

from millstream.connector.serialization_schema import SerializationSchema
from millstream.connectors.kafka.serializer import KafkaRecordSerializationSchema


class _Field(SerializationSchema):
    """A field of a row as bytes."""

    def __init__(self, name: str) -> None:
        self._name = name

    def serialize(self, element: Any) -> bytes | None:
        value = element[self._name]
        return value.encode() if isinstance(value, str) else value


def kafka_record_serializer() -> KafkaRecordSerializationSchema:
    """Return the record serializer of a `KafkaSink` for an egress of type `KafkaRecordType`.

    Topic, key and value are those that `kafka_egress_message` got.

    Example:
        >>> from millstream.datastream.connectors.kafka import KafkaSink
        >>> sink = (
        ...     KafkaSink.builder()
        ...     .set_bootstrap_servers("localhost:9092")
        ...     .set_record_serializer(kafka_record_serializer())
        ...     .build()
        ... )

    """
    return (
        KafkaRecordSerializationSchema.builder()
        .set_topic_selector(lambda record: record["topic"])
        .set_key_serialization_schema(_Field("key"))
        .set_value_serialization_schema(_Field("value"))
        .build()
    )
