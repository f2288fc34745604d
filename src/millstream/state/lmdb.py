"""The disk backend: one LMDB file per operator subtask and host, shared by all worker processes through the page cache.

Promises: holds only accepted versions; applying changes and noting the version is one transaction.
Does not know: deltas' files, caches, epochs. Nothing here needs to survive the host: a lost file is rebuilt."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import lmdb

from millstream.model import codec
from millstream.model.windows import TimeWindow
from millstream.state.backend import ABSENT
from millstream.state.deltas import Changes, Patch
from millstream.state.key_groups import key_bytes

_VERSION = b"\0version"
_LONGEST_KEY = 500
_LONGEST_PART = 200  # of a table's name, and of a namespace
_MAP_SIZE = 1 << 40  # an upper bound of the address range, not of memory


class LmdbStore:
    """The `Store` contract on LMDB."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._environment = lmdb.open(
            str(directory), map_size=_MAP_SIZE, sync=False, metasync=False, writemap=True, max_spare_txns=4
        )
        self._namespaces: dict[tuple[str, Any], bytes] = {}
        with self._environment.begin() as transaction:
            self.version = transaction.get(_VERSION, b"").decode()
        self._reading: Any = None

    def _prefix(self, table: str, namespace: Any) -> bytes:
        found = self._namespaces.get((table, namespace))
        if found is None:
            space = b"" if namespace is None else _short(_namespace_bytes(namespace))
            found = b"%s%c%s" % (_table_prefix(table), len(space), space)
            if len(self._namespaces) > 10_000:
                self._namespaces.clear()
            self._namespaces[table, namespace] = found
        return found

    def _address(self, prefix: bytes, key: bytes) -> bytes:
        if len(prefix) + len(key) <= _LONGEST_KEY:
            return prefix + key
        return prefix + b"\xff#" + hashlib.blake2b(key, digest_size=32).digest()

    def _transaction(self) -> Any:
        if self._reading is None:
            self._reading = self._environment.begin(buffers=False)
        return self._reading

    def get(self, table: str, namespace: Any, key: Any) -> Any:
        """The stored value or ABSENT."""
        found = self._transaction().get(self._address(self._prefix(table, namespace), key_bytes(key)))
        return ABSENT if found is None else codec.decode(found)[2]

    def scan(self, table: str, namespace: Any) -> Iterator[tuple[Any, Any]]:
        """Every (key, value) of a namespace, in the order of their bytes."""
        prefix = self._prefix(table, namespace)
        cursor = self._transaction().cursor()
        if cursor.set_range(prefix):
            for address, value in cursor:
                if not address.startswith(prefix):
                    return
                space, key, stored = codec.decode(value)
                if space == namespace:
                    yield key, stored

    def namespaces(self, table: str) -> Iterable[Any]:
        """Every namespace that has entries."""
        prefix = _table_prefix(table)
        cursor = self._transaction().cursor()
        found: dict[Any, None] = {}
        if cursor.set_range(prefix):
            for address, value in cursor:
                if not address.startswith(prefix):
                    break
                found[codec.decode(value)[0]] = None
        return found

    def apply(self, changes: Iterable[tuple[str, Changes]], version: str, *, afresh: bool) -> None:
        """Take over accepted changes in one transaction; `afresh` forgets all that was before."""
        self._end_reading()
        with self._environment.begin(write=True) as transaction:
            now = transaction.get(_VERSION, b"").decode()
            if now == version or (not afresh and now != self.version):  # another worker of this host was quicker
                return
            if afresh:
                transaction.drop(self._environment.open_db(txn=transaction), delete=False)
            for table, columns in changes:
                for namespace, key, gone, value in columns.rows():
                    address = self._address(self._prefix(table, namespace), key_bytes(key))
                    if isinstance(value, Patch):
                        before = transaction.get(address)
                        value = value.on(None if before is None else codec.decode(before)[2])
                    if gone:
                        transaction.delete(address)
                    else:
                        transaction.put(address, codec.encode((namespace, key, value)))
            transaction.put(_VERSION, version.encode())

    def refresh(self) -> None:
        """See what other processes of this host wrote; what is read from now on is of that one version."""
        self._end_reading()
        self.version = self._transaction().get(_VERSION, b"").decode()

    def release(self) -> None:
        """Stop reading: pages of a version that someone reads are not used again."""
        self._end_reading()

    def _end_reading(self) -> None:
        if self._reading is not None:
            self._reading.abort()
            self._reading = None

    def close(self) -> None:
        """Let go of the file."""
        self._end_reading()
        self._environment.close()


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
