"""The state of one operator subtask: all its tables at one version.

Promises: nothing leaves this object until `delta` is called; `advance` brings it from whatever version it is at to the
one asked for, or rebuilds it, cut to what belongs to this subtask.
Does not know: Spark, files, operators. Which store is below is decided by `OpenStore`."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from itertools import compress
from typing import Any

from millstream.errors import ExternalError
from millstream.state import deltas
from millstream.state.deltas import Changes, IncompatibleState, Patch, Redistribution, TableSchema
from millstream.state.evolution import without_classes
from millstream.state.handles import Chain, Handle, Lineage
from millstream.state.key_groups import KeyGrouper, KeyGroupRange
from millstream.state.parts import needed
from millstream.state.store import ABSENT, OpenStore, Store
from millstream.state.table import StateTable
from millstream.types.factory import TypeInformation, Types, UnknownType, type_from_json

_STORE_ATTEMPTS = 16
_HELD_FILES = 16 << 20  # bytes of files that are not read again when store and memory both lack them


class StoreContended(ExternalError):
    """Other workers of this host kept moving the store to other versions."""

    hint = "an earlier attempt may still be running; the task is tried again"

    def __init__(self, version: str) -> None:
        self.version = version
        super().__init__(f"the local store could not be brought to version {version!r}")


class OperatorState:
    """All tables of one operator subtask, at one version."""

    def __init__(
        self,
        key_range: KeyGroupRange,
        subtask: int,
        parallelism: int,
        grouper: KeyGrouper,
        key_type: TypeInformation | None = None,
        open_store: OpenStore = lambda: None,
        cache_limit: int | None = None,
    ) -> None:
        self.version = ""
        self.compressed = False
        self.operator = ""
        self.now = 0
        self.tables: dict[str, StateTable] = {}
        self.grouper = grouper
        self.key_range = key_range
        self._subtask = subtask
        self._parallelism = parallelism
        self._given_key_type = key_type
        self._key_type = key_type or Types.PICKLED_BYTE_ARRAY()
        self._store = open_store()
        if self._store is not None:
            self._store.arrange(grouper)
        self._cache_limit = cache_limit
        self._found: set[str] = set()
        self._cuts: dict[str, Callable[[Any, KeyGroupRange], Any]] = {}

    @property
    def is_in_memory(self) -> bool:
        """Whether all values are, and none in a store."""
        return self._store is None

    @property
    def changed(self) -> bool:
        """Whether this epoch changed anything."""
        return any(table.changed for table in self.tables.values())

    def table(
        self,
        name: str,
        value_type: TypeInformation,
        redistribution: Redistribution = Redistribution.KEYED,
        *,
        key_type: TypeInformation | None = None,
        in_memory: bool = False,
        cut: Callable[[Any, KeyGroupRange], Any] | None = None,
        kind: str = "",
        ttl: bool = False,
    ) -> StateTable:
        """The table of that name, made on first use. One that is `in_memory` must be asked for before `advance`.

        `kind` and `ttl` are those of its descriptor. `cut` gives the part of a value that belongs to some key groups,
        ABSENT for none; it goes with `CUT`."""
        if cut is not None:
            self._cuts[name] = cut
        schema = TableSchema(name, key_type or self._key_type, value_type, redistribution, kind, ttl)
        found = self.tables.get(name)
        if found is None:
            keep = in_memory or redistribution not in (Redistribution.KEYED, Redistribution.CUT)
            found = self.tables[name] = StateTable(schema, None if keep else self._store)
        elif name in self._found:
            self._found.discard(name)
            with self._telling():
                found.become(schema, self.now)
        return found

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """Whose state it is that cannot be read."""
        try:
            yield
        except IncompatibleState as problem:
            raise problem.of(self.operator) from problem

    def _find_tables(self, data: bytes) -> None:
        """Make tables that a file has and nobody asked for yet: triggers and windows ask when records are processed."""
        for entry in deltas.describe(data):
            name = entry["name"]
            if name not in self.tables:
                redistribution = Redistribution(entry["redistribution"])
                keyed = redistribution is Redistribution.KEYED
                # on disk only objects of declared classes are kept: a record is a row until the program declares it
                value = entry["value"] if self._store is None else without_classes(entry["value"])
                with contextlib.suppress(UnknownType):  # of a class that the program no longer has: dropped
                    self.table(
                        name,
                        type_from_json(value),
                        redistribution,
                        key_type=(self._given_key_type if keyed else None) or type_from_json(entry["key"]),
                        kind=str(entry.get("kind", "")),
                        ttl=bool(entry.get("ttl")),
                    )
                    self._found.add(name)

    def advance(self, lineage: Lineage, read: Callable[[Handle], bytes]) -> int:
        """Come to the version of `lineage`; returns how many files had to be read."""
        with self._telling():
            return self._advance(lineage, read)

    def _advance(self, lineage: Lineage, read: Callable[[Handle], bytes]) -> int:
        files: dict[str, bytes] = {}
        reads = held = 0

        def content(handle: Handle) -> bytes:
            nonlocal reads, held
            data = files.get(handle.name)
            if data is None:
                data = read(handle)
                reads += 1
                self._find_tables(data)
                if held + len(data) <= _HELD_FILES:
                    files[handle.name] = data
                    held += len(data)
            return data

        missing = self._missing(lineage, self.version)
        aside = None if self._store is None else self._advance_store(self._store, lineage, content)
        if missing is None:
            for table in self.tables.values():
                table.forget()
            found = self._everything(lineage, content, stored=False) if aside is None else aside
            for name, changes in found:
                self.tables[name].take_over(changes)
        else:
            for name, changes in self._later(missing, content):
                self.tables[name].take_over(changes)
        self.version = self._version(lineage)
        return reads

    def _advance_store(
        self, store: Store, lineage: Lineage, content: Callable[[Handle], bytes]
    ) -> list[tuple[str, Changes]] | None:
        """Bring the store to the version of `lineage` and stay on it, whatever other workers of this host do to it.

        When it is rebuilt, all is read that tables in memory hold too: that is given back."""
        aside: list[tuple[str, Changes]] | None = None
        for _ in range(_STORE_ATTEMPTS):
            store.refresh()
            missing = self._missing(lineage, store.version)
            if missing == ():
                return aside
            if missing is None:
                everything = _Divided(self._everything(lineage, content), self.tables)
                store.apply(everything, self._version(lineage), afresh=True)
                aside = everything.aside if everything.complete else None
            else:
                later = self._later(missing, content)
                kept = ((name, changes) for name, changes in later if self.tables[name].store is not None)
                store.apply(kept, self._version(lineage), afresh=False)
        raise StoreContended(lineage.version)

    def _later(self, missing: Chain, content: Callable[[Handle], bytes]) -> Iterator[tuple[str, Changes]]:
        for handle in missing:
            data = content(handle)
            for name, _, changes in deltas.decode(data, self._schemas(), self.now):
                yield name, changes

    def _version(self, lineage: Lineage) -> str:
        """What a store is at after `lineage`. Each subtask of each parallelism has its own part of restored files."""
        if lineage.own or not lineage.restored:
            return lineage.version
        return f"{lineage.version}@{self._subtask}/{self._parallelism}"

    def _missing(self, lineage: Lineage, version: str) -> Chain | None:
        """The files that something at `version` lacks; None when it must be rebuilt."""
        if lineage.restored:
            begin = Lineage(restored=lineage.restored)
            if version == self._version(begin):
                return lineage.missing(begin.version)
            if version == begin.version:  # the old subtask's own store: it holds other key groups
                return None
        return lineage.missing(version)

    def _schemas(self, *, stored: bool = True) -> dict[str, TableSchema]:
        """Of all tables, or of those that are in memory."""
        return {name: table.schema for name, table in self.tables.items() if stored or table.store is None}

    def _everything(
        self, lineage: Lineage, content: Callable[[Handle], bytes], *, stored: bool = True
    ) -> Iterator[tuple[str, Changes]]:
        """All changes from the beginning, cut to what belongs to this subtask at this parallelism.

        One file after the other; without `stored`, only what tables in memory hold."""
        split: dict[str, dict[str, Any]] = {}
        for index, (_, chain) in enumerate(lineage.restored):
            for name, redistribution, changes in self._read(needed(chain, self.key_range), content, stored=stored):
                if redistribution is Redistribution.KEYED:
                    groups = self.grouper.of_many(changes.keys)
                    inside = (groups >= self.key_range.start) & (groups <= self.key_range.end)
                    yield name, _only(changes, inside.tolist())
                elif redistribution is Redistribution.BROADCAST:
                    if index == 0:
                        yield name, changes
                else:  # lists of several subtasks meet: an element's place is known by its subtask too
                    keys = [f"{index:05d}/{key}" for key in changes.keys]
                    if redistribution is Redistribution.UNION:
                        yield name, dataclasses.replace(changes, keys=keys)
                    elif redistribution is Redistribution.CUT:
                        yield name, self._cut(name, dataclasses.replace(changes, keys=keys))
                    else:
                        _collect(split.setdefault(name, {}), keys, changes)
        for name, elements in split.items():
            mine = sorted(elements)[self._subtask :: self._parallelism]
            yield name, _entries(mine, [elements[place] for place in mine])
        for name, _, changes in self._read(lineage.own, content, stored=stored):
            yield name, changes

    def _read(
        self, files: Iterable[Handle], content: Callable[[Handle], bytes], *, stored: bool
    ) -> Iterator[tuple[str, Redistribution, Changes]]:
        """The entries of files, one over the other."""
        for handle in files:
            data = content(handle)
            yield from deltas.decode(data, self._schemas(stored=stored), self.now)

    def _cut(self, name: str, changes: Changes) -> Changes:
        """The changes with each value cut to this subtask's key groups."""
        cut = self._cuts[name]
        pairs = zip(changes.values, changes.deleted, strict=True)
        values = [None if gone else cut(value, self.key_range) for value, gone in pairs]
        deleted = [gone or value is ABSENT for value, gone in zip(values, changes.deleted, strict=True)]
        kept = [None if gone else value for value, gone in zip(values, deleted, strict=True)]
        return dataclasses.replace(changes, values=kept, deleted=deleted)

    def delta(self) -> tuple[bytes, int] | None:
        """What this epoch changed as a state file and its number of entries; None when nothing did."""
        changed = [(table.schema, table.changes()) for table in self.tables.values() if table.changed]
        if not changed:
            return None
        return deltas.encode(changed, compressed=self.compressed), sum(len(c) for _, c in changed)

    def settle(self, version: str) -> None:
        """The epoch is over and its delta is called `version`: go on from it, if it is accepted."""
        self.version = version
        for table in self.tables.values():
            table.settle(self._cache_limit)
        if self._store is not None:
            self._store.release()

    def unchanged(self) -> None:
        """The epoch is over and changed nothing."""
        self.settle(self.version)

    def abandon(self) -> None:
        """An attempt failed in the middle: nothing in memory can be trusted any more."""
        self.version = "abandoned"
        for table in self.tables.values():
            table.forget()
        if self._store is not None:
            self._store.release()

    def merged(self, lineage: Lineage, read: Callable[[Handle], bytes], since: int) -> tuple[bytes, int]:
        """The changes of files `since`.. of the own chain and of this epoch as one file, and its number of entries."""
        entries: dict[str, dict[tuple[Any, Any], tuple[bool, Any]]] = {name: {} for name in self.tables}
        for name, changes in self._later(lineage.own[since:], read):
            _merge(entries[name], changes)
        for name, table in self.tables.items():
            _merge(entries[name], table.changes())
        tables = [(schema, _changes_of(entries[name])) for name, schema in self._schemas().items()]
        return deltas.encode(tables, compressed=self.compressed), sum(len(changes) for _, changes in tables)

    def close(self) -> None:
        """Let go of the store."""
        if self._store is not None:
            self._store.close()


