"""The writers of a Kafka sink: one writer for one epoch of one subtask.

Promises: a staging writer leaves a file and nothing at the brokers; a sending writer returns from `prepare_commit` when
the brokers have everything.
Does not know: checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millstream.connector.sink import SinkWriter
from millstream.connectors.kafka.producer import MessageProducer, discard, shared_producer
from millstream.connectors.kafka.serializer import KafkaRecordSerializationSchema
from millstream.connectors.kafka.staging import StageFile


class StagingWriter(SinkWriter):
    """Exactly once: stages messages in a file until their checkpoint."""

    def __init__(
        self, serializer: KafkaRecordSerializationSchema, file: StageFile, settings: Mapping[str, Any]
    ) -> None:
        self._serializer, self._file, self._settings = serializer, file, settings
        self.columnar = serializer.columnar

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Add messages to the file."""
        for messages in self._serializer.messages(values, timestamps, self._partitions):
            self._file.append(messages)

    def _partitions(self, topic: str) -> list[int]:
        return shared_producer(self._settings).partitions(topic)

    def prepare_commit(self) -> list[Any]:
        """Sync the file and return its committable."""
        return [staged.to_json() for staged in self._file.finish()]

    def abort(self) -> None:
        """Remove the file."""
        self._file.discard()


class SendingWriter(SinkWriter):
    """At least once: sends messages immediately."""

    def __init__(self, serializer: KafkaRecordSerializationSchema, settings: Mapping[str, Any]) -> None:
        self._serializer, self._settings = serializer, settings
        self._producer: MessageProducer = shared_producer(settings)
        self.columnar = serializer.columnar

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Pass messages to the producer."""
        for messages in self._serializer.messages(values, timestamps, self._producer.partitions):
            self._producer.send(messages)

    def prepare_commit(self) -> list[Any]:
        """Wait until all messages are delivered."""
        self._producer.flush()
        return []

    def abort(self) -> None:
        """Drop messages that were not sent; they are sent when the epoch is repeated. Sent messages stay."""
        self._producer.purge()
        discard(self._settings)
