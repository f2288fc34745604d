"""The filesystem connector: 'connector' = 'filesystem'.

Promises: Flink's options. Files are read once, or monitored with `source.monitor-interval`. Part files become visible
with their checkpoint; partitions are committed as the options `sink.partition-commit.*` define. INSERT OVERWRITE
replaces a whole unpartitioned table; in a partitioned table it replaces the partitions that get rows. UPDATE and DELETE
write all remaining rows and replace the whole table.
Does not know: how files are read or written."""

from __future__ import annotations

import logging
from dataclasses import replace

from millstream.connector.serialization_schema import BulkWriterFactory
from millstream.connectors.files.buckets import BasePathBucketAssigner, BucketAssigner
from millstream.connectors.files.compaction import FileCompactor, FileCompactStrategy
from millstream.connectors.files.format_registry import create_encoder, create_file_format
from millstream.connectors.files.overwriting import OverwritingSink
from millstream.connectors.files.partitions import OPTIONS as COMMIT_OPTIONS
from millstream.connectors.files.partitions import PartitionCommit
from millstream.connectors.files.paths import resolve_path
from millstream.connectors.files.ranges import FileFormat
from millstream.connectors.files.rolling import DefaultRollingPolicy, OnCheckpointRollingPolicy, OutputFileConfig
from millstream.connectors.files.sink import FileSink
from millstream.connectors.files.source import FileSource, FileSourceBuilder
from millstream.formats import format_named, format_names
from millstream.sql.connector.lookup import TableLookup
from millstream.sql.connector.lookup_reload import FULL_OPTIONS
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSink, TableSource
from millstream.sql.connector.table_formats import (
    Columns,
    TableFormat,
    call_for_table,
    create_arrow_schema,
    read_format,
)
from millstream.sql.connectors.file_partitions import (
    DEFAULT_NAME,
    FILE_METADATA,
    ColumnsEncoder,
    ColumnsWriterFactory,
    PartitionBuckets,
    PartitionedFiles,
)
from millstream.sql.errors import nearest
from millstream.sql.operators.join.whole_tables import read_whole_table
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.sql.types.durations import parse_duration_millis
from millstream.times import Duration

_log = logging.getLogger("millstream.files")

_ROLLING = "sink.rolling-policy."
_WITHOUT_EFFECT = tuple(f"{_ROLLING}{name}" for name in ("rollover-interval", "inactivity-interval", "check-interval"))
_OPTIONS = (
    "path", "format", "source.monitor-interval", "sink.parallelism", "scan.parallelism", "partition.default-name",
    f"{_ROLLING}file-size", *_WITHOUT_EFFECT, "auto-compaction", "compaction.file-size", *COMMIT_OPTIONS,
    "lookup.cache", *FULL_OPTIONS,
)  # fmt: skip
_BULK_FORMATS = ("parquet", "orc", "avro")


def _read_options(context: TableContext) -> tuple[str, TableFormat, t.RowType]:
    """Return the path, the format, and the columns that are in the files: all but partition columns."""
    context.required("format", f"set it to one of {', '.join(format_names())}")
    table_format = read_format(context, "format")
    assert table_format is not None
    context.check(_OPTIONS, [table_format.prefix])
    schema, partitions = context.schema, context.definition.partitions
    names = [name for name in schema.names if name not in partitions]
    file_schema = t.row_of(names, [schema.types[schema.names.index(name)] for name in names], null=False)
    return context.required("path"), table_format, file_schema


