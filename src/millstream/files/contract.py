"""The file system interface of checkpoints, logs, leases, connectors and receivers.

A file system implements single steps: write, rename, remove, sync. Protocols that must survive a crash between any two
steps call the steps directly. `rename_durably` and the methods after it are sequences of steps that several protocols
share.

Promises: failures are `OSError`s; `replace` and `move_new` are atomic; synced data and names survive a power loss.
Does not know: what files hold."""

from __future__ import annotations

import builtins
import io
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, NamedTuple


class FileStatus(NamedTuple):
    """The size of a file in bytes, and a number that changes when the file is replaced."""

    size: int
    version: int


class FileSystem(ABC):
    """A file system. Paths are absolute: local paths or URIs, depending on the file system."""

    __slots__ = ()

    @property
    def has_atomic_rename(self) -> bool:
        """Whether `rename_durably` is atomic. Object stores cannot rename; an object becomes visible when it is
        complete."""
        return True

    # -- steps ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def write_bytes(self, path: str, data: bytes, sync: bool) -> None:
        """Create or overwrite a file; with `sync`, its data is on the device when this returns."""

    @abstractmethod
    def append_bytes(self, path: str, data: bytes, sync: bool) -> None:
        """Append to a file, which is created if it does not exist."""

    @abstractmethod
    def truncate(self, path: str, size: int, sync: bool) -> None:
        """Cut a file to its first `size` bytes."""

    @abstractmethod
    def replace(self, source: str, target: str) -> None:
        """Rename a file atomically; an existing target is replaced."""

    @abstractmethod
    def move_new(self, source: str, target: str) -> None:
        """Rename a file atomically; a `FileExistsError` if the target exists."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Delete a file or an empty directory; a `FileNotFoundError` if there is none."""

    @abstractmethod
    def make_dirs(self, path: str) -> None:
        """Create a directory and its parents durably; nothing if it exists."""

    @abstractmethod
    def sync_dir(self, path: str) -> None:
        """Sync a directory: its names are on the device when this returns."""

    @abstractmethod
    def read_bytes(self, path: str) -> bytes:
        """Read a whole file."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""

    @abstractmethod
    def list(self, path: str) -> builtins.list[str]:
        """List the names in a directory, sorted; a `FileNotFoundError` if there is none."""

    @abstractmethod
    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""

    @abstractmethod
    def resolve(self, path: str) -> str:
        """Return the absolute path with all links followed; the file need not exist."""

    # -- streams -------------------------------------------------------------------------------------------------

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading, at any offset."""
        return io.BytesIO(self.read_bytes(path))

    def create(self, path: str, *, append: bool = False) -> BinaryIO:
        """Open a file for writing; its directory is created durably. `finish` or `abandon` closes it."""
        self.make_dirs(os.path.dirname(path))
        return _Buffer(path, self.read_bytes(path) if append and self.exists(path) else b"")

    def finish(self, stream: BinaryIO) -> None:
        """Close a stream of `create`; its data is on the device when this returns."""
        assert isinstance(stream, _Buffer)
        self.write_bytes(stream.path, stream.getvalue(), True)
        stream.close()

    def abandon(self, stream: BinaryIO) -> None:
        """Close a stream of `create` whose data is not needed; on an object store the object never becomes visible."""
        stream.close()

    @contextmanager
    def writing(self, path: str) -> Iterator[BinaryIO]:
        """Write a file: finished if the block succeeds, abandoned if it raises."""
        stream = self.create(path)
        try:
            yield stream
            self.finish(stream)
        except BaseException:
            self.abandon(stream)
            raise

    # -- sequences of steps --------------------------------------------------------------------------------------

    def rename_durably(self, source: str, target: str) -> None:
        """Rename a file into a directory that is created if need be; the new name is durable when this returns."""
        directory, before = os.path.dirname(target), os.path.dirname(source)
        self.make_dirs(directory)
        self.replace(source, target)
        self.sync_dir(directory)
        if before != directory:
            self.sync_dir(before)

    def move_new_durably(self, source: str, target: str) -> None:
        """Like `rename_durably`, but a `FileExistsError` if the target exists.

        This implementation checks first and then renames; file systems that can do both in one step override it."""
        if self.exists(target):
            raise FileExistsError(target)
        self.rename_durably(source, target)

    def copy_file(self, source: str, target: str) -> None:
        """Copy a file; the target is complete when it appears, and replaces an existing one."""
        with self.open(source) as original, self.writing(f"{target}.tmp") as written:
            shutil.copyfileobj(original, written)
        self.rename_durably(f"{target}.tmp", target)

    def make_private_dir(self, path: str) -> None:
        """Create a directory that only its owner can enter, where the file system has permissions."""

    def remove_empty_dir(self, path: str) -> None:
        """Delete a directory if it is empty; nothing if that fails."""
        with suppress(OSError):
            self.remove(path)

    # -- questions -----------------------------------------------------------------------------------------------

    def is_directory(self, path: str) -> bool:
        """Whether there is a directory."""
        with suppress(FileNotFoundError, NotADirectoryError):
            self.list(path)
            return True
        return False

    def is_same(self, first: str, second: str) -> bool:
        """Return whether two names are known to refer to one file, as after a crash in `move_new_durably`."""
        return False

    def status(self, path: str) -> FileStatus:
        """Return the size and the version of a file. In this implementation the version is constant, for file systems
        whose files are never replaced."""
        return FileStatus(self.size(path), 0)

    def list_if_exists(self, path: str) -> builtins.list[str]:
        """List the names in a directory, sorted; none if there is no such directory."""
        try:
            return self.list(path)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def walk(self, path: str) -> Iterator[tuple[str, builtins.list[str], builtins.list[str]]]:
        """Yield each directory below a path with the names of its directories and files, like `os.walk`."""
        names = self.list_if_exists(path)
        directories = [name for name in names if self.is_directory(f"{path}/{name}")]
        yield path, directories, [name for name in names if name not in directories]
        for directory in directories:
            yield from self.walk(f"{path}/{directory}")


class _Buffer(io.BytesIO):
    """A buffer that is written to a file by `finish`."""

    def __init__(self, path: str, content: bytes) -> None:
        super().__init__()
        self.path = path
        self.write(content)
