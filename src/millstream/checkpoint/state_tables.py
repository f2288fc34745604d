"""Reads the state tables of a checkpoint or savepoint.

Promises: the entries are those that a restored job would have, after all deletions, in native and canonical form;
reading never executes code.
Does not know: programs, state views."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.checkpoint.metadata import OperatorSnapshot
from millstream.state import deltas
from millstream.state.deltas import Changes, Keys, Patch, Redistribution, TableSchema
from millstream.state.handles import Handle, Lineage
from millstream.state.key_groups import KeyGrouper, KeyGroupRange, range_of
from millstream.types.factory import TypeInformation

Read = Callable[[Handle], bytes]
_SLICE_ROWS = 200_000  # approximately
_SLICE_BYTES = 64 << 20  # bytes, approximately
Tables = list[tuple[TableSchema, Changes]]


class Slice:
    """One of `count` slices of a subtask's state, which have about the same size.

    A slice holds some of the key groups and some chunks of many keys; state without keys is in the first slice."""

    def __init__(self, index: int, count: int, key_range: KeyGroupRange, max_parallelism: int) -> None:
        self.index, self.count = index, count
        first, end = (key_range.start + len(key_range) * number // count for number in (index, index + 1))
        self._groups = KeyGroupRange(first, end - 1)
        self._max_parallelism = max_parallelism

    @classmethod
    def split(cls, operator: OperatorSnapshot, subtask: int) -> list[Slice]:
        """Split the state of a subtask into slices that are small enough to be in memory."""
        handles = operator.lineages[subtask].own
        key_range = range_of(subtask, operator.parallelism, operator.max_parallelism)
        rows, size = sum(handle.rows for handle in handles), sum(handle.size for handle in handles)
        count = max(1, min(len(key_range), max(-(-rows // _SLICE_ROWS), -(-size // _SLICE_BYTES))))
        return [cls(index, count, key_range, operator.max_parallelism) for index in range(count)] if handles else []

    def holds(self, key_group: int) -> bool:
        """Whether the entries of a key group are in this slice."""
        return self._groups.start <= key_group <= self._groups.end

    def needs_file(self, handle: Handle) -> bool:
        """Whether a file may hold entries of this slice."""
        part = handle.part
        return self.index == 0 or part is None or part.chunks or part.written.intersects(self._groups)

    def select(self, schema: TableSchema, keys: Keys) -> np.ndarray[Any, Any]:
        """Return a mask of the entries of a table that belong to this slice."""
        if schema.redistribution is Redistribution.KEYED:
            grouper = _grouper(self._max_parallelism)
            groups = grouper.of_column(keys) if isinstance(keys, pa.ChunkedArray) else grouper.of_many(keys)
            return np.logical_and(groups >= self._groups.start, groups <= self._groups.end)
        if schema.redistribution is Redistribution.CUT:
            slices = (zlib.crc32(str(key).encode()) % self.count for key in keys)
            return np.equal(np.fromiter(slices, np.int64, len(keys)), self.index)
        return np.full(len(keys), self.index == 0)


@functools.lru_cache(maxsize=1)
def _grouper(max_parallelism: int) -> KeyGrouper:
    return KeyGrouper(max_parallelism)


def parse_schema(description: dict[str, Any]) -> TableSchema:
    """Return the schema that a state file describes; a class that this program does not have is read as a Row."""
    return TableSchema(
        description["name"],
        TypeInformation.type_from_json(description["key"]),
        TypeInformation.type_from_json(description["value"]),
        Redistribution(description["redistribution"]),
        str(description.get("kind", "")),
        bool(description.get("ttl")),
    )


def describe_tables(operator: OperatorSnapshot, read: Read) -> dict[str, dict[str, Any]]:
    """Return the description of each table of an operator, from the newest file that has the table."""
    descriptions: dict[str, dict[str, Any]] = {}
    for lineage in operator.lineages:
        for handle in lineage.own:
            for entry in deltas.describe(read(handle)):
                descriptions[str(entry["name"])] = entry
    return descriptions


def read_tables(lineage: Lineage, read: Read, only: Collection[str] | None = None) -> Tables:
    """Read the current entries of one subtask, of all tables or of those in `only`."""
    descriptions: dict[str, dict[str, Any]] = {}
    for handle in lineage.own:
        for entry in deltas.describe(read(handle)):
            if only is None or entry["name"] in only:
                descriptions[str(entry["name"])] = entry
    schemas = {name: parse_schema(entry) for name, entry in descriptions.items()}
    by_table: dict[str, list[Changes]] = {name: [] for name in schemas}
    for handle in lineage.own if schemas else ():
        for name, _, changes in deltas.decode(read(handle), schemas):
            by_table[name].append(changes)
    return [(schema, _merge(by_table[name])) for name, schema in schemas.items()]


def read_slice(lineage: Lineage, read: Read, state_slice: Slice, only: Collection[str] | None = None) -> Tables:
    """Read the current entries of one slice of a subtask, of all tables or of those in `only`; this needs memory for
    the slice and one state file."""
    handles = [handle for handle in lineage.own if state_slice.needs_file(handle)]
    schemas: dict[str, TableSchema] = {}
    by_table: dict[str, dict[tuple[Any, Any], Any]] = {}
    for handle in handles:
        data = read(handle)
        for entry in deltas.describe(data):
            if only is None or entry["name"] in only:
                schemas[str(entry["name"])] = parse_schema(entry)
        for name, changes in deltas.decode_selected(data, schemas, state_slice.select):
            _apply(by_table.setdefault(name, {}), changes)
    return [(schemas[name], _to_changes(entries)) for name, entries in by_table.items()]


def concatenate(parts: Iterable[Changes]) -> Changes:
    """Concatenate the entries of several subtasks."""
    namespaces: list[Any] = []
    keys: list[Any] = []
    values: list[Any] = []
    for part in parts:
        namespaces.extend(part.namespaces)
        keys.extend(part.keys)
        values.extend(part.values)
    return Changes(namespaces, keys, [False] * len(keys), values)


def _merge(chain: list[Changes]) -> Changes:
    """Return the entries after all changes were applied, oldest first."""
    if len(chain) == 1 and not chain[0].patched and not any(chain[0].deleted):
        return chain[0]
    entries: dict[tuple[Any, Any], Any] = {}
    for changes in chain:
        _apply(entries, changes)
    return _to_changes(entries)


def _to_changes(entries: dict[tuple[Any, Any], Any]) -> Changes:
    return Changes(
        [namespace for namespace, _ in entries],
        [key for _, key in entries],
        [False] * len(entries),
        list(entries.values()),
    )


def _apply(entries: dict[tuple[Any, Any], Any], changes: Changes) -> None:
    if not changes.patched and not any(changes.deleted):
        entries.update(zip(zip(changes.namespaces, changes.keys, strict=True), changes.values, strict=True))
        return
    for namespace, key, is_deleted, value in changes.rows():
        scoped_key = namespace, key
        if is_deleted:
            entries.pop(scoped_key, None)
        else:
            entries[scoped_key] = value.apply_to(entries.get(scoped_key)) if isinstance(value, Patch) else value
