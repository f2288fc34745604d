"""The state of a checkpoint copied into a savepoint, in pieces that run anywhere.

Promises: a piece is a value that can be sent to a worker; it reads and verifies its state files there, writes files of
the savepoint, and gives back their names, so no state passes through the caller; a piece can be run again,
also at the same time. It needs memory for a slice of one subtask's state, and one state file. When all have run, what
they wrote is seen from where the savepoint is published, or there is an error that says so.
Does not know: who runs the pieces, when the savepoint exists."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.checkpoint.contents import Slice, Tables, tables_of_slice
from millstream.checkpoint.metadata import NATIVE, CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.state_files import StateReader
from millstream.checkpoint.storage import CheckpointStorage
from millstream.errors import ExternalError
from millstream.runtime.memory import SubtaskMemory
from millstream.serialization import codec
from millstream.state import canonical, deltas
from millstream.state.deltas import Redistribution, TableSchema
from millstream.state.handles import Handle, Lineage
from millstream.state.key_groups import KeyGrouper

Piece = Callable[[], list[dict[str, Any]]]  # writes some files of a savepoint; gives their handles as JSON values
RunPieces = Callable[[Sequence[Piece]], list[list[dict[str, Any]]]]

_PLAIN = re.compile(r"[^A-Za-z0-9_.-]+")
_LINKED = 64 << 20  # bytes of state files that one piece of a native savepoint links or copies, about


class SavepointNotShared(ExternalError):
    """A worker wrote a file that the driver does not see."""

    hint = "name a directory that the driver and all executors see"

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name
        super().__init__(f"a worker wrote the file {name} of the savepoint {path}, but here it cannot be seen")


def run_here(pieces: Sequence[Piece]) -> list[list[dict[str, Any]]]:
    """Run pieces in this process."""
    return [piece() for piece in pieces]


@dataclass(frozen=True)
class CanonicalPiece:
    """One slice of one subtask, as Parquet."""

    source: CheckpointStorage
    target: CheckpointStorage
    operator: OperatorSnapshot  # with the state of this subtask only
    subtask: int
    part: Slice
    epoch: int
    classes: tuple[type, ...]

    def __call__(self) -> list[dict[str, Any]]:
        """Write the tables of the slice."""
        with codec.using(codec.Classes(self.classes)):
            lineage = self.operator.lineages[self.subtask]
            found = tables_of_slice(lineage, StateReader(self.source).read, self.part)
            part = f"{self.subtask}-{self.part.index}" if self.part.count > 1 else str(self.subtask)
            handles = write_tables(self.target, self.operator, self.subtask, found, self.epoch, part)
        return [handle.to_json() for handle in handles]


@dataclass(frozen=True)
class NativePiece:
    """Some state files, linked or copied."""

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
            stored = self.target.adopt(name, self.source, handle)
        return dataclasses.replace(handle, name=stored.name, pack="", offset=0)


class Export:
    """A savepoint that is being written: its pieces, and the operators that come of them."""

    def __init__(self, metadata: CheckpointMetadata, source: CheckpointStorage, path: str, form: str) -> None:
        self.metadata, self.source, self.path, self.form = metadata, source, path, form
        self._target = source.of(path, "")
        self._of: list[tuple[int, int]] = []  # of each piece of canonical form: the operator and subtask
        self.pieces: list[Piece] = list(self._native() if form == NATIVE else self._canonical())

    def _native(self) -> Iterable[Piece]:
        chosen: list[Handle] = []
        for handle in self.metadata.handles:
            chosen.append(handle)
            if sum(each.size for each in chosen) >= _LINKED:
                yield NativePiece(self.source, self._target, tuple(chosen))
                chosen = []
        if chosen:
            yield NativePiece(self.source, self._target, tuple(chosen))

    def _canonical(self) -> Iterable[Piece]:
        classes, epoch = tuple(codec.declared()), self.metadata.epoch
        for index, operator in enumerate(self.metadata.operators):
            for subtask, lineage in enumerate(operator.lineages):
                others = (Lineage(),) * operator.parallelism
                alone = dataclasses.replace(
                    operator,
                    lineages=(*others[:subtask], lineage, *others[subtask + 1 :]),
                    memory=(SubtaskMemory(),) * operator.parallelism,
                )
                for part in Slice.all_of(operator, subtask):
                    self._of.append((index, subtask))
                    yield CanonicalPiece(self.source, self._target, alone, subtask, part, epoch, classes)

    def operators(self, results: Sequence[Sequence[dict[str, Any]]]) -> tuple[OperatorSnapshot, ...]:
        """The operators of the savepoint, from what all pieces gave, in their order."""
        found = [[Handle.from_json(handle) for handle in result] for result in results]
        for handle in (handle for handles in found for handle in handles):
            if self._target.size_of(handle.name) != handle.size:
                raise SavepointNotShared(self.path, handle.name)
        if self.form == NATIVE:
            new = dict(
                zip((old.name for old in self.metadata.handles), (h for each in found for h in each), strict=True)
            )
            return tuple(self._with(operator, lambda old: new[old.name]) for operator in self.metadata.operators)
        chains: dict[tuple[int, int], list[Handle]] = {}
        for place, handles in zip(self._of, found, strict=True):
            chains.setdefault(place, []).extend(handles)
        return tuple(
            dataclasses.replace(
                operator,
                lineages=tuple(Lineage(tuple(chains.get((index, n), ()))) for n in range(operator.parallelism)),
            )
            for index, operator in enumerate(self.metadata.operators)
        )

    def _with(self, operator: OperatorSnapshot, new: Callable[[Handle], Handle]) -> OperatorSnapshot:
        lineages = tuple(Lineage(tuple(map(new, lineage.own))) for lineage in operator.lineages)
        return dataclasses.replace(operator, lineages=lineages)


def write_tables(
    target: CheckpointStorage,
    operator: OperatorSnapshot,
    subtask: int,
    found: Tables,
    epoch: int,
    part: str = "",
) -> tuple[Handle, ...]:
    """Tables of one subtask as Parquet files, called `part`; copies of broadcast state are written once."""
    grouper = KeyGrouper(operator.max_parallelism)
    handles = []
    for schema, changes in found:
        if not len(changes) or (schema.redistribution is Redistribution.BROADCAST and subtask > 0):
            continue
        data = canonical.parquet(as_table(schema, changes, grouper))
        name = f"operators/{directory_of(operator)}/{plain(schema.name)}"
        digest = hashlib.sha256(data).hexdigest()[:8]
        stored = target.write(f"{name}/part-{part or subtask}-{digest}.parquet", data)
        handles.append(Handle(stored.name, stored.size, stored.sha256, epoch, rows=len(changes)))
    return tuple(handles)


def as_table(schema: TableSchema, changes: deltas.Changes, grouper: KeyGrouper) -> Any:
    """Entries as an Arrow table in canonical form."""
    keyed = schema.redistribution is Redistribution.KEYED
    groups = grouper.of_many(changes.keys) if keyed else None
    return canonical.to_table(
        schema.describe(), schema.key_type, schema.value_type, changes.namespaces, changes.keys, changes.values, groups
    )


def directory_of(operator: OperatorSnapshot) -> str:
    """A directory name for an operator that a person can tell from others."""
    return f"{plain(operator.uid or operator.name)[:60]}-{operator.operator[:8]}"


def plain(name: str) -> str:
    """A name without what a path could misread."""
    return _PLAIN.sub("_", name.replace("/", ".")).lstrip(".") or "_"
