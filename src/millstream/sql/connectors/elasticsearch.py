"""Elasticsearch and OpenSearch tables: 'connector' = 'elasticsearch-7', 'opensearch-2' and their other versions.

Promises: the option keys of Flink's connectors. With a primary key, a row is written to the document whose id is the
text of the key, and deletions are applied; without one, each row is a new document.
Does not know: how requests are sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from millstream.connector.http_client import TlsOptions
from millstream.connectors.elasticsearch.builders import FlushBackoffType, complete_host, create_backoff
from millstream.connectors.elasticsearch.builders import create_http_options as create_bulk_options
from millstream.connectors.elasticsearch.bulk import ActionFormat, BulkAction, BulkServer
from millstream.connectors.elasticsearch.sink import ElasticsearchSink
from millstream.errors import UserError
from millstream.formats import Format
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSink
from millstream.sql.connector.table_formats import Columns, call_for_table, create_format, read_format
from millstream.sql.connectors.document_indexes import IndexName, read_index_name
from millstream.sql.connectors.http_options import warn_without_effect
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.sql.types.durations import parse_duration_millis
from millstream.types import java_texts
from millstream.types.java_numbers import format_double
from millstream.types.row import Row, RowKind

_FLUSH = "sink.bulk-flush."
_WITHOUT_EFFECT = {
    f"{_FLUSH}interval": "the end of each epoch sends all rows",
    f"{_FLUSH}max-buffered-actions": "a full request is sent at once",
    f"{_FLUSH}max-in-flight-actions": "requests are sent one after the other",
    "connection.request-timeout": "each subtask has its own connection",
    "sink.flush-on-checkpoint": "the end of each epoch sends all rows",
}
_OPTIONS = (
    "hosts", "index", "username", "password", "format", "document-id.key-delimiter", "sink.delivery-guarantee",
    f"{_FLUSH}max-actions", f"{_FLUSH}max-size", f"{_FLUSH}backoff.strategy", f"{_FLUSH}backoff.max-retries",
    f"{_FLUSH}backoff.delay", "connection.path-prefix", "connection.timeout", "socket.timeout", "sink.parallelism",
    "sink.retry-on-conflicts", *_WITHOUT_EFFECT,
)  # fmt: skip
_TYPE, _INSECURE = "document-type", "allow-insecure"
_OWN_OPTIONS = {
    "elasticsearch-6": (_TYPE,), "elasticsearch-7": (), "elasticsearch-8": (),
    "opensearch": (_INSECURE,), "opensearch-2": (_INSECURE,), "opensearch-3": (_INSECURE,),
}  # fmt: skip
_MEGABYTE = 1024 * 1024
_MAX_ID_BYTES = 512
_RETRACTIONS = (RowKind.DELETE, RowKind.UPDATE_BEFORE)
_KEY_TYPES = (
    t.CharType | t.VarCharType | t.BooleanType | t.NumericType | t.DateType | t.TimeType | t.TimestampType
    | t.LocalZonedTimestampType | t.YearMonthIntervalType | t.DayTimeIntervalType
)  # fmt: skip


class InvalidDocumentId(UserError):
    """A primary key cannot be the id of a document."""

    def __init__(self, row: Row, problem: str) -> None:
        super().__init__(f"the primary key of {row} cannot be the id of a document: {problem}")


def _format_key_of(data_type: t.DataType) -> Callable[[Any], str]:
    """Return the function that writes a value of a primary key: Java's text of it."""
    match data_type:
        case t.BooleanType():
            return java_texts.format_boolean
        case t.FloatType():
            return partial(format_double, single=True)
        case t.DoubleType():
            return format_double
        case t.DecimalType():
            return "{:f}".format
        case t.DateType():
            return java_texts.format_local_date
        case t.TimeType():
            return java_texts.format_local_time
        case t.TimestampType() | t.LocalZonedTimestampType():
            return java_texts.format_local_date_time
        case t.YearMonthIntervalType():
            return java_texts.format_period
        case t.DayTimeIntervalType():
            return java_texts.format_java_duration
    return str


class _RowActions:
    """Turns rows into actions. `keys` are the indexes of the columns of the primary key."""

    def __init__(
        self,
        row_format: Format,
        schema: t.RowType,
        index: IndexName,
        keys: tuple[int, ...],
        delimiter: str,
        actions: ActionFormat,
    ) -> None:
        self._arguments = (row_format, schema, index, keys, delimiter, actions)
        self._columns = Columns(schema, schema.names)
        self._key_formats = [(key, _format_key_of(schema.types[key])) for key in keys]

    def __reduce__(self) -> tuple[Any, ...]:
        return _RowActions, self._arguments

    def __call__(self, rows: Sequence[Row], now: int) -> list[BulkAction]:
        row_format, _, index, keys, _, actions = self._arguments
        written = [row for row in rows if row._row_kind not in _RETRACTIONS]
        documents = iter(row_format.encode(self._columns.project(written)))
        index_of = index.bind(now)
        result: list[BulkAction] = []
        for row in rows:
            if row._row_kind in _RETRACTIONS:
                result.append(actions.delete(index_of(row), self._id_of(row)))
            elif keys:
                result.append(actions.upsert(index_of(row), self._id_of(row), next(documents)))
            else:
                result.append(actions.index(index_of(row), next(documents)))
        return result

    def _id_of(self, row: Row) -> str:
        values = row._values
        document_id = self._arguments[4].join(format_key(values[key]) for key, format_key in self._key_formats)
        if not document_id:
            raise InvalidDocumentId(row, "it is an empty text")
        if len(document_id.encode()) > _MAX_ID_BYTES:
            raise InvalidDocumentId(row, f"it is longer than {_MAX_ID_BYTES} bytes")
        return document_id


