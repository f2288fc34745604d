"""FlinkKafkaConsumer and FlinkKafkaProducer: the older names of KafkaSource and KafkaSink.

Promises: the settings of PyFlink's classes, for `add_source` and `add_sink`; messages are read and written by
`KafkaSource` and `KafkaSink`.
Does not know: brokers."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Self

from millstream.connector.serialization_schema import DeserializationSchema, SerializationSchema
from millstream.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from millstream.connectors.kafka.serializer import KafkaRecordSerializationSchema
from millstream.connectors.kafka.sink import KafkaSink
from millstream.connectors.kafka.source import KafkaSource
from millstream.functions import SinkFunction, SourceFunction
from millstream.types.factory import TypeInformation

_log = logging.getLogger("millstream.kafka")
_RESET, _GROUP, _COMMIT = "auto.offset.reset", "group.id", "commit.offsets.on.checkpoint"


class Semantic(Enum):
    """What a FlinkKafkaProducer guarantees when a job fails and restarts.

    Example:
        >>> from millstream.common import SimpleStringSchema
        >>> properties = {"bootstrap.servers": "localhost:9092"}
        >>> producer = FlinkKafkaProducer("totals", SimpleStringSchema(), properties, semantic=Semantic.EXACTLY_ONCE)

    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


class FlinkKafkaConsumerBase(SourceFunction):
    """The settings of a consumer; `add_source` reads it as a `KafkaSource`.

    Example:
        >>> from millstream.common import SimpleStringSchema
        >>> properties = {"bootstrap.servers": "localhost:9092", "group.id": "shop"}
        >>> consumer = FlinkKafkaConsumer("orders", SimpleStringSchema(), properties).set_start_from_earliest()

    """

    def __init__(
        self, topics: Sequence[str], deserialization_schema: DeserializationSchema, properties: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self._topics, self._schema = tuple(topics), deserialization_schema
        self._properties = dict(properties)
        self._reset = str(self._properties.pop(_RESET, "latest")).upper()
        self._starting: KafkaOffsetsInitializer | None = None

    def set_commit_offsets_on_checkpoints(self, commit_on_checkpoints: bool) -> Self:
        """Set whether the offsets of checkpoints are committed to the consumer group.

        Args:
            commit_on_checkpoints: Whether offsets are committed; True by default.

        """
        self._properties[_COMMIT] = str(commit_on_checkpoints).lower()
        return self

    def set_start_from_earliest(self) -> Self:
        """Begin with the first message."""
        self._starting = KafkaOffsetsInitializer.earliest()
        return self

    def set_start_from_latest(self) -> Self:
        """Begin after the last message at the start of the job."""
        self._starting = KafkaOffsetsInitializer.latest()
        return self

    def set_start_from_timestamp(self, startup_offsets_timestamp: int) -> Self:
        """Begin with the first message at or after a timestamp in milliseconds.

        Args:
            startup_offsets_timestamp: Milliseconds since 1970-01-01 UTC.

        """
        self._starting = KafkaOffsetsInitializer.timestamp(startup_offsets_timestamp)
        return self

    def set_start_from_group_offsets(self) -> Self:
        """Begin at the committed offsets of the group, as by default; `auto.offset.reset` applies without them."""
        self._starting = None
        return self

    def disable_filter_restored_partitions_with_subscribed_topics(self) -> Self:
        """Accept the call without effect: restored partitions are kept."""
        return self

    def get_produced_type(self) -> TypeInformation:
        """Return the type that the deserialization schema produces."""
        return self._schema.get_produced_type()

    def to_source(self) -> KafkaSource:
        """Return the source that reads the topics."""
        builder = KafkaSource.builder().set_topics(*self._topics).set_value_only_deserializer(self._schema)
        return builder.set_starting_offsets(self._starting_offsets()).set_properties(self._properties).build()

    def _starting_offsets(self) -> KafkaOffsetsInitializer:
        if self._starting is not None:
            return self._starting
        if _GROUP in self._properties:
            return KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy[self._reset])
        is_earliest = self._reset == KafkaOffsetResetStrategy.EARLIEST.name
        return KafkaOffsetsInitializer.earliest() if is_earliest else KafkaOffsetsInitializer.latest()


