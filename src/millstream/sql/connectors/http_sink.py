"""The HTTP sink: 'connector' = 'http-sink'.

Promises: the option keys of the connector `flink-http-connector` of GetInData. A request that the server refuses fails
the job; there it is only counted.
Does not know: how requests are sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connector.http_client import Backoff, HttpOptions, StatusCodes, check_url
from millstream.connectors.http.sink import HttpSink
from millstream.formats import Format
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSink
from millstream.sql.connector.table_formats import Columns, call_for_table, create_format, read_format
from millstream.sql.connectors.http_options import (
    PREFIX,
    SECURITY_OPTIONS,
    read_codes,
    read_headers,
    read_seconds,
    read_tls,
    warn_without_effect,
)
from millstream.sql.types.changelog_mode import ChangelogMode

_SINK = f"{PREFIX}sink."
_BATCH_SIZE, _MODE, _THREADS = (
    f"{_SINK}request.batch.size", f"{_SINK}writer.request.mode", f"{_SINK}writer.thread-pool.size",
)  # fmt: skip
_WITHOUT_EFFECT = (
    "sink.batch.max-size", "sink.requests.max-inflight", "sink.requests.max-buffered", "sink.flush-buffer.size",
    "sink.flush-buffer.timeout", f"{_SINK}request-callback", f"{PREFIX}logging.level",
)  # fmt: skip
_RETRIED = StatusCodes.parse("408,429,5XX")
_BACKOFF = Backoff(retries=3, first=0.5, factor=2.0)


@dataclass(frozen=True)
class _Encode:
    """Returns the bytes of rows."""

    row_format: Format
    columns: Columns

    def __call__(self, rows: Sequence[Any]) -> list[bytes]:
        return self.row_format.encode(self.columns.project(rows))


def _write(context: TableContext) -> TableSink:
    url = context.required("url")
    context.required("format")
    table_format = read_format(context, "format")
    assert table_format is not None
    known = ["url", "format", "insert-method", "sink.parallelism", *_WITHOUT_EFFECT, *SECURITY_OPTIONS]
    option_keys = [f"{_SINK}{key}" for key in ("error.code", "error.code.exclude", "request.timeout")]
    context.check([*known, *option_keys, _BATCH_SIZE, _MODE, _THREADS], [table_format.prefix, f"{_SINK}header."])
    call_for_table(context, lambda: check_url(url))
    warn_without_effect(context, _WITHOUT_EFFECT, "a checkpoint sends all records that are buffered")
    batches = context.word(_MODE, ("single", "batch"), "batch") == "batch"
    if batches and table_format.name != "json":
        message = f"requests with several records are JSON arrays, and the format is '{table_format.name}'"
        raise context.fail(message, f"set '{_MODE}' = 'single'")
    size, threads = context.integer(_BATCH_SIZE, 500) or 0, context.integer(_THREADS, 1) or 0
    for key, number in ((_BATCH_SIZE, size), (_THREADS, threads)):
        if number < 1:
            message = f"option '{key}' must be 1 or more"
            raise context.fail(message)
    errors = read_codes(context, f"{_SINK}error.code", "4XX,5XX").included
    excluded = read_codes(context, f"{_SINK}error.code.exclude", "").included
    options = HttpOptions(
        read_headers(context, f"{_SINK}header."),
        read_seconds(context, f"{_SINK}request.timeout", 30),
        _BACKOFF,
        StatusCodes(_RETRIED.included & (errors - excluded)),
        read_tls(context),
    )
    schema = context.sink_schema
    keep_row_kind = table_format.mode is not ChangelogMode.INSERT_ONLY
    encode = _Encode(
        create_format(context, table_format, schema), Columns(schema, schema.names, keep_row_kind=keep_row_kind)
    )
    method = context.word("insert-method", ("POST", "PUT"), "POST")
    sink = HttpSink(url, method, encode, options, StatusCodes(errors - excluded), size if batches else None, threads)
    return TableSink(sink, table_format.mode, context.integer("sink.parallelism"))


CONNECTORS = (TableConnector("http-sink", write=_write),)