def _read_server(context: TableContext) -> BulkServer:
    options = context.options
    texts = [text for text in context.required("hosts").split(";") if text.strip()]
    if not texts:
        message = "option 'hosts' is empty"
        raise context.fail(message, "write http://host:9200, several with ;")
    hosts = tuple(call_for_table(context, partial(complete_host, text)) for text in texts)
    username, password = options.get("username", ""), options.get("password", "")
    if bool(username.strip()) != bool(password.strip()):
        message = "'username' and 'password' must be set together"
        raise context.fail(message)
    http = replace(
        create_bulk_options(username, password),
        timeout=_read_seconds(context, "socket.timeout") or 30.0,
        connect_timeout=_read_seconds(context, "connection.timeout"),
        tls=TlsOptions(allow_self_signed=context.flag(_INSECURE)),
    )
    # the sink of version 8 has no options for it, and always tries again
    default = ("EXPONENTIAL", 8, "100 ms") if options["connector"] == "elasticsearch-8" else ("DISABLED", 8, "50 ms")
    word = context.word(f"{_FLUSH}backoff.strategy", ("DISABLED", "CONSTANT", "EXPONENTIAL", "NONE"), default[0])
    retries = _at_least_one(context, f"{_FLUSH}backoff.max-retries", default[1])
    delay = parse_duration_millis(options.get(f"{_FLUSH}backoff.delay", default[2]))
    strategy = FlushBackoffType["NONE" if word == "DISABLED" else word]
    return BulkServer(hosts, http, create_backoff(strategy, retries, delay), options.get("connection.path-prefix", ""))


def _read_seconds(context: TableContext, key: str) -> float | None:
    text = context.options.get(key)
    return None if text is None else parse_duration_millis(text) / 1000


def _at_least_one(context: TableContext, key: str, default: int) -> int:
    number = context.integer(key, default) or 0
    if number < 1:
        message = f"option '{key}' must be 1 or more"
        raise context.fail(message)
    return number


def _read_limits(context: TableContext) -> tuple[int | None, int | None]:
    """Return the largest number of actions and of bytes of a request; None is no limit."""
    actions = context.integer(f"{_FLUSH}max-actions", 1000) or 0
    text = context.options.get(f"{_FLUSH}max-size", "2 mb")
    size = 0 if text.strip() == "-1" else context.size(f"{_FLUSH}max-size", "2 mb")
    if size % _MEGABYTE:
        message = f"option '{_FLUSH}max-size' must be a number of megabytes, not '{text}'"
        raise context.fail(message)
    return (actions if actions > 0 else None), (size or None)


def _read_keys(context: TableContext) -> tuple[int, ...]:
    schema = context.sink_schema
    keys = tuple(schema.names.index(name) for name in context.definition.primary_key)
    for key in keys:
        if not isinstance(schema.types[key], _KEY_TYPES):
            message = f"the primary key cannot have {schema.types[key]} (column '{schema.names[key]}')"
            raise context.fail(message, "the id of a document is a text: use columns of text, numbers, dates and times")
    return keys


def _write(context: TableContext) -> TableSink:
    version = context.options["connector"]
    row_format = read_format(replace(context, options={"format": "json", **context.options}), "format")
    assert row_format is not None
    context.check([*_OPTIONS, *_OWN_OPTIONS[version]], [row_format.prefix])
    for key, reason in _WITHOUT_EFFECT.items():
        warn_without_effect(context, (key,), reason)
    if row_format.name != "json":
        message = f"documents are JSON, and the format is '{row_format.name}'"
        raise context.fail(message, "use 'json', which is the default")
    guarantee = context.word("sink.delivery-guarantee", ("at-least-once", "none", "exactly-once"), "at-least-once")
    if guarantee == "exactly-once":
        message = "'sink.delivery-guarantee' = 'exactly-once' is not supported"
        raise context.fail(message, "with a primary key, a row that is written again changes nothing")
    document_type = context.required(_TYPE) if version == "elasticsearch-6" else None
    schema, keys = context.sink_schema, _read_keys(context)
    index = read_index_name(context)
    if keys and index.is_of_processing_time:
        message = "the index has the processing time, so an update may miss the document of its key"
        raise context.fail(message, "use a column in 'index', or declare no primary key")
    actions = ActionFormat(document_type, context.integer("sink.retry-on-conflicts", -1) or 0)
    delimiter = context.options.get("document-id.key-delimiter", "_")
    to_actions = _RowActions(create_format(context, row_format, schema), schema, index, keys, delimiter, actions)
    sink = ElasticsearchSink(_read_server(context), to_actions, *_read_limits(context))
    mode = ChangelogMode.UPSERT if keys else ChangelogMode.INSERT_ONLY
    return TableSink(sink, mode, context.integer("sink.parallelism"))


CONNECTORS = tuple(TableConnector(name, write=_write) for name in _OWN_OPTIONS)
