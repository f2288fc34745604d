"""Decoding of messages: to records of a schema, or to whole messages with their metadata.

Promises: an error names the partition and offset of a message that cannot be decoded; strings and formats are decoded
in batches. A message without a value (a tombstone) is skipped unless the schema decodes whole messages.
Does not know: brokers, offsets to come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.connector.serialization_schema import DeserializationSchema, SimpleStringSchema
from millstream.connector.source import Records, Rejected
from millstream.connectors.kafka.client import library
from millstream.errors import MillstreamError, UserError
from millstream.event_time.watermarks import MIN_WATERMARK
from millstream.formats.contract import Decoded, Format, OnError, apply_error_policy
from millstream.types.factory import TypeInformation, Types
from millstream.types.row import Row

_second = itemgetter(1)
_TIMESTAMP_TYPES = ("NoTimestampType", "CreateTime", "LogAppendTime")


class UnreadableMessage(UserError):
    """A message that its schema cannot decode."""

    hint = "correct the producer, or use a format with on_error = skip"

    def __init__(self, topic: str, partition: int, offset: int, reason: str) -> None:
        self.topic, self.partition, self.offset, self.reason = topic, partition, offset, reason
        super().__init__(f"message {offset} of {topic}-{partition} cannot be decoded: {reason}")


@dataclass(frozen=True, slots=True)
class KafkaRecord:
    """A message with its metadata. `timestamp` is in milliseconds, None if the message has none; its type is CreateTime
    or LogAppendTime, then.

    Example:
        >>> record = KafkaRecord("orders", 3, 17, 1_700_000_000_000, b"ann", b"12.50", timestamp_type="CreateTime")
        >>> record.offset
        17

    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_type: str = "NoTimestampType"
    leader_epoch: int | None = None


class KafkaRecordDeserializationSchema(ABC):
    """Turns whole messages into records: for keys, headers, offsets and topics.

    Example:
        >>> class KeyAndSize(KafkaRecordDeserializationSchema):
        ...     def deserialize(self, record):
        ...         yield record.key.decode(), len(record.value)
        ...
        ...     def get_produced_type(self):
        ...         return Types.TUPLE([Types.STRING(), Types.LONG()])
        >>> list(KeyAndSize().deserialize(KafkaRecord("orders", 3, 17, None, b"ann", b"12.50")))
        [('ann', 5)]

    """

    @abstractmethod
    def deserialize(self, record: KafkaRecord) -> Iterable[Any]:
        """Return the records of a message.

        Args:
            record: The message with its metadata.

        """

    @abstractmethod
    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""

    @staticmethod
    def value_only(deserialization_schema: DeserializationSchema | Format) -> KafkaRecordDeserializationSchema:
        """Decode the value, as `set_value_only_deserializer` does.

        Args:
            deserialization_schema: Decodes the bytes of a value.

        """
        return ValueOnly(deserialization_schema)

    @staticmethod
    def rows() -> KafkaRecordDeserializationSchema:
        """Return a schema of rows: topic, partition, offset, timestamp, key and value as bytes, headers."""
        return MessageRows()


