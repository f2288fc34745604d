"""Lookup of rows by key, to enrich a stream.

Promises: rows are current, or not older than the cache allows; a key without rows can be cached, too. Safe to call from
several threads.
Does not know: streams; a map function or Async I/O calls it.

Results are not part of a checkpoint: after a recovery a record may be joined with a newer row."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from millstream.connector.lookup_cache import CachePolicy, LookupCache
from millstream.connectors.jdbc.at_least_once import retry
from millstream.connectors.jdbc.driver import Session
from millstream.connectors.jdbc.options import InvalidJdbcOption, JdbcConnectionOptions
from millstream.connectors.jdbc.statements import quote_name, quote_names, quote_table
from millstream.connectors.jdbc.types import SESSION, PgType, pg_type
from millstream.functions.async_io import AsyncFunction
from millstream.functions.base import RuntimeContext
from millstream.types.row import Row


class JdbcLookupFunction:
    """Looks up rows of a table by key. Call its `open` in the `open` of a function, then `lookup`. Values have the
    types that `JdbcSource` uses.

    `columns` are the columns of the rows; all columns by default. The cache has Flink's options:
    `lookup.partial-cache.max-rows` (of keys, as in Flink), `.expire-after-write`, `.cache-missing-key`.

    Example:
        >>> from millstream.datastream.connectors.jdbc import JdbcConnectionOptions
        >>> options = JdbcConnectionOptions.builder().with_url("jdbc:postgresql://localhost/shop").build()
        >>> customers = JdbcLookupFunction(options, "customers", ["id"], ["name", "city"], cache_max_rows=10_000)

    """

    def __init__(
        self,
        connection_options: JdbcConnectionOptions,
        table: str,
        key_fields: Sequence[str],
        columns: Sequence[str] = (),
        *,
        cache_max_rows: int = 0,
        cache_ttl_ms: int = 0,
        cache_missing_key: bool = True,
        max_retries: int = 3,
    ) -> None:
        if not key_fields:
            message = f"a lookup in {table} needs at least one key field"
            raise InvalidJdbcOption(message)
        connection_options.conninfo()  # raises for another database than PostgreSQL
        self._options = connection_options
        column_list = quote_names(columns) if columns else "*"
        condition = " AND ".join(f"{quote_name(key)} = %s" for key in key_fields)
        self._described = f"SELECT {column_list} FROM {quote_table(table)} LIMIT 0"
        self._where = f"FROM {quote_table(table)} WHERE {condition}"
        self._columns: tuple[list[str], list[PgType]] | None = None
        self._width = len(key_fields)
        self._policy = CachePolicy(max_keys=cache_max_rows, after_write=cache_ttl_ms or None, missing=cache_missing_key)
        self._retries = max_retries
        self.cache: LookupCache | None = None
        self._free: list[Session] = []

    def open(self, runtime_context: RuntimeContext | None = None) -> None:
        """Create an empty cache.

        Args:
            runtime_context: The context of the function that uses the lookup; it is not needed.

        """
        self.cache = LookupCache(self._policy)
        self._free = []

    def lookup(self, *key: Any) -> list[Row]:
        """Return the rows with this key.

        Args:
            *key: The values of the key fields, in their order.

        """
        if len(key) != self._width:
            message = f"the key {key!r} has {len(key)} parts, the lookup has {self._width} key fields"
            raise InvalidJdbcOption(message)
        cached = self.get_cached(key)
        if cached is not None:
            return cached
        rows: list[Row] = retry(lambda: self._query(key), self._retries + 1)
        if self.cache is not None:
            self.cache.put(key, rows, self._now())
        return rows

    def get_cached(self, key: tuple[Any, ...]) -> list[Row] | None:
        """Return the rows of a key if they are in the cache.

        Args:
            key: The values of the key fields, in their order.

        """
        return None if self.cache is None else self.cache.get(key, self._now())

    @staticmethod
    def _now() -> int:
        return time.monotonic_ns() // 1_000_000

    def _query(self, key: tuple[Any, ...]) -> list[Row]:
        # one session for each concurrent call; list.pop is atomic
        session = self._free.pop() if self._free else Session(self._options.conninfo(), SESSION)
        try:
            rows: list[Row] = session.run("cannot look up", lambda connection: self._fetch(connection, key))
        finally:
            self._free.append(session)
        return rows

    def _fetch(self, connection: Any, key: tuple[Any, ...]) -> list[Row]:
        if self._columns is None:
            description = connection.execute(self._described).description
            self._columns = (
                [column.name for column in description],
                [pg_type(column.type_code) for column in description],
            )
        names, types = self._columns
        texts = ", ".join(f"{quote_name(name)}::text" for name in names)
        records = connection.execute(f"SELECT {texts} {self._where}", key).fetchall()
        return [Row._from(names, [k.value(t) for k, t in zip(types, record, strict=True)]) for record in records]

    def close(self) -> None:
        """Close the connections."""
        while self._free:
            self._free.pop().close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cache": None, "_free": [], "_columns": None}


class JdbcAsyncLookupFunction(AsyncFunction[Any, Any]):
    """Looks up the key of every record, for `AsyncDataStream`. `join` returns the results of a record and its rows.

    The capacity of the asynchronous operator limits the number of concurrent queries.

    Example:
        >>> from millstream.datastream.connectors.jdbc import JdbcConnectionOptions
        >>> options = JdbcConnectionOptions.builder().with_url("jdbc:postgresql://localhost/shop").build()
        >>> customers = JdbcLookupFunction(options, "customers", ["id"], ["name"])
        >>> add_name = JdbcAsyncLookupFunction(
        ...     customers, lambda order: order[0], lambda order, rows: [(*order, row.name) for row in rows]
        ... )

    """

    def __init__(
        self,
        lookup: JdbcLookupFunction,
        key_selector: Callable[[Any], Any],
        join: Callable[[Any, list[Row]], list[Any]],
    ) -> None:
        self._lookup = lookup
        self._key_selector = key_selector
        self._join = join

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the lookup."""
        self._lookup.open(runtime_context)

    async def async_invoke(self, value: Any) -> list[Any]:
        """Return the results of a record and the rows of its key."""
        key = self._key_selector(value)
        parts = key if isinstance(key, tuple) else (key,)
        rows = self._lookup.get_cached(parts)
        if rows is None:
            rows = await asyncio.to_thread(self._lookup.lookup, *parts)
        return self._join(value, rows)

    def close(self) -> None:
        """Close the lookup."""
        self._lookup.close()
