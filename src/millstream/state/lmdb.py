"""The disk backend: one LMDB file per operator subtask and host, shared by all worker processes through the page cache.

Promises: the file holds only accepted versions; changes and their version are written in one transaction; the entries
of a table and key group are contiguous; large byte strings are read without a copy. A full disk is an error that names
the directory. The file does not grow because a process died while it was reading. Only its owner can read it.
Does not know: state files, caches, epochs. Nothing here has to survive the host: a lost file is rebuilt.

Changes are written with `pwrite`, not through the memory map: a write to a mapped page without disk space kills the
process with SIGBUS, and the cause would be hard to find."""

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
_LONGEST_PART = 200  # bytes of a table's name, and of a namespace, in a database key
# bytes of address space, of which a process has 2^47; this takes neither memory nor disk space
_FIRST_MAP_SIZE = 1 << 34
_LOCK, _LOCK_BYTES = "lock.mdb", 8192  # LMDB's reader table, which it writes through a memory map
_LEAST_FREE = 1 << 20  # bytes; with less, the disk counts as full
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LARGE = 1 << 16  # bytes; LMDB stores such a value in pages of its own, aligned to eight bytes
_IN_PLACE = b"\0raw"  # begins an entry with a large value; the codec never writes these bytes first


class LocalStoreFailed(ExternalError):
    """The local state store cannot be opened or written."""

    hint = "check free space, quota and permissions of that directory; the store is rebuilt when the task restarts"

    def __init__(self, path: str, problem: Exception) -> None:
        self.path = path
        super().__init__(f"the local state store {path} cannot be used: {problem}")


class LocalDiskFull(ExternalError):
    """The disk of the local state store is full."""

    hint = "free space on that disk, or set io.tmp.dirs to a directory on a larger disk"

    def __init__(self, path: str, problem: Exception) -> None:
        self.path = path
        super().__init__(f"disk full: the local state store {path} cannot be written: {problem}")


