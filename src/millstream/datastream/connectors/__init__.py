"""PyFlink's `datastream.connectors`: sources and sinks.

As in PyFlink, the names of the Kafka and JDBC connectors can be imported from here too; they are loaded when they are
first used."""

from __future__ import annotations

import importlib
from typing import Any

from millstream.datastream.connectors.base import DeliveryGuarantee, Sink, Source
from millstream.datastream.connectors.blackhole import BlackHoleSink
from millstream.datastream.connectors.datagen import DataGeneratorSource, DataGenSource, RateLimiterStrategy
from millstream.datastream.connectors.file_system import (
    BucketAssigner,
    FileEnumeratorProvider,
    FileSink,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
    StreamingFileSink,
)
from millstream.datastream.connectors.number_seq import NumberSequenceSource

__all__ = [
    "BlackHoleSink",
    "BucketAssigner",
    "DataGenSource",
    "DataGeneratorSource",
    "DeliveryGuarantee",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "NumberSequenceSource",
    "OutputFileConfig",
    "RateLimiterStrategy",
    "RollingPolicy",
    "Sink",
    "Source",
    "StreamFormat",
    "StreamingFileSink",
]

_MODULES = {
    "dynamic_kafka": (
        "DynamicKafkaSource",
        "DynamicKafkaSourceBuilder",
        "KafkaMetadataService",
        "KafkaRecordDeserializationSchema",
        "KafkaStreamSetSubscriber",
        "KafkaStreamSubscriber",
        "SingleClusterTopicMetadataService",
        "StreamPatternSubscriber",
    ),
    "jdbc": ("JdbcConnectionOptions", "JdbcExecutionOptions", "JdbcSink"),
    "kafka": ("FlinkKafkaConsumer", "FlinkKafkaProducer", "KafkaSource", "Semantic"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
