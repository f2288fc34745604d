"""Rows of a table found by key: what a connector gives to a lookup join, and how results are cached.

Promises: many keys are looked up at a time; the cache policy is that of the table's options, which may also ask for the
whole table to be kept.
Does not know: joins, connectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connector.lookup_cache import CachePolicy, Key
from millstream.sql.connector.lookup_reload import FULL_OPTIONS, Reload, reload_policy
from millstream.sql.connector.table_connector import TableContext
from millstream.sql.types import data_types as t
from millstream.sql.types.durations import duration_millis

Found = Sequence[Sequence[Any]]

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
    """Finds rows by key. Picklable; opened once in a worker, and may be asked from several threads."""

    def open(self) -> None:
        """Before the first question."""

    @abstractmethod
    def find(self, keys: Sequence[Key]) -> Mapping[Key, Found]:
        """The rows of each key, all columns of the table in their order; a key without rows may be missing."""

    def narrowed(self, columns: tuple[int, ...]) -> Lookup | None:
        """The same with some columns only, by their places; None where all must be given."""
        return None

    def close(self) -> None:
        """No more questions."""


@dataclass(frozen=True)
class TableLookup:
    """How a table is looked up: rows have `schema`; `most` keys fit into one question.

    One whose cache is a policy of reloading is a `WholeTable`, and is not asked but read."""

    lookup: Lookup
    schema: t.RowType
    cache: CachePolicy | Reload | None = None
    asynchronous: bool = False
    most: int = 1000


def cache_policy(context: TableContext) -> CachePolicy | Reload | None:
    """What the options of a table say about remembering answers, or all rows."""
    given = context.options
    kind = given.get("lookup.cache", "").upper()
    legacy = "lookup.cache.max-rows" in given or "lookup.cache.ttl" in given
    if kind not in ("", "NONE", "PARTIAL", "FULL"):
        message = f"option 'lookup.cache' must be NONE, PARTIAL or FULL, not '{given['lookup.cache']}'"
        raise context.fail(message)
    if kind == "FULL":
        return reload_policy(context)
    if kind == "NONE" or (not kind and not legacy):
        return None
    prefix = "lookup.partial-cache."
    most = context.integer(f"{prefix}max-rows", context.integer("lookup.cache.max-rows"))
    written = _span(context, f"{prefix}expire-after-write")
    if written is None:
        written = _span(context, "lookup.cache.ttl")
    used = _span(context, f"{prefix}expire-after-access")
    if most is None and written is None and used is None:
        message = "a partial cache needs a limit"
        raise context.fail(message, f"set '{prefix}max-rows' or '{prefix}expire-after-write'")
    missing = given.get(f"{prefix}cache-missing-key", given.get("lookup.cache.caching-missing-key", "true"))
    return CachePolicy(most, written, used, missing.lower() == "true")


def _span(context: TableContext, key: str) -> int | None:
    text = context.options.get(key)
    return None if text is None else duration_millis(text)
