"""File systems: the local one, and any that fsspec or Arrow knows, under one small contract.

Promises: a path without a scheme is local, any other is a URI and stays one; what is written is whole and durable when
`finish` returns; `rename` is atomic where `renames` says so, and object stores, which cannot, show an object only when
it is complete.
Does not know: what files hold."""

from __future__ import annotations

import errno
import os
import shutil
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from millstream.checkpoint.object_store import STORES, UnknownFileSystem, copy_file, fsspec_for, remote
from millstream.config.file_access import make_directories
from millstream.errors import UserError

#: Schemes whose rename is atomic by the documentation of the system, and is what fsspec's or Arrow's `mv` calls: HDFS
#: (the NameNode renames), SFTP (`posix-rename@openssh.com` is rename(2) of the server) and local disks. SMB promises
#: nothing of the kind, and DBFS copies: files there are neither hidden until they are complete nor renamed at once.
_RENAMING = frozenset({"file", "local", "hdfs", "viewfs", "webhdfs", "sftp", "ssh"})
#: Schemes that Arrow reads where fsspec has no package for them.
_ARROW = frozenset({"s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs"})
_BUFFER = 1 << 18


class Files(ABC):
    """A file system. Paths are as `files_of` was given them; errors are `OSError`."""

    #: Whether `rename` is atomic.
    renames: bool = True

    @abstractmethod
    def open(self, path: str) -> BinaryIO:
        """A file to read from, at any place."""

    @abstractmethod
    def create(self, path: str, *, append: bool = False) -> BinaryIO:
        """A file to write to; the directories above it are made, durably."""

    def make_private(self, path: str) -> None:
        """Make a directory that others cannot look into, where the file system can do that; nothing if it is there."""

    @abstractmethod
    def finish(self, stream: BinaryIO) -> None:
        """Close what was written; it is on the device from then on."""

    @abstractmethod
    def abandon(self, stream: BinaryIO) -> None:
        """Close what was being written and is of no use; what a store has not shown yet it never shows."""

    @contextmanager
    def writing(self, path: str) -> Iterator[BinaryIO]:
        """A file that is finished when all went well."""
        stream = self.create(path)
        try:
            yield stream
            self.finish(stream)
        except BaseException:
            self.abandon(stream)
            raise

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""

    @abstractmethod
    def is_directory(self, path: str) -> bool:
        """Whether there is a directory."""

    @abstractmethod
    def look_at(self, path: str) -> tuple[int, int]:
        """Size of a file, and a number that changes when the file does."""

    @abstractmethod
    def rename(self, source: str, target: str) -> None:
        """Give a file another name, whose directory is made; the names are durable from then on."""

    def move_new(self, source: str, target: str) -> None:
        """As `rename`, but a `FileExistsError` when a file has that name; atomic where the file system can do that."""
        if self.exists(target):
            raise FileExistsError(target)
        self.rename(source, target)

    def is_same(self, first: str, second: str) -> bool:
        """Whether two names are known to be of one file, as when a process died in `move_new`."""
        return False

    @abstractmethod
    def copy(self, source: str, target: str) -> None:
        """Copy a file; a file that is there is replaced."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file; FileNotFoundError if there is none."""

    @abstractmethod
    def names(self, path: str) -> list[str]:
        """The names in a directory; none if there is no such directory."""

    @abstractmethod
    def walk(self, path: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """Directories below a path with the names of the directories and files in them, as `os.walk` has it."""

    @abstractmethod
    def sync(self, path: str) -> None:
        """Bring the names in a directory to the device, where that needs asking."""

    @abstractmethod
    def remove_directory(self, path: str) -> None:
        """Remove a directory if it is empty."""


class LocalFiles(Files):
    """The disks of this machine."""

    def open(self, path: str) -> BinaryIO:
        """As Files promises."""
        return open(path, "rb")

    def create(self, path: str, *, append: bool = False) -> BinaryIO:
        """As Files promises."""
        self._make(os.path.dirname(path))
        return open(path, "ab" if append else "wb", buffering=_BUFFER)

    def make_private(self, path: str) -> None:
        """As Files promises; the directories above it are made as the umask says."""
        self._make(os.path.dirname(path))
        make_directories(path)

    def finish(self, stream: BinaryIO) -> None:
        """As Files promises."""
        stream.flush()
        os.fsync(stream.fileno())
        stream.close()

    def abandon(self, stream: BinaryIO) -> None:
        """As Files promises."""
        with suppress(OSError):
            stream.close()

    def exists(self, path: str) -> bool:
        """As Files promises."""
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        """As Files promises."""
        return os.path.isdir(path)

    def look_at(self, path: str) -> tuple[int, int]:
        """Size and modification time in nanoseconds."""
        found = os.stat(path)
        return found.st_size, found.st_mtime_ns

    def rename(self, source: str, target: str) -> None:
        """As Files promises."""
        folder = os.path.dirname(target)
        self._make(folder)
        os.rename(source, target)
        self.sync(folder)
        if os.path.dirname(source) != folder:
            self.sync(os.path.dirname(source))

    def move_new(self, source: str, target: str) -> None:
        """As Files promises: by a second name, then without the first."""
        folder = os.path.dirname(target)
        self._make(folder)
        try:
            os.link(source, target)
        except FileExistsError:
            raise
        except OSError as problem:
            if problem.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
                raise
            super().move_new(source, target)  # a file system without links
            return
        self.sync(folder)
        os.remove(source)
        if os.path.dirname(source) != folder:
            self.sync(os.path.dirname(source))

    def is_same(self, first: str, second: str) -> bool:
        """As Files promises."""
        return os.path.samefile(first, second)

    def _make(self, path: str) -> None:
        """Make a directory with those above it; their names are on the device when this returns."""
        if not os.path.isdir(path):
            above = os.path.dirname(path)
            self._make(above)
            os.makedirs(path, exist_ok=True)
            self.sync(above)

    def copy(self, source: str, target: str) -> None:
        """As Files promises: whole or not at all."""
        with open(source, "rb") as read, self.writing(f"{target}.tmp") as written:
            shutil.copyfileobj(read, written)
        self.rename(f"{target}.tmp", target)

    def remove(self, path: str) -> None:
        """As Files promises."""
        os.remove(path)

    def names(self, path: str) -> list[str]:
        """As Files promises."""
        try:
            return sorted(os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def walk(self, path: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """As Files promises; links are followed, an error is raised."""

        def refuse(error: OSError) -> None:
            raise error

        visited: set[str] = set()
        for folder, folders, files in os.walk(path, followlinks=True, onerror=refuse):
            visited.add(os.path.realpath(folder))
            # a link to a directory above would never end
            folders[:] = sorted(name for name in folders if os.path.realpath(f"{folder}/{name}") not in visited)
            yield folder, folders, sorted(files)

    def sync(self, path: str) -> None:
        """As Files promises."""
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def remove_directory(self, path: str) -> None:
        """As Files promises."""
        with suppress(OSError):
            os.rmdir(path)


class RemoteFiles(Files):
    """What fsspec, or Arrow behind it, can reach."""

    def __init__(self, scheme: str, inner: Any) -> None:
        self._scheme, self._inner = scheme, inner
        self.renames = scheme in _RENAMING

    def _at(self, path: str) -> str:
        return str(self._inner._strip_protocol(path))

    def open(self, path: str) -> BinaryIO:
        """As Files promises."""
        opened: BinaryIO = self._inner.open(self._at(path), "rb")
        return opened

    def create(self, path: str, *, append: bool = False) -> BinaryIO:
        """As Files promises; nothing is appended here."""
        if append:
            message = f"files of {self._scheme}:// cannot be added to"
            raise OSError(message)
        self._inner.makedirs(os.path.dirname(self._at(path)), exist_ok=True)
        opened: BinaryIO = self._inner.open(self._at(path), "wb")
        return opened

    def finish(self, stream: BinaryIO) -> None:
        """As Files promises."""
        stream.close()

    def abandon(self, stream: BinaryIO) -> None:
        """As Files promises: an upload that was begun is taken back."""
        discard = getattr(stream, "discard", None)
        with suppress(Exception):  # whatever a store says about it: nobody waits for this file
            if discard is None:
                stream.close()
            else:
                discard()
                stream.closed = True  # type: ignore[misc]

    def exists(self, path: str) -> bool:
        """As Files promises."""
        self._inner.invalidate_cache()
        return bool(self._inner.exists(self._at(path)))

    def is_directory(self, path: str) -> bool:
        """As Files promises."""
        return bool(self._inner.isdir(self._at(path)))

    def look_at(self, path: str) -> tuple[int, int]:
        """Size, and a number made of whatever the store says about the version of a file."""
        self._inner.invalidate_cache()
        found = self._inner.info(self._at(path))
        version = [found.get(name) for name in ("ETag", "etag", "LastModified", "last_modified", "mtime", "created")]
        return int(found["size"]), zlib.crc32(repr([each for each in version if each is not None]).encode())

    def rename(self, source: str, target: str) -> None:
        """As Files promises; some clients do not say that the server refused, so it is asked."""
        self._inner.makedirs(os.path.dirname(self._at(target)), exist_ok=True)
        self._inner.mv(self._at(source), self._at(target))
        if not self.exists(target):
            message = f"{self._scheme}:// did not rename {source} to {target}"
            raise OSError(message)

    def copy(self, source: str, target: str) -> None:
        """As Files promises."""
        self._inner.makedirs(os.path.dirname(self._at(target)), exist_ok=True)
        copy_file(self._inner, self._at(source), self._at(target))

    def remove(self, path: str) -> None:
        """As Files promises."""
        self._inner.invalidate_cache()
        if not self._inner.exists(self._at(path)):
            raise FileNotFoundError(path)
        self._inner.rm_file(self._at(path))

    def names(self, path: str) -> list[str]:
        """As Files promises."""
        self._inner.invalidate_cache()
        try:
            return sorted(name.rstrip("/").rpartition("/")[2] for name in self._inner.ls(self._at(path), detail=False))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def walk(self, path: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """As Files promises."""
        self._inner.invalidate_cache()
        start = self._at(path).rstrip("/")
        for folder, folders, files in self._inner.walk(start, topdown=True):
            folders.sort()
            below = folder.rstrip("/").removeprefix(start)
            yield path.rstrip("/") + below, folders, sorted(name for name in files if name)

    def sync(self, path: str) -> None:
        """Nothing to ask: a store that has answered has it."""

    def remove_directory(self, path: str) -> None:
        """As Files promises."""
        with suppress(OSError):
            self._inner.rmdir(self._at(path))


_known: dict[str, Files] = {}


def scheme_of(path: str) -> str | None:
    """The scheme of a URI; None for a local path."""
    return urlsplit(path).scheme if "://" in path else None


def files_of(path: str) -> Files:
    """The file system a path is on."""
    scheme = scheme_of(path)
    if scheme is None:
        return _known.setdefault("", LocalFiles())
    if scheme not in _known:
        _known[scheme] = RemoteFiles(scheme, remote(scheme, path))
    return _known[scheme]


def register(scheme: str, files: Files) -> None:
    """Make a file system known under a scheme, in this process."""
    _known[scheme] = files


def check_scheme(path: str) -> None:
    """Refuse a URI that neither fsspec nor Arrow has a file system for; nothing is connected to yet."""
    scheme = scheme_of(path)
    if scheme is not None and scheme not in _known:
        fsspec = fsspec_for(scheme)
        if scheme not in {*fsspec.available_protocols(), *fsspec.registry, *_ARROW}:
            raise UnknownFileSystem(scheme, "the scheme is not known")


class OutputNotAtomic(UserError):
    """A scheme whose files others may see before they are complete."""

    def __init__(self, path: str, scheme: str) -> None:
        self.path, self.scheme = path, scheme
        known = ", ".join(sorted({*_RENAMING, *STORES} - {"file", "local", "memory"}))
        super().__init__(
            f"a file sink cannot write to {path}: {scheme}:// neither renames atomically nor hides a file until it is "
            "complete",
            hint=f"use a directory of a mounted file system, or one of the schemes {known}",
        )


def check_output_scheme(path: str) -> None:
    """Refuse a URI on which output could be seen before it is committed."""
    scheme = scheme_of(path)
    if scheme is not None and scheme not in _RENAMING and scheme not in STORES:
        raise OutputNotAtomic(path, scheme)


def joined(base: str, name: str) -> str:
    """A name below a base path."""
    return f"{base.rstrip('/')}/{name}" if name else base