def _merge(entries: dict[tuple[Any, Any], tuple[bool, Any]], changes: Changes) -> None:
    """Put later changes over earlier ones."""
    for namespace, key, gone, value in changes.rows():
        if isinstance(value, Patch):
            before = entries.get((namespace, key))
            if before is not None:
                earlier = before[1]
                value = value.after(earlier) if isinstance(earlier, Patch) else value.on(earlier)
        entries[namespace, key] = (gone, value)


def _collect(elements: dict[str, Any], keys: list[str], changes: Changes) -> None:
    for key, gone, value in zip(keys, changes.deleted, changes.values, strict=True):
        if gone:
            elements.pop(key, None)
        else:
            elements[key] = value


def _entries(keys: list[str], values: list[Any]) -> Changes:
    count = len(keys)
    return Changes([None] * count, keys, [False] * count, values)


def _only(changes: Changes, keep: list[bool]) -> Changes:
    return dataclasses.replace(
        changes,
        namespaces=list(compress(changes.namespaces, keep)),
        keys=list(compress(changes.keys, keep)),
        deleted=list(compress(changes.deleted, keep)),
        values=list(compress(changes.values, keep)),
    )


def _changes_of(entries: dict[tuple[Any, Any], tuple[bool, Any]]) -> Changes:
    values = [value for _, value in entries.values()]
    return Changes(
        [namespace for namespace, _ in entries],
        [key for _, key in entries],
        [gone for gone, _ in entries.values()],
        values,
        patched=any(isinstance(value, Patch) for value in values),
    )


class _Divided:
    """Changes as they come: those of tables in a store are passed on, those of tables in memory are put aside."""

    def __init__(self, changes: Iterable[tuple[str, Changes]], tables: dict[str, StateTable]) -> None:
        self.aside: list[tuple[str, Changes]] = []
        self.complete = False
        self._changes = changes
        self._tables = tables

    def __iter__(self) -> Iterator[tuple[str, Changes]]:
        for name, changes in self._changes:
            if self._tables[name].store is None:
                self.aside.append((name, changes))
            else:
                yield name, changes
        self.complete = True
