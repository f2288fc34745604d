"""Flink's SavepointWriter: creates a savepoint, or a modified copy of one.

Promises: the original savepoint is not changed; the new one is complete and in canonical form, and any job with the
same uids can be started from it.
Does not know: how records become state; bootstrap transformations do."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millstream.checkpoint import state_tables
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
from millstream.state.views import create_broadcast_view, create_operator_list_view, state_kind
from millstream.state_descriptors.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor, as_type
from millstream.state_processor.bootstrap import StateBootstrapTransformation
from millstream.state_processor.data import column_values, convert_values, split_keys_and_values, to_arrow
from millstream.state_processor.identifier import OperatorIdentifier
from millstream.state_processor.snapshot import NoSuchOperator, Savepoint, SavepointOperator
from millstream.types.factory import TypeInformation, Types


class OperatorExists(UserError):
    """The savepoint already has an operator with this identifier."""

    def __init__(self, which: OperatorIdentifier) -> None:
        super().__init__(f"the savepoint already has an operator {which}", hint="call remove_operator first")


@dataclass
class _Draft:
    """An operator of the new savepoint: the original state, and the tables that are added and dropped."""

    snapshot: OperatorSnapshot
    origin: SavepointOperator | None = None
    added: state_tables.Tables = field(default_factory=list)
    dropped: set[str] = field(default_factory=set)


class SavepointWriter:
    """Collects the operators and states of a new savepoint and writes it.

    All methods except `write` return the writer itself, so that calls can be chained.

    Example:
        >>> import tempfile
        >>> from millstream.common import Types
        >>> from millstream.datastream.state import ValueStateDescriptor
        >>> from millstream.state_processor import Savepoint, SavepointWriter
        >>> count = ValueStateDescriptor("count", Types.LONG())
        >>> directory = tempfile.mkdtemp()
        >>> first = SavepointWriter.new_savepoint().with_state("counts", count, {"ann": 3}).write(f"{directory}/first")
        >>> writer = SavepointWriter.from_existing_savepoint(first)
        >>> second = writer.change_operator_identifier("counts", "totals").write(f"{directory}/second")
        >>> Savepoint(second).operator("totals").state("count").entries()
        {'ann': 3}

    """

    def __init__(self, metadata: CheckpointMetadata, drafts: Iterable[_Draft], max_parallelism: int) -> None:
        self._metadata = metadata
        self._drafts = {draft.snapshot.operator: draft for draft in drafts}
        self._max_parallelism = max_parallelism

    @classmethod
    def new_savepoint(cls, max_parallelism: int = 128) -> SavepointWriter:
        """Start with an empty savepoint.

        Args:
            max_parallelism: The max parallelism of its operators. The job must have the same; 128 is its default.

        Returns:
            The writer.

        Raises:
            BadParallelism: If the max parallelism is out of range.

        """
        check_parallelism(1, max_parallelism)
        empty = CheckpointMetadata(1, 1, 0, "0" * 32, "state processor", 0, 0, ())
        return cls(empty, (), max_parallelism)

    @classmethod
    def from_existing_savepoint(cls, path: str, *, classes: Iterable[type] = ()) -> SavepointWriter:
        """Start with a copy of a savepoint or checkpoint.

        Args:
            path: The directory of a savepoint, or a chk-N directory of a job.
            classes: Classes whose instances untyped state may hold; objects of other classes cannot be copied.

        Returns:
            The writer.

        Raises:
            NoSuchCheckpoint: If the path is neither a savepoint nor a checkpoint.

        """
        original = Savepoint(path, classes=classes)
        drafts = [_Draft(operator.snapshot, operator) for operator in original.operators()]
        max_parallelism = max((operator.max_parallelism for operator in original.metadata.operators), default=128)
        return cls(original.metadata, drafts, max_parallelism)

    # ------------------------------------------------------------------------------------------------------ operators

    def with_operator(
        self, identifier: OperatorIdentifier | str, transformation: StateBootstrapTransformation
    ) -> SavepointWriter:
        """Add an operator with the state that a bootstrap transformation creates.

        Args:
            identifier: The identifier or uid of the operator.
            transformation: The transformation; see `OperatorTransformation`.

        Returns:
            The writer.

        Raises:
            OperatorExists: If the savepoint already has the operator.

        """
        operator_identifier = OperatorIdentifier.of(identifier)
        if operator_identifier.operator in self._drafts:
            raise OperatorExists(operator_identifier)
        draft = self._draft(operator_identifier)
        draft.added, memory = transformation.tables(draft.snapshot.name, draft.snapshot.max_parallelism)
        draft.snapshot = dataclasses.replace(draft.snapshot, memory=(memory,))
        return self

    def remove_operator(self, identifier: OperatorIdentifier | str) -> SavepointWriter:
        """Remove an operator with its state.

        Args:
            identifier: The identifier or uid of the operator.

        Returns:
            The writer.

        Raises:
            NoSuchOperator: If the savepoint does not have the operator.

        """
        draft = self._existing(OperatorIdentifier.of(identifier))
        del self._drafts[draft.snapshot.operator]
        return self

    def change_operator_identifier(
        self, from_identifier: OperatorIdentifier | str, to_identifier: OperatorIdentifier | str
    ) -> SavepointWriter:
        """Change the uid of an operator, with its state, source positions and staged output.

        Args:
            from_identifier: The identifier or uid of the operator.
            to_identifier: The new identifier or uid.

        Returns:
            The writer.

        Raises:
            NoSuchOperator: If the savepoint does not have the operator.
            OperatorExists: If the savepoint already has an operator with the new identifier.

        """
        old, new = OperatorIdentifier.of(from_identifier), OperatorIdentifier.of(to_identifier)
        draft = self._existing(old)
        if new.operator in self._drafts:
            raise OperatorExists(new)
        before = draft.snapshot.operator
        draft.snapshot = dataclasses.replace(draft.snapshot, operator=new.operator, uid=new.uid)
        self._drafts = {other.snapshot.operator: other for other in self._drafts.values()}

        def rename(by_operator: Any) -> dict[str, Any]:
            return {new.operator if name == before else name: value for name, value in by_operator.items()}

        metadata = self._metadata
        self._metadata = dataclasses.replace(
            metadata, sources=rename(metadata.sources), committables=rename(metadata.committables)
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
        """Set a keyed state of an operator; an operator or a state that does not exist is added.

        Args:
            identifier: The identifier or uid of the operator.
            descriptor: The descriptor of the state.
            data: The values by key: a dictionary, an Arrow table, a pandas or a Spark DataFrame. A value is a list for
                list state, a dictionary for map state, the accumulator for aggregating state. Values of state with a
                time to live count as written when the job starts from the savepoint.
            key: The column of the key; several columns form a tuple.
            value: The column of the value.
            key_type: The type of the key in the job, if it is declared there.

        Returns:
            The writer.

        Raises:
            NotTabular: If the data is neither a dictionary nor a table.
            NoSuchColumn: If the table does not have a column.

        """
        draft = self._draft(OperatorIdentifier.of(identifier))
        keys, values = split_keys_and_values(data, key, value)
        state = self._state(draft, None if key_type is None else as_type(key_type))
        table = state.table(f"user/{descriptor.name}", descriptor.type_info, kind=state_kind(descriptor))
        table.put_many(None, keys, convert_values(descriptor.type_info, values))
        return self._add_tables(draft, state)

    def with_broadcast_state(
        self,
        identifier: OperatorIdentifier | str,
        descriptor: MapStateDescriptor,
        data: Any,
        *,
        key: str = "key",
        value: str = "value",
    ) -> SavepointWriter:
        """Set a broadcast state of an operator; an operator or a state that does not exist is added.

        Args:
            identifier: The identifier or uid of the operator.
            descriptor: The descriptor of the broadcast state.
            data: The entries: a dictionary, an Arrow table, a pandas or a Spark DataFrame.
            key: The column of the keys.
            value: The column of the values.

        Returns:
            The writer.

        Raises:
            NotTabular: If the data is neither a dictionary nor a table.
            NoSuchColumn: If the table does not have a column.

        """
        draft = self._draft(OperatorIdentifier.of(identifier))
        keys, values = split_keys_and_values(data, key, value)
        state = self._state(draft, None)
        values = convert_values(descriptor.type_info.value_type, values)
        create_broadcast_view(descriptor, state).put_all(dict(zip(keys, values, strict=True)))
        return self._add_tables(draft, state)

    def with_list_state(
        self,
        identifier: OperatorIdentifier | str,
        descriptor: ListStateDescriptor,
        data: Any,
        *,
        value: str = "value",
        union: bool = False,
    ) -> SavepointWriter:
        """Set a list state of an operator; an operator or a state that does not exist is added.

        Args:
            identifier: The identifier or uid of the operator.
            descriptor: The descriptor of the list state.
            data: The elements: an iterable, an Arrow table, a pandas or a Spark DataFrame.
            value: The column of the elements.
            union: Whether it is a union list state, of which every subtask gets all elements.

        Returns:
            The writer.

        Raises:
            NoSuchColumn: If the table does not have the column.

        """
        draft = self._draft(OperatorIdentifier.of(identifier))
        table = to_arrow(data)
        elements = list(data) if table is None else column_values(table, value)
        state = self._state(draft, None)
        create_operator_list_view(descriptor, state, union=union).update(
            convert_values(descriptor.type_info.elem_type, elements)
        )
        if union:
            memory = tuple(dataclasses.replace(subtask, has_union_state=True) for subtask in draft.snapshot.memory)
            draft.snapshot = dataclasses.replace(draft.snapshot, memory=memory)
        return self._add_tables(draft, state)

    def without_state(self, identifier: OperatorIdentifier | str, name: str) -> SavepointWriter:
        """Remove a state of an operator.

        Args:
            identifier: The identifier or uid of the operator.
            name: The name of the state.

        Returns:
            The writer.

        Raises:
            NoSuchOperator: If the savepoint does not have the operator.
            NoSuchState: If the operator does not have the state.

        """
        draft = self._existing(OperatorIdentifier.of(identifier))
        if draft.origin is not None:
            draft.dropped.add(draft.origin.state(name).full_name)
        return self

    # ---------------------------------------------------------------------------------------------------------- write

    def write(self, path: str) -> str:
        """Write the savepoint.

        Args:
            path: A directory that does not hold a savepoint yet; it is created.

        Returns:
            The absolute path of the savepoint.

        Raises:
            SavepointExists: If the directory already holds a savepoint.

        """
        directory = str(Path(path.removeprefix("file://")).absolute())
        Path(directory).parent.mkdir(parents=True, exist_ok=True)
        target = CheckpointStorage(directory)
        operator_ids = set(self._drafts)
        metadata = dataclasses.replace(
            self._metadata,
            sources={name: state for name, state in self._metadata.sources.items() if name in operator_ids},
            committables={name: staged for name, staged in self._metadata.committables.items() if name in operator_ids},
        )
        operators = (self._write_operator(draft, target) for draft in self._drafts.values())
        return publish(metadata, operators, CheckpointStorage(str(Path(directory).parent)), directory).path

    def _write_operator(self, draft: _Draft, target: CheckpointStorage) -> OperatorSnapshot:
        epoch, lineages = self._metadata.epoch, []
        for subtask in range(draft.snapshot.parallelism):
            tables: state_tables.Tables = []
            if draft.origin is not None:
                original = state_tables.read_tables(draft.origin.snapshot.lineages[subtask], draft.origin.read)
                tables = [(schema, changes) for schema, changes in original if schema.name not in draft.dropped]
            if subtask == 0:
                tables = [*tables, *draft.added]
            lineages.append(Lineage(write_tables(target, draft.snapshot, subtask, tables, epoch)))
        return dataclasses.replace(draft.snapshot, lineages=tuple(lineages))

    def _draft(self, which: OperatorIdentifier) -> _Draft:
        draft = self._drafts.get(which.operator)
        if draft is None:
            name = which.uid or which.operator
            memory = (SubtaskMemory(),)
            snapshot = OperatorSnapshot(which.operator, name, which.uid, 1, self._max_parallelism, (Lineage(),), memory)
            draft = self._drafts[which.operator] = _Draft(snapshot)
        return draft

    def _existing(self, which: OperatorIdentifier) -> _Draft:
        draft = self._drafts.get(which.operator)
        if draft is None:
            names = [other.snapshot.uid or other.snapshot.name for other in self._drafts.values()]
            raise NoSuchOperator(which, names)
        return draft

    def _state(self, draft: _Draft, key_type: TypeInformation | None) -> OperatorState:
        groups = draft.snapshot.max_parallelism
        return OperatorState(range_of(0, 1, groups), 0, 1, KeyGrouper(groups), key_type or Types.PICKLED_BYTE_ARRAY())

    def _add_tables(self, draft: _Draft, state: OperatorState) -> SavepointWriter:
        tables: list[tuple[Any, Changes]] = [(table.schema, table.entries()) for table in state.tables.values()]
        names = {schema.name for schema, _ in tables}
        draft.dropped |= names
        draft.added = [table for table in draft.added if table[0].name not in names] + tables
        return self
