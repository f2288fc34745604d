"""Checkpoints on an object store that fsspec or Arrow reaches by a URI.

Promises: a file is there whole or not at all, because a store shows an object when it is complete; of several that make
the same new file one succeeds, where the store can tell (s3fs, gcsfs and adlfs ask it to); every failure is an
`OSError` with what the store said. A URI stays one, a path becomes absolute.
Does not know: what is stored. There are no directories: a name with a slash is a name."""

from __future__ import annotations

import builtins
import errno
import importlib
import os
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from millstream.errors import UserError

#: Schemes of stores that show an object when it is complete.
STORES = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory")
_remote: dict[str, Any] = {}  # by scheme, one for each process


class UnknownFileSystem(UserError):
    """A scheme that nobody here can read."""

    def __init__(self, scheme: str, reason: str) -> None:
        self.scheme = scheme
        super().__init__(
            f"no file system for {scheme}:// can be had: {reason}",
            hint="pip install fsspec, and its package for that store (s3fs, gcsfs, adlfs)",
        )


class NoObjectStore(UserError):
    """A scheme whose files may be seen before they are complete."""

    def __init__(self, scheme: str) -> None:
        self.scheme = scheme
        super().__init__(
            f"checkpoints cannot be kept on {scheme}://",
            hint=f"use a directory that the driver and all executors see, or one of {', '.join(STORES[:-1])}",
        )


def fsspec_for(scheme: str) -> Any:
    """The module fsspec."""
    try:
        return importlib.import_module("fsspec")
    except ImportError:
        raise UnknownFileSystem(scheme, "fsspec is not installed") from None


def remote(scheme: str, path: str) -> Any:
    """The file system of a scheme as fsspec has it, or Arrow behind it."""
    fsspec = fsspec_for(scheme)
    try:
        return fsspec.filesystem(scheme)
    except (ImportError, ValueError) as problem:
        reason = str(problem)
    try:  # Arrow has S3, GCS, Azure and HDFS built in
        arrow_fs, wrapper = (
            importlib.import_module("pyarrow.fs"),
            importlib.import_module("fsspec.implementations.arrow"),
        )
        return wrapper.ArrowFSWrapper(arrow_fs.FileSystem.from_uri(path)[0])
    except Exception as problem:  # what Arrow raises for a scheme or a store differs with both
        raise UnknownFileSystem(scheme, f"{reason}; {problem}") from None


def is_uri(path: str) -> bool:
    """Whether a path is on a store rather than a disk."""
    return "://" in path and not path.startswith("file://")


def located(path: str) -> str:
    """A path from wherever it is looked at: absolute if it is on a disk, a URI if it is not."""
    return path.rstrip("/") if is_uri(path) else os.path.abspath(path.removeprefix("file://"))


def _is_arrow(store: Any) -> bool:
    return type(store).__name__ == "ArrowFSWrapper"


def copy_file(store: Any, source: str, target: str) -> None:
    """Copy a file of a store; nobody sees half of it, or it under another name."""
    if _is_arrow(store):
        store.fs.copy_file(source, target)  # fsspec would show a copy under a name that a crash leaves behind
    else:
        store.cp_file(source, target)


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A store behind a scheme such as `s3`; paths are URIs. What `FileSystem` promises."""

    scheme: str

    @classmethod
    def of(cls, uri: str) -> ObjectStore:
        """The store of a URI, which must be known."""
        made = cls(uri.partition("://")[0])
        if made.scheme not in STORES:
            raise NoObjectStore(made.scheme)
        made._store(uri)
        return made

    def _store(self, path: str) -> Any:
        if self.scheme not in _remote:
            _remote[self.scheme] = remote(self.scheme, path)
        return _remote[self.scheme]

    @contextmanager
    def _asked(self, path: str) -> Iterator[tuple[Any, str]]:
        """The store and its own name of a path; what it knew before is forgotten, others write too."""
        store = self._store(path)
        try:
            store.invalidate_cache()
            yield store, str(store._strip_protocol(path))
        except OSError:
            raise
        except Exception as problem:  # each client library has its own
            reason = f"{type(problem).__name__}: {problem}"
            raise OSError(reason) from problem

    def write_bytes(self, path: str, data: bytes, sync: bool) -> None:  # noqa: D102
        with self._asked(path) as (store, name):
            store.pipe_file(name, bytes(data))

    def append_bytes(self, path: str, data: bytes, sync: bool) -> None:
        """A store cannot append: the object is written anew."""
        before = self.read_bytes(path) if self.exists(path) else b""
        self.write_bytes(path, before + data, sync)

    def truncate(self, path: str, size: int, sync: bool) -> None:  # noqa: D102
        self.write_bytes(path, self.read_bytes(path)[:size], sync)

    def replace(self, source: str, target: str) -> None:
        """The target changes at once; a crash leaves the source as well."""
        with self._asked(source) as (store, name):
            copy_file(store, name, str(store._strip_protocol(target)))
            store.rm_file(name)

    def move_new(self, source: str, target: str) -> None:  # noqa: D102
        self.write_new(target, self.read_bytes(source))
        self.remove(source)

    def write_new(self, path: str, data: bytes) -> None:
        """Make a file; a `FileExistsError` when there is one."""
        with self._asked(path) as (store, name):
            if _is_arrow(store):
                reason = "Arrow's client cannot tell whether a file is new; install the fsspec package of the store"
                raise OSError(reason)
            store.pipe_file(name, bytes(data), mode="create")

    def remove(self, path: str) -> None:  # noqa: D102
        with self._asked(path) as (store, name):
            if store.isfile(name):
                store.rm_file(name)
            elif not store.exists(name):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            elif _is_arrow(store) and not self.list(path):  # it marks what it takes for a directory
                store.rmdir(name)

    def make_dirs(self, path: str) -> None:
        """There are none."""

    def sync_dir(self, path: str) -> None:
        """A store that has answered has it."""

    def read_bytes(self, path: str) -> bytes:  # noqa: D102
        with self._asked(path) as (store, name):
            return bytes(store.cat_file(name))

    def exists(self, path: str) -> bool:  # noqa: D102
        with self._asked(path) as (store, name):
            return bool(store.exists(name))

    def list(self, path: str) -> builtins.list[str]:  # noqa: D102
        with self._asked(path) as (store, name):
            found = (each.rstrip("/") for each in store.ls(name, detail=False))
            return sorted(posixpath.basename(each) for each in found if each != name.rstrip("/"))

    def size(self, path: str) -> int:  # noqa: D102
        with self._asked(path) as (store, name):
            return int(store.info(name)["size"])

    def resolve(self, path: str) -> str:  # noqa: D102
        scheme, _, rest = path.partition("://")
        return f"{scheme}://{posixpath.normpath(rest)}"
