"""PyFlink's `datastream.connectors.file_system`: sources and sinks of files; JSON lines are ours."""

from millstream.connectors.files import (
    BucketAssigner,
    BucketContext,
    DefaultRollingPolicy,
    FileEnumeratorProvider,
    FileSink,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
    JsonLinesEncoder,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
    json_lines,
)

__all__ = [
    "BucketAssigner",
    "BucketContext",
    "DefaultRollingPolicy",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "JsonLinesEncoder",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "RollingPolicy",
    "StreamFormat",
    "json_lines",
]
