"""Savepoints: a directory that holds everything, belongs to its owner, and outlives the job and the release.

    <directory>/_metadata                         JSON with a checksum; the savepoint exists if and only if this does
    <directory>/operators/<uid>/<state>/….parquet canonical form: one part a subtask, several if it is large
    <directory>/state/…                           native form: state files as the job wrote them

Promises: a savepoint exists wholly or not at all; it names nothing outside its directory, so that it can be moved;
both forms restore to the same state; deleting one deletes what it names and nothing else.
State is read and written by `export`, in pieces that run anywhere; here only metadata is.
Does not know: jobs that run, when a savepoint is taken, or who owns it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from millstream.checkpoint.export import Export, RunPieces, run_here
from millstream.checkpoint.metadata import CANONICAL, CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.state_files import StateReader
from millstream.checkpoint.storage import METADATA, CheckpointStorage
from millstream.checkpoint.storage_errors import VoidCheckpoint
from millstream.errors import UserError
from millstream.files.locations import absolute_location


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
        needed: set[str] = set()
        for number in others:
            with suppress(VoidCheckpoint):
                metadata = CheckpointMetadata.from_bytes(storage.read_metadata(number))
                needed.update(handle.file for handle in metadata.handles)
        return needed


def open_snapshot(path: str, like: CheckpointStorage | None = None) -> Snapshot:
    """The checkpoint or savepoint at a path; `like` is any storage on the file system it is in."""
    directory = absolute_location(path)
    if os.path.basename(directory) == METADATA:
        directory = os.path.dirname(directory)
    parent, name = os.path.split(directory)
    storage = like or CheckpointStorage(parent)
    above = storage.of(parent, "")
    if not name or not above.exists(name):
        raise NoSuchCheckpoint(path)
    try:
        metadata = CheckpointMetadata.from_bytes(above.read_metadata(name))
    except VoidCheckpoint:
        raise NoSuchCheckpoint(path, "it was given up before it was complete") from None
    if metadata.savepoint:
        return Snapshot(directory, metadata, storage.of(directory, ""))
    return Snapshot(directory, metadata, storage.of(*os.path.split(parent)))


def write_savepoint(
    metadata: CheckpointMetadata,
    source: CheckpointStorage,
    path: str,
    form: str = CANONICAL,
    run: RunPieces = run_here,
) -> Snapshot:
    """Write a savepoint of what a checkpoint's metadata names; `source` is where its files are. `run` runs the pieces
    of it, wherever it likes.

    A crash before the metadata is there leaves files that nobody takes for a savepoint."""
    export = Export(metadata, source, path, form)
    return publish(metadata, export.operators(run(export.pieces)), source, path, form)


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
