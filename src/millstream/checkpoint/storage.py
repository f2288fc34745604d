"""The durable storage of a job: files are written once, checkpoints are published atomically, checksums are checked.

    <root>/<job>/chk-<n>/_metadata      a checkpoint exists if and only if this file does and is not void
    <root>/<job>/shared/...             state files, named by metadata
    <root>/<job>/taskowned/...          files that no checkpoint owns
    <root>/<job>/epochs.log             a log of records (on an object store: see `object_log`)

Promises: whenever the process dies, a file, a checkpoint or a record exists completely or not at all; a read returns
what was written, or raises an error that names the file and the problem; no name leads to a file outside of the root.
Does not know: what the bytes mean, or which files may be deleted."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from millstream.checkpoint.storage_errors import CheckpointTaken, NoConditionalWrites, VoidCheckpoint
from millstream.errors import MillstreamError
from millstream.files.contract import FileSystem
from millstream.files.errors import CorruptFile, MissingFile, OutsideRoot, StorageFailure
from millstream.files.frames import frame_record, scan_records
from millstream.files.local import LocalFileSystem
from millstream.files.locations import absolute_location, is_uri
from millstream.files.object_log import DamagedRecord, ObjectLog
from millstream.files.remote import ObjectStore

METADATA = "_metadata"
SHARED = "shared"
TASK_OWNED = "taskowned"
EPOCH_LOG = "epochs.log"
_READ_ATTEMPTS = 4  # how often a log is read again that was shorter than its file
_VOID = b'{"void": true}'  # the metadata of a void checkpoint number, so that no checkpoint can get this number


class Stored(Protocol):
    """The name, size and checksum of a stored file."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102
    @property
    def sha256(self) -> str: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that was written: its name relative to the root, its size and its SHA-256 checksum."""

    name: str
    size: int
    sha256: str


class CheckpointStorage:
    """The durable files of one job below `root`; without `job`, the root itself is the directory of the job.

    It can be pickled and used in other processes. Only one process at a time may append to a log."""

    def __init__(self, root: str, job: str = "", *, fs: FileSystem | None = None, sync: bool = True) -> None:
        self.root = absolute_location(root)
        self.job = job
        self._fs = fs if fs is not None else ObjectStore.of(root) if is_uri(root) else LocalFileSystem()
        self._sync = sync
        self._log_ends: dict[str, int] = {}
        self._object_logs: dict[str, ObjectLog] = {}
        if job:
            self._path(job)

    def of(self, root: str, job: str, *, sync: bool = True) -> CheckpointStorage:
        """Return a storage of another directory, on the same file system unless `root` is a URI of another one."""
        is_same = is_uri(root) == isinstance(self._fs, ObjectStore)
        if is_same and isinstance(self._fs, ObjectStore):
            is_same = root.startswith(f"{self._fs.scheme}://")
        return CheckpointStorage(root, job, fs=self._fs if is_same else None, sync=sync)

    @property
    def is_remote(self) -> bool:
        """Whether this is an object store, where each operation is a request."""
        return isinstance(self._fs, ObjectStore)

    # -- files ---------------------------------------------------------------------------------------------------

    def write(self, name: str, data: bytes) -> StoredFile:
        """Write a file below the directory of the job, atomically; another attempt can write it again.

        The returned name is relative to the root, so that the metadata of another job can name the file too."""
        full = self._in_job(name)
        self._put(self._path(full), data)
        return StoredFile(full, len(data), hashlib.sha256(data).hexdigest())

    def read(self, stored: Stored) -> bytes:
        """Return the content of a file after checking it; raises `MissingFile` or `CorruptFile`."""
        path = self._path(stored.name)
        data = self._read(path)
        if len(data) != stored.size:
            raise CorruptFile(path, f"{stored.size} bytes", f"{len(data)} bytes")
        _verify(path, data, stored.sha256)
        return data

    def size_of(self, name: str) -> int | None:
        """Return the size of a file in bytes, None if it does not exist."""
        path = self._path(name)
        with self._translate_errors("look for", path):
            try:
                return self._fs.size(path)
            except FileNotFoundError:
                return None

    def has_file(self, name: str) -> bool:
        """Whether the file exists."""
        path = self._path(name)
        with self._translate_errors("look for", path):
            return self._fs.exists(path)

    def read_unverified(self, name: str) -> bytes:
        """Return the content of a file without checking it, for callers that check parts of it."""
        return self._read(self._path(name))

    def link(self, name: str, source: CheckpointStorage, stored: Stored) -> StoredFile:
        """Create a file with the content of a file of another storage.

        A hard link where that is possible, else a copy."""
        full = self._in_job(name)
        path = self._path(full)
        if isinstance(self._fs, LocalFileSystem) and isinstance(source._fs, LocalFileSystem):
            self._fs.make_dirs(os.path.dirname(path))
            with suppress(OSError):  # raised for another device, or a file system without hard links
                os.link(source._path(stored.name), path)
                if self._sync:
                    self._fs.sync_dir(os.path.dirname(path))
                return StoredFile(full, stored.size, stored.sha256)
        return self.write(name, source.read(stored))

    def delete_empty(self, directory: str) -> None:
        """Delete a directory if it is empty, and then its empty parents below the root."""
        name = directory
        while name:
            path = self._path(name)
            if self._list(path):
                return
            self._remove(path)
            name = os.path.dirname(name)

    def files(self, directory: str = SHARED) -> list[str]:
        """List all files in a directory of the job, with names as in `StoredFile`.

        This includes temporary files of failed writes."""
        full = self._in_job(directory)
        return [f"{full}/{name}" for name in self._list(self._path(full))]

    def check_name(self, name: str) -> None:
        """Raise `OutsideRoot` if a name leads out of the root."""
        self._path(name)

    def delete(self, name: str) -> None:
        """Delete a file by its name in `StoredFile`; a missing file is not an error."""
        self._remove(self._path(name))

    # -- checkpoints ---------------------------------------------------------------------------------------------

    def publish(
        self, checkpoint: int | str, metadata: bytes, *, allowed: Callable[[], None] = lambda: None
    ) -> StoredFile:
        """Publish a checkpoint (or, by directory name, a savepoint) in one atomic step, after all its files were
        written.

        Metadata that exists is never replaced: of several writers one succeeds, the others get `CheckpointTaken`. A
        writer that finds its own bytes has succeeded. `allowed` is called directly before the step and may raise. After
        a crash before the step, the previous checkpoint is the newest; after a crash after it, this one. After any
        other error a request may still be in flight and publish it later: call `void` before continuing without it."""
        name = self._metadata_name(checkpoint)
        data = _add_footer(metadata)
        self._put(self._path(name), data, new=True, allowed=allowed)
        return StoredFile(name, len(data), hashlib.sha256(data).hexdigest())

    def void(self, checkpoint: int) -> None:
        """Make the number of a checkpoint void, so that it can never be published.

        `CheckpointTaken` if it already was."""
        self.publish(checkpoint, _VOID)

    def holds(self, checkpoint: int, metadata: bytes) -> bool:
        """Whether a checkpoint exists with exactly this metadata."""
        try:
            return self.read_metadata(checkpoint) == metadata
        except (MissingFile, CorruptFile, VoidCheckpoint):
            return False

    def exists(self, checkpoint: int | str) -> bool:
        """Whether the checkpoint, or by directory name the savepoint, was published and not deleted."""
        path = self._path(self._metadata_name(checkpoint))
        with self._translate_errors("look for", path):
            return self._fs.exists(path)

    def sync_checkpoint(self, checkpoint: int | str) -> None:
        """Make an existing checkpoint durable, before anything is done that depends on it.

        If its writer died between the rename and the sync, a power loss could still undo it."""
        directory = os.path.dirname(self._path(self._metadata_name(checkpoint)))
        if self._sync:
            with self._translate_errors("sync", directory):
                self._fs.sync_dir(directory)

    def list_checkpoints(self) -> list[int]:
        """List the numbers in use in ascending order: those of checkpoints, and void ones."""
        return [number for number in self.list_directories() if self.exists(number)]

    def list_directories(self) -> list[int]:
        """List the numbers of all checkpoint directories in ascending order, also if they have no metadata."""
        names = self._list(self._path(self.job))
        return sorted(int(name[4:]) for name in names if name.startswith("chk-") and name[4:].isdecimal())

    def read_metadata(self, checkpoint: int | str) -> bytes:
        """Return the published metadata after checking it; raises `VoidCheckpoint` if the number is void."""
        path = self._path(self._metadata_name(checkpoint))
        data = self._read(path)
        metadata, footer = data[:-_FOOTER_SIZE], data[-_FOOTER_SIZE:]
        if len(footer) < _FOOTER_SIZE or not (footer.startswith(_FOOTER_START) and footer.endswith(b"\n")):
            raise CorruptFile(path, "a last line with a checksum", f"{len(data)} bytes without one")
        _verify(path, metadata, footer[len(_FOOTER_START) : -1].decode("ascii", "replace"))
        if metadata == _VOID:
            raise VoidCheckpoint(path)
        return metadata

    def delete_checkpoint_metadata(self, checkpoint: int | str) -> None:
        """Delete the metadata of a checkpoint or savepoint durably, before the files it names are deleted."""
        path = self._path(self._metadata_name(checkpoint))
        self._remove(path)
        with self._translate_errors("sync", os.path.dirname(path)), suppress(FileNotFoundError):
            self._fs.sync_dir(os.path.dirname(path))

    def delete_checkpoint(self, checkpoint: int | str) -> None:
        """Delete a checkpoint and its directory, but not the shared files it names; a missing one is not an error.

        The metadata is deleted first and durably, so a crash or power loss leaves files, but no incomplete
        checkpoint."""
        self.delete_checkpoint_metadata(checkpoint)
        directory = os.path.dirname(self._path(self._metadata_name(checkpoint)))
        for name in self._list(directory):
            self._remove(f"{directory}/{name}")
        self._remove(directory)

    # -- logs ----------------------------------------------------------------------------------------------------

    def append_log(self, name: str, record: bytes) -> None:
        """Append a record durably. An incomplete record at the end, left by a crash, is truncated first."""
        path = self._path(self._in_job(name))
        if isinstance(self._fs, ObjectStore):
            with self._translate_errors("append to", path):
                self._object_log(self._fs, path).append(record)
            return
        end = self._log_ends.pop(name, None)
        with self._translate_errors("append to", path):
            size = self._fs.size(path) if self._fs.exists(path) else None
            if size is None:
                self._fs.make_dirs(os.path.dirname(path))
                end = 0
            elif size != end:
                end = _scan_log(path, self._read_whole(path))[1]
                if size != end:
                    self._fs.truncate(path, end, self._sync)
            frame = frame_record(end, record)
            self._fs.append_bytes(path, frame, self._sync)
            if size is None and self._sync:
                self._fs.sync_dir(os.path.dirname(path))
        self._log_ends[name] = end + len(frame)

    def read_log(self, name: str) -> list[bytes]:
        """Return all complete records.

        An incomplete one at the end is ignored; damage before it raises `CorruptFile`."""
        path = self._path(self._in_job(name))
        with self._translate_errors("read", path):
            if isinstance(self._fs, ObjectStore):
                return self._object_log(self._fs, path).read()
            if not self._fs.exists(path):
                return []
            return _scan_log(path, self._read_whole(path))[0]

    def _read_whole(self, path: str) -> bytes:
        """Return a file that is not shorter than its size: a short read would look like a log with fewer records.

        The size is read before the content, because another process may append meanwhile, or replace the log by a
        shorter one."""
        for _ in range(_READ_ATTEMPTS):
            size = self._fs.size(path)
            data = self._fs.read_bytes(path)
            if len(data) >= size:
                return data
        raise OSError(errno.EIO, f"{len(data)} of {size} bytes were read", path)

    def has_log(self, name: str) -> bool:
        """Whether the log exists; it may be empty."""
        path = self._path(self._in_job(name))
        with self._translate_errors("look for", path):
            return self._fs.exists(path)

    def truncate_log(self, name: str, keep: Iterable[bytes] = ()) -> None:
        """Replace the log by these records atomically; on an object store, the log does not exist for a moment."""
        path = self._path(self._in_job(name))
        if isinstance(self._fs, ObjectStore):
            with self._translate_errors("write", path):
                self._object_log(self._fs, path).replace(list(keep))
            return
        frames = bytearray()
        for record in keep:
            frames += frame_record(len(frames), record)
        self._log_ends.pop(name, None)
        self._put(path, bytes(frames))

    def delete_log(self, name: str) -> None:
        """Delete a log; a missing log is not an error."""
        path = self._path(self._in_job(name))
        if isinstance(self._fs, ObjectStore):
            with self._translate_errors("delete", path):
                self._object_log(self._fs, path).delete()
            return
        self._remove(path)

    def _object_log(self, store: ObjectStore, path: str) -> ObjectLog:
        if path not in self._object_logs:
            self._object_logs[path] = ObjectLog(store, path)
        return self._object_logs[path]

    # -- the directory -------------------------------------------------------------------------------------------

    def check_writable(self) -> None:
        """Create the root if it is missing, and check that a file can be written, renamed, read and deleted, and that
        creating a file fails if it exists, which checkpoints depend on. Raises `StorageFailure` or
        `NoConditionalWrites`."""
        with self._translate_errors("use the checkpoint directory", self.root):
            self._fs.make_dirs(self.root)
            probe = f"{self.root}/{_temporary_name('probe')}"
            try:
                self._fs.write_bytes(probe, b"probe", self._sync)
                self._fs.move_new(probe, f"{probe}.renamed")
                self._fs.read_bytes(f"{probe}.renamed")
                self._fs.write_bytes(probe, b"again", self._sync)
                try:
                    self._fs.move_new(probe, f"{probe}.renamed")
                except FileExistsError:
                    return
                raise NoConditionalWrites(self.root)
            finally:
                for leftover in (probe, f"{probe}.renamed"):
                    with suppress(OSError):
                        self._fs.remove(leftover)

    def _put(self, path: str, data: bytes, *, new: bool = False, allowed: Callable[[], None] = lambda: None) -> None:
        if isinstance(self._fs, ObjectStore):
            self._put_object(self._fs, path, data, new=new, allowed=allowed)
            return
        directory, name = os.path.split(path)
        temporary = f"{directory}/{_temporary_name(name)}"
        with self._translate_errors("write", path):
            try:
                self._fs.make_dirs(directory)
                self._fs.write_bytes(temporary, data, self._sync)
                allowed()
                (self._fs.move_new if new else self._fs.replace)(temporary, path)
            except (OSError, MillstreamError) as error:
                with suppress(OSError):
                    self._fs.remove(temporary)
                if not new or not isinstance(error, FileExistsError):
                    raise
                self._check_own(path, data)
            if self._sync:
                self._fs.sync_dir(directory)

    def _put_object(
        self, store: ObjectStore, path: str, data: bytes, *, new: bool, allowed: Callable[[], None]
    ) -> None:
        """Write an object. It becomes visible when it is complete, so no temporary name is needed."""
        with self._translate_errors("write", path):
            if not new:
                store.write_bytes(path, data, self._sync)
                return
            allowed()
            try:
                store.write_new(path, data)
            except FileExistsError:
                self._check_own(path, data)

    def _check_own(self, path: str, data: bytes) -> None:
        """Raise `CheckpointTaken` unless the file has this content: a repeated request finds its own file."""
        try:
            if self._fs.read_bytes(path) == data:
                return
        except FileNotFoundError:
            pass
        raise CheckpointTaken(path)

    def _read(self, path: str) -> bytes:
        with self._translate_errors("read", path):
            try:
                return self._fs.read_bytes(path)
            except FileNotFoundError:
                raise MissingFile(path) from None

    def _list(self, path: str) -> list[str]:
        with self._translate_errors("list", path):
            try:
                return self._fs.list(path)
            except FileNotFoundError:
                return []

    def _remove(self, path: str) -> None:
        with self._translate_errors("delete", path), suppress(FileNotFoundError):
            self._fs.remove(path)

    def _in_job(self, name: str) -> str:
        return f"{self.job}/{name}" if self.job else name

    def _metadata_name(self, checkpoint: int | str) -> str:
        directory = checkpoint if isinstance(checkpoint, str) else f"chk-{checkpoint}"
        return f"{self._in_job(directory)}/{METADATA}"

    def _path(self, name: str) -> str:
        """Return the path of a name relative to the root, after a check that it is below the root."""
        if not name:
            return self.root
        if "\0" in name or "\\" in name or not {"", ".", ".."}.isdisjoint(name.split("/")):
            raise OutsideRoot(name, self.root)
        path = f"{self.root}/{name}"
        with self._translate_errors("find", path):
            root = self._fs.resolve(self.root)
            if not self._fs.resolve(path).startswith(root.rstrip("/") + "/"):
                raise OutsideRoot(name, self.root)
        return path

    @contextmanager
    def _translate_errors(self, action: str, path: str) -> Iterator[None]:
        try:
            yield
        except DamagedRecord as damaged:
            raise CorruptFile(damaged.path, "a complete record", f"{damaged.size} bytes") from damaged
        except OSError as error:
            raise StorageFailure(action, path, error) from error


_FOOTER_START = b"\nsha256 "
_FOOTER = _FOOTER_START + b"%s\n"
_FOOTER_SIZE = len(_FOOTER_START) + 64 + 1


def _add_footer(metadata: bytes) -> bytes:
    return metadata + _FOOTER % hashlib.sha256(metadata).hexdigest().encode()


_attempts = itertools.count()


def _temporary_name(name: str) -> str:
    """Return a name that no other process or thread, on any host, uses for the same file."""
    return f".{name}.{os.uname().nodename}-{os.getpid()}-{threading.get_ident()}-{next(_attempts)}.tmp"


def _verify(path: str, data: bytes, expected: str) -> None:
    actual = hashlib.sha256(data).hexdigest()
    if actual != expected:
        raise CorruptFile(path, f"SHA-256 {expected}", f"SHA-256 {actual}")


def _scan_log(path: str, data: bytes) -> tuple[list[bytes], int]:
    """Return all records and the offset of their end. If a complete record follows after a gap, the file is damaged."""
    records, end, later = scan_records(data)
    if later is not None:
        raise CorruptFile(path, f"record {len(records)} at byte {end}", f"the next complete record at byte {later}")
    return records, end
