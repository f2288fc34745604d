"""PyFlink's `datastream.connectors`: sources and sinks."""

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
]
