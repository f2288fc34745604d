"""The disk backend: one LMDB file per operator subtask and host, shared by all worker processes through the page cache.

Promises: holds only accepted versions; applying changes and noting the version is one transaction; the entries of a
table and key group lie together; large bytes are read where they lie. A full disk is an error that names the directory.
The file does not grow because a process died while it was reading. Only its owner can read it.
Does not know: deltas' files, caches, epochs. Nothing here needs to survive the host: a lost file is rebuilt.

Changes are written with `pwrite`, not through the memory map: where a map has no disk space behind it, writing to it
kills the process with SIGBUS, and nobody could say why."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb

from millstream.errors import ExternalError
from millstream.serialization import codec
from millstream.state.deltas import Changes, Patch
from millstream.state.key_groups import MIN_DEFAULT_MAX_PARALLELISM, KeyGrouper, key_bytes, key_group
from millstream.state.store import ABSENT, StoredGroup
from millstream.windows.window import TimeWindow

_VERSION = b"\0version"
_LAYOUT = b"\0layout"
_LONGEST_KEY = 500
_LONGEST_PART = 200  # of a table's name, and of a namespace
_MAP_SIZE = 1 << 40  # an upper bound of the address range, neither of memory nor of the file
_LOCK, _LOCK_BYTES = "lock.mdb", 8192  # LMDB's table of readers, which it writes through a memory map
_LEAST_FREE = 1 << 20  # bytes; a disk with less has no space
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LARGE = 1 << 16  # bytes; LMDB gives a value of that many pages of its own, which begin at a multiple of eight
_IN_PLACE = b"\0raw"  # before a large value, its namespace and key; what the codec writes begins otherwise


class LocalStoreFailed(ExternalError):
    """The local store cannot be used."""

    hint = "look at the disk of that host, its space and quota; a restart of the job rebuilds the store"

    def __init__(self, path: str, problem: Exception) -> None:
        self.path = path
        super().__init__(f"the local state store {path} cannot be used: {problem}")


class LocalDiskFull(ExternalError):
    """There is no space for the local store."""

    hint = "free space there, or let io.tmp.dirs name a directory on a larger disk"

    def __init__(self, path: str, problem: Exception) -> None:
        self.path = path
        super().__init__(f"disk full: the local state store {path} cannot be written: {problem}")


class LmdbStore:
    """The `Store` contract on LMDB."""

    def __init__(self, directory: Path) -> None:
        self._directory = str(directory)
        with self._telling():
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            _reserve(directory / _LOCK)
            self._environment = lmdb.open(
                self._directory, map_size=_MAP_SIZE, sync=False, metasync=False, max_spare_txns=4, mode=0o600
            )
        self._prefixes: dict[tuple[str, Any], tuple[bytes, bytes]] = {}
        self._layout = b""
        self._grouper = KeyGrouper(MIN_DEFAULT_MAX_PARALLELISM)
        with self._environment.begin() as transaction:
            self.version = transaction.get(_VERSION, b"").decode()
        self._reading: Any = None
        self._chunks: dict[str, list[tuple[Any, bytes | memoryview]]] = {}  # of the version that is read

    def arrange(self, grouper: KeyGrouper) -> None:
        """Keep entries by these key groups; a store that kept them by others is emptied."""
        self._grouper = grouper
        self._layout = b"table, key group of %d, namespace, key; large bytes in place" % grouper.max_parallelism
        self._end_reading()
        with self._environment.begin() as transaction:
            if transaction.get(_LAYOUT) == self._layout:
                return
        with self._telling(), self._environment.begin(write=True) as transaction:
            if transaction.get(_LAYOUT) != self._layout:
                transaction.drop(self._environment.open_db(txn=transaction), delete=False)
                transaction.put(_LAYOUT, self._layout)
        self.version = ""

    def _around(self, table: str, namespace: Any) -> tuple[bytes, bytes]:
        """What stands before and after the key group in an address."""
        found = self._prefixes.get((table, namespace))
        if found is None:
            space = b"" if namespace is None else _short(_namespace_bytes(namespace))
            if len(self._prefixes) > 10_000:
                self._prefixes.clear()
            found = self._prefixes[table, namespace] = _table_prefix(table), b"%c%s" % (len(space), space)
        return found

    def _address(self, table: str, group: int, namespace: Any, key: bytes) -> bytes:
        head, space = self._around(table, namespace)
        prefix = head + group.to_bytes(2, "big") + space
        if len(prefix) + len(key) <= _LONGEST_KEY:
            return prefix + key
        return prefix + b"\xff#" + hashlib.blake2b(key, digest_size=32).digest()

    def _transaction(self) -> Any:
        if self._reading is None:
            self._reading = self._environment.begin(buffers=True)
        return self._reading

    def get(self, table: str, namespace: Any, key: Any) -> Any:
        """The stored value or ABSENT."""
        group = key_group(key, self._grouper.max_parallelism)  # of a key that was not live: it was not seen lately
        found = self._transaction().get(self._address(table, group, namespace, key_bytes(key)))
        return ABSENT if found is None else _unpacked(found)[2]

    def scan(self, table: str, namespace: Any) -> Iterator[tuple[Any, Any]]:
        """Every (key, value) of a namespace, by key group and in the order of their bytes."""
        return self._scan(table, namespace, in_place=False)

    def chunks(self, table: str) -> Iterable[tuple[Any, bytes | memoryview]]:
        """As `Store` promises."""
        found = self._chunks.get(table)
        if found is None:
            found = self._chunks[table] = list(self._scan(table, None, in_place=True))
        return found

    def _scan(self, table: str, namespace: Any, *, in_place: bool) -> Iterator[tuple[Any, Any]]:
        head, space = self._around(table, namespace)
        cursor = self._transaction().cursor()
        found = cursor.set_range(head)
        while found and (first := bytes(cursor.key())).startswith(head):
            group = first[len(head) : len(head) + 2]
            prefix = head + group + space
            if cursor.set_range(prefix):
                for address, value in cursor:
                    if not bytes(address).startswith(prefix):
                        break
                    at, key, stored = _unpacked(value, in_place=in_place)
                    if at == namespace:
                        yield key, stored
            following = int.from_bytes(group, "big") + 1
            found = cursor.set_range(head + following.to_bytes(2, "big"))

    def group(self, table: str, group: int) -> StoredGroup:
        """All entries of a key group."""
        prefix = _table_prefix(table) + group.to_bytes(2, "big")
        cursor = self._transaction().cursor()
        entries: list[tuple[Any, Any, Any]] = []
        size = 0
        if cursor.set_range(prefix):
            for address, value in cursor:
                if not bytes(address).startswith(prefix):
                    break
                size += len(value)
                entries.append(_unpacked(value))
        namespaces, keys, values = (list(each) for each in zip(*entries, strict=True)) if entries else ([], [], [])
        return namespaces, keys, values, size

    def namespaces(self, table: str) -> Iterable[Any]:
        """Every namespace that has entries."""
        prefix = _table_prefix(table)
        cursor = self._transaction().cursor()
        found: dict[Any, None] = {}
        if cursor.set_range(prefix):
            for address, value in cursor:
                if not bytes(address).startswith(prefix):
                    break
                found[_unpacked(value)[0]] = None
        return found

    def apply(self, changes: Iterable[tuple[str, Changes]], version: str, *, afresh: bool) -> None:
        """Take over accepted changes in one transaction; `afresh` forgets all that was before."""
        self._end_reading()
        with self._telling(), self._environment.begin(write=True) as transaction:
            now = transaction.get(_VERSION, b"").decode()
            if now == version or (not afresh and now != self.version):  # another worker of this host was quicker
                return
            if afresh:
                transaction.drop(self._environment.open_db(txn=transaction), delete=False)
                transaction.put(_LAYOUT, self._layout)
            for table, columns in changes:
                groups = self._grouper.of_many(columns.keys).tolist()
                for group, (namespace, key, gone, value) in zip(groups, columns.rows(), strict=True):
                    address = self._address(table, group, namespace, key_bytes(key))
                    if isinstance(value, Patch):
                        before = transaction.get(address)
                        value = value.on(None if before is None else _unpacked(before)[2])
                    if gone:
                        transaction.delete(address)
                    else:
                        transaction.put(address, _packed(namespace, key, value))
            transaction.put(_VERSION, version.encode())

    def refresh(self) -> None:
        """See what other processes of this host wrote; what is read from now on is of that one version.

        A process that died while it read still counts as a reader, and no page it may have read is used again: such
        readers are removed here."""
        self._end_reading()
        self._environment.reader_check()
        self.version = bytes(self._transaction().get(_VERSION, b"")).decode()

    def release(self) -> None:
        """Stop reading: pages of a version that someone reads are not used again."""
        self._end_reading()

    def _end_reading(self) -> None:
        if self._reading is not None:
            self._reading.abort()
            self._reading = None
            self._chunks.clear()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except (lmdb.Error, OSError) as problem:
            failure = LocalDiskFull if _is_full(self._directory, problem) else LocalStoreFailed
            raise failure(self._directory, problem) from problem

    def close(self) -> None:
        """Let go of the file."""
        self._end_reading()
        self._environment.close()


def _is_full(directory: str, problem: Exception) -> bool:
    """Whether a write failed for want of space. LMDB says "input/output error" if there was space for a part of it."""
    if any(os.strerror(number) in str(problem) for number in _FULL):
        return True
    return os.path.isdir(directory) and shutil.disk_usage(directory).free < _LEAST_FREE


def _reserve(path: Path) -> None:
    """Give LMDB's table of readers its disk space before it is mapped.

    A file that has it is not opened: closing it would release the locks that this process holds on it."""
    if path.exists() and path.stat().st_blocks * 512 >= _LOCK_BYTES:
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, _LOCK_BYTES)
    finally:
        os.close(descriptor)


def _packed(namespace: Any, key: Any, value: Any) -> bytes:
    """An entry as it is stored."""
    if type(value) is not bytes or len(value) < _LARGE:
        return codec.encode((namespace, key, value))
    head = codec.encode((namespace, key))
    return b"".join((_IN_PLACE, len(head).to_bytes(4, "little"), head, bytes(-len(head) % 8), value))


def _unpacked(stored: bytes | memoryview, *, in_place: bool = False) -> tuple[Any, Any, Any]:
    """Namespace, key and value of an entry; with `in_place`, large bytes as they lie."""
    if stored[0]:
        return codec.decode(stored)  # type: ignore[no-any-return]
    end = 8 + int.from_bytes(stored[4:8], "little")
    namespace, key = codec.decode(stored[8:end])
    value = stored[end + -end % 8 :]
    return namespace, key, value if in_place else bytes(value)


def _short(part: bytes) -> bytes:
    """A part of an address that fits beside the others; a long one by its hash."""
    return part if len(part) <= _LONGEST_PART else b"#" + hashlib.blake2b(part, digest_size=32).digest()


def _table_prefix(table: str) -> bytes:
    name = _short(table.encode())
    return b"\1%c%s" % (len(name), name)


def _namespace_bytes(namespace: Any) -> bytes:
    """Equal for equal namespaces, whatever objects they are made of."""
    if isinstance(namespace, TimeWindow):
        return b"w" + key_bytes((namespace.start, namespace.end))
    if isinstance(namespace, int):
        return b"i" + key_bytes(namespace)
    return b"c" + codec.encode(namespace)
