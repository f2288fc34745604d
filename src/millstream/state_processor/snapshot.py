"""Savepoints and checkpoints for reading: their operators, states and entries as tables.

Promises: every savepoint and checkpoint that this release can restore can be read, in any form; reading changes nothing
and executes no code from it.
Does not know: jobs, functions, how savepoints are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from millstream.checkpoint import state_tables
from millstream.checkpoint.export import to_arrow_table
from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.savepoint import Snapshot, open_snapshot
from millstream.errors import UserError
from millstream.serialization import codec
from millstream.state.deltas import Changes, Redistribution, TableSchema, display_name
from millstream.state.evolution import from_timed_type, read_timed
from millstream.state.key_groups import KeyGrouper
from millstream.state_processor.identifier import OperatorIdentifier
from millstream.types.factory import TypeInformation


class NoSuchOperator(UserError):
    """The savepoint or checkpoint does not have the operator."""

    def __init__(self, operator: object, have: Sequence[str]) -> None:
        super().__init__(f"the savepoint has no operator {operator}; its operators are {', '.join(have) or 'none'}")


class NoSuchState(UserError):
    """The operator does not have the state."""

    def __init__(self, state: str, operator: str, have: Sequence[str]) -> None:
        super().__init__(f"operator '{operator}' has no state '{state}'; its states are {', '.join(have) or 'none'}")


class Savepoint:
    """A savepoint or checkpoint, opened for reading.

    Args:
        path: The directory of a savepoint, or a chk-N directory of a job.
        classes: Classes whose instances untyped state may hold; objects of other classes are not read.

    Raises:
        NoSuchCheckpoint: If the path is neither a savepoint nor a checkpoint.

    Example:
        >>> import tempfile
        >>> from millstream.common import Types
        >>> from millstream.datastream.state import ValueStateDescriptor
        >>> from millstream.state_processor import Savepoint, SavepointWriter
        >>> writer = SavepointWriter.new_savepoint()
        >>> writer = writer.with_state("counts", ValueStateDescriptor("count", Types.LONG()), {"ann": 3, "bob": 4})
        >>> savepoint = Savepoint(writer.write(f"{tempfile.mkdtemp()}/savepoint"))
        >>> savepoint.operator("counts").state("count").entries()
        {'ann': 3, 'bob': 4}

    """

    def __init__(self, path: str, *, classes: Iterable[type] = ()) -> None:
        codec.declare(*classes)
        self._snapshot = open_snapshot(str(path))

    @property
    def path(self) -> str:
        """The directory of the savepoint or checkpoint."""
        return self._snapshot.path

    @property
    def metadata(self) -> CheckpointMetadata:
        """The metadata: operators with their state files, state of sources, staged output."""
        return self._snapshot.metadata

    def operators(self) -> list[SavepointOperator]:
        """Return all operators, in the order of the program.

        Returns:
            The operators.

        """
        return [SavepointOperator(self._snapshot, operator) for operator in self.metadata.operators]

    def operator(self, which: OperatorIdentifier | str) -> SavepointOperator:
        """Return one operator.

        Args:
            which: The identifier, uid or id of the operator, or its name if no other operator has the same name.

        Returns:
            The operator.

        Raises:
            NoSuchOperator: If there is no such operator, or several have this name.

        """
        operators = self.metadata.operators
        if isinstance(which, OperatorIdentifier):
            matches = [operator for operator in operators if operator.operator == which.operator]
        else:
            matches = (
                [operator for operator in operators if operator.uid == which]
                or [operator for operator in operators if operator.operator == which]
                or [operator for operator in operators if operator.name == which]
            )
        if len(matches) != 1:
            quoted = f"'{which}'" if isinstance(which, str) else which
            raise NoSuchOperator(quoted, [_display_name(operator) for operator in operators])
        return SavepointOperator(self._snapshot, matches[0])

    def __repr__(self) -> str:
        return f"Savepoint({self.path!r})"


class SavepointOperator:
    """One operator of a savepoint or checkpoint; see `Savepoint.operator`.

    Example:
        >>> import tempfile
        >>> from millstream.datastream.state import ValueStateDescriptor
        >>> from millstream.state_processor import SavepointWriter
        >>> count = ValueStateDescriptor("count", int)
        >>> writer = SavepointWriter.new_savepoint().with_state("counts", count, {"ann": 3})
        >>> savepoint = Savepoint(writer.write(f"{tempfile.mkdtemp()}/savepoint"))
        >>> [state.name for state in savepoint.operator("counts").states()]
        ['count']

    """

    def __init__(self, snapshot: Snapshot, operator: OperatorSnapshot) -> None:
        self._snapshot = snapshot
        self.snapshot = operator
        self.read = snapshot.reader().read
        self._table_descriptions: dict[str, dict[str, Any]] | None = None

    @property
    def name(self) -> str:
        """The name of the operator."""
        return self.snapshot.name

    @property
    def uid(self) -> str | None:
        """The uid of the operator, None if the program did not set one."""
        return self.snapshot.uid

    @property
    def identifier(self) -> OperatorIdentifier:
        """The identifier of the operator."""
        return OperatorIdentifier(self.snapshot.operator, self.snapshot.uid)

    def _descriptions(self) -> dict[str, dict[str, Any]]:
        if self._table_descriptions is None:
            self._table_descriptions = state_tables.describe_tables(self.snapshot, self.read)
        return self._table_descriptions

    def states(self) -> list[SavepointState]:
        """Return all states of the operator, including internal ones such as timers.

        Returns:
            The states.

        """
        return [
            SavepointState(self.snapshot, state_tables.parse_schema(entry), self.read)
            for entry in self._descriptions().values()
        ]

    def state(self, name: str) -> SavepointState:
        """Return one state.

        Args:
            name: The name of the state descriptor, or the full name.

        Returns:
            The state.

        Raises:
            NoSuchState: If the operator does not have the state.

        """
        states = self.states()
        for state in states:
            if name in (state.full_name, state.name):
                return state
        prefixed = [f"{prefix}/{name}" for prefix in ("window", "global", "trigger")]
        for state in states:
            if state.name in prefixed:
                return state
        raise NoSuchState(name, _display_name(self.snapshot), [f"'{state.name}'" for state in states])

    def __repr__(self) -> str:
        return f"SavepointOperator({_display_name(self.snapshot)})"


class SavepointState:
    """One state of one operator, with the entries of all subtasks; see `SavepointOperator.state`.

    Example:
        >>> import tempfile
        >>> from millstream.datastream.state import ValueStateDescriptor
        >>> from millstream.state_processor import SavepointWriter
        >>> count = ValueStateDescriptor("count", int)
        >>> writer = SavepointWriter.new_savepoint().with_state("counts", count, {"ann": 3})
        >>> savepoint = Savepoint(writer.write(f"{tempfile.mkdtemp()}/savepoint"))
        >>> state = savepoint.operator("counts").state("count")
        >>> len(state), state.to_arrow().num_rows
        (1, 1)

    """

    def __init__(self, operator: OperatorSnapshot, schema: TableSchema, read: state_tables.Read) -> None:
        self._operator, self.schema, self._read = operator, schema, read

    @property
    def full_name(self) -> str:
        """The unique name of the state table in the operator."""
        return self.schema.name

    @property
    def name(self) -> str:
        """The name of the state descriptor."""
        return display_name(self.schema.name)

    @property
    def kind(self) -> str:
        """The kind of state: value, list, map, reducing, aggregating, broadcast, operator-list, union.

        Empty if internal."""
        return self.schema.kind

    @property
    def key_type(self) -> TypeInformation:
        """The type of the keys."""
        return self.schema.key_type

    @property
    def value_type(self) -> TypeInformation:
        """The type of the values, without timestamps of the time to live."""
        if not self.schema.ttl:
            return self.schema.value_type
        return TypeInformation.type_from_json(dict(from_timed_type(self.schema.value_type.to_json(), self.kind)))

    def parts(self) -> list[Changes]:
        """Return the stored entries of each subtask.

        Returns:
            The entries; values of state with a time to live have their timestamps.

        """
        parts = []
        for lineage in self._operator.lineages:
            for _, changes in state_tables.read_tables(lineage, self._read, (self.full_name,)):
                parts.append(changes)
            if parts and self.schema.redistribution is Redistribution.BROADCAST:
                break  # all subtasks have the same entries
        return parts

    def entries(self) -> dict[Any, Any]:
        """Return the stored values by key, or for state in windows by (key, window).

        Returns:
            The entries; values of state with a time to live have their timestamps.

        """
        stored = state_tables.concatenate(self.parts())
        has_namespaces = any(namespace is not None for namespace in stored.namespaces)
        keys = zip(stored.keys, stored.namespaces, strict=True) if has_namespaces else stored.keys
        return dict(zip(keys, stored.values, strict=True))

    def to_arrow(self) -> pa.Table:
        """Return the entries as an Arrow table.

        Returns: A table with the columns `key` and `value`. State in windows has columns for the window before the
        key, state with a time to live has a column `last_update` in milliseconds. List state of an operator has the
        columns `subtask` and `value`.

        """
        schema, parts = self.schema, self.parts()
        if schema.redistribution in (Redistribution.SPLIT, Redistribution.UNION):
            subtasks = [subtask for subtask, part in enumerate(parts) for _ in part.keys]
            table = to_arrow_table(schema, state_tables.concatenate(parts), self._grouper())
            return pa.table({"subtask": pa.array(subtasks, pa.int32()), "value": table.column("value")})
        table = to_arrow_table(schema, state_tables.concatenate(parts), self._grouper())
        if "key_group" in table.column_names:
            table = table.drop_columns(["key_group"])
        return self._add_times(table) if schema.ttl else table.replace_schema_metadata(None)

    def _grouper(self) -> KeyGrouper:
        return KeyGrouper(self._operator.max_parallelism)

    def _add_times(self, table: pa.Table) -> pa.Table:
        stored = table.column("value").combine_chunks()
        array = stored.chunk(0) if isinstance(stored, pa.ChunkedArray) else stored
        column_index = table.column_names.index("value")
        with_values = table.set_column(column_index, "value", read_timed(array, self.kind))
        times = read_timed(array, self.kind, times=True)
        return with_values.append_column("last_update", times).replace_schema_metadata(None)

    def to_pandas(self) -> Any:
        """Return the entries as a pandas DataFrame.

        Returns:
            A DataFrame with the columns of `to_arrow`; values of map state are dictionaries.

        """
        return self.to_arrow().to_pandas(maps_as_pydicts="strict")

    def to_spark(self, session: Any) -> Any:
        """Return the entries as a Spark DataFrame.

        Args:
            session: The Spark session.

        Returns:
            A DataFrame with the columns of `to_arrow`.

        """
        return session.createDataFrame(self.to_arrow())

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts())

    def __repr__(self) -> str:
        return f"SavepointState({self.name!r}, {self.kind or 'internal'}, {self.value_type})"


def _display_name(operator: OperatorSnapshot) -> str:
    return operator.name if operator.uid is None else operator.uid
