"""PyFlink's `datastream.connectors.kafka`: topics as source and sink; whole messages with metadata are ours, and the
names of Flink's dynamic source are those of its Java package."""

from __future__ import annotations

from millstream.connectors.kafka import (
    ClusterMetadata,
    DynamicKafkaSource,
    DynamicKafkaSourceBuilder,
    FlinkKafkaConsumer,
    FlinkKafkaConsumerBase,
    FlinkKafkaProducer,
    FlinkKafkaProducerBase,
    KafkaMetadataService,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecord,
    KafkaRecordDeserializationSchema,
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaSink,
    KafkaSinkBuilder,
    KafkaSource,
    KafkaSourceBuilder,
    KafkaStream,
    KafkaTopicPartition,
    KafkaTopicSelector,
    Semantic,
    SingleClusterTopicMetadataService,
)
from millstream.datastream.connectors.base import DeliveryGuarantee

__all__ = [
    "ClusterMetadata",
    "DeliveryGuarantee",
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
    "KafkaTopicPartition",
    "KafkaTopicSelector",
    "Semantic",
    "SingleClusterTopicMetadataService",
]