class LmdbStore:
    """The `Store` contract on LMDB."""

    def __init__(self, directory: Path) -> None:
        self._directory = str(directory)
        with self._translate_errors():
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            _reserve(directory / _LOCK)
            self._environment = lmdb.open(
                self._directory, map_size=_FIRST_MAP_SIZE, sync=False, metasync=False, max_spare_txns=4, mode=0o600
            )
            used = (self._environment.info()["last_pgno"] + 1) * self._environment.stat()["psize"]
            if 2 * used > _FIRST_MAP_SIZE:  # if the map is too small for a transaction, the transaction is repeated
                self._environment.set_mapsize(2 * used)
        self._prefixes: dict[tuple[str, Any], tuple[bytes, bytes]] = {}
        self._layout = b""
        self._grouper = KeyGrouper(MIN_DEFAULT_MAX_PARALLELISM)
        with self._begin() as transaction:
            self.version = transaction.get(_VERSION, b"").decode()
        self._reading: Any = None
        # the transaction that reads the current version
        self._chunks: dict[str, list[tuple[Any, bytes | memoryview]]] = {}

    def set_key_groups(self, grouper: KeyGrouper) -> None:
        """Order entries by these key groups; a store that was ordered by others is emptied."""
        self._grouper = grouper
        self._layout = b"table, key group of %d, namespace, key; large bytes in place" % grouper.max_parallelism
        self._end_reading()
        with self._begin() as transaction:
            if transaction.get(_LAYOUT) == self._layout:
                return
        with self._translate_errors(), self._begin(write=True) as transaction:
            if transaction.get(_LAYOUT) != self._layout:
                transaction.drop(self._environment.open_db(txn=transaction), delete=False)
                transaction.put(_LAYOUT, self._layout)
        self.version = ""

    def _encode_prefix(self, table: str, namespace: Any) -> tuple[bytes, bytes]:
        """Return the bytes before and after the key group in a database key."""
        prefix = self._prefixes.get((table, namespace))
        if prefix is None:
            scope = b"" if namespace is None else _shorten(_namespace_bytes(namespace))
            if len(self._prefixes) > 10_000:
                self._prefixes.clear()
            prefix = self._prefixes[table, namespace] = _table_prefix(table), b"%c%s" % (len(scope), scope)
        return prefix

    def _database_key(self, table: str, group: int, namespace: Any, key: bytes) -> bytes:
        head, scope = self._encode_prefix(table, namespace)
        prefix = head + group.to_bytes(2, "big") + scope
        if len(prefix) + len(key) <= _LONGEST_KEY:
            return prefix + key
        return prefix + b"\xff#" + hashlib.blake2b(key, digest_size=32).digest()

    def _transaction(self) -> Any:
        if self._reading is None:
            self._reading = self._begin(buffers=True)
        return self._reading

    def _begin(self, **options: bool) -> Any:
        """Begin a transaction. The file may have outgrown the map of this process, because another one has grown it."""
        environment: Any = self._environment
        try:
            return environment.begin(**options)
        except lmdb.MapResizedError:
            environment.set_mapsize(0)  # 0 means the size of the file
            return environment.begin(**options)

    def get(self, table: str, namespace: Any, key: Any) -> Any:
        """Return the stored value, or ABSENT."""
        group = key_group(key, self._grouper.max_parallelism)  # not with the grouper, whose cache is for live keys
        entry = self._transaction().get(self._database_key(table, group, namespace, key_bytes(key)))
        return ABSENT if entry is None else _decode_entry(entry)[2]

    def scan(self, table: str, namespace: Any) -> Iterator[tuple[Any, Any]]:
        """Iterate over the (key, value) pairs of a namespace, by key group and in the order of their bytes."""
        return self._scan(table, namespace, in_place=False)

    def chunks(self, table: str) -> Iterable[tuple[Any, bytes | memoryview]]:
        """Return the (key, value) pairs of a table of bytes without namespaces; see `Store.chunks`."""
        chunks = self._chunks.get(table)
        if chunks is None:
            chunks = self._chunks[table] = list(self._scan(table, None, in_place=True))
        return chunks

    def _scan(self, table: str, namespace: Any, *, in_place: bool) -> Iterator[tuple[Any, Any]]:
        head, scope = self._encode_prefix(table, namespace)
        cursor = self._transaction().cursor()
        has_more = cursor.set_range(head)
        while has_more and (first := bytes(cursor.key())).startswith(head):
            group = first[len(head) : len(head) + 2]
            prefix = head + group + scope
            if cursor.set_range(prefix):
                for database_key, entry in cursor:
                    if not bytes(database_key).startswith(prefix):
                        break
                    entry_namespace, key, value = _decode_entry(entry, in_place=in_place)
                    if entry_namespace == namespace:
                        yield key, value
            next_group = int.from_bytes(group, "big") + 1
            has_more = cursor.set_range(head + next_group.to_bytes(2, "big"))

    def group(self, table: str, group: int) -> StoredGroup:
        """Return all entries of a key group."""
        prefix = _table_prefix(table) + group.to_bytes(2, "big")
        cursor = self._transaction().cursor()
        entries: list[tuple[Any, Any, Any]] = []
        size = 0
        if cursor.set_range(prefix):
            for database_key, entry in cursor:
                if not bytes(database_key).startswith(prefix):
                    break
                size += len(entry)
                entries.append(_decode_entry(entry))
        namespaces, keys, values = (list(column) for column in zip(*entries, strict=True)) if entries else ([], [], [])
        return namespaces, keys, values, size

    def namespaces(self, table: str) -> Iterable[Any]:
        """Return the namespaces that have entries."""
        prefix = _table_prefix(table)
        cursor = self._transaction().cursor()
        namespaces: dict[Any, None] = {}
        if cursor.set_range(prefix):
            for database_key, entry in cursor:
                if not bytes(database_key).startswith(prefix):
                    break
                namespaces[_decode_entry(entry)[0]] = None
        return namespaces

    def apply(self, changes: Iterable[tuple[str, Changes]], version: str, *, replace: bool) -> None:
        """Apply accepted changes in one transaction and set the version; `replace` deletes all earlier entries.

        If the map is too small for them, it is doubled and nothing is applied."""
        self._end_reading()
        with self._translate_errors():
            try:
                self._write(changes, version, replace=replace)
            except lmdb.MapFullError:
                self._environment.set_mapsize(2 * self._environment.info()["map_size"])

    def _write(self, changes: Iterable[tuple[str, Changes]], version: str, *, replace: bool) -> None:
        with self._begin(write=True) as transaction:
            current = transaction.get(_VERSION, b"").decode()
            if current == version or (not replace and current != self.version):  # another process was faster
                return
            if replace:
                transaction.drop(self._environment.open_db(txn=transaction), delete=False)
                transaction.put(_LAYOUT, self._layout)
            for table, columns in changes:
                groups = self._grouper.of_many(columns.keys).tolist()
                for group, (namespace, key, is_deleted, value) in zip(groups, columns.rows(), strict=True):
                    database_key = self._database_key(table, group, namespace, key_bytes(key))
                    if isinstance(value, Patch):
                        before = transaction.get(database_key)
                        value = value.apply_to(None if before is None else _decode_entry(before)[2])
                    if is_deleted:
                        transaction.delete(database_key)
                    else:
                        transaction.put(database_key, _encode_entry(namespace, key, value))
            transaction.put(_VERSION, version.encode())

    def refresh(self) -> None:
        """Read the newest version that a process of this host applied, and no other until the next call.

        LMDB does not reuse pages that a reader may need. A process that died while it was reading still counts as a
        reader, so such readers are removed here."""
        self._end_reading()
        self._environment.reader_check()
        self.version = bytes(self._transaction().get(_VERSION, b"")).decode()

    def release(self) -> None:
        """Stop reading: LMDB does not reuse pages of a version that is being read."""
        self._end_reading()

    def _end_reading(self) -> None:
        if self._reading is not None:
            self._reading.abort()
            self._reading = None
            self._chunks.clear()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (lmdb.Error, OSError) as problem:
            failure = LocalDiskFull if _is_full(self._directory, problem) else LocalStoreFailed
            raise failure(self._directory, problem) from problem

    def close(self) -> None:
        """Close the file."""
        self._end_reading()
        self._environment.close()


