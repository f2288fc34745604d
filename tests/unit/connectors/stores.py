"""File systems for tests: an object store without rename, and a wrapper that dies at the n-th change."""

from __future__ import annotations

import builtins
import io
from collections.abc import Iterator
from typing import Any, BinaryIO

import fsspec
from fsspec.spec import AbstractFileSystem

from millstream.files.contract import FileStatus, FileSystem


class ObjectStore(AbstractFileSystem):
    """Objects by name. An object is there when its writer closes it; nothing can be renamed."""

    protocol = "objects"
    objects: dict[str, tuple[bytes, int]] = {}  # noqa: RUF012
    versions = 0

    @classmethod
    def put(cls, path: str, data: bytes) -> None:
        cls.versions += 1
        cls.objects[path] = (data, cls.versions)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.removeprefix("objects://").strip("/")

    def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        if mode == "rb":
            if path not in self.objects:
                raise FileNotFoundError(path)
            return io.BytesIO(self.objects[path][0])
        return _Upload(path)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        inside = f"{path}/" if path else ""
        names = {inside + name.removeprefix(inside).split("/")[0] for name in self.objects if name.startswith(inside)}
        if not names and path not in self.objects:
            raise FileNotFoundError(path)
        found = [self.info(name) for name in sorted(names or [path])]
        return found if detail else [each["name"] for each in found]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        if path in self.objects:
            data, version = self.objects[path]
            return {"name": path, "size": len(data), "type": "file", "ETag": str(version)}
        if any(name.startswith(f"{path}/") for name in self.objects):
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        self.put(path2, self.objects[path1][0])

    def rm_file(self, path: str) -> None:
        del self.objects[path]

    def mv(self, *_: Any, **__: Any) -> None:
        raise AssertionError("an object store cannot rename")

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        pass

    def rmdir(self, path: str) -> None:
        pass


class _Upload(io.BytesIO):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._discarded = False

    def discard(self) -> None:
        self._discarded = True
        super().close()

    def close(self) -> None:
        if not self.closed and not self._discarded:
            ObjectStore.put(self._path, self.getvalue())
        super().close()


fsspec.register_implementation("objects", ObjectStore, clobber=True)


class Crash(BaseException):
    """The process dies."""


class DyingFiles(FileSystem):
    """A file system in which the process dies just before or just after the n-th change."""

    def __init__(self, inner: FileSystem, steps: int, after: bool) -> None:
        self._inner, self.steps, self._after = inner, steps, after

    @property
    def has_atomic_rename(self) -> bool:
        return self._inner.has_atomic_rename

    def _step(self, change: Any, *arguments: Any) -> None:
        self.steps -= 1
        if self.steps > 0:
            change(*arguments)
            return
        if self.steps == 0 and self._after:
            change(*arguments)
        raise Crash

    def write_bytes(self, path: str, data: bytes, sync: bool) -> None:
        self._step(self._inner.write_bytes, path, data, sync)

    def append_bytes(self, path: str, data: bytes, sync: bool) -> None:
        self._step(self._inner.append_bytes, path, data, sync)

    def truncate(self, path: str, size: int, sync: bool) -> None:
        self._step(self._inner.truncate, path, size, sync)

    def replace(self, source: str, target: str) -> None:
        self._step(self._inner.replace, source, target)

    def move_new(self, source: str, target: str) -> None:
        self._step(self._inner.move_new, source, target)

    def remove(self, path: str) -> None:
        self._step(self._inner.remove, path)

    def make_dirs(self, path: str) -> None:
        self._inner.make_dirs(path)

    def sync_dir(self, path: str) -> None:
        self._inner.sync_dir(path)

    def read_bytes(self, path: str) -> bytes:
        return self._inner.read_bytes(path)

    def exists(self, path: str) -> bool:
        return self._inner.exists(path)

    def list(self, path: str) -> builtins.list[str]:
        return self._inner.list(path)

    def size(self, path: str) -> int:
        return self._inner.size(path)

    def resolve(self, path: str) -> str:
        return self._inner.resolve(path)

    def open(self, path: str) -> BinaryIO:
        return self._inner.open(path)

    def create(self, path: str, *, append: bool = False) -> BinaryIO:
        return self._inner.create(path, append=append)

    def finish(self, stream: BinaryIO) -> None:
        self._step(self._inner.finish, stream)

    def abandon(self, stream: BinaryIO) -> None:
        self._inner.abandon(stream)

    def copy_file(self, source: str, target: str) -> None:
        self._step(self._inner.copy_file, source, target)

    def remove_empty_dir(self, path: str) -> None:
        self._inner.remove_empty_dir(path)

    def is_directory(self, path: str) -> bool:
        return self._inner.is_directory(path)

    def status(self, path: str) -> FileStatus:
        return self._inner.status(path)

    def walk(self, path: str) -> Iterator[tuple[str, builtins.list[str], builtins.list[str]]]:
        return self._inner.walk(path)