def _read(context: TableContext) -> TableSource:
    path, table_format, file_schema = _read_options(context)
    reader: FileFormat = call_for_table(
        context,
        lambda: create_file_format(table_format.name, create_arrow_schema(file_schema), dict(table_format.options)),
    )
    schema, partitions = context.schema, context.definition.partitions
    names, types = list(partitions), [schema.types[schema.names.index(name)] for name in partitions]
    metadata_keys: list[str] = []
    for column in context.metadata:
        key = column.metadata_key or ""
        if key not in FILE_METADATA:
            message = f"files have no metadata '{key}' (column '{column.name}')"
            raise context.fail(message, nearest(key, FILE_METADATA))
        metadata_keys.append(key)
        names.append(column.name)
        types.append(FILE_METADATA[key])
    source_schema = file_schema
    if names:
        added = t.row_of(names, types, null=False)
        default_name = context.options.get("partition.default-name", DEFAULT_NAME)
        reader = PartitionedFiles(reader, added, metadata_keys, default_name)
        source_schema = t.row_of([*file_schema.names, *names], [*file_schema.types, *types], null=False)
    builder = FileSourceBuilder(call_for_table(context, lambda: FileSource(reader, (resolve_path(path),))))
    interval = context.options.get("source.monitor-interval")
    if interval is not None:
        builder = builder.monitor_continuously(Duration.of_millis(parse_duration_millis(interval)))
    parallelism = context.integer("scan.parallelism")
    return TableSource(
        builder.build(), source_schema, table_format.mode, needs_conversion=True, parallelism=parallelism
    )


def _write(context: TableContext) -> TableSink:
    path, table_format, file_schema = _read_options(context)
    for column in context.metadata:
        if not column.virtual:
            message = f"metadata '{column.metadata_key}' (column '{column.name}') cannot be written"
            raise context.fail(message, "declare the column METADATA VIRTUAL")
    keep_row_kind = table_format.mode is not ChangelogMode.INSERT_ONLY
    columns = Columns(context.sink_schema, file_schema.names, keep_row_kind=keep_row_kind)
    schema, options = create_arrow_schema(file_schema), dict(table_format.options)
    builder: FileSink.BaseBuilder
    if table_format.name in _BULK_FORMATS:
        factory = call_for_table(context, lambda: create_encoder(table_format.name, schema, options))
        assert isinstance(factory, BulkWriterFactory)
        builder = FileSink.for_bulk_format(path, ColumnsWriterFactory(factory, columns))
        builder = builder.with_rolling_policy(OnCheckpointRollingPolicy())
    else:
        line_format = call_for_table(context, lambda: format_named(table_format.name, schema, options))
        builder = FileSink.for_row_format(path, ColumnsEncoder(line_format, columns, context.sink_schema))
        builder = builder.with_rolling_policy(DefaultRollingPolicy(context.size(f"{_ROLLING}file-size", "128 MB")))
    builder = builder.with_bucket_assigner(_create_bucket_assigner(context)).with_output_file_config(
        OutputFileConfig("part")
    )
    if context.flag("auto-compaction"):
        size = context.size("compaction.file-size", context.options.get(f"{_ROLLING}file-size", "128 MB"))
        strategy = FileCompactStrategy.builder().set_size_threshold(size).enable_compaction_on_checkpoint(1).build()
        builder = builder.enable_compact(strategy, FileCompactor.record_wise_file_compactor())
    sink = call_for_table(context, builder.build)
    commit = call_for_table(context, lambda: PartitionCommit.of_options(context.options))
    if commit is not None:
        sink = replace(sink, partition_commit=commit)
    for key in _WITHOUT_EFFECT:
        if key in context.options:
            _log.warning("option '%s' has no effect: every checkpoint finishes all parts", key)
    if context.overwrite:
        whole = context.row_level or not context.definition.partitions
        table_sink = call_for_table(context, lambda: OverwritingSink.over(sink, whole=whole))
        return TableSink(table_sink, table_format.mode, context.integer("sink.parallelism"))
    return TableSink(sink, table_format.mode, context.integer("sink.parallelism"))


def _create_bucket_assigner(context: TableContext) -> BucketAssigner:
    partitions = context.definition.partitions
    if not partitions:
        return BasePathBucketAssigner()
    return PartitionBuckets(
        context.sink_schema, partitions, context.options.get("partition.default-name", DEFAULT_NAME)
    )


def _create_lookup(context: TableContext, keys: tuple[str, ...]) -> TableLookup | None:
    """Return a lookup with a full cache; without one there is no lookup, because files have no index."""
    if context.word("lookup.cache", ("none", "full"), "none") == "none":
        return None
    return read_whole_table(context, _read(context), keys)


CONNECTORS = (
    TableConnector(
        "filesystem",
        read=_read,
        write=_write,
        lookup=_create_lookup,
        metadata=FILE_METADATA,
        overwrites=True,
        row_level="rewrite",
    ),
)
