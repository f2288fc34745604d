"""The state of one operator subtask: all its state tables at one version.

Promises: changes of an epoch are kept in this object until `encode_delta` returns them; `advance` applies the missing
state files up to the requested version, or rebuilds the state from all files, restricted to the key groups of this
subtask.
Does not know: Spark, storage, operators. `OpenStore` decides which local store holds the values."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from itertools import compress
from typing import Any

from millstream.errors import ExternalError
from millstream.state import deltas
from millstream.state.compaction import select_files
from millstream.state.deltas import Changes, IncompatibleState, Patch, Redistribution, TableSchema
from millstream.state.evolution import replace_classes
from millstream.state.handles import Chain, Handle, Lineage
from millstream.state.key_groups import KeyGrouper, KeyGroupRange
from millstream.state.store import ABSENT, OpenStore, Store
from millstream.state.table import StateTable
from millstream.types.factory import TypeInformation, Types, UnknownType, type_from_json

_STORE_ATTEMPTS = 16
# bytes of state files that are kept in memory, so that the store and the tables in memory read each file once
_CACHED_BYTES = 16 << 20


class StoreContended(ExternalError):
    """Other worker processes of this host kept changing the version of the local store."""

    hint = "an earlier attempt of the task may still be running; Spark retries the task"

    def __init__(self, version: str) -> None:
        self.version = version
        super().__init__(
            f"the local state store could not be advanced to version {version!r}: other processes change it"
        )


class OperatorState:
    """All state tables of one operator subtask, at one version."""

    def __init__(
        self,
        key_range: KeyGroupRange,
        subtask: int,
        parallelism: int,
        grouper: KeyGrouper,
        key_type: TypeInformation | None = None,
        open_store: OpenStore | None = None,
        cache_limit: int | None = None,
    ) -> None:
        """`open_store` opens the local store when it is first needed; with None, all values stay in memory."""
        self.version = ""
        self.compressed = False
        self.operator = ""
        self.now = 0
        self.tables: dict[str, StateTable] = {}
        self.grouper = grouper
        self.key_range = key_range
        self._subtask = subtask
        self._parallelism = parallelism
        self._declared_key_type = key_type
        self._key_type = key_type or Types.PICKLED_BYTE_ARRAY()
        self._open_store = open_store
        self._store: Store | None = None
        self._is_advanced = False
        self._cache_limit = cache_limit
        self._undeclared: set[str] = set()
        self._restrictions: dict[str, Callable[[Any, KeyGroupRange], Any]] = {}

    @property
    def is_in_memory(self) -> bool:
        """Whether there is no local store, so that all values are in memory."""
        return self._open_store is None

    def _local_store(self) -> Store | None:
        """Return the local store; the first call opens it. Most operators have no state, and open none."""
        if self._store is None and self._open_store is not None:
            store = self._open_store()
            try:
                store.set_key_groups(self.grouper)
                if self._is_advanced:  # the state was advanced without the store, because there were no files
                    self._advance_store(store, Lineage(), _no_content)
            except BaseException:
                store.close()
                raise
            self._store = store
        return self._store

    @property
    def has_changes(self) -> bool:
        """Whether this epoch changed anything."""
        return any(table.has_changes for table in self.tables.values())

    def table(
        self,
        name: str,
        value_type: TypeInformation,
        redistribution: Redistribution = Redistribution.KEYED,
        *,
        key_type: TypeInformation | None = None,
        in_memory: bool = False,
        restrict: Callable[[Any, KeyGroupRange], Any] | None = None,
        kind: str = "",
        ttl: bool = False,
    ) -> StateTable:
        """Return the table with this name; the first call creates it.

        `in_memory` keeps its values out of the local store; such a table must be created before `advance`. `kind` and
        `ttl` come from the state descriptor. `restrict` returns the part of a value that belongs to some key groups,
        ABSENT if there is none; a table with `Redistribution.CUT` needs it."""
        if restrict is not None:
            self._restrictions[name] = restrict
        schema = TableSchema(name, key_type or self._key_type, value_type, redistribution, kind, ttl)
        table = self.tables.get(name)
        if table is None:
            in_memory = in_memory or redistribution not in (Redistribution.KEYED, Redistribution.CUT)
            table = self.tables[name] = StateTable(schema, None if in_memory else self._local_store())
        elif name in self._undeclared:
            self._undeclared.discard(name)
            with self._name_operator_in_errors():
                table.migrate(schema, self.now)
        return table

    @contextlib.contextmanager
    def _name_operator_in_errors(self) -> Iterator[None]:
        """Add the name of the operator to errors about state that cannot be read."""
        try:
            yield
        except IncompatibleState as problem:
            raise problem.with_operator(self.operator) from problem

    def _create_undeclared_tables(self, data: bytes) -> None:
        """Create the tables of a file that are not declared yet.

        Triggers and windows declare theirs with the first record."""
        for entry in deltas.describe(data):
            name = entry["name"]
            if name not in self.tables:
                redistribution = Redistribution(entry["redistribution"])
                keyed = redistribution is Redistribution.KEYED
                # the local store encodes only objects of declared classes, so until then a record is read as a row
                value = entry["value"] if self._open_store is None else replace_classes(entry["value"])
                with contextlib.suppress(UnknownType):  # the program no longer has the class: the state is dropped
                    self.table(
                        name,
                        type_from_json(value),
                        redistribution,
                        key_type=(self._declared_key_type if keyed else None) or type_from_json(entry["key"]),
                        kind=str(entry.get("kind", "")),
                        ttl=bool(entry.get("ttl")),
                    )
                    self._undeclared.add(name)

    def advance(self, lineage: Lineage, read: Callable[[Handle], bytes]) -> int:
        """Advance to the version of `lineage` and return the number of files that were read."""
        with self._name_operator_in_errors():
            return self._advance(lineage, read)

    def _advance(self, lineage: Lineage, read: Callable[[Handle], bytes]) -> int:
        cached: dict[str, bytes] = {}
        reads = cached_bytes = 0

        def content(handle: Handle) -> bytes:
            nonlocal reads, cached_bytes
            data = cached.get(handle.name)
            if data is None:
                data = read(handle)
                reads += 1
                self._create_undeclared_tables(data)
                if cached_bytes + len(data) <= _CACHED_BYTES:
                    cached[handle.name] = data
                    cached_bytes += len(data)
            return data

        missing = self._missing(lineage, self.version)
        self._is_advanced = False  # if this opens the store, it is advanced below and must not be emptied before
        store = self._local_store() if lineage.handles else self._store
        in_memory = None if store is None else self._advance_store(store, lineage, content)
        self._is_advanced = True
        if missing is None:
            for table in self.tables.values():
                table.clear_live()
            if in_memory is None:
                in_memory = self._read_all(lineage, content, stored=False)
            for name, changes in in_memory:
                self.tables[name].apply(changes)
        else:
            for name, changes in self._read_deltas(missing, content):
                self.tables[name].apply(changes)
        self.version = self._version(lineage)
        return reads

    def _advance_store(
        self, store: Store, lineage: Lineage, content: Callable[[Handle], bytes]
    ) -> Iterable[tuple[str, Changes]] | None:
        """Advance the store to the version of `lineage` and read that version from now on.

        Other worker processes of this host share the store and may change its version at the same time, so this is
        tried several times. If the store is rebuilt, all files are read; the entries of tables in memory are returned,
        so that the files are not read a second time."""
        in_memory: list[tuple[str, Changes]] | None = None
        for _ in range(_STORE_ATTEMPTS):
            store.refresh()
            missing = self._missing(lineage, store.version)
            if missing == ():
                return in_memory
            if missing is None:
                stored = _StoredChanges(self._read_all(lineage, content), self.tables)
                store.apply(stored, self._version(lineage), replace=True)
                in_memory = stored.in_memory if stored.is_complete else None
            else:
                all_changes = self._read_deltas(missing, content)
                changed = ((name, changes) for name, changes in all_changes if self.tables[name].store is not None)
                store.apply(changed, self._version(lineage), replace=False)
        raise StoreContended(lineage.version)

    def _read_deltas(self, missing: Chain, content: Callable[[Handle], bytes]) -> Iterator[tuple[str, Changes]]:
        for handle in missing:
            data = content(handle)
            for name, _, changes in deltas.decode(data, self._schemas(), self.now):
                yield name, changes

    def _version(self, lineage: Lineage) -> str:
        """The version of a store that holds `lineage`.

        Of restored files, each subtask holds its own key groups only."""
        if lineage.own or not lineage.restored:
            return lineage.version
        return f"{lineage.version}@{self._subtask}/{self._parallelism}"

    def _missing(self, lineage: Lineage, version: str) -> Chain | None:
        """The files that a store at `version` lacks; None if it must be rebuilt."""
        if lineage.restored:
            begin = Lineage(restored=lineage.restored)
            if version == self._version(begin):
                return lineage.missing(begin.version)
            # this is the store of the subtask before the restore, which holds other key groups
            if version == begin.version:
                return None
        return lineage.missing(version)

    def _schemas(self, *, stored: bool = True) -> dict[str, TableSchema]:
        """The schemas of all tables, or without `stored` of those in memory."""
        return {name: table.schema for name, table in self.tables.items() if stored or table.store is None}

    def _read_all(
        self, lineage: Lineage, content: Callable[[Handle], bytes], *, stored: bool = True
    ) -> Iterator[tuple[str, Changes]]:
        """Read all files of a lineage in order, restricted to the entries of this subtask at this parallelism.

        Without `stored`, only entries of tables in memory are read."""
        split: dict[str, dict[str, Any]] = {}
        for index, (_, chain) in enumerate(lineage.restored):
            for name, redistribution, changes in self._read(
                select_files(chain, self.key_range), content, stored=stored
            ):
                if redistribution is Redistribution.KEYED:
                    groups = self.grouper.of_many(changes.keys)
                    inside = (groups >= self.key_range.start) & (groups <= self.key_range.end)
                    yield name, _filter(changes, inside.tolist())
                elif redistribution is Redistribution.BROADCAST:
                    if index == 0:
                        yield name, changes
                else:  # lists of several subtasks are merged: the index of the subtask keeps their keys apart
                    keys = [f"{index:05d}/{key}" for key in changes.keys]
                    if redistribution is Redistribution.UNION:
                        yield name, dataclasses.replace(changes, keys=keys)
                    elif redistribution is Redistribution.CUT:
                        yield name, self._restrict(name, dataclasses.replace(changes, keys=keys))
                    else:
                        _collect(split.setdefault(name, {}), keys, changes)
        for name, elements in split.items():
            keys = sorted(elements)[self._subtask :: self._parallelism]
            yield name, _put_all(keys, [elements[key] for key in keys])
        for name, _, changes in self._read(lineage.own, content, stored=stored):
            yield name, changes

    def _read(
        self, files: Iterable[Handle], content: Callable[[Handle], bytes], *, stored: bool
    ) -> Iterator[tuple[str, Redistribution, Changes]]:
        """The entries of files, oldest file first."""
        for handle in files:
            data = content(handle)
            yield from deltas.decode(data, self._schemas(stored=stored), self.now)

    def _restrict(self, name: str, changes: Changes) -> Changes:
        """The changes with each value restricted to the key groups of this subtask."""
        restrict = self._restrictions[name]
        pairs = zip(changes.values, changes.deleted, strict=True)
        values = [None if is_deleted else restrict(value, self.key_range) for value, is_deleted in pairs]
        deleted = [is_deleted or value is ABSENT for value, is_deleted in zip(values, changes.deleted, strict=True)]
        values = [None if is_deleted else value for value, is_deleted in zip(values, deleted, strict=True)]
        return dataclasses.replace(changes, values=values, deleted=deleted)

    def encode_delta(self) -> tuple[bytes, int] | None:
        """Return the changes of this epoch as a state file, and its number of entries; None if nothing changed."""
        changed = [(table.schema, table.changes()) for table in self.tables.values() if table.has_changes]
        if not changed:
            return None
        return deltas.encode(changed, compressed=self.compressed), sum(len(c) for _, c in changed)

    def end_epoch(self, version: str) -> None:
        """End the epoch whose last state file is `version`; the next epoch continues from it if it is accepted."""
        self.version = version
        self._is_advanced = False  # the next epoch may have files
        for table in self.tables.values():
            table.end_epoch(self._cache_limit)
        if self._store is not None:
            self._store.release()

    def abandon(self) -> None:
        """Drop all values in memory after an attempt failed; the next `advance` reads them again."""
        self.version = "abandoned"
        self._is_advanced = False
        for table in self.tables.values():
            table.clear_live()
        if self._store is not None:
            self._store.release()

    def encode_merged_delta(self, lineage: Lineage, read: Callable[[Handle], bytes], first: int) -> tuple[bytes, int]:
        """Merge the files from index `first` on of `lineage.own` with the changes of this epoch.

        Returns the state file and its number of entries."""
        entries: dict[str, dict[tuple[Any, Any], tuple[bool, Any]]] = {name: {} for name in self.tables}
        for name, changes in self._read_deltas(lineage.own[first:], read):
            _merge(entries[name], changes)
        for name, table in self.tables.items():
            _merge(entries[name], table.changes())
        tables = [(schema, _to_changes(entries[name])) for name, schema in self._schemas().items()]
        return deltas.encode(tables, compressed=self.compressed), sum(len(changes) for _, changes in tables)

    def close(self) -> None:
        """Close the local store."""
        if self._store is not None:
            self._store.close()


def _no_content(handle: Handle) -> bytes:
    raise AssertionError(handle)


def _merge(entries: dict[tuple[Any, Any], tuple[bool, Any]], changes: Changes) -> None:
    """Apply later changes to earlier ones."""
    for namespace, key, is_deleted, value in changes.rows():
        if isinstance(value, Patch):
            before = entries.get((namespace, key))
            if before is not None:
                earlier = before[1]
                value = value.merge_after(earlier) if isinstance(earlier, Patch) else value.apply_to(earlier)
        entries[namespace, key] = (is_deleted, value)


def _collect(elements: dict[str, Any], keys: list[str], changes: Changes) -> None:
    for key, is_deleted, value in zip(keys, changes.deleted, changes.values, strict=True):
        if is_deleted:
            elements.pop(key, None)
        else:
            elements[key] = value


def _put_all(keys: list[str], values: list[Any]) -> Changes:
    count = len(keys)
    return Changes([None] * count, keys, [False] * count, values)


def _filter(changes: Changes, keep: list[bool]) -> Changes:
    return dataclasses.replace(
        changes,
        namespaces=list(compress(changes.namespaces, keep)),
        keys=list(compress(changes.keys, keep)),
        deleted=list(compress(changes.deleted, keep)),
        values=list(compress(changes.values, keep)),
    )


def _to_changes(entries: dict[tuple[Any, Any], tuple[bool, Any]]) -> Changes:
    values = [value for _, value in entries.values()]
    return Changes(
        [namespace for namespace, _ in entries],
        [key for _, key in entries],
        [is_deleted for is_deleted, _ in entries.values()],
        values,
        patched=any(isinstance(value, Patch) for value in values),
    )


class _StoredChanges:
    """The changes of tables in the local store. Those of tables in memory are collected while this is iterated."""

    def __init__(self, changes: Iterable[tuple[str, Changes]], tables: dict[str, StateTable]) -> None:
        self.in_memory: list[tuple[str, Changes]] = []
        self.is_complete = False
        self._changes = changes
        self._tables = tables

    def __iter__(self) -> Iterator[tuple[str, Changes]]:
        for name, changes in self._changes:
            if self._tables[name].store is None:
                self.in_memory.append((name, changes))
            else:
                yield name, changes
        self.is_complete = True
