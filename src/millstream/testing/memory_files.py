"""A file system in memory, and one that tasks reach by name.

Promises: what `FileSystem` promises, without a disk: `replace` is atomic, a missing file or directory is the error it
would be; `lose_power` leaves what a real disk would keep; `Named` stays the same file system when it is pickled, so a
simulated worker writes where its driver reads.
Does not know: faults; `FaultyFileSystem` wraps it for those."""

from __future__ import annotations

import builtins
import errno
import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from millstream.files.contract import FileSystem
from millstream.testing.power import Device, PowerLoss

_named: dict[str, FileSystem] = {}
_names = itertools.count()


class MemoryFileSystem(FileSystem):
    """Files by path; directories are remembered too, because a write into none must fail."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.directories: set[str] = {"/"}
        self._device = Device.of({}, {"/"})

    @classmethod
    def of(cls, files: Mapping[str, bytes], directories: Iterable[str] = ()) -> MemoryFileSystem:
        """A file system with these files and directories, all of them durable."""
        made = cls()
        for path in (*directories, *map(os.path.dirname, files)):
            made.make_dirs(path)
        made.files = dict(files)
        made._device = Device.of(made.files, made.directories)
        return made

    def copy(self) -> MemoryFileSystem:
        """Another file system with the same files."""
        made = MemoryFileSystem()
        made.files, made.directories = dict(self.files), set(self.directories)
        made._device = self._device.copy()
        return made

    def lose_power(self, how: PowerLoss, draw: Callable[[int], int]) -> None:
        """Keep what may be left after a power loss; `draw(n)` gives one of 0 to n - 1."""
        self.files, self.directories = self._device.left(self.files, how, draw)
        self._device = Device.of(self.files, self.directories)

    def _parent(self, path: str) -> None:
        if os.path.dirname(path) not in self.directories:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _file(self, path: str) -> bytes:
        if path in self.directories:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self.files[path]

    def write_bytes(self, path: str, data: bytes, sync: bool) -> None:  # noqa: D102
        self._parent(path)
        self._write(path, bytes(data), sync)

    def append_bytes(self, path: str, data: bytes, sync: bool) -> None:  # noqa: D102
        self._parent(path)
        self._write(path, self.files.get(path, b"") + bytes(data), sync)

    def truncate(self, path: str, size: int, sync: bool) -> None:  # noqa: D102
        self._write(path, self._file(path)[:size], sync)

    def _write(self, path: str, data: bytes, sync: bool) -> None:
        self.files[path] = data
        self._device.write(path, data, synced=sync)

    def replace(self, source: str, target: str) -> None:  # noqa: D102
        self._parent(target)
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
        found = (*self.files, *self.directories)
        return sorted(
            {each[len(inside) :].split("/")[0] for each in found if each.startswith(inside) and each != inside}
        )

    def size(self, path: str) -> int:  # noqa: D102
        return len(self._file(path))

    def resolve(self, path: str) -> str:  # noqa: D102
        return os.path.normpath(path)


@dataclass(frozen=True)
class Named(FileSystem):
    """A file system of this process that is found by its name, so that pickling it does not copy it."""

    name: str

    @classmethod
    def of(cls, inner: FileSystem) -> Named:
        """A name for `inner`."""
        made = cls(f"files-{next(_names)}")
        _named[made.name] = inner
        return made

    def become(self, inner: FileSystem) -> FileSystem:
        """From now on, another file system under this name; gives the one before."""
        before, _named[self.name] = _named[self.name], inner
        return before

    def forget(self) -> None:
        """Nobody will ask for this name again."""
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