class FlinkKafkaConsumer(FlinkKafkaConsumerBase):
    """Reads topics. New programs use `KafkaSource`.

    Example:
        >>> from millstream.common import SimpleStringSchema
        >>> properties = {"bootstrap.servers": "localhost:9092", "group.id": "shop"}
        >>> consumer = FlinkKafkaConsumer(["orders", "returns"], SimpleStringSchema(), properties)

    """

    def __init__(
        self, topics: str | Sequence[str], deserialization_schema: DeserializationSchema, properties: Mapping[str, Any]
    ) -> None:
        super().__init__([topics] if isinstance(topics, str) else topics, deserialization_schema, properties)


class FlinkKafkaProducerBase(SinkFunction):
    """The settings of a producer; `add_sink` writes it as a `KafkaSink`.

    Example:
        >>> from millstream.common import SimpleStringSchema
        >>> properties = {"bootstrap.servers": "localhost:9092"}
        >>> producer = FlinkKafkaProducer("totals", SimpleStringSchema(), properties).set_flush_on_checkpoint(True)

    """

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema,
        producer_config: Mapping[str, Any],
        semantic: Semantic,
    ) -> None:
        super().__init__()
        self._topic, self._schema = topic, serialization_schema
        self._properties, self._semantic = dict(producer_config), semantic

    def set_log_failures_only(self, log_failures_only: bool) -> Self:
        """Accept False; errors always fail the job.

        Args:
            log_failures_only: False; True has no effect but a warning.

        """
        if log_failures_only:
            _log.warning("set_log_failures_only has no effect: an error of the producer fails the job")
        return self

    def set_flush_on_checkpoint(self, flush_on_checkpoint: bool) -> Self:
        """Accept True; messages are always flushed before a checkpoint completes.

        Args:
            flush_on_checkpoint: True; False has no effect but a warning.

        """
        if not flush_on_checkpoint:
            _log.warning("set_flush_on_checkpoint(False) has no effect: messages are flushed before a checkpoint")
        return self

    def set_write_timestamp_to_kafka(self, write_timestamp_to_kafka: bool) -> Self:
        """Accept the setting without effect: messages have the timestamps of their records, if these have one.

        Args:
            write_timestamp_to_kafka: Any value; it has no effect but a warning.

        """
        _log.warning("set_write_timestamp_to_kafka(%s) has no effect", write_timestamp_to_kafka)
        return self

    def to_sink(self) -> KafkaSink:
        """Return the sink that writes the topic."""
        serializer = KafkaRecordSerializationSchema.builder().set_topic(self._topic)
        builder = KafkaSink.builder().set_delivery_guarantee(self._semantic)
        for key, value in self._properties.items():
            builder.set_property(key, value)
        builder.set_transactional_id_prefix(f"flink-kafka-producer-{self._topic}"[:60])
        return builder.set_record_serializer(serializer.set_value_serialization_schema(self._schema).build()).build()


class FlinkKafkaProducer(FlinkKafkaProducerBase):
    """Writes a topic. New programs use `KafkaSink`.

    Example:
        >>> from millstream.common import SimpleStringSchema
        >>> producer = FlinkKafkaProducer("totals", SimpleStringSchema(), {"bootstrap.servers": "localhost:9092"})

    """

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema,
        producer_config: Mapping[str, Any],
        kafka_producer_pool_size: int = 5,
        semantic: Semantic = Semantic.AT_LEAST_ONCE,
    ) -> None:
        super().__init__(topic, serialization_schema, producer_config, semantic)

    def ignore_failures_after_transaction_timeout(self) -> Self:
        """Accept the call without effect."""
        return self
