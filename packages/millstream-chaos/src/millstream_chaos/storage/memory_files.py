"""A file system in memory, and a reference to it that can be pickled.

Promises: the contract of `FileSystem` without a disk: `replace` is atomic, and a missing file or directory raises the
same error. `lose_power` keeps what a real disk would keep. An unpickled `Named` is the same file system, so a simulated
worker writes where its driver reads.
Does not know: faults; `FaultyFileSystem` adds them."""

from __future__ import annotations

import builtins
import errno
import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from millstream.files.contract import FileSystem
from millstream_chaos.storage.power import Device, PowerLoss

_named: dict[str, FileSystem] = {}
_names = itertools.count()


class MemoryFileSystem(FileSystem):
    """Files by path, and directories, because a write into a missing directory must fail."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.directories: set[str] = {"/"}
        self._device = Device.of({}, {"/"})

    @classmethod
    def of(cls, files: Mapping[str, bytes], directories: Iterable[str] = ()) -> MemoryFileSystem:
        """Create a file system with these files and directories, all of them durable."""
        disk = cls()
        for path in (*directories, *map(os.path.dirname, files)):
            disk.make_dirs(path)
        disk.files = dict(files)
        disk._device = Device.of(disk.files, disk.directories)
        return disk

    def copy(self) -> MemoryFileSystem:
        """Return another file system with the same files."""
        disk = MemoryFileSystem()
        disk.files, disk.directories = dict(self.files), set(self.directories)
        disk._device = self._device.copy()
        return disk

    def lose_power(self, how: PowerLoss, draw: Callable[[int], int]) -> None:
        """Keep what a power loss may leave; `draw(n)` returns a random number from 0 to n - 1."""
        self.files, self.directories = self._device.left(self.files, how, draw)
        self._device = Device.of(self.files, self.directories)

    def _check_parent(self, path: str) -> None:
        if os.path.dirname(path) not in self.directories:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _file(self, path: str) -> bytes:
        if path in self.directories:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self.files[path]

    def write_bytes(self, path: str, data: bytes, sync: bool) -> None:  # noqa: D102
        self._check_parent(path)
        self._write(path, bytes(data), sync)

    def append_bytes(self, path: str, data: bytes, sync: bool) -> None:  # noqa: D102
        self._check_parent(path)
        self._write(path, self.files.get(path, b"") + bytes(data), sync)

    def truncate(self, path: str, size: int, sync: bool) -> None:  # noqa: D102
        self._write(path, self._file(path)[:size], sync)

    def _write(self, path: str, data: bytes, sync: bool) -> None:
        self.files[path] = data
        self._device.write(path, data, synced=sync)

    def replace(self, source: str, target: str) -> None:  # noqa: D102
        self._check_parent(target)
        self.files[target] = self._file(source)
        del self.files[source]
        self._device.rename(source, target)

    def move_new(self, source: str, target: str) -> None:  # noqa: D102
        if self.exists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        self.replace(source, target)

    def remove(self, path: str) -> None:  # noqa: D102
        if path in self.directories:
            if self.list(path):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
            self.directories.discard(path)
        else:
            self._file(path)
            del self.files[path]
        self._device.remove(path)

    def make_dirs(self, path: str) -> None:  # noqa: D102
        if path in self.directories:
            return
        self.make_dirs(os.path.dirname(path))
        self.directories.add(path)
        self._device.make_directory(path)

    def sync_dir(self, path: str) -> None:  # noqa: D102
        self.list(path)
        self._device.sync_directory(path)

    def read_bytes(self, path: str) -> bytes:  # noqa: D102
        return self._file(path)

    def exists(self, path: str) -> bool:  # noqa: D102
        return path in self.files or path in self.directories

    def list(self, path: str) -> builtins.list[str]:  # noqa: D102
        if path not in self.directories:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        inside = path.rstrip("/") + "/"
        paths = (*self.files, *self.directories)
        return sorted(
            {each[len(inside) :].split("/")[0] for each in paths if each.startswith(inside) and each != inside}
        )

    def size(self, path: str) -> int:  # noqa: D102
        return len(self._file(path))

    def resolve(self, path: str) -> str:  # noqa: D102
        return os.path.normpath(path)


@dataclass(frozen=True)
class Named(FileSystem):
    """A reference to a file system of this process, by name, so that pickling does not copy the files."""

    name: str

    @classmethod
    def of(cls, inner: FileSystem) -> Named:
        """Create a reference to `inner`."""
        reference = cls(f"files-{next(_names)}")
        _named[reference.name] = inner
        return reference

    def replace_target(self, inner: FileSystem) -> FileSystem:
        """Let the name refer to another file system; returns the previous one."""
        before, _named[self.name] = _named[self.name], inner
        return before

    def unregister(self) -> None:
        """Remove the name."""
        _named.pop(self.name, None)

    def write_bytes(self, path: str, data: bytes, sync: bool) -> None:  # noqa: D102
        _named[self.name].write_bytes(path, data, sync)

    def append_bytes(self, path: str, data: bytes, sync: bool) -> None:  # noqa: D102
        _named[self.name].append_bytes(path, data, sync)

    def truncate(self, path: str, size: int, sync: bool) -> None:  # noqa: D102
        _named[self.name].truncate(path, size, sync)

    def replace(self, source: str, target: str) -> None:  # noqa: D102
        _named[self.name].replace(source, target)

    def move_new(self, source: str, target: str) -> None:  # noqa: D102
        _named[self.name].move_new(source, target)

    def remove(self, path: str) -> None:  # noqa: D102
        _named[self.name].remove(path)

    def make_dirs(self, path: str) -> None:  # noqa: D102
        _named[self.name].make_dirs(path)

    def sync_dir(self, path: str) -> None:  # noqa: D102
        _named[self.name].sync_dir(path)

    def read_bytes(self, path: str) -> bytes:  # noqa: D102
        return _named[self.name].read_bytes(path)

    def exists(self, path: str) -> bool:  # noqa: D102
        return _named[self.name].exists(path)

    def list(self, path: str) -> builtins.list[str]:  # noqa: D102
        return _named[self.name].list(path)

    def size(self, path: str) -> int:  # noqa: D102
        return _named[self.name].size(path)

    def resolve(self, path: str) -> str:  # noqa: D102
        return _named[self.name].resolve(path)
