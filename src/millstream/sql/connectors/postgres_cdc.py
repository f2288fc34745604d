"""Changes of PostgreSQL tables: 'connector' = 'postgres-cdc'.

Promises: the options and metadata of Flink CDC. A table is a snapshot, then its changes, exactly once.
Does not know: how changes are captured."""

from __future__ import annotations

import logging
import re
from urllib.parse import quote

from millstream.connectors.jdbc.cdc.source import PostgresSource, StartupOptions
from millstream.connectors.jdbc.cdc.table_rows import METADATA, TableRowDeserializer
from millstream.connectors.jdbc.cdc.tables import list_tables
from millstream.connectors.jdbc.driver import Session
from millstream.connectors.jdbc.options import JdbcConnectionOptions
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSource
from millstream.sql.connector.table_formats import call_for_table, check_columns
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode

_USED = (
    "hostname", "port", "username", "password", "database-name", "schema-name", "table-name", "slot.name",
    "decoding.plugin.name", "changelog-mode", "scan.startup.mode", "scan.incremental.snapshot.chunk.size",
    "scan.read-changelog-as-append-only.enabled", "debezium.publication.name",
)  # fmt: skip
_WITHOUT_EFFECT = (
    "scan.incremental.snapshot.enabled", "scan.incremental.snapshot.chunk.key-column", "scan.snapshot.fetch.size",
    "scan.incremental.close-idle-reader.enabled", "scan.incremental.snapshot.backfill.skip",
    "scan.incremental.snapshot.unbounded-chunk-first.enabled", "scan.lsn-commit.checkpoints-num-delay",
    "scan.newly-added-table.enabled", "scan.parse.online.schema.changes.enabled", "chunk-meta.group.size",
    "chunk-key.even-distribution.factor.upper-bound", "chunk-key.even-distribution.factor.lower-bound",
    "connect.timeout", "connect.max-retries", "connection.pool.size", "heartbeat.interval.ms",
)  # fmt: skip
_STARTUP = {option.value: option for option in StartupOptions}
_NOT_NULL_STRING = t.STRING.not_null()

_log = logging.getLogger("millstream.cdc")


def _check_options(context: TableContext) -> None:
    context.check((*_USED, *_WITHOUT_EFFECT), ["debezium."])
    check_columns(context)
    for key in context.options:
        if key in _WITHOUT_EFFECT or (key.startswith("debezium.") and key not in _USED):
            _log.warning("option '%s' has no effect: changes are not read by Debezium", key)


def _read(context: TableContext) -> TableSource:
    _check_options(context)
    append_only = context.flag("scan.read-changelog-as-append-only.enabled")
    mode = "append-only" if append_only else context.word("changelog-mode", ("all", "upsert"), "all")
    key = context.definition.primary_key
    if mode == "upsert" and not key:
        message = "'changelog-mode' = 'upsert' needs a primary key"
        raise context.fail(message, "declare PRIMARY KEY (...) NOT ENFORCED")
    metadata = tuple((column.name, str(column.metadata_key)) for column in context.metadata)
    database, chunk_rows = context.required("database-name"), context.integer("scan.incremental.snapshot.chunk.size")
    connection = _read_connection(context, database)
    builder = (
        PostgresSource.builder()
        .connection(connection)
        .table_list(*_find_tables(context, connection))
        .slot_name(context.required("slot.name"))
        .publication_name(context.options.get("debezium.publication.name", ""))
        .startup_options(_STARTUP[context.word("scan.startup.mode", _STARTUP, "initial")])
        .split_size(8096 if chunk_rows is None else chunk_rows)
        .deserializer(TableRowDeserializer(tuple(context.schema.names), metadata, database, mode, key))
    )
    if "decoding.plugin.name" in context.options:
        call_for_table(context, lambda: builder.decoding_plugin_name(context.options["decoding.plugin.name"]))
    source = call_for_table(context, builder.build)
    call_for_table(context, source.type_info)  # refuses columns that the tables do not have
    if mode == "all":
        _check_identity(context, source)
    changelog = {"all": ChangelogMode.RETRACT, "upsert": ChangelogMode.UPSERT, "append-only": ChangelogMode.INSERT_ONLY}
    columns = [*context.schema.fields, *(t.RowField(column.name, column.type) for column in context.metadata)]
    schema = t.RowType(tuple(columns), null=False)
    return TableSource(source, schema, changelog[mode], needs_conversion=True, parallelism=1)


def _read_connection(context: TableContext, database: str) -> JdbcConnectionOptions:
    host, port = context.required("hostname"), context.integer("port", 5432)
    url = f"postgresql://{host}:{port}/{quote(database)}"
    user, password = context.required("username"), context.options.get("password")
    return call_for_table(context, lambda: JdbcConnectionOptions(url, None, user, password))


def _find_tables(context: TableContext, connection: JdbcConnectionOptions) -> list[str]:
    """Return the tables whose names match the options, which are regular expressions."""
    schema, table = context.options.get("schema-name", "public"), context.required("table-name")
    session = Session(connection.conninfo())
    try:
        paths = list_tables(session)
    finally:
        session.close()
    if (schema, table) in paths:
        return [_quote_path(schema, table)]
    try:
        schemas, tables = re.compile(schema), re.compile(table)
    except re.error as problem:
        message = f"'schema-name' and 'table-name' must be names or regular expressions: {problem}"
        raise context.fail(message) from None
    matching = [_quote_path(*path) for path in paths if schemas.fullmatch(path[0]) and tables.fullmatch(path[1])]
    if not matching:
        message = f"the database has no table '{table}' in the schema '{schema}'"
        raise context.fail(message, f"it has {', '.join('.'.join(path) for path in paths[:20]) or 'none'}")
    return matching


def _quote_path(schema: str, table: str) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in (schema, table))


def _check_identity(context: TableContext, source: PostgresSource) -> None:
    for table in source.tables:
        if table.identity != "f":
            message = f"the log does not have the whole row before an update of {table.id}"
            hint = f"ALTER TABLE {table.id} REPLICA IDENTITY FULL, or use 'changelog-mode' = 'upsert'"
            raise context.fail(message, hint)


CONNECTORS = (
    TableConnector(
        "postgres-cdc",
        read=_read,
        metadata={
            key: t.LocalZonedTimestampType(precision=3, null=False) if key == "op_ts" else _NOT_NULL_STRING
            for key in METADATA
        },
    ),
)
