"""The file system that checkpoints, leases and logs are written through, and the local one.

Promises: operations are those that durability needs: data and directory entries can be synced, a file can be renamed
over another one or created only if it is absent, both atomically. New local files belong to their owner alone, unless
an option widens that (see `file_access`).
Does not know: what is stored. Object stores are in `object_store`."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from millstream.config.file_access import directory_mode, opener, sync_directory


class FileSystem(Protocol):
    """What storage needs of a file system. Failures are `OSError`s; `replace` is atomic."""

    def write_bytes(self, path: str, data: bytes, sync: bool) -> None:
        """Make or overwrite a file; with `sync`, on the device before this returns."""

    def append_bytes(self, path: str, data: bytes, sync: bool) -> None:
        """Add to the end of a file, which is made if need be."""

    def truncate(self, path: str, size: int, sync: bool) -> None:
        """Cut a file to its first `size` bytes."""

    def replace(self, source: str, target: str) -> None:
        """Give a file another name, in place of what had it."""

    def move_new(self, source: str, target: str) -> None:
        """Give a file another name, atomically; a `FileExistsError` when something has that name."""

    def remove(self, path: str) -> None:
        """Delete a file or an empty directory."""

    def make_dirs(self, path: str) -> None:
        """Make a directory with those above it; nothing if it is there."""

    def sync_dir(self, path: str) -> None:
        """Bring the names in a directory to the device."""

    def read_bytes(self, path: str) -> bytes:
        """All of a file."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted."""

    def size(self, path: str) -> int:
        """The bytes of a file."""

    def resolve(self, path: str) -> str:
        """The absolute path with all links followed; the file need not exist."""


@dataclass(frozen=True, slots=True)
class LocalFileSystem:
    """A local disk, or anything mounted that renames atomically. New files are their owner's: see `file_access`."""

    def write_bytes(self, path: str, data: bytes, sync: bool) -> None:  # noqa: D102
        self._write(path, "wb", data, sync)

    def append_bytes(self, path: str, data: bytes, sync: bool) -> None:  # noqa: D102
        self._write(path, "ab", data, sync)

    def _write(self, path: str, mode: str, data: bytes, sync: bool) -> None:
        with open(path, mode, buffering=0, opener=opener) as file:
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

    def make_dirs(self, path: str) -> None:  # noqa: D102
        if os.path.isdir(path):
            return
        above = os.path.dirname(path)
        if above and above != path:
            self.make_dirs(above)
        with suppress(FileExistsError):  # another process was quicker; a file of that name fails in what follows
            os.mkdir(path, directory_mode())
        self.sync_dir(above or ".")

    def sync_dir(self, path: str) -> None:  # noqa: D102
        sync_directory(path)

    def read_bytes(self, path: str) -> bytes:  # noqa: D102
        with open(path, "rb") as file:
            return file.read()

    def exists(self, path: str) -> bool:  # noqa: D102
        return os.path.exists(path)

    def list(self, path: str) -> list[str]:  # noqa: D102
        return sorted(os.listdir(path))

    def size(self, path: str) -> int:  # noqa: D102
        return os.path.getsize(path)

    def resolve(self, path: str) -> str:  # noqa: D102
        return os.path.realpath(path)
