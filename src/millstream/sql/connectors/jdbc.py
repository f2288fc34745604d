"""The JDBC connector, for PostgreSQL, MySQL, MariaDB and SQLite: 'connector' = 'jdbc'.

Promises: Flink's options. A table is scanned in parallel, looked up with one query for many keys, and written with
upserts if it has a primary key. UPDATE and DELETE change rows by primary key.
Does not know: how rows are read and written."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from millstream.connector.lookup_cache import Key
from millstream.connectors.jdbc.at_least_once import retry
from millstream.connectors.jdbc.dialects import Dialect, find_dialect
from millstream.connectors.jdbc.dialects.scan import DialectSource, find_rows
from millstream.connectors.jdbc.driver import Session
from millstream.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from millstream.connectors.jdbc.sink import JdbcSink
from millstream.connectors.jdbc.source import JdbcSource
from millstream.connectors.jdbc.statements import quote_name, quote_table
from millstream.connectors.jdbc.types import SESSION, PgType, pg_type
from millstream.sql.connector.lookup import CACHE_OPTIONS, Lookup, LookupRows, TableLookup, read_cache_policy
from millstream.sql.connector.lookup_reload import Reload
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSink, TableSource
from millstream.sql.connector.table_formats import call_for_table, check_columns
from millstream.sql.operators.join.whole_tables import read_whole_table
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.sql.types.durations import parse_duration_millis

_OPTIONS = (
    "url", "table-name", "driver", "username", "password", "connection.max-retry-timeout", "scan.partition.column",
    "scan.partition.num", "scan.partition.lower-bound", "scan.partition.upper-bound", "scan.fetch-size",
    "scan.auto-commit", "scan.parallelism", "sink.buffer-flush.max-rows", "sink.buffer-flush.interval",
    "sink.max-retries", "sink.parallelism", "sink.delivery-guarantee", *CACHE_OPTIONS,
)  # fmt: skip
_WITHOUT_EFFECT = ("connection.max-retry-timeout", "scan.fetch-size", "scan.auto-commit")
_MAX_LOOKUP_KEYS = 5000  # in one query

_log = logging.getLogger("millstream.jdbc")


def _read_connection(context: TableContext) -> JdbcConnectionOptions:
    context.check(_OPTIONS)
    check_columns(context)
    options = context.options
    context.required("table-name")
    for key in _WITHOUT_EFFECT:
        if key in options:
            _log.warning(
                "option '%s' has no effect: tables are read with COPY, and sink.max-retries and lookup.max-retries "
                "limit the attempts to connect",
                key,
            )
    return call_for_table(
        context,
        lambda: JdbcConnectionOptions(
            context.required("url"), options.get("driver"), options.get("username"), options.get("password")
        ),
    )


def _read(context: TableContext) -> TableSource:
    connection, table = _read_connection(context), context.options["table-name"]
    column = context.options.get("scan.partition.column")
    range_keys = [f"scan.partition.{name}" for name in ("num", "lower-bound", "upper-bound")]
    numbers = [context.integer(key) for key in range_keys]
    if (column is None) != all(number is None for number in numbers) or (column is not None and None in numbers):
        message = f"'scan.partition.column' must be set together with {', '.join(repr(key) for key in range_keys)}"
        raise context.fail(message)
    dialect = find_dialect(connection)
    if dialect is not None:
        partition = None if column is None else (column, *(number or 0 for number in numbers))
        other = DialectSource(dialect, table, tuple(context.schema.names), partition)  # type: ignore[arg-type]
        call_for_table(context, other.type_info)  # refuses columns that the table does not have
        return TableSource(
            other, context.schema, needs_conversion=True, parallelism=context.integer("scan.parallelism")
        )
    builder = JdbcSource.builder().set_connection_options(connection).set_table(table, context.schema.names)
    if column is not None:
        builder = builder.set_partition(column, *numbers)
    source = call_for_table(context, builder.build)
    return TableSource(source, context.schema, needs_conversion=True, parallelism=context.integer("scan.parallelism"))


def _write(context: TableContext) -> TableSink:
    connection, keys = _read_connection(context), context.definition.primary_key
    execution = JdbcExecutionOptions(
        batch_size=context.integer("sink.buffer-flush.max-rows", 100) or 0,
        batch_interval_ms=parse_duration_millis(context.options.get("sink.buffer-flush.interval", "1 s")),
        max_retries=context.integer("sink.max-retries", 3) or 0,
    )
    builder = call_for_table(
        context,
        lambda: JdbcSink.builder().with_table(context.options["table-name"], context.sink_schema.names, keys),
    ).with_execution_options(execution)
    guarantee = context.word("sink.delivery-guarantee", ("at-least-once", "exactly-once"), "at-least-once")
    if context.row_level or guarantee == "exactly-once":
        # UPDATE and DELETE read the table they change: no change may be visible before all rows are read
        sink = builder.build_exactly_once(connection)
    else:
        sink = builder.build_at_least_once(connection)
    mode = ChangelogMode.UPSERT if keys else ChangelogMode.INSERT_ONLY
    return TableSink(sink, mode, context.integer("sink.parallelism"))


class JdbcLookup(Lookup):
    """Finds the rows of a database table by the values of key columns."""

    def __init__(
        self,
        connection: JdbcConnectionOptions,
        table: str,
        columns: Sequence[str],
        keys: Sequence[str],
        *,
        retries: int = 3,
    ) -> None:
        self._arguments = (connection, table, tuple(columns), tuple(keys), retries)
        self._idle_sessions: list[Session] = []
        self._prepared: tuple[str, list[PgType]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _create_jdbc_lookup, self._arguments

    def project(self, columns: tuple[int, ...]) -> Lookup:
        """Return a lookup that selects these columns only."""
        connection, table, names, keys, retries = self._arguments
        return JdbcLookup(connection, table, [names[i] for i in columns], keys, retries=retries)

    def find(self, keys: Sequence[Key]) -> Mapping[Key, LookupRows]:
        """Find the rows of all keys with one query."""
        result_rows: list[Any] = retry(lambda: self._query(keys), self._arguments[4] + 1)
        rows_by_key: dict[Key, list[Any]] = {}
        column_types = self._prepared[1] if self._prepared is not None else []
        for number, *texts in result_rows:
            values = [column_type.value(text) for column_type, text in zip(column_types, texts, strict=True)]
            rows_by_key.setdefault(keys[number - 1], []).append(values)
        return rows_by_key

    def _query(self, keys: Sequence[Key]) -> list[Any]:
        # one session for each concurrent query: taking from a list is atomic
        session = self._idle_sessions.pop() if self._idle_sessions else Session(self._arguments[0].conninfo(), SESSION)
        try:
            rows: list[Any] = session.run("cannot look up", lambda connection: self._fetch(connection, keys))
        finally:
            self._idle_sessions.append(session)
        return rows

    def _fetch(self, connection: Any, keys: Sequence[Key]) -> list[Any]:
        if self._prepared is None:
            self._prepared = self._prepare(connection)
        columns = [list(values) for values in zip(*keys, strict=True)]
        return list(connection.execute(self._prepared[0], columns).fetchall())

    def _prepare(self, connection: Any) -> tuple[str, list[PgType]]:
        """Return the query, whose parameters are one array for each key column, and the types of its result columns."""
        _, table, columns, keys, _ = self._arguments
        column_list = ", ".join(quote_name(name) for name in columns)
        description = connection.execute(f"SELECT {column_list} FROM {quote_table(table)} LIMIT 0").description
        column_types = [pg_type(column.type_code) for column in description]
        type_names = dict(
            connection.execute(
                "SELECT attname::text, format_type(atttypid, NULL) FROM pg_attribute "
                "WHERE attrelid = %s::regclass AND attname = ANY(%s)",
                (quote_table(table), list(keys)),
            ).fetchall()
        )
        arrays = ", ".join(f"%s::{type_names[name]}[]" for name in keys)
        names = ", ".join(f"k{index}" for index in range(len(keys)))
        condition = " AND ".join(f"dim.{quote_name(name)} = requested.k{index}" for index, name in enumerate(keys))
        texts = ", ".join(f"dim.{quote_name(name)}::text" for name in columns)
        query = (
            f"SELECT requested.number, {texts} FROM unnest({arrays}) WITH ORDINALITY AS requested({names}, number) "
            f"JOIN {quote_table(table)} AS dim ON {condition} ORDER BY requested.number"
        )
        return query, column_types

    def close(self) -> None:
        """Close all connections."""
        while self._idle_sessions:
            self._idle_sessions.pop().close()


class DialectLookup(Lookup):
    """Finds the rows of a table of MySQL or SQLite by the values of key columns."""

    def __init__(
        self, dialect: Dialect, table: str, columns: Sequence[str], keys: Sequence[str], retries: int = 3
    ) -> None:
        self._arguments = (dialect, table, tuple(columns), tuple(keys), retries)
        self._idle_sessions: list[Any] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return DialectLookup, self._arguments

    def project(self, columns: tuple[int, ...]) -> Lookup:
        """Return a lookup that selects these columns only."""
        dialect, table, names, keys, retries = self._arguments
        return DialectLookup(dialect, table, [names[i] for i in columns], keys, retries)

    def find(self, keys: Sequence[Key]) -> Mapping[Key, LookupRows]:
        """Find the rows of all keys."""
        dialect, table, columns, key_names, retries = self._arguments
        session = self._idle_sessions.pop() if self._idle_sessions else dialect.session()

        def find(connection: Any) -> Mapping[Key, LookupRows]:
            return find_rows(dialect, connection, table, columns, key_names, keys)

        try:
            rows: Mapping[Key, LookupRows] = retry(lambda: session.run("cannot look up", find), retries + 1)
        finally:
            self._idle_sessions.append(session)
        return rows

    def close(self) -> None:
        """Close all connections."""
        while self._idle_sessions:
            self._idle_sessions.pop().close()


def _create_jdbc_lookup(
    connection: JdbcConnectionOptions, table: str, columns: tuple[str, ...], keys: tuple[str, ...], retries: int
) -> JdbcLookup:
    return JdbcLookup(connection, table, columns, keys, retries=retries)


def _create_lookup(context: TableContext, keys: tuple[str, ...]) -> TableLookup:
    connection, table = _read_connection(context), context.options["table-name"]
    policy = read_cache_policy(context)
    if isinstance(policy, Reload):
        return read_whole_table(context, _read(context), keys)
    retries = context.integer("lookup.max-retries", 3) or 0
    dialect = find_dialect(connection)
    lookup: Lookup = (
        JdbcLookup(connection, table, context.schema.names, keys, retries=retries)
        if dialect is None
        else DialectLookup(dialect, table, context.schema.names, keys, retries)
    )
    asynchronous = context.flag("lookup.async")
    return TableLookup(lookup, context.schema, policy, asynchronous, _MAX_LOOKUP_KEYS)


def _truncate(context: TableContext) -> None:
    connection, table = _read_connection(context), context.options["table-name"]
    dialect = find_dialect(connection)
    session = Session(connection.conninfo(), SESSION) if dialect is None else dialect.session()
    try:
        if dialect is None:
            statement = f"TRUNCATE {quote_table(table)}"
            session.run("cannot truncate the table", lambda database: database.execute(statement))
        else:
            session.run(
                "cannot truncate the table", lambda database: dialect.execute(database, dialect.truncate(table))
            )
    finally:
        session.close()


CONNECTORS = (
    TableConnector("jdbc", read=_read, write=_write, lookup=_create_lookup, row_level="changes", truncate=_truncate),
)
