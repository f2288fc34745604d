"""A cache of lookup results by key, like Flink's partial cache.

Promises: results are kept no longer, and in no greater number, than the policy allows; the least recently used result
is evicted first. Safe to call from several threads.
Does not know: where rows come from, or clocks: the caller passes the time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

Key = tuple[Any, ...]


@dataclass(frozen=True)
class CachePolicy:
    """What is cached. Times are in milliseconds; None is no limit.

    `max_rows` limits the rows of all results, where an empty result counts as one row; `max_keys` limits the keys.
    `missing` says whether a key without rows is cached."""

    max_rows: int | None = None
    after_write: int | None = None
    after_access: int | None = None
    missing: bool = True
    max_keys: int | None = None


@dataclass(slots=True)
class _Entry:
    rows: list[Any]
    written: int
    used: int

    @property
    def weight(self) -> int:
        return max(len(self.rows), 1)


class LookupCache:
    """Results by key, the most recently used last."""

    def __init__(self, policy: CachePolicy) -> None:
        self._policy = policy
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._rows = 0
        self._lock = threading.Lock()
        self.hits = self.misses = 0

    def get(self, key: Key, now: int) -> list[Any] | None:
        """Return the rows of a key; None if they must be looked up."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or self._is_expired(entry, now):
                self._drop(key)
                self.misses += 1
                return None
            entry.used = now
            self._entries.move_to_end(key)
            self.hits += 1
            return list(entry.rows)

    def put(self, key: Key, rows: list[Any], now: int) -> None:
        """Cache the rows of a key."""
        if not rows and not self._policy.missing:
            return
        with self._lock:
            self._drop(key)
            entry = self._entries[key] = _Entry(rows, now, now)
            self._rows += entry.weight
            while self._entries and self._is_too_large():
                self._drop(next(iter(self._entries)))

    def _is_expired(self, entry: _Entry, now: int) -> bool:
        after_write, after_access = self._policy.after_write, self._policy.after_access
        return (after_write is not None and now - entry.written >= after_write) or (
            after_access is not None and now - entry.used >= after_access
        )

    def _is_too_large(self) -> bool:
        max_rows, max_keys = self._policy.max_rows, self._policy.max_keys
        return (max_rows is not None and self._rows > max_rows) or (
            max_keys is not None and len(self._entries) > max_keys
        )

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._rows -= entry.weight
