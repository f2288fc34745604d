"""Files: text, JSON, CSV, Parquet, ORC and Avro as a source, part files as an exactly-once sink."""

from millstream.connectors.files.buckets import BucketAssigner, BucketContext
from millstream.connectors.files.bulk import AvroFiles, AvroRecords, BulkFormat, DamagedFile, OrcFiles, ParquetFiles
from millstream.connectors.files.compaction import FileCompactor, FileCompactStrategy
from millstream.connectors.files.csv_files import CsvFiles
from millstream.connectors.files.encoders import FormatEncoder, JsonLinesEncoder, json_lines
from millstream.connectors.files.format_registry import create_encoder, create_file_format
from millstream.connectors.files.formats import StreamFormat
from millstream.connectors.files.partition_time import PartitionTime
from millstream.connectors.files.partitions import PartitionCommit
from millstream.connectors.files.ranges import FileFormat, MalformedLine, Rejected
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
from millstream.connectors.files.streaming_file_sink import StreamingFileSink
from millstream.connectors.files.writers import (
    AvroParquetWriterFactory,
    AvroWriterFactory,
    LineWriterFactory,
    OrcWriterFactory,
    ParquetWriterFactory,
)

__all__ = [
    "AvroFiles",
    "AvroParquetWriterFactory",
    "AvroRecords",
    "AvroWriterFactory",
    "BucketAssigner",
    "BucketContext",
    "BulkFormat",
    "CsvFiles",
    "DamagedFile",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactor",
    "FileEnumeratorProvider",
    "FileFormat",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "FormatEncoder",
    "JsonLinesEncoder",
    "LineWriterFactory",
    "MalformedLine",
    "OnCheckpointRollingPolicy",
    "OrcFiles",
    "OrcWriterFactory",
    "OutputFileConfig",
    "ParquetFiles",
    "ParquetWriterFactory",
    "PartitionCommit",
    "PartitionTime",
    "Rejected",
    "RollingPolicy",
    "StreamFormat",
    "StreamingFileSink",
    "create_encoder",
    "create_file_format",
    "json_lines",
]