def _is_full(directory: str, problem: Exception) -> bool:
    """Return whether a write failed because the disk is full. After a partial write, LMDB reports an input/output
    error."""
    if any(os.strerror(number) in str(problem) for number in _FULL):
        return True
    return os.path.isdir(directory) and shutil.disk_usage(directory).free < _LEAST_FREE


def _reserve(path: Path) -> None:
    """Allocate the disk space of LMDB's reader table before it is mapped.

    A file that has its space is not opened: closing it would release the locks that this process holds on it."""
    if path.exists() and path.stat().st_blocks * 512 >= _LOCK_BYTES:
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, _LOCK_BYTES)
    finally:
        os.close(descriptor)


def _encode_entry(namespace: Any, key: Any, value: Any) -> bytes:
    if type(value) is not bytes or len(value) < _LARGE:
        return codec.encode((namespace, key, value))
    head = codec.encode((namespace, key))
    return b"".join((_IN_PLACE, len(head).to_bytes(4, "little"), head, bytes(-len(head) % 8), value))


def _decode_entry(entry: bytes | memoryview, *, in_place: bool = False) -> tuple[Any, Any, Any]:
    """Return namespace, key and value of an entry; with `in_place`, a large value is not copied."""
    if entry[0]:
        return codec.decode(entry)  # type: ignore[no-any-return]
    end = 8 + int.from_bytes(entry[4:8], "little")
    namespace, key = codec.decode(entry[8:end])
    value = entry[end + -end % 8 :]
    return namespace, key, value if in_place else bytes(value)


def _shorten(part: bytes) -> bytes:
    """Replace a long part of a database key by its hash: LMDB limits the length of keys."""
    return part if len(part) <= _LONGEST_PART else b"#" + hashlib.blake2b(part, digest_size=32).digest()


def _table_prefix(table: str) -> bytes:
    name = _shorten(table.encode())
    return b"\1%c%s" % (len(name), name)


def _namespace_bytes(namespace: Any) -> bytes:
    """Encode a namespace, equal namespaces to equal bytes."""
    if isinstance(namespace, TimeWindow):
        return b"w" + key_bytes((namespace.start, namespace.end))
    if isinstance(namespace, int):
        return b"i" + key_bytes(namespace)
    return b"c" + codec.encode(namespace)
