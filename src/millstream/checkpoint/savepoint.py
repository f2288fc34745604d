"""Savepoints: self-contained snapshots that belong to the user and can be read by later releases.

    <directory>/_metadata                         JSON with a checksum; the savepoint exists if and only if this does
    <directory>/operators/<uid>/<state>/….parquet canonical form: one file per subtask, several if it is large
    <directory>/state/…                           native form: state files as the job wrote them

Promises: a savepoint exists completely or not at all; it names no file outside its directory, so it can be moved; both
forms restore the same state; disposing a savepoint deletes the files it names and no others.
This module handles metadata; `export` copies the state, in tasks that can run on executors.
Does not know: running jobs, when a savepoint is taken, or who owns it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from millstream.checkpoint.export import Export, RunTasks, run_locally
from millstream.checkpoint.metadata import CANONICAL, CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.state_files import StateReader
from millstream.checkpoint.storage import METADATA, CheckpointStorage
from millstream.checkpoint.storage_errors import VoidCheckpoint
from millstream.errors import UserError
from millstream.files.locations import absolute_location


class NoSuchCheckpoint(UserError):
    """A path is neither a checkpoint nor a savepoint."""

    def __init__(self, path: str, why: str = "it has no _metadata file") -> None:
        super().__init__(
            f"'{path}' is not a checkpoint or savepoint: {why}",
            hint="name the directory of a savepoint or a chk-N directory; `millstream checkpoints DIR` lists them",
        )


class NotASavepoint(UserError):
    """The operation is for savepoints, but the path is a checkpoint."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"'{path}' is a checkpoint and belongs to its job",
            hint="only savepoints can be disposed; delete the directory of the job when the job has ended",
        )


class SavepointExists(UserError):
    """A savepoint cannot be written, because the directory already holds one."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"there is already a savepoint in '{path}'", hint="name another directory, or dispose the savepoint"
        )


@dataclass(frozen=True)
class Snapshot:
    """A checkpoint or savepoint on storage."""

    path: str
    metadata: CheckpointMetadata
    storage: CheckpointStorage

    def reader(self) -> StateReader:
        """Return a reader of its state files."""
        return StateReader(self.storage)

    def verify(self) -> None:
        """Read and check all of its state files."""
        files = self.reader()
        for handle in self.metadata.handles:
            files.read(handle)

    def dispose(self) -> None:
        """Delete it, the metadata first. Files that other checkpoints of the job need are kept."""
        parent, name = os.path.split(self.path)
        above = self.storage.of(parent, "")
        for handle in self.metadata.handles:
            self.storage.check_name(handle.file)
        shared = set() if self.metadata.savepoint else self._shared_with_others()
        above.delete_checkpoint_metadata(name)
        for handle in self.metadata.handles:
            if handle.file not in shared:
                self.storage.delete(handle.file)
        if self.metadata.savepoint:
            for directory in sorted({os.path.dirname(handle.file) for handle in self.metadata.handles}):
                self.storage.delete_empty(directory)
        above.delete_empty(name)

    def _shared_with_others(self) -> set[str]:
        job, name = os.path.split(self.path)
        storage = self.storage.of(*os.path.split(job))
        other_numbers = [number for number in storage.list_checkpoints() if f"chk-{number}" != name]
        needed: set[str] = set()
        for number in other_numbers:
            with suppress(VoidCheckpoint):
                metadata = CheckpointMetadata.from_bytes(storage.read_metadata(number))
                needed.update(handle.file for handle in metadata.handles)
        return needed


def dispose_savepoint(path: str) -> Snapshot:
    """Delete a savepoint, and return what was deleted.

    Raises:
        NotASavepoint: The path is a checkpoint, which belongs to its job.

    """
    snapshot = open_snapshot(path)
    if snapshot.metadata.savepoint is None:
        raise NotASavepoint(path)
    snapshot.dispose()
    return snapshot


def open_snapshot(path: str, like: CheckpointStorage | None = None) -> Snapshot:
    """Open the checkpoint or savepoint at a path; `like` is a storage on the same file system."""
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
        raise NoSuchCheckpoint(path, "the checkpoint was aborted before it was complete") from None
    if metadata.savepoint:
        return Snapshot(directory, metadata, storage.of(directory, ""))
    return Snapshot(directory, metadata, storage.of(*os.path.split(parent)))


def write_savepoint(
    metadata: CheckpointMetadata,
    source: CheckpointStorage,
    path: str,
    form: str = CANONICAL,
    run: RunTasks = run_locally,
) -> Snapshot:
    """Write a savepoint from the metadata of a checkpoint, whose files are in `source`; `run` runs the export tasks.

    A crash before the metadata is written leaves files without `_metadata`, which are not a savepoint."""
    export = Export(metadata, source, path, form)
    return publish(metadata, export.operators(run(export.tasks)), source, path, form)


def publish(
    metadata: CheckpointMetadata,
    operators: Iterable[OperatorSnapshot],
    like: CheckpointStorage,
    path: str,
    form: str = CANONICAL,
) -> Snapshot:
    """Publish a savepoint of `operators`; when the iterable ends, all their files are in its directory."""
    parent, name = os.path.split(path)
    above = like.of(parent, "")
    if above.exists(name):
        raise SavepointExists(path)
    published = dataclasses.replace(metadata, operators=tuple(operators), savepoint=form, ended=False)
    published = dataclasses.replace(published, bytes_new=published.full_size)
    above.publish(name, published.to_bytes())
    return Snapshot(path, published, like.of(path, ""))
