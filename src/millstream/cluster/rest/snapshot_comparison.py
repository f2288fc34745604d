"""Compares two snapshots of a job by operator and state.

Promises: a state with too many entries, or for which no time is left, is not compared; the result says so.
Does not know: requests, names of snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typing_extensions import TypedDict

from millstream.checkpoint import state_pages
from millstream.checkpoint.metadata import OperatorSnapshot
from millstream.checkpoint.savepoint import Snapshot
from millstream.checkpoint.state_pages import Position
from millstream.runtime.value_text import to_text
from millstream.state.deltas import Redistribution, TableSchema, display_name

_MOST_COMPARED = 100_000  # entries of one state


class ComparedState(TypedDict):
    """One state in two snapshots. Numbers are None if there are too many entries to compare."""

    state: str
    name: str
    before: int | None
    after: int | None
    added: int | None
    removed: int | None
    changed: int | None


class ComparedOperator(TypedDict):
    """One operator in two snapshots; sizes are None where it does not exist."""

    id: str
    name: str
    bytesBefore: int | None
    bytesAfter: int | None
    states: list[ComparedState]


def state_bytes(operator: OperatorSnapshot) -> int:
    """Return the size of the state files of an operator."""
    return sum(handle.size for lineage in operator.lineages for handle in lineage.handles)


def compare(old: Snapshot, new: Snapshot, is_over: Callable[[], bool]) -> tuple[list[ComparedOperator], bool]:
    """Compare all operators of two snapshots; also return whether all their states were compared in time."""
    before = {operator.operator: operator for operator in old.metadata.operators}
    after = {operator.operator: operator for operator in new.metadata.operators}
    compared: list[ComparedOperator] = []
    complete = True
    for operator_id in dict.fromkeys([*after, *before]):
        one, other = before.get(operator_id), after.get(operator_id)
        states, is_complete = _compare_states((one, old), (other, new), is_over)
        complete = complete and is_complete
        named = other or one
        assert named is not None
        compared.append(
            {
                "id": operator_id,
                "name": named.name,
                "bytesBefore": None if one is None else state_bytes(one),
                "bytesAfter": None if other is None else state_bytes(other),
                "states": states,
            }
        )
    return compared, complete


_Side = tuple[OperatorSnapshot | None, Snapshot]


def _compare_states(before: _Side, after: _Side, is_over: Callable[[], bool]) -> tuple[list[ComparedState], bool]:
    names: dict[str, None] = {}
    complete = True
    schemas: list[dict[str, TableSchema]] = []
    for operator, snapshot in (after, before):
        listed: list[TableSchema] = []
        if operator is not None and not is_over():
            listed, is_complete = state_pages.list_schemas(operator, snapshot.reader().read, is_over)
            complete = complete and is_complete
        schemas.append({schema.name: schema for schema in listed})
        names.update(dict.fromkeys(schemas[-1]))
    compared: list[ComparedState] = []
    for name in names:
        new = _read_all(after, schemas[0].get(name), is_over)
        old = _read_all(before, schemas[1].get(name), is_over)
        known = old is not None and new is not None
        complete = complete and known
        both = {} if old is None or new is None else {key: old[key] for key in old.keys() & new.keys()}
        compared.append(
            {
                "state": name,
                "name": display_name(name),
                "before": None if old is None else len(old),
                "after": None if new is None else len(new),
                "added": len(new) - len(both) if known and new is not None else None,
                "removed": len(old) - len(both) if known and old is not None else None,
                "changed": sum(_differ(both[key], new[key]) for key in both) if known and new is not None else None,
            }
        )
    return compared, complete


def _read_all(side: _Side, schema: TableSchema | None, is_over: Callable[[], bool]) -> dict[Any, Any] | None:
    """Return the entries of a state by key and window; None if there are too many."""
    operator, snapshot = side
    if operator is None or schema is None:
        return {}
    if is_over():
        return None
    read = snapshot.reader().read
    page = state_pages.read_page(operator, read, schema, Position(), _MOST_COMPARED, lambda _: True, is_over)
    if page.next is not None:
        return None
    if schema.redistribution in (Redistribution.SPLIT, Redistribution.UNION):
        return dict(enumerate(entry.value for entry in page.entries))
    return {(entry.namespace, entry.key): entry.value for entry in page.entries}


def _differ(one: Any, other: Any) -> bool:
    try:
        return bool(one != other)
    except Exception:  # raised by `__eq__` of classes of the program, and by arrays
        return to_text(one) != to_text(other)
