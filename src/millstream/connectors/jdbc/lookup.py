"""Rows of a table found by key, to enrich a stream.

Promises: rows as the table has them now, or had them no longer ago than the cache allows; a key that has no row can be
remembered too. Safe to call from several threads.
Does not know: streams; a map function or Async I/O calls it.

What is looked up is not part of any checkpoint: after a recovery a record may meet a newer row."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from millstream.connectors.jdbc.direct import retried
from millstream.connectors.jdbc.driver import Session
from millstream.connectors.jdbc.options import InvalidJdbcOption, JdbcConnectionOptions
from millstream.connectors.jdbc.statements import quoted, quoted_list, quoted_table
from millstream.connectors.jdbc.types import SESSION, PgType, pg_type
from millstream.functions.async_io import AsyncFunction
from millstream.functions.base import RuntimeContext
from millstream.types.row import Row


class LookupCache:
    """The rows of the keys that were asked for last; an entry is forgotten `ttl_ms` after it was written."""

    def __init__(self, max_rows: int, ttl_ms: int = 0, now: Callable[[], float] = time.monotonic) -> None:
        """`max_rows` 0: nothing is kept; `ttl_ms` 0: an entry stays until there is no room."""
        self._most, self._ttl, self._now = max_rows, ttl_ms / 1000, now
        self._entries: OrderedDict[tuple[Any, ...], tuple[float, list[Row]]] = OrderedDict()
        self._lock = threading.Lock()
        self.hits = self.misses = 0

    def get(self, key: tuple[Any, ...]) -> list[Row] | None:
        """The rows of a key; None when they must be asked for."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or (self._ttl and self._now() - entry[0] >= self._ttl):
                self.misses += 1
                return None
            self._entries.move_to_end(key)
            self.hits += 1
            return entry[1]

    def put(self, key: tuple[Any, ...], rows: list[Row]) -> None:
        """Remember the rows of a key."""
        with self._lock:
            self._entries[key] = (self._now(), rows)
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)


class JdbcLookupFunction:
    """Finds rows of a table by key. `open` it in the `open` of a function, then call `lookup`. Values have the types
    that `JdbcSource` gives them.

    `columns` are those of the rows; all when left out. The cache has Flink's options: `lookup.partial-cache.max-rows`,
    `.expire-after-write`, `.cache-missing-key`."""

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
        self._options = connection_options
        wanted = quoted_list(columns) if columns else "*"
        where = " AND ".join(f"{quoted(key)} = %s" for key in key_fields)
        self._described = f"SELECT {wanted} FROM {quoted_table(table)} LIMIT 0"
        self._where = f"FROM {quoted_table(table)} WHERE {where}"
        self._columns: tuple[list[str], list[PgType]] | None = None
        self._width = len(key_fields)
        self._cache_settings = (cache_max_rows, cache_ttl_ms)
        self._cache_missing = cache_missing_key
        self._retries = max_retries
        self.cache: LookupCache | None = None
        self._free: list[Session] = []

    def open(self, runtime_context: RuntimeContext | None = None) -> None:
        """Begin with an empty cache."""
        self.cache = LookupCache(*self._cache_settings)
        self._free = []

    def lookup(self, *key: Any) -> list[Row]:
        """The rows with this key."""
        if len(key) != self._width:
            message = f"the key {key!r} has {len(key)} parts, the lookup has {self._width} key fields"
            raise InvalidJdbcOption(message)
        cache = self.cache
        if cache is not None and (known := cache.get(key)) is not None:
            return known
        rows: list[Row] = retried(lambda: self._ask(key), self._retries + 1)
        if cache is not None and (rows or self._cache_missing):
            cache.put(key, rows)
        return rows

    def _ask(self, key: tuple[Any, ...]) -> list[Row]:
        # one session for each call under way: taking from a list is atomic
        session = self._free.pop() if self._free else Session(self._options.conninfo(), SESSION)
        try:
            rows: list[Row] = session.run("cannot look up", lambda connection: self._fetch(connection, key))
        finally:
            self._free.append(session)
        return rows

    def _fetch(self, connection: Any, key: tuple[Any, ...]) -> list[Row]:
        if self._columns is None:
            found = connection.execute(self._described).description
            self._columns = [column.name for column in found], [pg_type(column.type_code) for column in found]
        names, kinds = self._columns
        texts = ", ".join(f"{quoted(name)}::text" for name in names)
        records = connection.execute(f"SELECT {texts} {self._where}", key).fetchall()
        return [Row._from(names, [k.value(t) for k, t in zip(kinds, record, strict=True)]) for record in records]

    def close(self) -> None:
        """Let go of connections."""
        while self._free:
            self._free.pop().close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cache": None, "_free": [], "_columns": None}


class JdbcAsyncLookupFunction(AsyncFunction[Any, Any]):
    """Looks up the key of every record; for `AsyncDataStream`. `join` makes the results of a record and its rows.

    At most as many queries are under way as the capacity of the asynchronous operator allows."""

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
        """The record with the rows of its key."""
        key = self._key_selector(value)
        parts = key if isinstance(key, tuple) else (key,)
        cache = self._lookup.cache
        rows = cache.get(parts) if cache is not None else None
        if rows is None:
            rows = await asyncio.to_thread(self._lookup.lookup, *parts)
        return self._join(value, rows)

    def close(self) -> None:
        """Close the lookup."""
        self._lookup.close()
