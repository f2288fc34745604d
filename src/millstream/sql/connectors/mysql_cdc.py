"""Changes of MySQL and MariaDB tables: 'connector' = 'mysql-cdc'.

Promises: the options and metadata of Flink CDC. A table is a snapshot, then its changes, exactly once.
Does not know: how changes are captured."""

from __future__ import annotations

import logging

from millstream.connectors.jdbc.cdc.table_rows import METADATA, TableRowDeserializer
from millstream.connectors.jdbc.mysql.source import MySqlSource, MySqlSourceBuilder, StartupOptions
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSource
from millstream.sql.connector.table_formats import call_for_table, check_columns
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.sql.types.durations import parse_duration_millis

_USED = (
    "hostname", "port", "username", "password", "database-name", "table-name", "server-id", "server-time-zone",
    "scan.startup.mode", "scan.startup.specific-offset.file", "scan.startup.specific-offset.pos",
    "scan.startup.specific-offset.gtid-set", "scan.startup.timestamp-millis", "scan.incremental.snapshot.chunk.size",
    "scan.incremental.snapshot.chunk.key-column", "scan.read-changelog-as-append-only.enabled", "heartbeat.interval",
    "connect.timeout", "debezium.binary.handling.mode",
)  # fmt: skip
_WITHOUT_EFFECT = (
    "scan.incremental.snapshot.enabled", "scan.snapshot.fetch.size", "scan.incremental.close-idle-reader.enabled",
    "scan.incremental.snapshot.backfill.skip", "scan.incremental.snapshot.unbounded-chunk-first.enabled",
    "scan.newly-added-table.enabled", "scan.parse.online.schema.changes.enabled", "chunk-meta.group.size",
    "chunk-key.even-distribution.factor.upper-bound", "chunk-key.even-distribution.factor.lower-bound",
    "split-key.even-distribution.factor.upper-bound", "split-key.even-distribution.factor.lower-bound",
    "connect.max-retries", "connection.pool.size", "use.legacy.json.format",
)  # fmt: skip
_REFUSED = ("scan.startup.specific-offset.skip-events", "scan.startup.specific-offset.skip-rows")
_MODES = ("initial", "earliest-offset", "latest-offset", "specific-offset", "timestamp", "snapshot")
_KEYS = tuple(key for key in METADATA if key != "schema_name")
_NOT_NULL_STRING = t.STRING.not_null()

_log = logging.getLogger("millstream.cdc")


def _check_options(context: TableContext) -> None:
    context.check((*_USED, *_WITHOUT_EFFECT, *_REFUSED), ["debezium.", "jdbc.properties."])
    check_columns(context)
    for key in context.options:
        if key in _REFUSED:
            message = f"option '{key}' is not supported"
            raise context.fail(
                message, "start at a transaction: set 'scan.startup.specific-offset.pos' to its beginning"
            )
        if key in _WITHOUT_EFFECT or (key.startswith("debezium.") and key not in _USED):
            _log.warning("option '%s' has no effect: changes are not read by Debezium", key)


def _read(context: TableContext) -> TableSource:
    _check_options(context)
    append_only = context.flag("scan.read-changelog-as-append-only.enabled")
    metadata = tuple((column.name, str(column.metadata_key)) for column in context.metadata)
    deserializer = TableRowDeserializer(
        tuple(context.schema.names),
        metadata,
        "",
        "append-only" if append_only else "all",
        context.definition.primary_key,
    )
    startup = _read_startup(context)
    source: MySqlSource = call_for_table(
        context, lambda: _create_builder(context).startup_options(startup).deserializer(deserializer).build()
    )
    call_for_table(context, source.type_info)  # refuses columns that the tables do not have
    columns = [*context.schema.fields, *(t.RowField(column.name, column.type) for column in context.metadata)]
    schema = t.RowType(tuple(columns), null=False)
    changelog = ChangelogMode.INSERT_ONLY if append_only else ChangelogMode.RETRACT
    return TableSource(source, schema, changelog, needs_conversion=True, parallelism=1)


def _create_builder(context: TableContext) -> MySqlSourceBuilder:
    options = context.options
    database, table = context.required("database-name"), context.required("table-name")
    chunk_rows = context.integer("scan.incremental.snapshot.chunk.size")
    booleans = (field.name for field in context.schema.fields if isinstance(field.data_type, t.BooleanType))
    builder = (
        MySqlSource.builder()
        .hostname(context.required("hostname"))
        .port(context.integer("port", 3306) or 3306)
        .username(context.required("username"))
        .password(context.required("password"))
        # as in Flink CDC, the expressions of database and table are joined; an unescaped dot matches any character
        .table_list(f"{database}.{table}" if _is_name(database) and _is_name(table) else f"({database})\\.({table})")
        .tiny_int_numbers(*(set(context.schema.names) - set(booleans)))
        .binary_handling_mode(options.get("debezium.binary.handling.mode", "bytes"))
        .heartbeat_interval_ms(parse_duration_millis(options.get("heartbeat.interval", "30 s")))
        .connect_timeout_ms(parse_duration_millis(options.get("connect.timeout", "30 s")))
        .split_size(8096 if chunk_rows is None else chunk_rows)
        .jdbc_properties(
            {k.removeprefix("jdbc.properties."): v for k, v in options.items() if k.startswith("jdbc.properties.")}
        )
    )
    if "server-id" in options:
        builder.server_id(options["server-id"])
    if "server-time-zone" in options:
        builder.server_time_zone(options["server-time-zone"])
    if "scan.incremental.snapshot.chunk.key-column" in options:
        builder.chunk_key_column(options["scan.incremental.snapshot.chunk.key-column"])
    return builder


def _is_name(text: str) -> bool:
    return all(character.isalnum() or character in "_-$" for character in text)


def _read_startup(context: TableContext) -> StartupOptions:
    mode = context.word("scan.startup.mode", _MODES, "initial")
    options = context.options
    if mode == "timestamp":
        millis = context.integer("scan.startup.timestamp-millis")
        if millis is None:
            message = "'scan.startup.mode' = 'timestamp' needs 'scan.startup.timestamp-millis'"
            raise context.fail(message)
        return StartupOptions.timestamp(millis)
    if mode == "specific-offset":
        gtid_set, file = (options.get(f"scan.startup.specific-offset.{key}") for key in ("gtid-set", "file"))
        if gtid_set is not None:
            return StartupOptions.specific_offset(gtid_set)
        position = context.integer("scan.startup.specific-offset.pos")
        if file is None or position is None:
            message = "'scan.startup.mode' = 'specific-offset' needs a position"
            hint = "set 'scan.startup.specific-offset.file' and '.pos', or 'scan.startup.specific-offset.gtid-set'"
            raise context.fail(message, hint)
        return StartupOptions.specific_offset(file, position)
    return StartupOptions(mode)


CONNECTORS = (
    TableConnector(
        "mysql-cdc",
        read=_read,
        metadata={
            key: t.LocalZonedTimestampType(precision=3, null=False) if key == "op_ts" else _NOT_NULL_STRING
            for key in _KEYS
        },
    ),
)
