"""What is in the state files of a checkpoint or savepoint, table by table.

Promises: entries are those a restored job would have, deletions applied, in whichever form they were written; nothing
is executed to read them.
Does not know: programs, views, who asks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from millstream.checkpoint.metadata import OperatorSnapshot
from millstream.model.types import TypeInformation
from millstream.state import deltas
from millstream.state.deltas import Changes, Patch, Redistribution, TableSchema
from millstream.state.handles import Handle, Lineage

Read = Callable[[Handle], bytes]
Tables = list[tuple[TableSchema, Changes]]


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
