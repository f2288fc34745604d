"""Tables in files: 'connector' = 'filesystem' with any format.

Promises: Flink's options; files are read once, or watched when `source.monitor-interval` says so.
Does not know: how files are read or written."""

from __future__ import annotations

import pyarrow as pa

from millstream.connectors.files.bulk import BulkFormat
from millstream.connectors.files.formats import StreamFormat
from millstream.connectors.files.named import reader_named, writer_named
from millstream.connectors.files.sink import FileSink
from millstream.connectors.files.source import FileSource
from millstream.errors import UserError
from millstream.formats import format_names
from millstream.model.serialization import BulkWriterFactory
from millstream.model.time import Duration
from millstream.sql import types as t
from millstream.sql.bind.tables import duration_millis
from millstream.sql.columns import arrow_type
from millstream.sql.connectors import TableConnector, TableContext, TableSink, TableSource, register
from millstream.sql.errors import nearest
from millstream.sql.physical import ChangelogMode

_CHANGELOGS = ("debezium-json", "canal-json", "maxwell-json")


def named_arrow_type(kind: t.DataType) -> pa.DataType:
    """The Arrow type of a logical type, with the names of nested fields."""
    match kind:
        case t.RowType():
            return pa.struct([(f.name, named_arrow_type(f.data_type)) for f in kind.fields])
        case t.ArrayType():
            return pa.list_(named_arrow_type(kind.element))
        case t.MapType():
            return pa.map_(named_arrow_type(kind.key), named_arrow_type(kind.value))
    return arrow_type(kind)


def _prepared(context: TableContext) -> tuple[str, str, pa.Schema, dict[str, str]]:
    """Path, format, schema and the format's options."""
    name = context.required("format")
    if name not in format_names():
        message = f"there is no format '{name}'"
        raise context.fail(message, nearest(name, format_names()))
    known = ["path", "format", "source.monitor-interval", "sink.parallelism", "scan.parallelism"]
    context.check(known, [f"{name}.", "sink.rolling-policy."])
    if context.definition.partitions:
        message = "partitioned tables in files are not supported"
        raise context.fail(message)
    fields = [pa.field(f.name, named_arrow_type(f.data_type), f.data_type.null) for f in context.schema.fields]
    options = {k.removeprefix(f"{name}."): v for k, v in context.options.items() if k.startswith(f"{name}.")}
    return context.required("path"), name, pa.schema(fields), options


def _read(context: TableContext) -> TableSource:
    path, name, schema, options = _prepared(context)
    try:
        reader = reader_named(name, schema, options)
    except UserError as problem:
        raise context.fail(problem.message, problem.hint) from None
    if isinstance(reader, BulkFormat):
        builder = FileSource.for_bulk_file_format(reader, path)
    else:
        assert isinstance(reader, StreamFormat)
        builder = FileSource.for_record_stream_format(reader, path)
    interval = context.options.get("source.monitor-interval")
    if interval is not None:
        builder = builder.monitor_continuously(Duration.of_millis(duration_millis(interval)))
    mode = ChangelogMode.RETRACT if name in _CHANGELOGS else ChangelogMode.INSERT_ONLY
    return TableSource(builder.build(), context.schema, mode, foreign=True)


def _write(context: TableContext) -> TableSink:
    path, name, schema, options = _prepared(context)
    try:
        writer = writer_named(name, schema, options)
    except UserError as problem:
        raise context.fail(problem.message, problem.hint) from None
    if isinstance(writer, BulkWriterFactory):
        sink = FileSink.for_bulk_format(path, writer).build()
    else:
        sink = FileSink.for_row_format(path, writer).build()
    mode = ChangelogMode.RETRACT if name in _CHANGELOGS else ChangelogMode.INSERT_ONLY
    return TableSink(sink, mode, context.integer("sink.parallelism"))


register(TableConnector("filesystem", read=_read, write=_write))
