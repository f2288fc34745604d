"""Encodes parts of a base: some key groups of a subtask's state, as of the end of the current epoch, as one state file.

Promises: the file holds exactly the current entries of its key groups; while it is encoded, no more entries than the
limits allow are in memory, though at least one key group; tables without key groups are in the first part, except
chunks of many keys, which are spread over all parts.
Does not know: lineages, storage, why these key groups are written."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from millstream.state import deltas
from millstream.state.backend import OperatorState
from millstream.state.compaction import Rewrite
from millstream.state.deltas import Changes, Redistribution
from millstream.state.key_groups import KeyGrouper, KeyGroupRange
from millstream.state.store import ABSENT
from millstream.state.table import StateTable


class EncodedPart(NamedTuple):
    """The key groups of a part, its file, its number of entries, and whether it holds chunks of many keys."""

    groups: KeyGroupRange
    data: bytes
    rows: int
    chunks: bool = False


class _Columns:
    """A buffer of entries of one table."""

    def __init__(self) -> None:
        self.namespaces: list[Any] = []
        self.keys: list[Any] = []
        self.values: list[Any] = []

    def add(self, namespaces: list[Any], keys: list[Any], values: list[Any]) -> None:
        """Append entries."""
        self.namespaces += namespaces
        self.keys += keys
        self.values += values

    def changes(self) -> Changes:
        """Return all entries."""
        return Changes(self.namespaces, self.keys, [False] * len(self.keys), self.values)


class _InMemory:
    """A table in memory, ordered by key group."""

    def __init__(self, table: StateTable, grouper: KeyGrouper) -> None:
        changes = table.entries()
        groups = grouper.of_many(changes.keys)
        self._ends = np.cumsum(np.bincount(groups, minlength=grouper.max_parallelism)).tolist()
        order = np.argsort(groups, kind="stable").tolist()
        self._namespaces = [changes.namespaces[index] for index in order]
        self._keys = [changes.keys[index] for index in order]
        self._values = [changes.values[index] for index in order]

    def add(self, group: int) -> tuple[int, int]:
        """Add a key group; returns its number of entries, and 0 bytes because sizes in memory are not known."""
        return self._ends[group] - self._begin(group), 0

    def changes(self, groups: KeyGroupRange) -> Changes:
        """Return the entries of the added key groups."""
        rows = slice(self._begin(groups.start), self._ends[groups.end])
        keys = self._keys[rows]
        return Changes(self._namespaces[rows], keys, [False] * len(keys), self._values[rows])

    def _begin(self, group: int) -> int:
        return int(self._ends[group - 1]) if group else 0


class _InStore:
    """A table in the local store, read by key group, with the changes of this epoch."""

    def __init__(self, table: StateTable, grouper: KeyGrouper) -> None:
        self._table = table
        self._buffer = _Columns()
        self._changed: dict[int, _Columns] = {}
        namespaces, keys, values = table.changed_entries()
        groups = grouper.of_many(keys).tolist()
        for group, namespace, key, value in zip(groups, namespaces, keys, values, strict=True):
            if value is not ABSENT:
                self._changed.setdefault(group, _Columns()).add([namespace], [key], [value])

    def add(self, group: int) -> tuple[int, int]:
        """Add a key group; returns its number of entries and bytes."""
        namespaces, keys, values, size = self._table.read_stored_group(group)
        before = len(self._buffer.keys)
        if self._table.has_changes:
            keep = self._table.mask_unchanged(namespaces, keys)
            namespaces, keys, values = (list(compress(column, keep)) for column in (namespaces, keys, values))
        self._buffer.add(namespaces, keys, values)
        changed = self._changed.get(group)
        if changed is not None:
            self._buffer.add(changed.namespaces, changed.keys, changed.values)
            size += sum(len(value) for value in changed.values if type(value) is bytes)  # other sizes are not known
        return len(self._buffer.keys) - before, size

    def changes(self, groups: KeyGroupRange) -> Changes:
        """Return the entries of the added key groups and empty the buffer."""
        entries, self._buffer = self._buffer, _Columns()
        return entries.changes()


class _Chunks(_InStore):
    """Chunks of many keys in the local store, spread over the key groups of the subtask.

    The store orders chunks by the key group of their name; each of these is assigned to one key group of the
    subtask."""

    def __init__(self, table: StateTable, grouper: KeyGrouper, key_range: KeyGroupRange) -> None:
        super().__init__(table, grouper)
        self._key_range, self._max_parallelism = key_range, grouper.max_parallelism

    def add(self, group: int) -> tuple[int, int]:
        """Add the chunks that are assigned to a key group; returns their number and bytes."""
        rows = size = 0
        for name_group in range(group - self._key_range.start, self._max_parallelism, len(self._key_range)):
            group_rows, group_size = super().add(name_group)
            rows, size = rows + group_rows, size + group_size
        return rows, size


class PartEncoder:
    """Encodes parts of the state of one subtask at the end of one epoch."""

    def __init__(self, state: OperatorState) -> None:
        self._state = state
        self._tables: dict[str, _InMemory | _InStore] = {}

    def encode(self, groups: KeyGroupRange, limits: Rewrite) -> EncodedPart:
        """Encode a part that begins with the first of `groups`; it ends with the last, or earlier if it is full.

        State in memory is always one part, because finding the entries of a key group requires reading all entries."""
        state, key_range = self._state, self._state.key_range
        if groups == key_range and state.is_in_memory:
            return self._encode(key_range, {name: table.entries() for name, table in state.tables.items()})
        if not self._tables:
            sources = {name: self._source(table) for name, table in state.tables.items()}
            self._tables = {name: source for name, source in sources.items() if source is not None}
        rows = size = 0
        end = groups.start
        for added, end in enumerate(groups, 1):
            for source in self._tables.values():
                group_rows, group_size = source.add(end)
                rows, size = rows + group_rows, size + group_size
            if rows + rows // added > limits.rows or size + size // added > limits.size:
                break
        part_groups = KeyGroupRange(groups.start, end)
        changes = {name: source.changes(part_groups) for name, source in self._tables.items()}
        has_chunks = any(len(changes[name]) for name, source in self._tables.items() if isinstance(source, _Chunks))
        if groups.start == key_range.start:
            changes |= {name: table.entries() for name, table in state.tables.items() if name not in changes}
        return self._encode(part_groups, changes)._replace(chunks=has_chunks)

    def _source(self, table: StateTable) -> _InMemory | _InStore | None:
        """The entries of a table by key group; None if the table has no key groups."""
        state, redistribution = self._state, table.schema.redistribution
        if redistribution is Redistribution.KEYED:
            return (_InMemory if table.store is None else _InStore)(table, state.grouper)
        is_spread = redistribution is Redistribution.CUT and table.store is not None
        return _Chunks(table, state.grouper, state.key_range) if is_spread else None

    def _encode(self, groups: KeyGroupRange, changes: Mapping[str, Changes]) -> EncodedPart:
        tables = [(self._state.tables[name].schema, table_changes) for name, table_changes in changes.items()]
        data = deltas.encode(tables, compressed=self._state.compressed)
        return EncodedPart(groups, data, sum(len(table_changes) for _, table_changes in tables))
