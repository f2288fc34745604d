"""A checkpoint or savepoint as something to look into: operators, their states, tables.

Promises: reads every form of every snapshot that this release restores, and changes none; what is in it is data,
nothing of it is executed.
Does not know: jobs, functions, how snapshots are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from millstream.checkpoint import contents
from millstream.checkpoint.export import as_table
from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.savepoint import Snapshot, open_snapshot
from millstream.errors import UserError
from millstream.serialization import codec
from millstream.state.deltas import Changes, Redistribution, TableSchema, shown_name
from millstream.state.evolution import unstamped, without_times
from millstream.state.key_groups import KeyGrouper
from millstream.state_processor.identifier import OperatorIdentifier
from millstream.types.factory import TypeInformation


class NoSuchOperator(UserError):
    """The snapshot has no such operator."""

    def __init__(self, wanted: object, have: Sequence[str]) -> None:
        super().__init__(f"the snapshot has no operator {wanted}; it has {', '.join(have) or 'none'}")


class NoSuchState(UserError):
    """The operator has no such state."""

    def __init__(self, wanted: str, operator: str, have: Sequence[str]) -> None:
        super().__init__(f"operator '{operator}' has no state '{wanted}'; it has {', '.join(have) or 'none'}")


class Savepoint:
    """A savepoint, or a checkpoint, at a path.

    `classes` are those whose objects untyped state may hold: data of a class that is not declared is not read."""

    def __init__(self, path: str, *, classes: Iterable[type] = ()) -> None:
        codec.declare(*classes)
        self._snapshot = open_snapshot(str(path))

    @property
    def path(self) -> str:
        """Where it is."""
        return self._snapshot.path

    @property
    def metadata(self) -> CheckpointMetadata:
        """All it says of itself: positions of sources, watermarks, files."""
        return self._snapshot.metadata

    def operators(self) -> list[SavepointOperator]:
        """Every operator, in the order of the program."""
        return [SavepointOperator(self._snapshot, each) for each in self.metadata.operators]

    def operator(self, which: OperatorIdentifier | str) -> SavepointOperator:
        """An operator by identifier, uid, id or, if only one has it, name."""
        found = self.metadata.operators
        if isinstance(which, OperatorIdentifier):
            chosen = [each for each in found if each.operator == which.operator]
        else:
            chosen = [each for each in found if each.uid == which] or [each for each in found if each.operator == which]
            chosen = chosen or [each for each in found if each.name == which]
        if len(chosen) != 1:
            raise NoSuchOperator(f"'{which}'" if isinstance(which, str) else which, [_called(each) for each in found])
        return SavepointOperator(self._snapshot, chosen[0])

    def __repr__(self) -> str:
        return f"Savepoint({self.path!r})"


class SavepointOperator:
    """One operator of a snapshot."""

    def __init__(self, snapshot: Snapshot, operator: OperatorSnapshot) -> None:
        self._snapshot = snapshot
        self.snapshot = operator
        self.read = snapshot.reader().read
        self._described: dict[str, dict[str, Any]] | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.snapshot.name

    @property
    def uid(self) -> str | None:
        """Its uid, if the program gave one."""
        return self.snapshot.uid

    @property
    def identifier(self) -> OperatorIdentifier:
        """What it is found by."""
        return OperatorIdentifier(self.snapshot.operator, self.snapshot.uid)

    def _descriptions(self) -> dict[str, dict[str, Any]]:
        if self._described is None:
            self._described = contents.descriptions(self.snapshot, self.read)
        return self._described

    def states(self) -> list[SavepointState]:
        """Every state, what the operator keeps for itself included."""
        return [
            SavepointState(self.snapshot, contents.schema_of(entry), self.read)
            for entry in self._descriptions().values()
        ]

    def state(self, name: str) -> SavepointState:
        """A state by the name its descriptor has, or by its full name."""
        states = self.states()
        for state in states:
            if name in (state.full_name, state.name):
                return state
        places = [f"{place}/{name}" for place in ("window", "global", "trigger")]
        for state in states:
            if state.name in places:
                return state
        raise NoSuchState(name, _called(self.snapshot), [f"'{state.name}'" for state in states])

    def __repr__(self) -> str:
        return f"SavepointOperator({_called(self.snapshot)})"


class SavepointState:
    """One state of one operator, over all its subtasks."""

    def __init__(self, operator: OperatorSnapshot, schema: TableSchema, read: contents.Read) -> None:
        self._operator, self.schema, self._read = operator, schema, read

    @property
    def full_name(self) -> str:
        """Its name among all that the operator keeps."""
        return self.schema.name

    @property
    def name(self) -> str:
        """The name of its descriptor."""
        return shown_name(self.schema.name)

    @property
    def kind(self) -> str:
        """value, list, map, reducing, aggregating, broadcast, operator-list or union; empty for an operator's own."""
        return self.schema.kind

    @property
    def key_type(self) -> TypeInformation:
        """The type of the keys."""
        return self.schema.key_type

    @property
    def value_type(self) -> TypeInformation:
        """The type of the values, without their times."""
        if not self.schema.ttl:
            return self.schema.value_type
        return TypeInformation.type_from_json(dict(unstamped(self.schema.value_type.to_json(), self.kind)))

    def parts(self) -> list[Changes]:
        """The stored entries of each subtask, as they are."""
        found = []
        for lineage in self._operator.lineages:
            for _, changes in contents.tables(lineage, self._read, (self.full_name,)):
                found.append(changes)
            if found and self.schema.redistribution is Redistribution.BROADCAST:
                break  # the others have the same
        return found

    def entries(self) -> dict[Any, Any]:
        """Stored values by key, or by (key, window) where there are windows."""
        found = contents.joined(self.parts())
        spaces = any(namespace is not None for namespace in found.namespaces)
        keys = zip(found.keys, found.namespaces, strict=True) if spaces else found.keys
        return dict(zip(keys, found.values, strict=True))

    def to_arrow(self) -> pa.Table:
        """A table: the key, the window if there is one, the value, and with a time to live its time (`last_update`)."""
        schema, parts = self.schema, self.parts()
        if schema.redistribution in (Redistribution.SPLIT, Redistribution.UNION):
            subtasks = [subtask for subtask, part in enumerate(parts) for _ in part.keys]
            table = as_table(schema, contents.joined(parts), self._grouper())
            return pa.table({"subtask": pa.array(subtasks, pa.int32()), "value": table.column("value")})
        table = as_table(schema, contents.joined(parts), self._grouper())
        if "key_group" in table.column_names:
            table = table.drop_columns(["key_group"])
        return self._with_times(table) if schema.ttl else table.replace_schema_metadata(None)

    def _grouper(self) -> KeyGrouper:
        return KeyGrouper(self._operator.max_parallelism)

    def _with_times(self, table: pa.Table) -> pa.Table:
        stored = table.column("value").combine_chunks()
        array = stored.chunk(0) if isinstance(stored, pa.ChunkedArray) else stored
        place = table.column_names.index("value")
        plain = table.set_column(place, "value", without_times(array, self.kind))
        times = without_times(array, self.kind, times=True)
        return plain.append_column("last_update", times).replace_schema_metadata(None)

    def to_pandas(self) -> Any:
        """`to_arrow` as a pandas DataFrame; maps are dictionaries."""
        return self.to_arrow().to_pandas(maps_as_pydicts="strict")

    def to_spark(self, session: Any) -> Any:
        """`to_arrow` as a DataFrame of a Spark session."""
        return session.createDataFrame(self.to_arrow())

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts())

    def __repr__(self) -> str:
        return f"SavepointState({self.name!r}, {self.kind or 'internal'}, {self.value_type})"


def _called(operator: OperatorSnapshot) -> str:
    return operator.name if operator.uid is None else operator.uid
