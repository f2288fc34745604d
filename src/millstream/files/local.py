"""The local file system, or anything that is mounted and renames atomically.

Promises: what `FileSystem` promises. Only its owner can access a new file, unless an option widens that (`access`).
With `private=False` it has the permissions of the umask, for output of the user.
Does not know: what is stored. Object stores are in `remote`."""

from __future__ import annotations

import builtins
import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

from millstream.files.access import directory_mode, opener, sync_directory
from millstream.files.contract import FileStatus, FileSystem

_BUFFER = 1 << 18
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)


@dataclass(frozen=True, slots=True)
class LocalFileSystem(FileSystem):
    """The disks of this machine. With `private`, only their owner can access new files and directories."""

    private: bool = True

    def write_bytes(self, path: str, data: bytes, sync: bool) -> None:  # noqa: D102
        self._write(path, "wb", data, sync)

    def append_bytes(self, path: str, data: bytes, sync: bool) -> None:  # noqa: D102
        self._write(path, "ab", data, sync)

    def _write(self, path: str, mode: str, data: bytes, sync: bool) -> None:
        with open(path, mode, buffering=0, opener=opener if self.private else None) as file:
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) :]
            if sync:
                os.fsync(file.fileno())

    def truncate(self, path: str, size: int, sync: bool) -> None:  # noqa: D102
        with open(path, "r+b", buffering=0) as file:
            file.truncate(size)
            if sync:
                os.fsync(file.fileno())

    def replace(self, source: str, target: str) -> None:  # noqa: D102
        os.replace(source, target)

    def move_new(self, source: str, target: str) -> None:  # noqa: D102
        os.link(source, target)
        os.remove(source)

    def remove(self, path: str) -> None:  # noqa: D102
        if os.path.isdir(path) and not os.path.islink(path):
            os.rmdir(path)
        else:
            os.remove(path)

    def make_dirs(self, path: str) -> None:
        """Create a directory and its parents durably; nothing if it exists.

        If a file has the name, its first use as a directory fails with a `NotADirectoryError`. A `FileExistsError` here
        could be mistaken for an existing target."""
        if os.path.isdir(path):
            return
        above = os.path.dirname(path)
        if above and above != path:
            self.make_dirs(above)
        self._make_dir(path, directory_mode() if self.private else 0o777)

    def make_private_dir(self, path: str) -> None:
        """Create a directory that only its owner can enter; its parents have the permissions of `make_dirs`."""
        if not os.path.isdir(path):
            self.make_dirs(os.path.dirname(path))
            self._make_dir(path, directory_mode())

    def _make_dir(self, path: str, mode: int) -> None:
        with suppress(FileExistsError):  # another process was faster
            os.mkdir(path, mode)
        self.sync_dir(os.path.dirname(path) or ".")

    def sync_dir(self, path: str) -> None:  # noqa: D102
        sync_directory(path)

    def read_bytes(self, path: str) -> bytes:  # noqa: D102
        with open(path, "rb") as file:
            return file.read()

    def exists(self, path: str) -> bool:  # noqa: D102
        return os.path.exists(path)

    def list(self, path: str) -> builtins.list[str]:  # noqa: D102
        return sorted(os.listdir(path))

    def size(self, path: str) -> int:  # noqa: D102
        return os.path.getsize(path)

    def resolve(self, path: str) -> str:  # noqa: D102
        return os.path.realpath(path)

    def open(self, path: str) -> BinaryIO:  # noqa: D102
        return open(path, "rb")

    def create(self, path: str, *, append: bool = False) -> BinaryIO:  # noqa: D102
        self.make_dirs(os.path.dirname(path))
        return open(path, "ab" if append else "wb", buffering=_BUFFER, opener=opener if self.private else None)

    def finish(self, stream: BinaryIO) -> None:  # noqa: D102
        stream.flush()
        os.fsync(stream.fileno())
        stream.close()

    def abandon(self, stream: BinaryIO) -> None:  # noqa: D102
        with suppress(OSError):
            stream.close()

    def move_new_durably(self, source: str, target: str) -> None:
        """Create a hard link with the new name, then remove the old name; both changes are durable when this
        returns."""
        directory, before = os.path.dirname(target), os.path.dirname(source)
        self.make_dirs(directory)
        try:
            os.link(source, target)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            FileSystem.move_new_durably(self, source, target)
            return
        self.sync_dir(directory)
        os.remove(source)
        if before != directory:
            self.sync_dir(before)

    def remove_empty_dir(self, path: str) -> None:  # noqa: D102
        with suppress(OSError):
            os.rmdir(path)

    def is_directory(self, path: str) -> bool:  # noqa: D102
        return os.path.isdir(path)

    def is_same(self, first: str, second: str) -> bool:  # noqa: D102
        return os.path.samefile(first, second)

    def status(self, path: str) -> FileStatus:
        """Return the size of a file and, as its version, the modification time in nanoseconds."""
        status = os.stat(path)
        return FileStatus(status.st_size, status.st_mtime_ns)

    def walk(self, path: str) -> Iterator[tuple[str, builtins.list[str], builtins.list[str]]]:
        """Yield each directory with its names; links are followed, and a directory that cannot be read is an error."""

        def refuse(error: OSError) -> None:
            raise error

        visited: set[str] = set()
        for directory, directories, files in os.walk(path, followlinks=True, onerror=refuse):
            visited.add(os.path.realpath(directory))
            # without this check, a link to a parent directory would never end
            directories[:] = sorted(
                name for name in directories if os.path.realpath(f"{directory}/{name}") not in visited
            )
            yield directory, directories, sorted(files)
