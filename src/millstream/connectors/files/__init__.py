"""Files: lines of text and JSON as a source, part files as an exactly-once sink."""

from millstream.connectors.files.buckets import BucketAssigner, BucketContext
from millstream.connectors.files.encoders import JsonLinesEncoder, json_lines
from millstream.connectors.files.formats import MalformedLine, StreamFormat
from millstream.connectors.files.rolling import (
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from millstream.connectors.files.sink import FileSink
from millstream.connectors.files.source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
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
    "MalformedLine",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "RollingPolicy",
    "StreamFormat",
    "json_lines",
]
