"""Tables of PostgreSQL: 'connector' = 'jdbc'.

Promises: Flink's options; a table is scanned in parallel, looked up with one query for many keys, and written to by its
primary key where it has one.
Does not know: how rows are read and written."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from millstream.connector.lookup_cache import Key
from millstream.connectors.jdbc.at_least_once import retry
from millstream.connectors.jdbc.driver import Session
from millstream.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from millstream.connectors.jdbc.sink import JdbcSink
from millstream.connectors.jdbc.source import JdbcSource
from millstream.connectors.jdbc.statements import quoted, quoted_table
from millstream.connectors.jdbc.types import SESSION, PgType, pg_type
from millstream.sql.connector.lookup import CACHE_OPTIONS, Found, Lookup, TableLookup, cache_policy
from millstream.sql.connector.lookup_reload import Reload
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSink, TableSource
from millstream.sql.connector.table_formats import check_columns, told
from millstream.sql.operators.join.whole_tables import whole_table
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.sql.types.durations import duration_millis

_OPTIONS = (
    "url", "table-name", "driver", "username", "password", "connection.max-retry-timeout", "scan.partition.column",
    "scan.partition.num", "scan.partition.lower-bound", "scan.partition.upper-bound", "scan.fetch-size",
    "scan.auto-commit", "scan.parallelism", "sink.buffer-flush.max-rows", "sink.buffer-flush.interval",
    "sink.max-retries", "sink.parallelism", "sink.delivery-guarantee", *CACHE_OPTIONS,
)  # fmt: skip
_WITHOUT_EFFECT = ("connection.max-retry-timeout", "scan.fetch-size", "scan.auto-commit")
_KEYS_AT_ONCE = 5000

_log = logging.getLogger("millstream.jdbc")


def _connection(context: TableContext) -> JdbcConnectionOptions:
    context.check(_OPTIONS)
    check_columns(context)
    given = context.options
    context.required("table-name")
    for key in _WITHOUT_EFFECT:
        if key in given:
            _log.warning(
                "option '%s' has no effect: tables are read by COPY, and connections are tried as retries say", key
            )
    return told(
        context,
        lambda: JdbcConnectionOptions(
            context.required("url"), given.get("driver"), given.get("username"), given.get("password")
        ),
    )


def _read(context: TableContext) -> TableSource:
    connection, table = _connection(context), context.options["table-name"]
    builder = JdbcSource.builder().set_connection_options(connection).set_table(table, context.schema.names)
    column = context.options.get("scan.partition.column")
    rest = [f"scan.partition.{name}" for name in ("num", "lower-bound", "upper-bound")]
    numbers = [context.integer(key) for key in rest]
    if (column is None) != all(each is None for each in numbers) or (column is not None and None in numbers):
        message = f"'scan.partition.column' goes together with {', '.join(repr(key) for key in rest)}"
        raise context.fail(message)
    if column is not None:
        builder = builder.set_partition(column, *numbers)
    source = told(context, builder.build)
    return TableSource(source, context.schema, foreign=True, parallelism=context.integer("scan.parallelism"))


def _write(context: TableContext) -> TableSink:
    connection, keys = _connection(context), context.definition.primary_key
    execution = JdbcExecutionOptions(
        batch_size=context.integer("sink.buffer-flush.max-rows", 100) or 0,
        batch_interval_ms=duration_millis(context.options.get("sink.buffer-flush.interval", "1 s")),
        max_retries=context.integer("sink.max-retries", 3) or 0,
    )
    builder = told(
        context,
        lambda: JdbcSink.builder().with_table(context.options["table-name"], context.written.names, keys),
    ).with_execution_options(execution)
    guarantee = context.word("sink.delivery-guarantee", ("at-least-once", "exactly-once"), "at-least-once")
    exactly = guarantee == "exactly-once"
    sink = builder.build_exactly_once(connection) if exactly else builder.build_at_least_once(connection)
    mode = ChangelogMode.UPSERT if keys else ChangelogMode.INSERT_ONLY
    return TableSink(sink, mode, context.integer("sink.parallelism"))


class JdbcLookup(Lookup):
    """Rows of a database's table by the values of some of its columns."""

    def __init__(
        self,
        connection: JdbcConnectionOptions,
        table: str,
        columns: Sequence[str],
        keys: Sequence[str],
        *,
        retries: int = 3,
    ) -> None:
        self._given = (connection, table, tuple(columns), tuple(keys), retries)
        self._free: list[Session] = []
        self._asking: tuple[str, list[PgType]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _lookup, self._given

    def narrowed(self, columns: tuple[int, ...]) -> Lookup:
        """As Lookup promises."""
        connection, table, names, keys, retries = self._given
        return JdbcLookup(connection, table, [names[i] for i in columns], keys, retries=retries)

    def find(self, keys: Sequence[Key]) -> Mapping[Key, Found]:
        """As Lookup promises: one query."""
        rows: list[Any] = retry(lambda: self._ask(keys), self._given[4] + 1)
        found: dict[Key, list[Any]] = {}
        kinds = self._asking[1] if self._asking is not None else []
        for number, *texts in rows:
            values = [kind.value(text) for kind, text in zip(kinds, texts, strict=True)]
            found.setdefault(keys[number - 1], []).append(values)
        return found

    def _ask(self, keys: Sequence[Key]) -> list[Any]:
        # one session for each question under way: taking from a list is atomic
        session = self._free.pop() if self._free else Session(self._given[0].conninfo(), SESSION)
        try:
            rows: list[Any] = session.run("cannot look up", lambda connection: self._fetch(connection, keys))
        finally:
            self._free.append(session)
        return rows

    def _fetch(self, connection: Any, keys: Sequence[Key]) -> list[Any]:
        if self._asking is None:
            self._asking = self._prepared(connection)
        columns = [list(values) for values in zip(*keys, strict=True)]
        return list(connection.execute(self._asking[0], columns).fetchall())

    def _prepared(self, connection: Any) -> tuple[str, list[PgType]]:
        """The question, in which keys travel as arrays of the columns' own types, and the types of its answer."""
        _, table, columns, keys, _ = self._given
        listed = ", ".join(quoted(name) for name in columns)
        described = connection.execute(f"SELECT {listed} FROM {quoted_table(table)} LIMIT 0").description
        kinds = [pg_type(column.type_code) for column in described]
        types = dict(
            connection.execute(
                "SELECT attname::text, format_type(atttypid, NULL) FROM pg_attribute "
                "WHERE attrelid = %s::regclass AND attname = ANY(%s)",
                (quoted_table(table), list(keys)),
            ).fetchall()
        )
        arrays = ", ".join(f"%s::{types[name]}[]" for name in keys)
        names = ", ".join(f"k{place}" for place in range(len(keys)))
        same = " AND ".join(f"found.{quoted(name)} = asked.k{place}" for place, name in enumerate(keys))
        texts = ", ".join(f"found.{quoted(name)}::text" for name in columns)
        query = (
            f"SELECT asked.number, {texts} FROM unnest({arrays}) WITH ORDINALITY AS asked({names}, number) "
            f"JOIN {quoted_table(table)} AS found ON {same} ORDER BY asked.number"
        )
        return query, kinds

    def close(self) -> None:
        """Let go of connections."""
        while self._free:
            self._free.pop().close()


def _lookup(
    connection: JdbcConnectionOptions, table: str, columns: tuple[str, ...], keys: tuple[str, ...], retries: int
) -> JdbcLookup:
    return JdbcLookup(connection, table, columns, keys, retries=retries)


def _looked_up(context: TableContext, keys: tuple[str, ...]) -> TableLookup:
    connection, table = _connection(context), context.options["table-name"]
    policy = cache_policy(context)
    if isinstance(policy, Reload):
        return whole_table(context, _read(context), keys)
    retries = context.integer("lookup.max-retries", 3) or 0
    lookup = JdbcLookup(connection, table, context.schema.names, keys, retries=retries)
    asynchronous = context.flag("lookup.async")
    return TableLookup(lookup, context.schema, policy, asynchronous, _KEYS_AT_ONCE)


CONNECTORS = (TableConnector("jdbc", read=_read, write=_write, lookup=_looked_up),)
