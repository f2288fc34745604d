"""File systems that fsspec or Arrow reaches by a URI; object stores among them.

Promises: a URI stays one; every failure is an `OSError` with the store's own message. An object store shows an object
when it is complete; if several processes create the same new object, one succeeds, where the store supports
conditional writes (s3fs, gcsfs and adlfs ask for them).
Does not know: what is stored. An object store has no directories: a name with a slash is a name."""

from __future__ import annotations

import builtins
import errno
import importlib
import os
import posixpath
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from millstream.errors import UserError
from millstream.files.contract import FileStatus, FileSystem
from millstream.files.local import LocalFileSystem
from millstream.files.locations import scheme_of

#: Schemes of stores that show an object when it is complete.
OBJECT_STORES = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory")
#: Schemes whose rename is atomic by the documentation of the system, and is what fsspec's or Arrow's `mv` calls: HDFS
#: (the NameNode renames), SFTP (`posix-rename@openssh.com` is rename(2) of the server) and local disks. SMB promises
#: nothing of the kind, and DBFS copies: files there are neither hidden until they are complete nor renamed at once.
ATOMIC_RENAMES = frozenset({"file", "local", "hdfs", "viewfs", "webhdfs", "sftp", "ssh"})
#: Schemes that Arrow reads where fsspec has no package for them.
_ARROW = frozenset({"s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs"})
_VERSION_FIELDS = ("ETag", "etag", "LastModified", "last_modified", "mtime", "created")

_clients: dict[str, Any] = {}  # the clients of this process, by scheme
_registered: dict[str, FileSystem] = {}


class UnknownFileSystem(UserError):
    """A scheme that no installed package can read."""

    def __init__(self, scheme: str, reason: str) -> None:
        self.scheme = scheme
        super().__init__(
            f"there is no file system for {scheme}://: {reason}",
            hint="pip install fsspec, and its package for that store (s3fs, gcsfs, adlfs)",
        )


class NoObjectStore(UserError):
    """A scheme whose files may be visible before they are complete."""

    def __init__(self, scheme: str) -> None:
        self.scheme = scheme
        super().__init__(
            f"checkpoints cannot be kept on {scheme}://",
            hint=f"use a directory that the driver and all executors see, or one of {', '.join(OBJECT_STORES[:-1])}",
        )


def get_file_system(path: str) -> FileSystem:
    """Return the file system of a path or URI. New local files have the permissions of the umask: they are output."""
    scheme = scheme_of(path)
    if scheme is None:
        return LocalFileSystem(private=False)
    if scheme in _registered:
        return _registered[scheme]
    file_system = ObjectStore(scheme) if scheme in OBJECT_STORES else RemoteFileSystem(scheme)
    file_system.connect(path)
    return file_system


def register_file_system(scheme: str, file_system: FileSystem) -> None:
    """Let `get_file_system` return a file system for a scheme, in this process."""
    _registered[scheme] = file_system


def check_scheme(path: str) -> None:
    """Raise `UnknownFileSystem` for a URI that neither fsspec nor Arrow has a file system for, without connecting."""
    scheme = scheme_of(path)
    if scheme is not None and scheme not in _registered:
        fsspec = _import_fsspec(scheme)
        if scheme not in {*fsspec.available_protocols(), *fsspec.registry, *_ARROW}:
            raise UnknownFileSystem(scheme, "the scheme is not known")


def _import_fsspec(scheme: str) -> Any:
    try:
        return importlib.import_module("fsspec")
    except ImportError:
        raise UnknownFileSystem(scheme, "fsspec is not installed") from None


def _create_client(scheme: str, path: str) -> Any:
    """Return fsspec's client for a scheme, or Arrow's behind the interface of fsspec."""
    fsspec = _import_fsspec(scheme)
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
    except Exception as problem:  # the error that Arrow raises depends on the scheme and the store
        raise UnknownFileSystem(scheme, f"{reason}; {problem}") from None


