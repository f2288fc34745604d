"""Serialization of records to messages: topic, partition, key, value and headers.

Promises: PyFlink's builder. Messages keep the order of their records within a topic; strings and formats are encoded a
batch at a time. A record that cannot be encoded is the program's error.
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
from millstream.types.arrow_types import python_values

Headers = Sequence[tuple[str, bytes | None]]
Partitioner = Callable[[Any, bytes | None, bytes | None, str, list[int]], int]


class IncompleteSerializer(UserError):
    """A serializer builder with a missing setting."""

    def __init__(self, what: str, call: str) -> None:
        super().__init__(f"the Kafka record serializer has no {what}", hint=f"call {call} on its builder")


class KafkaTopicSelector(ABC):
    """Chooses the topic of a record."""

    @abstractmethod
    def apply(self, data: Any) -> str:
        """The topic."""


@dataclass(frozen=True)
class SelectedBy(KafkaTopicSelector):
    """A function as a selector."""

    function: Callable[[Any], str]

    def apply(self, data: Any) -> str:
        """Return the result of the function."""
        return self.function(data)


@dataclass(frozen=True)
class KafkaRecordSerializationSchema(SerializationSchema):
    """Makes messages. `topic` is None when a selector chooses."""

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
        """The value of the message."""
        return _encoded(self.value_schema, [element])[0]

    @property
    def columnar(self) -> bool:
        """Whether strings can stay in their Arrow array on the way to the message."""
        plain = self.selector is None and self.key_schema is None
        plain = plain and self.header_provider is None and self.partitioner is None
        return plain and type(self.value_schema) is SimpleStringSchema and self.value_schema.charset == "utf-8"

    def messages(
        self,
        values: Any,
        timestamps: Sequence[int | None] | np.ndarray | None,
        partitions_of: Callable[[str], list[int]],
    ) -> list[Messages]:
        """The messages of a batch, those of each topic together."""
        times = None if timestamps is None else np.asarray(timestamps, dtype=np.int64)
        if isinstance(values, pa.Array):
            if self.columnar and pa.types.is_string(values.type):
                assert self.topic is not None
                return [Messages(self.topic, values.cast(pa.binary()), timestamps=times)]
            values = python_values(values)
        if self.selector is None:
            assert self.topic is not None
            return [self._of_topic(self.topic, values, times, partitions_of)]
        places: dict[str, list[int]] = {}
        for index, value in enumerate(values):
            places.setdefault(self._topic_of(value), []).append(index)
        return [
            self._of_topic(topic, [values[i] for i in chosen], None if times is None else times[chosen], partitions_of)
            for topic, chosen in places.items()
        ]

    def _topic_of(self, value: Any) -> str:
        assert self.selector is not None
        topic = self.selector.apply(value)
        if not isinstance(topic, str) or not topic:
            msg = f"the topic selector returned {topic!r} for {value!r:.200}"
            raise UserError(msg, hint="it must return the name of a topic")
        return topic

    def _of_topic(
        self, topic: str, values: Sequence[Any], times: np.ndarray | None, partitions_of: Callable[[str], list[int]]
    ) -> Messages:
        payloads = _encoded(self.value_schema, values)
        keys = None if self.key_schema is None else _encoded(self.key_schema, values)
        headers = None if self.header_provider is None else [list(self.header_provider(value)) for value in values]
        partitions = None
        if self.partitioner is not None:
            known = partitions_of(topic)
            keyed = keys if keys is not None else [None] * len(values)
            partitions = [
                self.partitioner(value, key, payload, topic, known)
                for value, key, payload in zip(values, keyed, payloads, strict=True)
            ]
        return Messages(
            topic,
            pa.array(payloads, pa.binary()),
            None if keys is None else pa.array(keys, pa.binary()),
            times,
            None if partitions is None else np.array(partitions, dtype=np.int32),
            headers,
        )


def _encoded(schema: SerializationSchema | Format, values: Sequence[Any]) -> list[bytes | None]:
    found = schema if isinstance(schema, Format) else getattr(schema, "format", None)
    if isinstance(found, Format):
        return list(found.encode(values))
    assert not isinstance(schema, Format)
    return [schema.serialize(value) for value in values]


@dataclass
class KafkaRecordSerializationSchemaBuilder:
    """Builds a KafkaRecordSerializationSchema. A topic and a value schema are needed."""

    _made: KafkaRecordSerializationSchema = field(
        default_factory=lambda: KafkaRecordSerializationSchema(SimpleStringSchema())
    )
    _has_value: bool = False

    def build(self) -> KafkaRecordSerializationSchema:
        """The schema."""
        if self._made.topic is None and self._made.selector is None:
            raise IncompleteSerializer(what="topic", call="set_topic or set_topic_selector")
        if not self._has_value:
            raise IncompleteSerializer(what="value schema", call="set_value_serialization_schema")
        return self._made

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """Set the topic of all records."""
        self._made = replace(self._made, topic=topic, selector=None)
        return self

    def set_topic_selector(
        self, topic_selector: Callable[[Any], str] | KafkaTopicSelector
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set a selector, or a function, that chooses the topic of each record."""
        given: Any = topic_selector
        if not isinstance(given, KafkaTopicSelector) and not callable(given):
            msg = f"topic_selector must be a KafkaTopicSelector or a function, not {given!r}"
            raise TypeError(msg)
        selector = given if isinstance(given, KafkaTopicSelector) else SelectedBy(given)
        self._made = replace(self._made, topic=None, selector=selector)
        return self

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema | Format
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set the schema of the key; without it, messages have no key."""
        self._made = replace(self._made, key_schema=key_serialization_schema)
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema | Format
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set the schema of the value; a value of None is a tombstone for its key."""
        self._made, self._has_value = replace(self._made, value_schema=value_serialization_schema), True
        return self

    def set_header_provider(self, header_provider: Callable[[Any], Headers]) -> KafkaRecordSerializationSchemaBuilder:
        """Set a function that returns the headers of a message: pairs of a name and bytes."""
        self._made = replace(self._made, header_provider=header_provider)
        return self

    def set_partitioner(self, partitioner: Partitioner) -> KafkaRecordSerializationSchemaBuilder:
        """Choose the partition: a function of record, key, value, topic and the list of the topic's partitions.

        Without it, messages with a key go where the Java client would send them, others anywhere."""
        self._made = replace(self._made, partitioner=partitioner)
        return self
