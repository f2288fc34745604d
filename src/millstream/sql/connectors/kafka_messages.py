"""Conversion of Kafka messages to rows of a table, and of rows to messages.

Promises: columns come from the value, the key, the metadata of the format, and the metadata of the message. With
`upserts`, a message without a value deletes the row of its key. Written messages have the key and value columns, and
the timestamp and headers of metadata columns.
Does not know: options, brokers."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from millstream.connector.sink import SinkWriter, WriterContext
from millstream.connectors.kafka.messages import Messages
from millstream.connectors.kafka.records import FormattedMessages, KafkaRecord
from millstream.connectors.kafka.serializer import KafkaRecordSerializationSchema
from millstream.connectors.kafka.sink import KafkaSink
from millstream.formats import BadRecord, Decoded, Format
from millstream.sql.columns import create_row_type_info
from millstream.sql.types import data_types as t
from millstream.times import EPOCH, MILLISECOND
from millstream.types.row import Row, RowKind
from millstream.types.type_information import TypeInformation

METADATA: Mapping[str, t.DataType] = {
    "topic": t.STRING,
    "partition": t.INT,
    "headers": t.MapType(t.STRING, t.BYTES),
    "leader-epoch": t.INT,
    "offset": t.BIGINT,
    "timestamp": t.LocalZonedTimestampType(3),
    "timestamp-type": t.STRING,
}
WRITABLE = ("headers", "timestamp")

_METADATA_GETTERS: dict[str, Callable[[KafkaRecord], Any]] = {
    "topic": lambda record: record.topic,
    "partition": lambda record: record.partition,
    "headers": lambda record: dict(record.headers),
    "leader-epoch": lambda record: record.leader_epoch,
    "offset": lambda record: record.offset,
    "timestamp": lambda record: record.timestamp,
    "timestamp-type": lambda record: record.timestamp_type,
}


class TableMessages(FormattedMessages):
    """Deserializes messages to rows of `schema`.

    `value` and `key` are a format with the column indexes of its fields; `metadata` are metadata keys of the message
    with their column index."""

    def __init__(
        self,
        schema: t.RowType,
        value: tuple[Format, tuple[int, ...]],
        key: tuple[Format, tuple[int, ...]] | None,
        metadata: tuple[tuple[str, int], ...],
        *,
        upserts: bool = False,
    ) -> None:
        self._schema, self._value, self._key, self._metadata, self._upserts = schema, value, key, metadata, upserts
        self.format = value[0]
        self._names = list(schema.names)

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the table's rows."""
        return create_row_type_info(self._schema)

    def decode(self, records: Sequence[KafkaRecord]) -> Decoded:
        """Decode messages to rows; a message whose key or value cannot be decoded is an error of the result."""
        value_format, value_indexes = self._value
        decoded = value_format.decode([record.value for record in records])
        errors = {bad.index: bad for bad in decoded.errors}
        changes: list[tuple[int, RowKind, Sequence[Any]]] = [
            (decoded.origin_of(row_index), row._row_kind, row._values)
            for row_index, row in enumerate(decoded.rows(value_format.type_info))
        ]
        if self._upserts:
            deletes = [(index, RowKind.DELETE, ()) for index, record in enumerate(records) if record.value is None]
            changes = sorted([*changes, *deletes], key=lambda change: change[0])
        keys = self._decode_keys(records, errors)
        getters = [(_METADATA_GETTERS[name], column_index) for name, column_index in self._metadata]
        width, key_indexes = len(self._schema), () if self._key is None else self._key[1]
        rows: list[Row] = []
        origins: list[int] = []
        for index, row_kind, values in changes:
            if index in errors:
                continue
            row: list[Any] = [None] * width
            for column_index, value in zip(key_indexes, keys.get(index, ()), strict=False):
                row[column_index] = value
            for column_index, value in zip(value_indexes, values, strict=False):
                row[column_index] = value
            for get, column_index in getters:
                row[column_index] = get(records[index])
            rows.append(Row._from(self._names, row, row_kind))
            origins.append(index)
        return Decoded(rows, origins, tuple(errors[index] for index in sorted(errors)))

    def _decode_keys(self, records: Sequence[KafkaRecord], errors: dict[int, BadRecord]) -> dict[int, Sequence[Any]]:
        """Return the fields of the keys by message index, and add keys that cannot be decoded to `errors`."""
        if self._key is None:
            return {}
        key_format = self._key[0]
        decoded = key_format.decode([record.key for record in records])
        errors.update({bad.index: bad for bad in decoded.errors if bad.index not in errors})
        keys = {decoded.origin_of(n): row._values for n, row in enumerate(decoded.rows(key_format.type_info))}
        if self._upserts:
            for index, record in enumerate(records):
                if index not in keys and index not in errors:
                    errors[index] = BadRecord(index, record.value or b"", "the message has no key")
        return keys


