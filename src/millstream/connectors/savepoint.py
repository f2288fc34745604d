"""Keyed state of a checkpoint or savepoint as a source: one record for each key of an operator.

Promises: a key has one record, with its values in all named states, None where a state has no value for the key. A
task reads one slice of one subtask's state at a time. Reading executes no code of the savepoint and changes nothing.
Does not know: tables and their types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.checkpoint import state_tables
from millstream.checkpoint.metadata import OperatorSnapshot
from millstream.checkpoint.savepoint import Snapshot, open_snapshot
from millstream.connector.source import (
    Budget,
    ReaderContext,
    Records,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitRange,
)
from millstream.errors import UserError
from millstream.graph.stream_graph import operator_id
from millstream.state.deltas import Changes, Redistribution, TableSchema, display_name
from millstream.types.factory import TypeInformation

#: Converts the keys, and for each state its values (None for a key without a value), to records of the source's type.
ToRecords = Callable[[Sequence[Any], Sequence[Sequence[Any]]], list[Any]]


class NoKeyedState(UserError):
    """A savepoint does not have the operator, or the operator does not have the keyed state."""


def open_operator(path: str, uid: str | None, uid_hash: str | None) -> OperatorSnapshot:
    """Return an operator of a checkpoint or savepoint, by its uid or by the hash of its uid."""
    wanted = uid_hash if uid is None else operator_id(uid)
    operators = open_snapshot(path).metadata.operators
    for operator in operators:
        if operator.operator == wanted or (uid is not None and operator.uid == uid):
            return operator
    names = ", ".join(f"'{operator.uid}'" if operator.uid else operator.operator for operator in operators)
    searched_uid = f"with the uid '{uid}'" if uid is not None else f"with the uid hash {uid_hash}"
    message = f"the savepoint {path} has no operator {searched_uid}"
    raise NoKeyedState(message, hint=f"its operators are {names or 'none'}")


def describe_keyed_states(path: str, operator: OperatorSnapshot) -> dict[str, TableSchema]:
    """Return the keyed states of an operator by the names of their descriptors."""
    descriptions = state_tables.describe_tables(operator, open_snapshot(path).reader().read)
    schemas = [state_tables.parse_schema(description) for description in descriptions.values()]
    return {display_name(schema.name): schema for schema in schemas if schema.redistribution is Redistribution.KEYED}


@dataclass(frozen=True)
class KeyedStateSource(Source):
    """Reads the states `states`, full names of state tables, of the operator whose id is `operator`."""

    path: str
    operator: str
    states: tuple[str, ...]
    record_type: TypeInformation
    to_records: ToRecords

    def type_info(self) -> TypeInformation:
        """Return the type of the records."""
        return self.record_type

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator of the slices of each subtask's state."""
        return _Enumerator(open_operator(self.path, None, self.operator), state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader of slices."""
        return _Reader(self, context.block_records)


class _Enumerator(SplitEnumerator):
    """Plans one slice of each subtask at a time; a subtask of the operator is a split."""

    def __init__(self, operator: OperatorSnapshot, positions: Mapping[str, int] | None) -> None:
        self._slices: dict[str, int] = {}
        self._rows: dict[str, int] = {}
        for subtask, lineage in enumerate(operator.lineages):
            if slices := state_tables.Slice.split(operator, subtask):
                self._slices[str(subtask)] = len(slices)
                self._rows[str(subtask)] = sum(handle.rows for handle in lineage.own) // len(slices)
        self._positions: dict[str, int] = dict.fromkeys(self._slices, 0) if positions is None else dict(positions)

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan the next slice of subtasks, of one at least, until the budget is used."""
        planned: list[SplitRange] = []
        rows = 0
        for split in self.splits():
            if planned and rows >= budget.records:
                break
            start = self._positions[split]
            planned.append(SplitRange(split, start, start + 1, max(self._rows[split], 1)))
            self._positions[split] = start + 1
            rows += self._rows[split]
        return planned

    def snapshot(self) -> Any:
        """Return the index of the next slice of each subtask."""
        return dict(self._positions)

    def finished(self) -> bool:
        """Whether all slices were planned."""
        return not self.splits()

    def splits(self) -> list[str]:
        """Return the subtasks with slices that are not planned."""
        return [split for split, count in self._slices.items() if self._positions[split] < count]

    def skip(self, done: SplitRange) -> None:
        """Continue after a slice."""
        self._positions[done.split] = done.end

    def lag(self) -> int:
        """Return about how many entries are not read yet."""
        return sum(
            (count - self._positions[split]) * max(self._rows[split], 1) for split, count in self._slices.items()
        )


class _Reader(SourceReader):
    def __init__(self, source: KeyedStateSource, block: int) -> None:
        self._source, self._block = source, block
        self._snapshot: Snapshot = open_snapshot(source.path)
        self._read = self._snapshot.reader().read
        operators = self._snapshot.metadata.operators
        self._operator = next(operator for operator in operators if operator.operator == source.operator)

    def read(self, part: SplitRange) -> Iterator[Records]:
        """Yield a record for each key of the slice."""
        subtask = int(part.split)
        state_slice = state_tables.Slice.split(self._operator, subtask)[part.start]
        tables = state_tables.read_slice(self._operator.lineages[subtask], self._read, state_slice)
        by_state = {schema.name: _values_by_key(schema, changes) for schema, changes in tables}
        columns = [by_state.get(state, {}) for state in self._source.states]
        keys = list(dict.fromkeys(key for column in columns for key in column))
        for start in range(0, len(keys), self._block):
            block = keys[start : start + self._block]
            yield Records(self._source.to_records(block, [[column.get(key) for key in block] for column in columns]))


def _values_by_key(schema: TableSchema, changes: Changes) -> dict[Any, Any]:
    """Return the values of a state by key, without timestamps of a time to live; state in windows is left out."""
    values = {
        key: value
        for namespace, key, value in zip(changes.namespaces, changes.keys, changes.values, strict=True)
        if namespace is None
    }
    if not schema.ttl:
        return values
    match schema.kind:
        case "list":
            return {key: [element for element, _ in value] for key, value in values.items()}
        case "map":
            return {key: {name: element for name, (element, _) in value.items()} for key, value in values.items()}
    return {key: value for key, (value, _) in values.items()}
