"""Sources of pipelines: the tables of a database that match the patterns, and the source of their changes.

Promises: options have Flink CDC's names, and unknown options are refused; columns have SQL types with the precision
that the database declares.
Does not know: sinks, routes, how changes are captured."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from millstream.cdc.definition import Endpoint
from millstream.cdc.errors import InvalidPipeline
from millstream.cdc.table_names import matches, regular_expression, split_patterns
from millstream.connector.source import Source
from millstream.connectors.jdbc.cdc.captured import CapturedTable
from millstream.connectors.jdbc.cdc.changes import ChangeDeserializer
from millstream.connectors.jdbc.cdc.source import PostgresSource
from millstream.connectors.jdbc.cdc.source import StartupOptions as PostgresStartup
from millstream.connectors.jdbc.cdc.tables import list_tables
from millstream.connectors.jdbc.driver import Session
from millstream.connectors.jdbc.mysql.source import MySqlSource
from millstream.connectors.jdbc.mysql.source import StartupOptions as MySqlStartup
from millstream.connectors.jdbc.mysql.types import mysql_type
from millstream.connectors.jdbc.options import JdbcConnectionOptions
from millstream.connectors.jdbc.statements import quote_name
from millstream.sql.types import data_types as t
from millstream.sql.types.durations import parse_duration_millis
from millstream.table.bridging import find_sql_type
from millstream.types.factory import Types

_LOGIN = ("hostname", "port", "username", "password", "tables", "tables.exclude")
_MYSQL = (
    *_LOGIN, "server-id", "server-time-zone", "scan.startup.mode", "scan.startup.timestamp-millis",
    "scan.incremental.snapshot.chunk.size", "scan.incremental.snapshot.chunk.key-column", "heartbeat.interval",
    "connect.timeout",
)  # fmt: skip
_POSTGRES = (
    *_LOGIN, "slot.name", "publication.name", "decoding.plugin.name", "scan.startup.mode",
    "scan.incremental.snapshot.chunk.size",
)  # fmt: skip
_MYSQL_MODES = ("initial", "snapshot", "earliest-offset", "latest-offset", "timestamp")
_POSTGRES_MODES = tuple(mode.value for mode in PostgresStartup)
_PRECISION = (
    "SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a WHERE a.attrelid = %s::regclass"
)


@dataclass(frozen=True)
class SourceTable:
    """A captured table: its id in changes, its full name in the pipeline, its columns and its primary key."""

    id: str
    name: str
    columns: Mapping[str, t.DataType]
    key: tuple[str, ...]


@dataclass(frozen=True)
class Capture:
    """A source of changes, and the tables that it captures."""

    source: MySqlSource | PostgresSource
    tables: tuple[SourceTable, ...]

    def read_with(self, deserializer: ChangeDeserializer, earlier: Capture | None, *, halt: bool) -> Source:
        """Return the source that reads changes with a deserializer. `halt`: the source halts when the columns of a
        table change; `earlier` has the previous descriptions of the tables."""
        if isinstance(self.source, PostgresSource):
            return replace(self.source, deserializer=deserializer, halt_on_schema_change=halt)
        before: tuple[Any, ...] = ()
        if earlier is not None and isinstance(earlier.source, MySqlSource):
            before = (*earlier.source.tables, *(earlier.source.earlier or ()))
        return replace(self.source, deserializer=deserializer, earlier=before if halt else None)


def open_capture(endpoint: Endpoint) -> Capture:
    """Find the tables of a source in its database."""
    create = {"mysql": _mysql, "postgres": _postgres}.get(endpoint.type)
    if create is None:
        message = f"there is no source of the type {endpoint.type}"
        raise InvalidPipeline(message, hint="use mysql (also for MariaDB) or postgres")
    return create(endpoint.options)


def check_options(block: str, kind: str, options: Mapping[str, str], known: Iterable[str], *prefixes: str) -> None:
    """Refuse options that a source or sink does not have."""
    names = list(known)
    for key in options:
        if key not in names and not (prefixes and key.startswith(prefixes)):
            nearest = get_close_matches(key, names, 1)
            message = f"the {block} {kind} has no option {key}"
            raise InvalidPipeline(
                message, hint=f"did you mean {nearest[0]}?" if nearest else f"it has {', '.join(names)}"
            )


def required(block: str, options: Mapping[str, str], *keys: str) -> list[str]:
    """Return the values of options that must be set."""
    for key in keys:
        if key not in options:
            message = f"the {block} needs the option {key}"
            raise InvalidPipeline(message)
    return [options[key] for key in keys]


def _number(options: Mapping[str, str], key: str, default: int) -> int:
    text = options.get(key, str(default))
    if not text.isdecimal():
        message = f"the option {key} of the source must be a number, not {text!r}"
        raise InvalidPipeline(message)
    return int(text)


def _mode(options: Mapping[str, str], known: Sequence[str]) -> str:
    mode = options.get("scan.startup.mode", "initial")
    if mode not in known:
        message = f"scan.startup.mode does not accept {mode!r}"
        raise InvalidPipeline(message, hint=f"use one of {', '.join(known)}")
    return mode


def _captured(
    tables: Iterable[CapturedTable],
    excluded: str,
    name_of: Callable[[CapturedTable], str],
    describe: Callable[[CapturedTable], SourceTable],
) -> tuple[SourceTable, ...]:
    chosen = [describe(table) for table in tables if not (excluded and matches(excluded, name_of(table)))]
    if not chosen:
        message = "all tables of the source are excluded"
        raise InvalidPipeline(message, hint="correct tables.exclude")
    return tuple(chosen)


def _types(table: CapturedTable, exact: Mapping[str, t.DataType], key: Sequence[str]) -> dict[str, t.DataType]:
    row_type = table.row_type()
    types = {
        name: exact.get(name, find_sql_type(info))
        for name, info in zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)
    }
    return {name: data_type.not_null() if name in key else data_type for name, data_type in types.items()}


# -------------------------------------------------------------------------------------------------------------- MySQL


def _mysql(options: Mapping[str, str]) -> Capture:
    check_options("source", "mysql", options, _MYSQL)
    hostname, username, password, tables = required("source", options, "hostname", "username", "password", "tables")
    mode = _mode(options, _MYSQL_MODES)
    startup = MySqlStartup(mode)
    if mode == "timestamp":
        startup = MySqlStartup.timestamp(int(required("source", options, "scan.startup.timestamp-millis")[0]))
    builder = (
        MySqlSource.builder()
        .hostname(hostname)
        .port(_number(options, "port", 3306))
        .username(username)
        .password(password)
        .table_list(*(regular_expression(pattern) for pattern in split_patterns(tables)))
        .startup_options(startup)
        .split_size(_number(options, "scan.incremental.snapshot.chunk.size", 8096))
        .heartbeat_interval_ms(parse_duration_millis(options.get("heartbeat.interval", "30 s")))
        .connect_timeout_ms(parse_duration_millis(options.get("connect.timeout", "30 s")))
    )
    if "server-id" in options:
        builder.server_id(options["server-id"])
    if "server-time-zone" in options:
        builder.server_time_zone(options["server-time-zone"])
    for entry in split_patterns(options.get("scan.incremental.snapshot.chunk.key-column", "")):
        table, _, column = entry.rpartition(":")
        builder.chunk_key_column(column, table)
    source = builder.build()
    excluded = options.get("tables.exclude", "")

    def describe(table: Any) -> SourceTable:
        exact = {
            name: t.DecimalType(column.precision, column.scale)
            for name, column in table.columns
            if column.data_type == "decimal" and mysql_type(column).type_info == Types.BIG_DEC()
        }
        key = table.key if table.unique else ()
        return SourceTable(table.id, table.id, _types(table, exact, key), key)

    captured = _captured(source.tables, excluded, lambda table: table.id, describe)
    ids = {table.id for table in captured}
    return Capture(replace(source, tables=tuple(table for table in source.tables if table.id in ids)), captured)


# --------------------------------------------------------------------------------------------------------- PostgreSQL


def _postgres(options: Mapping[str, str]) -> Capture:
    check_options("source", "postgres", options, _POSTGRES)
    hostname, username, password, slot, tables = required(
        "source", options, "hostname", "username", "password", "slot.name", "tables"
    )
    databases = {pattern.partition(".")[0] for pattern in split_patterns(tables)}
    if len(databases) != 1:
        message = f"the tables of a postgres source must be of one database, not of {', '.join(sorted(databases))}"
        raise InvalidPipeline(message, hint="write database.schema.table")
    (database,) = databases
    port = _number(options, "port", 5432)
    connection = JdbcConnectionOptions(f"postgresql://{hostname}:{port}/{database}", None, username, password)
    session = Session(connection.conninfo())
    try:
        paths = [path for path in list_tables(session) if matches(tables, f"{database}.{'.'.join(path)}")]
        excluded = options.get("tables.exclude", "")
        paths = [path for path in paths if not (excluded and matches(excluded, f"{database}.{'.'.join(path)}"))]
        if not paths:
            message = f"no table of the database matches {tables}"
            known = ", ".join(".".join((database, *path)) for path in list_tables(session)[:20])
            raise InvalidPipeline(message, hint=f"it has {known or 'none'}")
        quoted = {".".join(path): ".".join(quote_name(part) for part in path) for path in paths}
        declared = {
            id_: dict(session.query("cannot read the columns", _PRECISION, (name,))) for id_, name in quoted.items()
        }
    finally:
        session.close()
    builder = (
        PostgresSource.builder()
        .connection(connection)
        .table_list(*quoted.values())
        .slot_name(slot)
        .publication_name(options.get("publication.name", ""))
        .decoding_plugin_name(options.get("decoding.plugin.name", "pgoutput"))
        .startup_options(PostgresStartup(_mode(options, _POSTGRES_MODES)))
        .split_size(_number(options, "scan.incremental.snapshot.chunk.size", 8096))
    )
    source = builder.build()

    def describe(table: Any) -> SourceTable:
        numbers = {name: re.fullmatch(r"numeric\((\d+),(\d+)\)", text) for name, text in declared[table.id].items()}
        exact = {
            name: t.DecimalType(int(number[1]), int(number[2]))
            for name, number in numbers.items()
            if number and int(number[2]) <= int(number[1]) <= 38
        }
        key = tuple(column.name for column in table.key)
        return SourceTable(table.id, f"{database}.{table.id}", _types(table, exact, key), key)

    return Capture(source, tuple(describe(table) for table in source.tables))