# ----------------------------------------------------------------------------------------------------------- writing


@dataclass(frozen=True)
class HeadersOfColumn:
    """Returns the headers of a message from a column of its row."""

    column_index: int

    def __call__(self, row: Row) -> list[tuple[str, bytes | None]]:
        """Return pairs of name and bytes."""
        headers = row._values[self.column_index]
        return [] if headers is None else list(headers.items())


@dataclass(frozen=True)
class TableSerializer(KafkaRecordSerializationSchema):
    """Serializes rows to messages.

    Attributes:
        timestamp_index: The column index of the timestamp; None if messages have the time at which they are sent.
        partition_mode: default, fixed (each subtask writes to one partition) or round-robin.
        deduplication_key: Column indexes. If there are any, only the last row of each key of a batch is sent.
        subtask: The index of the subtask.

    """

    timestamp_index: int | None = None
    partition_mode: str = "default"
    deduplication_key: tuple[int, ...] = ()
    subtask: int = 0

    @property
    def columnar(self) -> bool:
        """False, because rows are serialized one by one."""
        return False

    def messages(
        self,
        values: Any,
        timestamps: Sequence[int | None] | np.ndarray | None,
        partitions_of: Callable[[str], list[int]],
    ) -> list[Messages]:
        """Serialize rows; the timestamps are those of the timestamp column, or of sending."""
        if self.deduplication_key:
            last_rows = {tuple(row._values[i] for i in self.deduplication_key): n for n, row in enumerate(values)}
            values = [values[n] for n in sorted(last_rows.values())]
        column_timestamps = None
        if self.timestamp_index is not None:
            column_timestamps = [_to_millis(row._values[self.timestamp_index]) for row in values]
        messages = super().messages(values, column_timestamps, partitions_of)
        if self.partition_mode == "default":
            return messages
        return [self._assign_partitions(of_topic, partitions_of) for of_topic in messages]

    def _assign_partitions(self, messages: Messages, partitions_of: Callable[[str], list[int]]) -> Messages:
        partitions = np.array(partitions_of(messages.topic), np.int32)
        steps = np.arange(len(messages)) if self.partition_mode == "round-robin" else np.zeros(len(messages), np.int64)
        return replace(messages, partitions=partitions[(self.subtask + steps) % len(partitions)])


def _to_millis(value: datetime.datetime | None) -> int:
    return 0 if value is None else (value - EPOCH) // MILLISECOND


@dataclass(frozen=True)
class TableKafkaSink(KafkaSink):
    """A Kafka sink that passes the subtask index to its serializer."""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create the writer of a subtask."""
        serializer = self.serializer
        if isinstance(serializer, TableSerializer):
            serializer = replace(serializer, subtask=context.subtask)
        kafka_sink = KafkaSink(self.servers, serializer, self.delivery, self.prefix, self.staging, self.properties)
        return kafka_sink.create_writer(context)
