"""File systems for tests: an object store without renaming, and any file system that dies at its n-th change."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO

import fsspec
from fsspec.spec import AbstractFileSystem

from millstream.connectors.files.filesystems import Files


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


class DyingFiles(Files):
    """A file system until its n-th change, which happens or not before the process dies."""

    def __init__(self, inner: Files, steps: int, after: bool) -> None:
        self._inner, self.steps, self._after = inner, steps, after
        self.renames = inner.renames

    def _step(self, change: Any, *arguments: Any) -> None:
        self.steps -= 1
        if self.steps > 0:
            change(*arguments)
            return
        if self.steps == 0 and self._after:
            change(*arguments)
        raise Crash

    def open(self, path: str) -> BinaryIO:
        return self._inner.open(path)

    def create(self, path: str, *, append: bool = False) -> BinaryIO:
        return self._inner.create(path, append=append)

    def finish(self, stream: BinaryIO) -> None:
        self._step(self._inner.finish, stream)

    def abandon(self, stream: BinaryIO) -> None:
        self._inner.abandon(stream)

    def exists(self, path: str) -> bool:
        return self._inner.exists(path)

    def is_directory(self, path: str) -> bool:
        return self._inner.is_directory(path)

    def look_at(self, path: str) -> tuple[int, int]:
        return self._inner.look_at(path)

    def rename(self, source: str, target: str) -> None:
        self._step(self._inner.rename, source, target)

    def copy(self, source: str, target: str) -> None:
        self._step(self._inner.copy, source, target)

    def remove(self, path: str) -> None:
        self._step(self._inner.remove, path)

    def names(self, path: str) -> list[str]:
        return self._inner.names(path)

    def walk(self, path: str) -> Iterator[tuple[str, list[str], list[str]]]:
        return self._inner.walk(path)

    def sync(self, path: str) -> None:
        self._inner.sync(path)

    def remove_directory(self, path: str) -> None:
        self._inner.remove_directory(path)
