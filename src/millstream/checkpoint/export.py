"""Export of a checkpoint's state into a savepoint, as tasks that can run on executors.

Promises: a task can be pickled and sent to an executor, where it reads and checks state files, writes files of the
savepoint and returns their handles, so no state passes through the driver. A task can be repeated, also concurrently.
It needs memory for a slice of one subtask's state and one state file. Before the savepoint is published, the driver
checks that it sees all files.
Does not know: where tasks run, when the savepoint is published."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.checkpoint.metadata import NATIVE, CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.state_files import StateReader
from millstream.checkpoint.state_tables import Slice, Tables, read_slice
from millstream.checkpoint.storage import CheckpointStorage
from millstream.errors import ExternalError
from millstream.runtime.memory import SubtaskMemory
from millstream.serialization import codec
from millstream.state import canonical, deltas
from millstream.state.deltas import Redistribution, TableSchema
from millstream.state.handles import Handle, Lineage
from millstream.state.key_groups import KeyGrouper

ExportTask = Callable[[], list[dict[str, Any]]]  # writes some files of a savepoint; returns their handles as JSON
RunTasks = Callable[[Sequence[ExportTask]], list[list[dict[str, Any]]]]

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_NATIVE_TASK_BYTES = 64 << 20  # of state files that one task links or copies, approximately


class SavepointNotShared(ExternalError):
    """An executor wrote a file of the savepoint that the driver does not see."""

    hint = "write the savepoint to a directory that the driver and all executors see"

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name
        super().__init__(f"an executor wrote the file {name} of the savepoint {path}, but the driver does not see it")


def run_locally(tasks: Sequence[ExportTask]) -> list[list[dict[str, Any]]]:
    """Run export tasks in this process."""
    return [task() for task in tasks]


@dataclass(frozen=True)
class CanonicalTask:
    """Writes one slice of one subtask as Parquet files."""

    source: CheckpointStorage
    target: CheckpointStorage
    operator: OperatorSnapshot  # contains only the state of this subtask
    subtask: int
    slice: Slice
    epoch: int
    classes: tuple[type, ...]

    def __call__(self) -> list[dict[str, Any]]:
        """Write the tables of the slice."""
        with codec.using(codec.Classes(self.classes)):
            lineage = self.operator.lineages[self.subtask]
            tables = read_slice(lineage, StateReader(self.source).read, self.slice)
            part = f"{self.subtask}-{self.slice.index}" if self.slice.count > 1 else str(self.subtask)
            handles = write_tables(self.target, self.operator, self.subtask, tables, self.epoch, part)
        return [handle.to_json() for handle in handles]


@dataclass(frozen=True)
class NativeTask:
    """Links or copies some state files."""

    source: CheckpointStorage
    target: CheckpointStorage
    handles: tuple[Handle, ...]

    def __call__(self) -> list[dict[str, Any]]:
        """Link or copy the files."""
        files = StateReader(self.source)
        return [self._link(handle, files).to_json() for handle in self.handles]

    def _link(self, handle: Handle, files: StateReader) -> Handle:
        name = f"state/{handle.sha256[:8]}-{os.path.basename(handle.name)}"
        if handle.pack:
            stored = self.target.write(name, files.read(handle))
        else:
            stored = self.target.link(name, self.source, handle)
        return dataclasses.replace(handle, name=stored.name, pack="", offset=0)


class Export:
    """A savepoint that is being written: its tasks, and the operators that result from them."""

    def __init__(self, metadata: CheckpointMetadata, source: CheckpointStorage, path: str, form: str) -> None:
        self.metadata, self.source, self.path, self.form = metadata, source, path, form
        self._target = source.of(path, "")
        self._subtasks: list[tuple[int, int]] = []  # the operator index and the subtask of each task, in canonical form
        self.tasks: list[ExportTask] = list(self._native_tasks() if form == NATIVE else self._canonical_tasks())

    def _native_tasks(self) -> Iterable[ExportTask]:
        handles: list[Handle] = []
        for handle in self.metadata.handles:
            handles.append(handle)
            if sum(member.size for member in handles) >= _NATIVE_TASK_BYTES:
                yield NativeTask(self.source, self._target, tuple(handles))
                handles = []
        if handles:
            yield NativeTask(self.source, self._target, tuple(handles))

    def _canonical_tasks(self) -> Iterable[ExportTask]:
        classes, epoch = tuple(codec.declared()), self.metadata.epoch
        for index, operator in enumerate(self.metadata.operators):
            for subtask, lineage in enumerate(operator.lineages):
                empty = (Lineage(),) * operator.parallelism
                with_subtask_only = dataclasses.replace(
                    operator,
                    lineages=(*empty[:subtask], lineage, *empty[subtask + 1 :]),
                    memory=(SubtaskMemory(),) * operator.parallelism,
                )
                for state_slice in Slice.split(operator, subtask):
                    self._subtasks.append((index, subtask))
                    yield CanonicalTask(
                        self.source, self._target, with_subtask_only, subtask, state_slice, epoch, classes
                    )

    def operators(self, results: Sequence[Sequence[dict[str, Any]]]) -> tuple[OperatorSnapshot, ...]:
        """Return the operators of the savepoint, from the results of all tasks in their order."""
        written = [[Handle.from_json(handle) for handle in result] for result in results]
        for handle in (handle for handles in written for handle in handles):
            if self._target.size_of(handle.name) != handle.size:
                raise SavepointNotShared(self.path, handle.name)
        if self.form == NATIVE:
            new_handles = (handle for handles in written for handle in handles)
            by_old_name = dict(zip((old.name for old in self.metadata.handles), new_handles, strict=True))
            return tuple(_replace_handles(operator, by_old_name) for operator in self.metadata.operators)
        chains: dict[tuple[int, int], list[Handle]] = {}
        for subtask, handles in zip(self._subtasks, written, strict=True):
            chains.setdefault(subtask, []).extend(handles)
        return tuple(
            dataclasses.replace(
                operator,
                lineages=tuple(Lineage(tuple(chains.get((index, n), ()))) for n in range(operator.parallelism)),
            )
            for index, operator in enumerate(self.metadata.operators)
        )


def _replace_handles(operator: OperatorSnapshot, by_old_name: Mapping[str, Handle]) -> OperatorSnapshot:
    lineages = tuple(Lineage(tuple(by_old_name[old.name] for old in lineage.own)) for lineage in operator.lineages)
    return dataclasses.replace(operator, lineages=lineages)


def write_tables(
    target: CheckpointStorage,
    operator: OperatorSnapshot,
    subtask: int,
    tables: Tables,
    epoch: int,
    part: str = "",
) -> tuple[Handle, ...]:
    """Write tables of one subtask as Parquet files named `part`; broadcast state is written by subtask 0 only."""
    grouper = KeyGrouper(operator.max_parallelism)
    handles = []
    for schema, changes in tables:
        if not len(changes) or (schema.redistribution is Redistribution.BROADCAST and subtask > 0):
            continue
        data = canonical.to_parquet(to_arrow_table(schema, changes, grouper))
        name = f"operators/{_directory_name(operator)}/{_safe_name(schema.name)}"
        digest = hashlib.sha256(data).hexdigest()[:8]
        stored = target.write(f"{name}/part-{part or subtask}-{digest}.parquet", data)
        handles.append(Handle(stored.name, stored.size, stored.sha256, epoch, rows=len(changes)))
    return tuple(handles)


def to_arrow_table(schema: TableSchema, changes: deltas.Changes, grouper: KeyGrouper) -> Any:
    """Return entries as an Arrow table in canonical form."""
    is_keyed = schema.redistribution is Redistribution.KEYED
    groups = grouper.of_many(changes.keys) if is_keyed else None
    return canonical.to_table(
        schema.describe(), schema.key_type, schema.value_type, changes.namespaces, changes.keys, changes.values, groups
    )


def _directory_name(operator: OperatorSnapshot) -> str:
    return f"{_safe_name(operator.uid or operator.name)[:60]}-{operator.operator[:8]}"


def _safe_name(name: str) -> str:
    """Return the name without characters that have a meaning in paths."""
    return _UNSAFE.sub("_", name.replace("/", ".")).lstrip(".") or "_"
