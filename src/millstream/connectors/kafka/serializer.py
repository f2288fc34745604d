"""Serialization of records to messages: topic, partition, key, value and headers.

Promises: PyFlink's builder. Messages keep the order of their records within a topic; strings and formats are encoded in
batches. A record that cannot be encoded is a user error.
Does not know: producers, transactions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.connector.serialization_schema import SerializationSchema, SimpleStringSchema
from millstream.connectors.kafka.messages import Messages
from millstream.errors import UserError
from millstream.formats.contract import Format
from millstream.types.arrow_types import to_python_values

Headers = Sequence[tuple[str, bytes | None]]
Partitioner = Callable[[Any, bytes | None, bytes | None, str, list[int]], int]


class IncompleteSerializer(UserError):
    """A serializer builder with a missing setting."""

    def __init__(self, setting: str, call: str) -> None:
        super().__init__(f"the Kafka record serializer has no {setting}", hint=f"call {call} on its builder")


class KafkaTopicSelector(ABC):
    """Chooses the topic of a record.

    Example:
        >>> class ByCountry(KafkaTopicSelector):
        ...     def apply(self, data):
        ...         return f"orders-{data['country']}"
        >>> ByCountry().apply({"country": "de"})
        'orders-de'

    """

    @abstractmethod
    def apply(self, data: Any) -> str:
        """Return the topic of a record.

        Args:
            data: The record.

        """


@dataclass(frozen=True)
class SelectedBy(KafkaTopicSelector):
    """A function as a selector."""

    function: Callable[[Any], str]

    def apply(self, data: Any) -> str:
        """Return the result of the function."""
        return self.function(data)


@dataclass(frozen=True)
class KafkaRecordSerializationSchema(SerializationSchema):
    """Serializes records to messages. `topic` is None if a selector chooses it.

    Example:
        >>> from millstream.common import SimpleStringSchema
        >>> builder = KafkaRecordSerializationSchema.builder().set_topic("orders")
        >>> schema = builder.set_value_serialization_schema(SimpleStringSchema()).build()

    """

    value_schema: SerializationSchema | Format
    topic: str | None = None
    selector: KafkaTopicSelector | None = None
    key_schema: SerializationSchema | Format | None = None
    header_provider: Callable[[Any], Headers] | None = None
    partitioner: Partitioner | None = None

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Return a new builder."""
        return KafkaRecordSerializationSchemaBuilder()

    def serialize(self, element: Any) -> bytes | None:
        """Return the value of the message for a record."""
        return _encode(self.value_schema, [element])[0]

    @property
    def columnar(self) -> bool:
        """Whether an array of strings is written without creating Python objects."""
        plain = self.selector is None and self.key_schema is None
        plain = plain and self.header_provider is None and self.partitioner is None
        return plain and type(self.value_schema) is SimpleStringSchema and self.value_schema.charset == "utf-8"

    def messages(
        self,
        values: Any,
        timestamps: Sequence[int | None] | np.ndarray | None,
        partitions_of: Callable[[str], list[int]],
    ) -> list[Messages]:
        """Return the messages of a batch, grouped by topic.

        Args:
            values: The records of the batch, as a sequence or an Arrow array.
            timestamps: The timestamp of each record in milliseconds; None if the records have none.
            partitions_of: Returns the partitions of a topic, for the partitioner.

        """
        times = None if timestamps is None else np.asarray(timestamps, dtype=np.int64)
        if isinstance(values, pa.Array):
            if self.columnar and pa.types.is_string(values.type):
                assert self.topic is not None
                return [Messages(self.topic, values.cast(pa.binary()), timestamps=times)]
            values = to_python_values(values)
        if self.selector is None:
            assert self.topic is not None
            return [self._serialize_topic(self.topic, values, times, partitions_of)]
        indices: dict[str, list[int]] = {}
        for index, value in enumerate(values):
            indices.setdefault(self._topic_of(value), []).append(index)
        return [
            self._serialize_topic(
                topic, [values[i] for i in selected], None if times is None else times[selected], partitions_of
            )
            for topic, selected in indices.items()
        ]

    def _topic_of(self, value: Any) -> str:
        assert self.selector is not None
        topic = self.selector.apply(value)
        if not isinstance(topic, str) or not topic:
            msg = f"the topic selector returned {topic!r} for {value!r:.200}"
            raise UserError(msg, hint="it must return the name of a topic")
        return topic

    def _serialize_topic(
        self, topic: str, values: Sequence[Any], times: np.ndarray | None, partitions_of: Callable[[str], list[int]]
    ) -> Messages:
        payloads = _encode(self.value_schema, values)
        keys = None if self.key_schema is None else _encode(self.key_schema, values)
        headers = None if self.header_provider is None else [list(self.header_provider(value)) for value in values]
        partitions = None
        if self.partitioner is not None:
            known = partitions_of(topic)
            key_values = keys if keys is not None else [None] * len(values)
            partitions = [
                self.partitioner(value, key, payload, topic, known)
                for value, key, payload in zip(values, key_values, payloads, strict=True)
            ]
        return Messages(
            topic,
            pa.array(payloads, pa.binary()),
            None if keys is None else pa.array(keys, pa.binary()),
            times,
            None if partitions is None else np.array(partitions, dtype=np.int32),
            headers,
        )


