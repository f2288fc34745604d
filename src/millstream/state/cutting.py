"""Some key groups of a subtask's state, as of the end of the epoch that runs, as one file.

Promises: the file holds what a reader of the state would see, and no more of the state than the limits allow is in
memory for it, though never less than one key group; what has no key group is in the file of the first, but for chunks
of many keys, which are spread over all.
Does not know: chains of files, storage, which key groups are asked for and why."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from millstream.state import deltas
from millstream.state.backend import OperatorState
from millstream.state.deltas import Changes, Redistribution
from millstream.state.key_groups import KeyGrouper, KeyGroupRange
from millstream.state.parts import Rewrite
from millstream.state.store import ABSENT
from millstream.state.table import StateTable


class Cut(NamedTuple):
    """A part: the key groups it came to hold, the file, its entries, and whether chunks of many keys are among them."""

    groups: KeyGroupRange
    data: bytes
    rows: int
    chunks: bool = False


class _Columns:
    """Entries of one table as they come in."""

    def __init__(self) -> None:
        self.namespaces: list[Any] = []
        self.keys: list[Any] = []
        self.values: list[Any] = []

    def add(self, namespaces: list[Any], keys: list[Any], values: list[Any]) -> None:
        """More of them."""
        self.namespaces += namespaces
        self.keys += keys
        self.values += values

    def changes(self) -> Changes:
        """All of them."""
        return Changes(self.namespaces, self.keys, [False] * len(self.keys), self.values)


class _InMemory:
    """A table by key groups that is in memory."""

    def __init__(self, table: StateTable, grouper: KeyGrouper) -> None:
        changes = table.everything()
        groups = grouper.of_many(changes.keys)
        self._ends = np.cumsum(np.bincount(groups, minlength=grouper.max_parallelism)).tolist()
        order = np.argsort(groups, kind="stable").tolist()
        self._namespaces = [changes.namespaces[at] for at in order]
        self._keys = [changes.keys[at] for at in order]
        self._values = [changes.values[at] for at in order]

    def take(self, group: int) -> tuple[int, int]:
        """The entries and bytes of one more key group; bytes are not known."""
        return self._ends[group] - self._begin(group), 0

    def changes(self, groups: KeyGroupRange) -> Changes:
        """What was taken."""
        taken = slice(self._begin(groups.start), self._ends[groups.end])
        keys = self._keys[taken]
        return Changes(self._namespaces[taken], keys, [False] * len(keys), self._values[taken])

    def _begin(self, group: int) -> int:
        return int(self._ends[group - 1]) if group else 0


class _InStore:
    """A table by key groups that is in a store, with what this epoch changed."""

    def __init__(self, table: StateTable, grouper: KeyGrouper) -> None:
        self._table = table
        self._found = _Columns()
        self._changed: dict[int, _Columns] = {}
        namespaces, keys, values = table.latest()
        groups = grouper.of_many(keys).tolist()
        for group, namespace, key, value in zip(groups, namespaces, keys, values, strict=True):
            if value is not ABSENT:
                self._changed.setdefault(group, _Columns()).add([namespace], [key], [value])

    def take(self, group: int) -> tuple[int, int]:
        """The entries and bytes of one more key group."""
        namespaces, keys, values, size = self._table.stored_group(group)
        before = len(self._found.keys)
        if self._table.changed:
            keep = self._table.unchanged(namespaces, keys)
            namespaces, keys, values = (list(compress(each, keep)) for each in (namespaces, keys, values))
        self._found.add(namespaces, keys, values)
        changed = self._changed.get(group)
        if changed is not None:
            self._found.add(changed.namespaces, changed.keys, changed.values)
            size += sum(len(value) for value in changed.values if type(value) is bytes)  # of others it is not known
        return len(self._found.keys) - before, size

    def changes(self, groups: KeyGroupRange) -> Changes:
        """What was taken."""
        found, self._found = self._found, _Columns()
        return found.changes()


class _Chunks(_InStore):
    """Chunks of many keys in a store: by the key groups of their names, each of which counts for one of `ours`."""

    def __init__(self, table: StateTable, grouper: KeyGrouper, ours: KeyGroupRange) -> None:
        super().__init__(table, grouper)
        self._ours, self._groups = ours, grouper.max_parallelism

    def take(self, group: int) -> tuple[int, int]:
        """The entries and bytes that count for one more key group."""
        rows = size = 0
        for each in range(group - self._ours.start, self._groups, len(self._ours)):
            more, bigger = super().take(each)
            rows, size = rows + more, size + bigger
        return rows, size


class Cutter:
    """Cuts parts of the state of one subtask at the end of one epoch."""

    def __init__(self, state: OperatorState) -> None:
        self._state = state
        self._tables: dict[str, _InMemory | _InStore] = {}

    def cut(self, groups: KeyGroupRange, limits: Rewrite) -> Cut:
        """A part from the first of `groups` on; it ends with them, or before when it is full.

        State that is all in memory is one part: to find a key group's entries there, all are looked at."""
        state, ours = self._state, self._state.key_range
        if groups == ours and state.is_in_memory:
            return self._encoded(ours, {name: table.everything() for name, table in state.tables.items()})
        if not self._tables:
            sources = {name: self._source(table) for name, table in state.tables.items()}
            self._tables = {name: source for name, source in sources.items() if source is not None}
        rows = size = 0
        end = groups.start
        for taken, end in enumerate(groups, 1):
            for source in self._tables.values():
                more, bigger = source.take(end)
                rows, size = rows + more, size + bigger
            if rows + rows // taken > limits.rows or size + size // taken > limits.size:
                break
        held = KeyGroupRange(groups.start, end)
        found = {name: source.changes(held) for name, source in self._tables.items()}
        chunks = any(len(found[name]) for name, source in self._tables.items() if isinstance(source, _Chunks))
        if groups.start == ours.start:
            found |= {name: table.everything() for name, table in state.tables.items() if name not in found}
        return self._encoded(held, found)._replace(chunks=chunks)

    def _source(self, table: StateTable) -> _InMemory | _InStore | None:
        """A table by key groups; None if it has none."""
        state, way = self._state, table.schema.redistribution
        if way is Redistribution.KEYED:
            return (_InMemory if table.store is None else _InStore)(table, state.grouper)
        spread = way is Redistribution.CUT and table.store is not None
        return _Chunks(table, state.grouper, state.key_range) if spread else None

    def _encoded(self, groups: KeyGroupRange, found: Mapping[str, Changes]) -> Cut:
        written = [(self._state.tables[name].schema, changes) for name, changes in found.items()]
        data = deltas.encode(written, compressed=self._state.compressed)
        return Cut(groups, data, sum(len(changes) for _, changes in written))
