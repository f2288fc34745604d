"""Savepoints: a directory that holds everything, belongs to its owner, and outlives the job and the release.

    <directory>/_metadata                         JSON with a checksum; the savepoint exists if and only if this does
    <directory>/operators/<uid>/<state>/….parquet canonical form: one part a subtask
    <directory>/state/…                           native form: state files as the job wrote them

Promises: a savepoint exists wholly or not at all; it names nothing outside its directory, so that it can be moved;
both forms restore to the same state; deleting one deletes what it names and nothing else.
Does not know: jobs that run, when a savepoint is taken, or who owns it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from millstream.checkpoint.contents import Tables, tables
from millstream.checkpoint.metadata import CANONICAL, NATIVE, CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.object_store import located
from millstream.checkpoint.state_files import StateReader
from millstream.checkpoint.storage import METADATA, CheckpointStorage
from millstream.errors import UserError
from millstream.state import canonical, deltas
from millstream.state.deltas import Redistribution, TableSchema
from millstream.state.handles import Handle, Lineage
from millstream.state.key_groups import KeyGrouper

_PLAIN = re.compile(r"[^A-Za-z0-9_.-]+")


class NoSuchCheckpoint(UserError):
    """A path that names neither a checkpoint nor a savepoint."""

    def __init__(self, path: str, why: str = "it has no _metadata file") -> None:
        super().__init__(
            f"'{path}' is not a checkpoint or savepoint: {why}",
            hint="give a savepoint's directory or a chk-N directory; `millstream checkpoints DIR` lists them",
        )


class NotASavepoint(UserError):
    """A checkpoint was to be treated as a savepoint."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"'{path}' is a checkpoint, and belongs to its job", hint="delete the job's directory when it is over"
        )


class SavepointExists(UserError):
    """A savepoint was to be written where something is."""

    def __init__(self, path: str) -> None:
        super().__init__(f"there is a savepoint in '{path}' already", hint="name another directory, or dispose of it")


@dataclass(frozen=True)
class Snapshot:
    """A checkpoint or savepoint on storage."""

    path: str
    metadata: CheckpointMetadata
    storage: CheckpointStorage

    def reader(self) -> StateReader:
        """Reads its files."""
        return StateReader(self.storage)

    def verify(self) -> None:
        """Read every file it names."""
        files = self.reader()
        for handle in self.metadata.handles:
            files.read(handle)

    def dispose(self) -> None:
        """Delete it, its metadata first. What a checkpoint shares with others of its job stays."""
        parent, name = os.path.split(self.path)
        above = self.storage.of(parent, "")
        for handle in self.metadata.handles:
            self.storage.check_name(handle.file)
        spared = set() if self.metadata.savepoint else self._shared_with_others()
        above.delete_checkpoint_metadata(name)
        for handle in self.metadata.handles:
            if handle.file not in spared:
                self.storage.delete(handle.file)
        if self.metadata.savepoint:
            for directory in sorted({os.path.dirname(handle.file) for handle in self.metadata.handles}):
                self.storage.delete_empty(directory)
        above.delete_empty(name)

    def _shared_with_others(self) -> set[str]:
        job, name = os.path.split(self.path)
        storage = self.storage.of(*os.path.split(job))
        others = [number for number in storage.list_checkpoints() if f"chk-{number}" != name]
        found = [CheckpointMetadata.from_bytes(storage.read_metadata(number)) for number in others]
        return {handle.file for metadata in found for handle in metadata.handles}


def open_snapshot(path: str, like: CheckpointStorage | None = None) -> Snapshot:
    """The checkpoint or savepoint at a path; `like` is any storage on the file system it is in."""
    directory = located(path)
    if os.path.basename(directory) == METADATA:
        directory = os.path.dirname(directory)
    parent, name = os.path.split(directory)
    storage = like or CheckpointStorage(parent)
    above = storage.of(parent, "")
    if not name or not above.exists(name):
        raise NoSuchCheckpoint(path)
    metadata = CheckpointMetadata.from_bytes(above.read_metadata(name))
    if metadata.savepoint:
        return Snapshot(directory, metadata, storage.of(directory, ""))
    return Snapshot(directory, metadata, storage.of(*os.path.split(parent)))


def write_savepoint(
    metadata: CheckpointMetadata, source: CheckpointStorage, path: str, form: str = CANONICAL
) -> Snapshot:
    """Write a savepoint of what a checkpoint's metadata names; `source` is where its files are.

    A crash before the metadata is there leaves files that nobody takes for a savepoint."""
    operators = _linked(metadata, source, path) if form == NATIVE else _exported(metadata, source, path)
    return publish(metadata, operators, source, path, form)


def publish(
    metadata: CheckpointMetadata,
    operators: Iterable[OperatorSnapshot],
    like: CheckpointStorage,
    path: str,
    form: str = CANONICAL,
) -> Snapshot:
    """Make a savepoint of operators whose files are in its directory by the time they are given."""
    parent, name = os.path.split(path)
    above = like.of(parent, "")
    if above.exists(name):
        raise SavepointExists(path)
    made = dataclasses.replace(metadata, operators=tuple(operators), savepoint=form, ended=False)
    made = dataclasses.replace(made, bytes_new=made.full_size)
    above.publish(name, made.to_bytes())
    return Snapshot(path, made, like.of(path, ""))


def _linked(metadata: CheckpointMetadata, source: CheckpointStorage, path: str) -> Iterator[OperatorSnapshot]:
    target, files = source.of(path, ""), StateReader(source)

    def link(handle: Handle) -> Handle:
        name = f"state/{handle.sha256[:8]}-{os.path.basename(handle.name)}"
        stored = target.write(name, files.read(handle)) if handle.pack else target.adopt(name, source, handle)
        return dataclasses.replace(handle, name=stored.name, pack="", offset=0)

    for operator in metadata.operators:
        lineages = tuple(Lineage(tuple(map(link, lineage.own))) for lineage in operator.lineages)
        yield dataclasses.replace(operator, lineages=lineages)


def _exported(metadata: CheckpointMetadata, source: CheckpointStorage, path: str) -> Iterator[OperatorSnapshot]:
    target, read = source.of(path, ""), StateReader(source).read
    for operator in metadata.operators:
        lineages = []
        for subtask in range(operator.parallelism):
            found = tables(operator.lineages[subtask], read)
            lineages.append(Lineage(write_tables(target, operator, subtask, found, metadata.epoch)))
        yield dataclasses.replace(operator, lineages=tuple(lineages))


def write_tables(
    target: CheckpointStorage, operator: OperatorSnapshot, subtask: int, found: Tables, epoch: int
) -> tuple[Handle, ...]:
    """The tables of one subtask as Parquet files; copies of broadcast state are written once."""
    grouper = KeyGrouper(operator.max_parallelism)
    handles = []
    for schema, changes in found:
        if not len(changes) or (schema.redistribution is Redistribution.BROADCAST and subtask > 0):
            continue
        data = canonical.parquet(as_table(schema, changes, grouper))
        name = f"operators/{directory_of(operator)}/{plain(schema.name)}"
        stored = target.write(f"{name}/part-{subtask}-{hashlib.sha256(data).hexdigest()[:8]}.parquet", data)
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