def _encode(schema: SerializationSchema | Format, values: Sequence[Any]) -> list[bytes | None]:
    message_format = schema if isinstance(schema, Format) else getattr(schema, "format", None)
    if isinstance(message_format, Format):
        return list(message_format.encode(values))
    assert not isinstance(schema, Format)
    return [schema.serialize(value) for value in values]


@dataclass
class KafkaRecordSerializationSchemaBuilder:
    """Builds a KafkaRecordSerializationSchema. A topic and a value schema are needed.

    Example:
        >>> from millstream.common import SimpleStringSchema
        >>> builder = KafkaRecordSerializationSchemaBuilder().set_topic_selector(lambda order: f"orders-{order[:2]}")
        >>> schema = builder.set_value_serialization_schema(SimpleStringSchema()).build()

    """

    _schema: KafkaRecordSerializationSchema = field(
        default_factory=lambda: KafkaRecordSerializationSchema(SimpleStringSchema())
    )
    _has_value: bool = False

    def build(self) -> KafkaRecordSerializationSchema:
        """Return the schema.

        Raises:
            IncompleteSerializer: If the topic or the value schema is missing.

        """
        if self._schema.topic is None and self._schema.selector is None:
            raise IncompleteSerializer(setting="topic", call="set_topic or set_topic_selector")
        if not self._has_value:
            raise IncompleteSerializer(setting="value schema", call="set_value_serialization_schema")
        return self._schema

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """Set the topic of all records.

        Args:
            topic: The name of the topic.

        """
        self._schema = replace(self._schema, topic=topic, selector=None)
        return self

    def set_topic_selector(
        self, topic_selector: Callable[[Any], str] | KafkaTopicSelector
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set a selector, or a function, that chooses the topic of each record.

        Args:
            topic_selector: Returns the name of the topic for a record.

        """
        chosen: Any = topic_selector
        if not isinstance(chosen, KafkaTopicSelector) and not callable(chosen):
            msg = f"topic_selector must be a KafkaTopicSelector or a function, not {chosen!r}"
            raise TypeError(msg)
        selector = chosen if isinstance(chosen, KafkaTopicSelector) else SelectedBy(chosen)
        self._schema = replace(self._schema, topic=None, selector=selector)
        return self

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema | Format
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set the schema of the key; without it, messages have no key.

        Args:
            key_serialization_schema: Encodes the key of a record.

        """
        self._schema = replace(self._schema, key_schema=key_serialization_schema)
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema | Format
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set the schema of the value; a value of None is a tombstone for its key.

        Args:
            value_serialization_schema: Encodes the value of a record.

        """
        self._schema, self._has_value = replace(self._schema, value_schema=value_serialization_schema), True
        return self

    def set_header_provider(self, header_provider: Callable[[Any], Headers]) -> KafkaRecordSerializationSchemaBuilder:
        """Set a function that returns the headers of a message: pairs of a name and bytes.

        Args:
            header_provider: Returns the headers for a record.

        """
        self._schema = replace(self._schema, header_provider=header_provider)
        return self

    def set_partitioner(self, partitioner: Partitioner) -> KafkaRecordSerializationSchemaBuilder:
        """Set a function that chooses the partition; its arguments are record, key, value, topic and the topic's
        partitions.

        Without it, messages with a key go to the partition that the Java client chooses, others to any partition.

        Args:
            partitioner: Returns one of the partitions of the topic.

        """
        self._schema = replace(self._schema, partitioner=partitioner)
        return self
