"""Flink's SavepointWriter: a savepoint made from nothing, or from another with operators added, taken out, renamed and
their states replaced.

Promises: what it is made from stays as it is; the result is whole, in canonical form, and any job with the same uids
restores it.
Does not know: how records become state; bootstrap transformations do."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millstream.checkpoint import contents
from millstream.checkpoint.export import write_tables
from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.savepoint import publish
from millstream.checkpoint.storage import CheckpointStorage
from millstream.errors import UserError
from millstream.runtime.memory import SubtaskMemory
from millstream.state.backend import OperatorState
from millstream.state.deltas import Changes
from millstream.state.handles import Lineage
from millstream.state.key_groups import KeyGrouper, check_parallelism, range_of
from millstream.state.views import broadcast_view, kind_of, operator_list_view
from millstream.state_descriptors.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor, as_type
from millstream.state_processor.bootstrap import StateBootstrapTransformation
from millstream.state_processor.data import arrow, column, declared, keys_and_values
from millstream.state_processor.identifier import OperatorIdentifier
from millstream.state_processor.snapshot import NoSuchOperator, Savepoint, SavepointOperator
from millstream.types.factory import TypeInformation, Types


class OperatorThere(UserError):
    """An operator was to be added that is there."""

    def __init__(self, which: OperatorIdentifier) -> None:
        super().__init__(f"the savepoint has an operator {which} already", hint="remove_operator it first")


@dataclass
class _Draft:
    """An operator as it will be written."""

    snapshot: OperatorSnapshot
    origin: SavepointOperator | None = None
    added: contents.Tables = field(default_factory=list)
    dropped: set[str] = field(default_factory=set)


class SavepointWriter:
    """Gathers what a savepoint is to hold; `write` makes it."""

    def __init__(self, metadata: CheckpointMetadata, drafts: Iterable[_Draft], max_parallelism: int) -> None:
        self._metadata = metadata
        self._drafts = {draft.snapshot.operator: draft for draft in drafts}
        self._max_parallelism = max_parallelism

    @classmethod
    def new_savepoint(cls, max_parallelism: int = 128) -> SavepointWriter:
        """A savepoint from nothing. The job must have the same max parallelism (128, unless it says otherwise)."""
        check_parallelism(1, max_parallelism)
        empty = CheckpointMetadata(1, 1, 0, "0" * 32, "state processor", 0, 0, ())
        return cls(empty, (), max_parallelism)

    @classmethod
    def from_existing_savepoint(cls, path: str, *, classes: Iterable[type] = ()) -> SavepointWriter:
        """A savepoint like the one (or the checkpoint) at a path."""
        found = Savepoint(path, classes=classes)
        drafts = [_Draft(each.snapshot, each) for each in found.operators()]
        greatest = max((each.max_parallelism for each in found.metadata.operators), default=128)
        return cls(found.metadata, drafts, greatest)

    # ------------------------------------------------------------------------------------------------------ operators

    def with_operator(
        self, identifier: OperatorIdentifier | str, transformation: StateBootstrapTransformation
    ) -> SavepointWriter:
        """Add an operator with the state that a transformation makes."""
        which = OperatorIdentifier.of(identifier)
        if which.operator in self._drafts:
            raise OperatorThere(which)
        draft = self._draft(which)
        draft.added, memory = transformation.tables(draft.snapshot.name, draft.snapshot.max_parallelism)
        draft.snapshot = dataclasses.replace(draft.snapshot, memory=(memory,))
        return self

    def remove_operator(self, identifier: OperatorIdentifier | str) -> SavepointWriter:
        """Leave an operator out."""
        draft = self._existing(OperatorIdentifier.of(identifier))
        del self._drafts[draft.snapshot.operator]
        return self

    def change_operator_identifier(
        self, from_identifier: OperatorIdentifier | str, to_identifier: OperatorIdentifier | str
    ) -> SavepointWriter:
        """Give an operator another uid; everything that is its own goes with it."""
        old, new = OperatorIdentifier.of(from_identifier), OperatorIdentifier.of(to_identifier)
        draft = self._existing(old)
        if new.operator in self._drafts:
            raise OperatorThere(new)
        before = draft.snapshot.operator
        draft.snapshot = dataclasses.replace(draft.snapshot, operator=new.operator, uid=new.uid)
        self._drafts = {each.snapshot.operator: each for each in self._drafts.values()}

        def moved(parts: Any) -> dict[str, Any]:
            return {new.operator if name == before else name: part for name, part in parts.items()}

        metadata = self._metadata
        self._metadata = dataclasses.replace(
            metadata, sources=moved(metadata.sources), committables=moved(metadata.committables)
        )
        return self

    # --------------------------------------------------------------------------------------------------------- states

    def with_state(
        self,
        identifier: OperatorIdentifier | str,
        descriptor: StateDescriptor,
        data: Any,
        *,
        key: str | Sequence[str] = "key",
        value: str = "value",
        key_type: TypeInformation | Any = None,
    ) -> SavepointWriter:
        """Set a keyed state of an operator, new or there: columns `key` and `value` of a table, or a dictionary.

        Values are those the state gives: a list for list state, a dictionary for map state, the accumulator for
        aggregating state. With a time to live they count as written when the job starts from them."""
        draft = self._draft(OperatorIdentifier.of(identifier))
        keys, values = keys_and_values(data, key, value)
        state = self._state(draft, None if key_type is None else as_type(key_type))
        table = state.table(f"user/{descriptor.name}", descriptor.type_info, kind=kind_of(descriptor))
        table.put_many(None, keys, declared(descriptor.type_info, values))
        return self._put(draft, state)

    def with_broadcast_state(
        self,
        identifier: OperatorIdentifier | str,
        descriptor: MapStateDescriptor,
        data: Any,
        *,
        key: str = "key",
        value: str = "value",
    ) -> SavepointWriter:
        """Set a broadcast state of an operator."""
        draft = self._draft(OperatorIdentifier.of(identifier))
        keys, values = keys_and_values(data, key, value)
        state = self._state(draft, None)
        shaped = declared(descriptor.type_info.value_type, values)
        broadcast_view(descriptor, state).put_all(dict(zip(keys, shaped, strict=True)))
        return self._put(draft, state)

    def with_list_state(
        self,
        identifier: OperatorIdentifier | str,
        descriptor: ListStateDescriptor,
        data: Any,
        *,
        value: str = "value",
        union: bool = False,
    ) -> SavepointWriter:
        """Set a list state of an operator: its elements, or the column `value` of a table."""
        draft = self._draft(OperatorIdentifier.of(identifier))
        table = arrow(data)
        elements = list(data) if table is None else column(table, value)
        state = self._state(draft, None)
        operator_list_view(descriptor, state, union=union).update(declared(descriptor.type_info.elem_type, elements))
        if union:
            memory = tuple(dataclasses.replace(each, has_union_state=True) for each in draft.snapshot.memory)
            draft.snapshot = dataclasses.replace(draft.snapshot, memory=memory)
        return self._put(draft, state)

    def without_state(self, identifier: OperatorIdentifier | str, name: str) -> SavepointWriter:
        """Leave a state of an operator out."""
        draft = self._existing(OperatorIdentifier.of(identifier))
        if draft.origin is not None:
            draft.dropped.add(draft.origin.state(name).full_name)
        return self

    # ---------------------------------------------------------------------------------------------------------- write

    def write(self, path: str) -> str:
        """Make the savepoint in a directory that has none; its path."""
        place = str(Path(path.removeprefix("file://")).absolute())
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        target = CheckpointStorage(place)
        known = set(self._drafts)
        metadata = dataclasses.replace(
            self._metadata,
            sources={name: part for name, part in self._metadata.sources.items() if name in known},
            committables={name: part for name, part in self._metadata.committables.items() if name in known},
        )
        operators = (self._written(draft, target) for draft in self._drafts.values())
        return publish(metadata, operators, CheckpointStorage(str(Path(place).parent)), place).path

    def _written(self, draft: _Draft, target: CheckpointStorage) -> OperatorSnapshot:
        epoch, lineages = self._metadata.epoch, []
        for subtask in range(draft.snapshot.parallelism):
            found: contents.Tables = []
            if draft.origin is not None:
                kept = contents.tables(draft.origin.snapshot.lineages[subtask], draft.origin.read)
                found = [(schema, changes) for schema, changes in kept if schema.name not in draft.dropped]
            if subtask == 0:
                found = [*found, *draft.added]
            lineages.append(Lineage(write_tables(target, draft.snapshot, subtask, found, epoch)))
        return dataclasses.replace(draft.snapshot, lineages=tuple(lineages))

    def _draft(self, which: OperatorIdentifier) -> _Draft:
        found = self._drafts.get(which.operator)
        if found is None:
            name = which.uid or which.operator
            memory = (SubtaskMemory(),)
            snapshot = OperatorSnapshot(which.operator, name, which.uid, 1, self._max_parallelism, (Lineage(),), memory)
            found = self._drafts[which.operator] = _Draft(snapshot)
        return found

    def _existing(self, which: OperatorIdentifier) -> _Draft:
        found = self._drafts.get(which.operator)
        if found is None:
            have = [each.snapshot.uid or each.snapshot.name for each in self._drafts.values()]
            raise NoSuchOperator(which, have)
        return found

    def _state(self, draft: _Draft, key_type: TypeInformation | None) -> OperatorState:
        most = draft.snapshot.max_parallelism
        return OperatorState(range_of(0, 1, most), 0, 1, KeyGrouper(most), key_type or Types.PICKLED_BYTE_ARRAY())

    def _put(self, draft: _Draft, state: OperatorState) -> SavepointWriter:
        made: list[tuple[Any, Changes]] = [(table.schema, table.everything()) for table in state.tables.values()]
        names = {schema.name for schema, _ in made}
        draft.dropped |= names
        draft.added = [each for each in draft.added if each[0].name not in names] + made
        return self
