"""Tables in files: 'connector' = 'filesystem' with any format, partitioned or not.

Promises: Flink's options; files are read once, or watched when `source.monitor-interval` says so; part files appear
with their checkpoint, partitions are committed as `sink.partition-commit.*` says. INSERT OVERWRITE replaces a table
that is not partitioned, and of one that is the partitions that get rows.
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
from millstream.connectors.files.paths import resolved
from millstream.connectors.files.ranges import FileFormat
from millstream.connectors.files.rolling import DefaultRollingPolicy, OnCheckpointRollingPolicy, OutputFileConfig
from millstream.connectors.files.sink import FileSink
from millstream.connectors.files.source import FileSource, FileSourceBuilder
from millstream.formats import format_named
from millstream.sql.connector.lookup import TableLookup
from millstream.sql.connector.lookup_reload import FULL_OPTIONS
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSink, TableSource
from millstream.sql.connector.table_formats import Columns, TableFormat, arrow_schema, table_format, told
from millstream.sql.connectors.file_partitions import (
    DEFAULT_NAME,
    FILE_METADATA,
    ColumnsEncoder,
    ColumnsWriterFactory,
    PartitionBuckets,
    PartitionedFiles,
)
from millstream.sql.errors import nearest
from millstream.sql.operators.join.whole_tables import whole_table
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.sql.types.durations import duration_millis
from millstream.times import Duration

_log = logging.getLogger("millstream.files")

_ROLLING = "sink.rolling-policy."
_WITHOUT_EFFECT = tuple(f"{_ROLLING}{name}" for name in ("rollover-interval", "inactivity-interval", "check-interval"))
_OPTIONS = (
    "path", "format", "source.monitor-interval", "sink.parallelism", "scan.parallelism", "partition.default-name",
    f"{_ROLLING}file-size", *_WITHOUT_EFFECT, "auto-compaction", "compaction.file-size", *COMMIT_OPTIONS,
    "lookup.cache", *FULL_OPTIONS,
)  # fmt: skip
_BULK = ("parquet", "orc", "avro")


def _chosen(context: TableContext) -> tuple[str, TableFormat, t.RowType]:
    """Path, format, and the columns that are in the files themselves."""
    context.required("format")
    form = table_format(context, "format")
    assert form is not None
    context.check(_OPTIONS, [form.prefix])
    schema, partitions = context.schema, context.definition.partitions
    inside = [name for name in schema.names if name not in partitions]
    row = t.row_of(inside, [schema.types[schema.names.index(name)] for name in inside], null=False)
    return context.required("path"), form, row


def _read(context: TableContext) -> TableSource:
    path, form, row = _chosen(context)
    reader: FileFormat = told(context, lambda: create_file_format(form.name, arrow_schema(row), dict(form.options)))
    schema, partitions = context.schema, context.definition.partitions
    names, kinds = list(partitions), [schema.types[schema.names.index(name)] for name in partitions]
    keys: list[str] = []
    for each in context.metadata:
        key = each.metadata_key or ""
        if key not in FILE_METADATA:
            message = f"files do not tell '{key}' (column '{each.name}')"
            raise context.fail(message, nearest(key, FILE_METADATA))
        keys.append(key)
        names.append(each.name)
        kinds.append(FILE_METADATA[key])
    found = row
    if names:
        added = t.row_of(names, kinds, null=False)
        reader = PartitionedFiles(reader, added, keys, context.options.get("partition.default-name", DEFAULT_NAME))
        found = t.row_of([*row.names, *names], [*row.types, *kinds], null=False)
    builder = FileSourceBuilder(told(context, lambda: FileSource(reader, (resolved(path),))))
    interval = context.options.get("source.monitor-interval")
    if interval is not None:
        builder = builder.monitor_continuously(Duration.of_millis(duration_millis(interval)))
    parallelism = context.integer("scan.parallelism")
    return TableSource(builder.build(), found, form.mode, foreign=True, parallelism=parallelism)


def _write(context: TableContext) -> TableSink:
    path, form, row = _chosen(context)
    for each in context.metadata:
        if not each.virtual:
            message = f"metadata '{each.metadata_key}' (column '{each.name}') cannot be written"
            raise context.fail(message, "declare the column METADATA VIRTUAL")
    changes = form.mode is not ChangelogMode.INSERT_ONLY
    columns = Columns(context.written, row.names, kinds=changes)
    schema, options = arrow_schema(row), dict(form.options)
    builder: FileSink.BaseBuilder
    if form.name in _BULK:
        factory = told(context, lambda: create_encoder(form.name, schema, options))
        assert isinstance(factory, BulkWriterFactory)
        builder = FileSink.for_bulk_format(path, ColumnsWriterFactory(factory, columns))
        builder = builder.with_rolling_policy(OnCheckpointRollingPolicy())
    else:
        line = told(context, lambda: format_named(form.name, schema, options))
        builder = FileSink.for_row_format(path, ColumnsEncoder(line, columns, context.written))
        builder = builder.with_rolling_policy(DefaultRollingPolicy(context.size(f"{_ROLLING}file-size", "128 MB")))
    builder = builder.with_bucket_assigner(_buckets(context)).with_output_file_config(OutputFileConfig("part"))
    if context.flag("auto-compaction"):
        size = context.size("compaction.file-size", context.options.get(f"{_ROLLING}file-size", "128 MB"))
        strategy = FileCompactStrategy.builder().set_size_threshold(size).enable_compaction_on_checkpoint(1).build()
        builder = builder.enable_compact(strategy, FileCompactor.record_wise_file_compactor())
    sink = told(context, builder.build)
    commit = told(context, lambda: PartitionCommit.of_options(context.options))
    if commit is not None:
        sink = replace(sink, partition_commit=commit)
    for key in _WITHOUT_EFFECT:
        if key in context.options:
            _log.warning("option '%s' has no effect: every checkpoint finishes all parts", key)
    whole = not context.definition.partitions
    shown = told(context, lambda: OverwritingSink.over(sink, whole=whole)) if context.overwrite else sink
    return TableSink(shown, form.mode, context.integer("sink.parallelism"))


def _buckets(context: TableContext) -> BucketAssigner:
    partitions = context.definition.partitions
    if not partitions:
        return BasePathBucketAssigner()
    return PartitionBuckets(context.written, partitions, context.options.get("partition.default-name", DEFAULT_NAME))


def _looked_up(context: TableContext, keys: tuple[str, ...]) -> TableLookup | None:
    """Files have no index: they are kept as a whole, or not looked up."""
    if context.word("lookup.cache", ("none", "full"), "none") == "none":
        return None
    return whole_table(context, _read(context), keys)


CONNECTORS = (
    TableConnector("filesystem", read=_read, write=_write, lookup=_looked_up, metadata=FILE_METADATA, overwrites=True),
)
