"""The interface of lookup sources, and the cache options of a table.

Promises: a lookup source gets many keys in one call. The cache policy is that of the table's options: no cache, a cache
of results, or the full table.
Does not know: joins, connectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connector.lookup_cache import CachePolicy, Key
from millstream.sql.connector.lookup_reload import FULL_OPTIONS, Reload, read_reload_policy
from millstream.sql.connector.table_connector import TableContext
from millstream.sql.types import data_types as t
from millstream.sql.types.durations import parse_duration_millis

LookupRows = Sequence[Sequence[Any]]  # the rows of one key

CACHE_OPTIONS = (
    "lookup.cache",
    "lookup.partial-cache.max-rows",
    "lookup.partial-cache.expire-after-write",
    "lookup.partial-cache.expire-after-access",
    "lookup.partial-cache.cache-missing-key",
    "lookup.cache.max-rows",
    "lookup.cache.ttl",
    "lookup.cache.caching-missing-key",
    "lookup.max-retries",
    "lookup.async",
    *FULL_OPTIONS,
)


class Lookup(ABC):
    """Finds rows by key. It must be picklable. It is opened once in a subtask, and is called from several threads."""

    def open(self) -> None:
        """Acquire resources, before the first call of `find`."""

    @abstractmethod
    def find(self, keys: Sequence[Key]) -> Mapping[Key, LookupRows]:
        """Return the rows of each key, with all columns of the table; a key without rows can be left out."""

    def project(self, columns: tuple[int, ...]) -> Lookup | None:
        """Return a lookup of these columns only, by column index; None if all columns must be read."""
        return None

    def close(self) -> None:
        """Release resources, after the last call of `find`."""


@dataclass(frozen=True)
class TableLookup:
    """How a table is looked up. Rows have the type `schema`; a call of `find` gets at most `max_keys` keys.

    If `cache` is a reload policy, the lookup is a `WholeTable`: the table is read as a whole and kept in memory."""

    lookup: Lookup
    schema: t.RowType
    cache: CachePolicy | Reload | None = None
    asynchronous: bool = False
    max_keys: int = 1000


def read_cache_policy(context: TableContext) -> CachePolicy | Reload | None:
    """Return the cache policy of the options `lookup.cache` and `lookup.partial-cache.*`; None without a cache."""
    options = context.options
    cache_type = options.get("lookup.cache", "").upper()
    has_legacy_options = "lookup.cache.max-rows" in options or "lookup.cache.ttl" in options
    if cache_type not in ("", "NONE", "PARTIAL", "FULL"):
        message = f"option 'lookup.cache' must be NONE, PARTIAL or FULL, not '{options['lookup.cache']}'"
        raise context.fail(message)
    if cache_type == "FULL":
        return read_reload_policy(context)
    if cache_type == "NONE" or (not cache_type and not has_legacy_options):
        return None
    prefix = "lookup.partial-cache."
    max_rows = context.integer(f"{prefix}max-rows", context.integer("lookup.cache.max-rows"))
    after_write = _read_duration(context, f"{prefix}expire-after-write")
    if after_write is None:
        after_write = _read_duration(context, "lookup.cache.ttl")
    after_access = _read_duration(context, f"{prefix}expire-after-access")
    if max_rows is None and after_write is None and after_access is None:
        message = "a partial cache needs a limit"
        raise context.fail(message, f"set '{prefix}max-rows' or '{prefix}expire-after-write'")
    missing = options.get(f"{prefix}cache-missing-key", options.get("lookup.cache.caching-missing-key", "true"))
    return CachePolicy(max_rows, after_write, after_access, missing.lower() == "true")


def _read_duration(context: TableContext, key: str) -> int | None:
    text = context.options.get(key)
    return None if text is None else parse_duration_millis(text)
