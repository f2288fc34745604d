"""What is in the state files of a checkpoint or savepoint, table by table.

Promises: entries are those a restored job would have, deletions applied, in whichever form they were written; nothing
is executed to read them.
Does not know: programs, views, who asks."""

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
_ROWS = 200_000  # entries of a slice, about
_BYTES = 64 << 20  # of a slice, about
Tables = list[tuple[TableSchema, Changes]]


class Slice:
    """One of `count` slices of a subtask's state, about as large as the others: some of its key groups, some chunks of
    many keys; what has no key is in the first."""

    def __init__(self, index: int, count: int, owned: KeyGroupRange, max_parallelism: int) -> None:
        self.index, self.count = index, count
        first, last = (owned.start + len(owned) * at // count for at in (index, index + 1))
        self._groups = KeyGroupRange(first, last - 1)
        self._max_parallelism = max_parallelism

    @classmethod
    def all_of(cls, operator: OperatorSnapshot, subtask: int) -> list[Slice]:
        """Slices that bound the memory to read one of them."""
        handles = operator.lineages[subtask].own
        owned = range_of(subtask, operator.parallelism, operator.max_parallelism)
        rows, size = sum(handle.rows for handle in handles), sum(handle.size for handle in handles)
        count = max(1, min(len(owned), max(-(-rows // _ROWS), -(-size // _BYTES))))
        return [cls(index, count, owned, operator.max_parallelism) for index in range(count)] if handles else []

    def needs(self, handle: Handle) -> bool:
        """Whether a file may hold entries of this slice."""
        part = handle.part
        return self.index == 0 or part is None or part.chunks or part.written.intersects(self._groups)

    def wants(self, schema: TableSchema, keys: Keys) -> np.ndarray[Any, Any]:
        """Which entries of a table are of this slice."""
        if schema.redistribution is Redistribution.KEYED:
            grouper = _grouper(self._max_parallelism)
            groups = grouper.of_column(keys) if isinstance(keys, pa.ChunkedArray) else grouper.of_many(keys)
            return np.logical_and(groups >= self._groups.start, groups <= self._groups.end)
        if schema.redistribution is Redistribution.CUT:
            drawn = (zlib.crc32(str(key).encode()) % self.count for key in keys)
            return np.equal(np.fromiter(drawn, np.int64, len(keys)), self.index)
        return np.full(len(keys), self.index == 0)


@functools.lru_cache(maxsize=1)
def _grouper(max_parallelism: int) -> KeyGrouper:
    return KeyGrouper(max_parallelism)


def schema_of(description: dict[str, Any]) -> TableSchema:
    """The schema that a file describes; a class that this program does not have is a row."""
    return TableSchema(
        description["name"],
        TypeInformation.type_from_json(description["key"]),
        TypeInformation.type_from_json(description["value"]),
        Redistribution(description["redistribution"]),
        str(description.get("kind", "")),
        bool(description.get("ttl")),
    )


def descriptions(operator: OperatorSnapshot, read: Read) -> dict[str, dict[str, Any]]:
    """Each table of an operator as the newest file that has it describes it."""
    found: dict[str, dict[str, Any]] = {}
    for lineage in operator.lineages:
        for handle in lineage.own:
            for entry in deltas.describe(read(handle)):
                found[str(entry["name"])] = entry
    return found


def tables(lineage: Lineage, read: Read, only: Collection[str] | None = None) -> Tables:
    """The live entries of one subtask, of all tables or of those named."""
    described: dict[str, dict[str, Any]] = {}
    for handle in lineage.own:
        for entry in deltas.describe(read(handle)):
            if only is None or entry["name"] in only:
                described[str(entry["name"])] = entry
    schemas = {name: schema_of(entry) for name, entry in described.items()}
    found: dict[str, list[Changes]] = {name: [] for name in schemas}
    for handle in lineage.own if schemas else ():
        for name, _, changes in deltas.decode(read(handle), schemas):
            found[name].append(changes)
    return [(schema, _merged(found[name])) for name, schema in schemas.items()]


def tables_of_slice(lineage: Lineage, read: Read, part: Slice) -> Tables:
    """The live entries of one slice of a subtask. Memory is needed for the entries of the slice, and one file."""
    handles = [handle for handle in lineage.own if part.needs(handle)]
    schemas: dict[str, TableSchema] = {}
    found: dict[str, dict[tuple[Any, Any], Any]] = {}
    for handle in handles:
        data = read(handle)
        schemas |= {str(entry["name"]): schema_of(entry) for entry in deltas.describe(data)}
        for name, changes in deltas.decode_some(data, schemas, part.wants):
            _apply(found.setdefault(name, {}), changes)
    return [(schemas[name], _as_changes(live)) for name, live in found.items()]


def joined(parts: Iterable[Changes]) -> Changes:
    """The entries of several subtasks as one."""
    spaces: list[Any] = []
    keys: list[Any] = []
    values: list[Any] = []
    for part in parts:
        spaces.extend(part.namespaces)
        keys.extend(part.keys)
        values.extend(part.values)
    return Changes(spaces, keys, [False] * len(keys), values)


def _merged(chain: list[Changes]) -> Changes:
    """What is left after all changes, oldest first."""
    if len(chain) == 1 and not chain[0].patched and not any(chain[0].deleted):
        return chain[0]
    live: dict[tuple[Any, Any], Any] = {}
    for changes in chain:
        _apply(live, changes)
    return _as_changes(live)


def _as_changes(live: dict[tuple[Any, Any], Any]) -> Changes:
    return Changes(
        [namespace for namespace, _ in live], [key for _, key in live], [False] * len(live), list(live.values())
    )


def _apply(live: dict[tuple[Any, Any], Any], changes: Changes) -> None:
    if not changes.patched and not any(changes.deleted):
        live.update(zip(zip(changes.namespaces, changes.keys, strict=True), changes.values, strict=True))
        return
    for namespace, key, gone, value in changes.rows():
        if gone:
            live.pop((namespace, key), None)
        else:
            at = namespace, key
            live[at] = value.on(live.get(at)) if isinstance(value, Patch) else value
