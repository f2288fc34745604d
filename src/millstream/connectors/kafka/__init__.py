"""Kafka: topics as a source, read once; topics as a sink, exactly once with checkpoints."""

from millstream.connectors.kafka.dynamic import (
    DynamicKafkaSource,
    DynamicKafkaSourceBuilder,
    KafkaStreamSetSubscriber,
    KafkaStreamSubscriber,
    StreamPatternSubscriber,
)
from millstream.connectors.kafka.flink_kafka import (
    FlinkKafkaConsumer,
    FlinkKafkaConsumerBase,
    FlinkKafkaProducer,
    FlinkKafkaProducerBase,
    Semantic,
)
from millstream.connectors.kafka.metadata_service import (
    ClusterMetadata,
    KafkaMetadataService,
    KafkaStream,
    SingleClusterTopicMetadataService,
)
from millstream.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer, KafkaTopicPartition
from millstream.connectors.kafka.records import KafkaRecord, KafkaRecordDeserializationSchema
from millstream.connectors.kafka.serializer import (
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaTopicSelector,
)
from millstream.connectors.kafka.sink import KafkaSink, KafkaSinkBuilder
from millstream.connectors.kafka.source import KafkaSource, KafkaSourceBuilder

__all__ = [
    "ClusterMetadata",
    "DynamicKafkaSource",
    "DynamicKafkaSourceBuilder",
    "FlinkKafkaConsumer",
    "FlinkKafkaConsumerBase",
    "FlinkKafkaProducer",
    "FlinkKafkaProducerBase",
    "KafkaMetadataService",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaRecord",
    "KafkaRecordDeserializationSchema",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaStream",
    "KafkaStreamSetSubscriber",
    "KafkaStreamSubscriber",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
    "Semantic",
    "SingleClusterTopicMetadataService",
    "StreamPatternSubscriber",
]