def _is_arrow(client: Any) -> bool:
    return type(client).__name__ == "ArrowFSWrapper"


@dataclass(frozen=True, slots=True)
class RemoteFileSystem(FileSystem):
    """The file system behind a scheme such as `hdfs`; paths are URIs. May be sent to other processes."""

    scheme: str

    @property
    def has_atomic_rename(self) -> bool:  # noqa: D102
        return self.scheme in ATOMIC_RENAMES

    def connect(self, path: str) -> Any:
        """Return the client of this process for the scheme."""
        if self.scheme not in _clients:
            _clients[self.scheme] = _create_client(self.scheme, path)
        return _clients[self.scheme]

    @contextmanager
    def _request(self, path: str, *, cached: bool = False) -> Iterator[tuple[Any, str]]:
        """Yield the client and its own name of a path. Cached listings are dropped, because other processes write."""
        client = self.connect(path)
        try:
            if not cached:
                client.invalidate_cache()
            yield client, str(client._strip_protocol(path))
        except OSError:
            raise
        except Exception as problem:  # each client library has its own errors
            reason = f"{type(problem).__name__}: {problem}"
            raise OSError(reason) from problem

    def write_bytes(self, path: str, data: bytes, sync: bool) -> None:  # noqa: D102
        with self._request(path) as (client, name):
            client.pipe_file(name, bytes(data))

    def append_bytes(self, path: str, data: bytes, sync: bool) -> None:
        """Write the file again with the data at its end: a remote file cannot be appended to."""
        before = self.read_bytes(path) if self.exists(path) else b""
        self.write_bytes(path, before + data, sync)

    def truncate(self, path: str, size: int, sync: bool) -> None:  # noqa: D102
        self.write_bytes(path, self.read_bytes(path)[:size], sync)

    def replace(self, source: str, target: str) -> None:
        """Rename a file. Some clients do not report that the server refused, so the result is checked."""
        with self._request(source, cached=True) as (client, name):
            client.mv(name, str(client._strip_protocol(target)))
        if not self.exists(target):
            message = f"{self.scheme}:// did not rename {source} to {target}"
            raise OSError(message)

    def move_new(self, source: str, target: str) -> None:
        """Refuse: fsspec has no rename that fails if the target exists."""
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), target)

    def remove(self, path: str) -> None:  # noqa: D102
        with self._request(path) as (client, name):
            if client.isfile(name):
                client.rm_file(name)
            elif not client.exists(name):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            elif _is_arrow(client) and not self.list(path):  # s3fs creates an empty object as the marker of a directory
                client.rmdir(name)

    def make_dirs(self, path: str) -> None:  # noqa: D102
        with self._request(path, cached=True) as (client, name):
            client.makedirs(name, exist_ok=True)

    def sync_dir(self, path: str) -> None:
        """Do nothing: what a server has confirmed is durable."""

    def read_bytes(self, path: str) -> bytes:  # noqa: D102
        with self._request(path) as (client, name):
            return bytes(client.cat_file(name))

    def exists(self, path: str) -> bool:  # noqa: D102
        with self._request(path) as (client, name):
            return bool(client.exists(name))

    def list(self, path: str) -> builtins.list[str]:  # noqa: D102
        with self._request(path) as (client, name):
            listed = (entry.rstrip("/") for entry in client.ls(name, detail=False))
            return sorted(posixpath.basename(entry) for entry in listed if entry != name.rstrip("/"))

    def size(self, path: str) -> int:  # noqa: D102
        with self._request(path) as (client, name):
            return int(client.info(name)["size"])

    def resolve(self, path: str) -> str:  # noqa: D102
        scheme, _, rest = path.partition("://")
        return f"{scheme}://{posixpath.normpath(rest)}"

    def open(self, path: str) -> BinaryIO:  # noqa: D102
        with self._request(path, cached=True) as (client, name):
            stream: BinaryIO = client.open(name, "rb")
            return stream

    def create(self, path: str, *, append: bool = False) -> BinaryIO:
        """Open a file for writing; appending is refused."""
        if append:
            message = f"files of {self.scheme}:// cannot be appended to"
            raise OSError(message)
        with self._request(path, cached=True) as (client, name):
            client.makedirs(os.path.dirname(name), exist_ok=True)
            stream: BinaryIO = client.open(name, "wb")
            return stream

    def finish(self, stream: BinaryIO) -> None:  # noqa: D102
        stream.close()

    def abandon(self, stream: BinaryIO) -> None:
        """Close a stream; an incomplete upload is discarded."""
        discard = getattr(stream, "discard", None)
        with suppress(Exception):  # the response does not matter, because the file is not needed
            if discard is None:
                stream.close()
            else:
                discard()
                stream.closed = True  # type: ignore[misc]

    def copy_file(self, source: str, target: str) -> None:  # noqa: D102
        with self._request(source, cached=True) as (client, name):
            copy = str(client._strip_protocol(target))
            client.makedirs(os.path.dirname(copy), exist_ok=True)
            _copy_file(client, name, copy)

    def remove_empty_dir(self, path: str) -> None:  # noqa: D102
        with suppress(OSError), self._request(path, cached=True) as (client, name):
            client.rmdir(name)

    def is_directory(self, path: str) -> bool:  # noqa: D102
        with self._request(path, cached=True) as (client, name):
            return bool(client.isdir(name))

    def status(self, path: str) -> FileStatus:
        """Return the size of a file and, as its version, a checksum of what the store says about the version."""
        with self._request(path) as (client, name):
            info = client.info(name)
            version = [info[field] for field in _VERSION_FIELDS if info.get(field) is not None]
            return FileStatus(int(info["size"]), zlib.crc32(repr(version).encode()))

    def walk(self, path: str) -> Iterator[tuple[str, builtins.list[str], builtins.list[str]]]:  # noqa: D102
        with self._request(path) as (client, name):
            start = name.rstrip("/")
            for directory, directories, files in client.walk(start, topdown=True):
                directories.sort()
                below = directory.rstrip("/").removeprefix(start)
                yield path.rstrip("/") + below, directories, sorted(file for file in files if file)