class MessageRows(KafkaRecordDeserializationSchema):
    """Messages as rows."""

    def deserialize(self, record: KafkaRecord) -> Iterable[Any]:
        """Return the message as a row."""
        return (
            Row(
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
                timestamp=record.timestamp,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
            ),
        )

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows."""
        data = Types.PRIMITIVE_ARRAY(Types.BYTE())
        fields = {
            "topic": Types.STRING(),
            "partition": Types.INT(),
            "offset": Types.LONG(),
            "timestamp": Types.LONG(),
            "key": data,
            "value": data,
            "headers": Types.LIST(Types.TUPLE([Types.STRING(), data])),
        }
        return Types.ROW_NAMED(list(fields), list(fields.values()))


class ValueOnly(KafkaRecordDeserializationSchema):
    """Deserializes values with a schema or a format, in batches if the schema allows it."""

    def __init__(self, schema: DeserializationSchema | Format) -> None:
        schema_format = getattr(schema, "format", None)
        self.schema = schema
        self.format = (
            schema if isinstance(schema, Format) else (schema_format if isinstance(schema_format, Format) else None)
        )

    def get_produced_type(self) -> TypeInformation:
        """Return the type that the schema produces."""
        if isinstance(self.schema, Format):
            return self.schema.type_info
        return self.schema.get_produced_type()

    def deserialize(self, record: KafkaRecord) -> Iterable[Any]:
        """Return the records of a value."""
        assert not isinstance(self.schema, Format)
        return () if record.value is None else self.schema.deserialize_many(record.value)


class FormattedMessages(KafkaRecordDeserializationSchema):
    """Decodes whole messages in batches. `format` has the policy for messages that cannot be decoded."""

    format: Format

    @abstractmethod
    def decode(self, records: Sequence[KafkaRecord]) -> Decoded:
        """Return the records of messages."""

    def deserialize(self, record: KafkaRecord) -> Iterable[Any]:
        """Return the records of one message."""
        decoded = self.decode([record])
        apply_error_policy(self.format, decoded, lambda _: "the message")
        return decoded.rows(self.get_produced_type())


class Decoder:
    """Decodes batches of messages of one partition."""

    def __init__(self, schema: KafkaRecordDeserializationSchema) -> None:
        self._schema = schema
        self._strings = (
            isinstance(schema, ValueOnly)
            and type(schema.schema) is SimpleStringSchema
            and schema.schema.charset == "utf-8"
        )
        self._skipped = 0
        self._letters: list[tuple[bytes, str]] = []

    def decode(self, messages: Sequence[Any], times: np.ndarray) -> Records:
        """Return the records of messages, each with the timestamp of its message."""
        schema = self._schema
        times = np.where(times < 0, MIN_WATERMARK, times)
        if isinstance(schema, ValueOnly):
            values = list(map(library().Message.value, messages))
            if None in values and schema.format is None:
                indices = [index for index, value in enumerate(values) if value is not None]
                messages, times = [messages[index] for index in indices], times[indices]
                values = [values[index] for index in indices]
            if self._strings:
                strings = _utf8(values)
                if strings is not None:
                    return Records(strings, times)
            if schema.format is not None:
                return self._apply_policy(schema.format, schema.format.decode(values), messages, times)
        if isinstance(schema, FormattedMessages):
            return self._apply_policy(schema.format, schema.decode(list(map(_record, messages))), messages, times)
        return self._one_by_one(messages, times)

    def _apply_policy(self, message_format: Format, decoded: Decoded, messages: Sequence[Any], times: Any) -> Records:
        rejected = apply_error_policy(message_format, decoded, lambda index: _name(messages[index]))
        self._skipped += len(rejected)
        if message_format.on_error is OnError.DEAD_LETTER:
            self._letters += [
                (message.data, f"{_name(messages[message.index])}: {message.reason}") for message in rejected
            ]
        origins = decoded.origins
        return Records(decoded.values, times if origins is None else times[np.asarray(origins, dtype=np.int64)])

    def take_rejected(self) -> Rejected:
        """Return the messages that were rejected since the last call, with their offsets."""
        rejected = Rejected(self._skipped, self._letters)
        self._skipped, self._letters = 0, []
        return rejected

    def _one_by_one(self, messages: Sequence[Any], times: Any) -> Records:
        values: list[Any] = []
        counts: list[int] = []
        for message in messages:
            before = len(values)
            try:
                values.extend(self._schema.deserialize(_record(message)))
            except MillstreamError as problem:
                raise _unreadable(message, problem.message) from problem
            except Exception as problem:
                raise _unreadable(message, f"{type(problem).__name__}: {problem}") from problem
            counts.append(len(values) - before)
        return Records(values, np.repeat(times, counts))


def timestamps_of(messages: Sequence[Any]) -> np.ndarray:
    """Return timestamps in milliseconds; less than 0 if a message has none, or is an error."""
    return np.fromiter(map(_second, map(library().Message.timestamp, messages)), np.int64, len(messages))


def _utf8(values: list[bytes]) -> pa.Array | None:
    """Return the values as strings; None if one of them is not UTF-8."""
    try:
        return pa.array(values, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return None


def _record(message: Any) -> KafkaRecord:
    timestamp_type, time = message.timestamp()
    return KafkaRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        time if timestamp_type else None,
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
        _TIMESTAMP_TYPES[timestamp_type],
        message.leader_epoch(),
    )


def _name(message: Any) -> str:
    return f"message {message.offset()} of {message.topic()}-{message.partition()}"


def _unreadable(message: Any, reason: str) -> UnreadableMessage:
    return UnreadableMessage(message.topic(), message.partition(), message.offset(), reason)