@dataclass(frozen=True, slots=True)
class ObjectStore(RemoteFileSystem):
    """An object store, such as `s3`: no directories, no renames, and objects that appear when they are complete."""

    @classmethod
    def of(cls, uri: str) -> ObjectStore:
        """Connect to the store of a URI; raise `NoObjectStore` if its scheme is not that of an object store."""
        store = cls(uri.partition("://")[0])
        if store.scheme not in OBJECT_STORES:
            raise NoObjectStore(store.scheme)
        store.connect(uri)
        return store

    def write_new(self, path: str, data: bytes) -> None:
        """Create an object; a `FileExistsError` if it exists."""
        with self._request(path) as (client, name):
            if _is_arrow(client):
                reason = "Arrow's client cannot tell whether a file is new; install the fsspec package of the store"
                raise OSError(reason)
            client.pipe_file(name, bytes(data), mode="create")

    def replace(self, source: str, target: str) -> None:
        """Copy and delete: the target changes atomically; a crash in between leaves both."""
        with self._request(source) as (client, name):
            _copy_file(client, name, str(client._strip_protocol(target)))
            client.rm_file(name)

    def move_new(self, source: str, target: str) -> None:
        """Create the target and delete the source; a crash in between leaves both."""
        self.write_new(target, self.read_bytes(source))
        self.remove(source)

    def make_dirs(self, path: str) -> None:
        """Do nothing: an object store has no directories."""


def _copy_file(client: Any, source: str, target: str) -> None:
    """Copy a file within a store, so that no incomplete copy and no temporary name is visible."""
    if _is_arrow(client):
        client.fs.copy_file(source, target)  # fsspec would write to a temporary name, which a crash would leave behind
    else:
        client.cp_file(source, target)
