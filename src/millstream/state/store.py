"""The contract of a local state store, which holds entries that do not have to be in memory.

Promises: the contract that state tables rely on; `millstream.state.lmdb` implements it.
Does not know: state tables, epochs, state files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from millstream.state.deltas import Changes
from millstream.state.key_groups import KeyGrouper


class _Absent:
    """The value of a key that has no entry; None is a value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"

    def __reduce__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


class Store(Protocol):
    """A local store below the values in memory. It holds one version, and only versions that were accepted."""

    version: str

    def get(self, table: str, namespace: Any, key: Any) -> Any:
        """Return the stored value, or ABSENT."""

    def scan(self, table: str, namespace: Any) -> Iterator[tuple[Any, Any]]:
        """Iterate over the (key, value) pairs of a namespace."""

    def chunks(self, table: str) -> Iterable[tuple[Any, bytes | memoryview]]:
        """Return the (key, value) pairs of a table of bytes that has no namespaces.

        Large values are not copied: they are views into the store, valid until `release`, and each call returns the
        same objects."""

    def namespaces(self, table: str) -> Iterable[Any]:
        """Return the namespaces that have entries."""

    def set_key_groups(self, grouper: KeyGrouper) -> None:
        """Order entries by these key groups; a store that was ordered by others is emptied."""

    def group(self, table: str, group: int) -> StoredGroup:
        """Return all entries of a key group."""

    def apply(self, changes: Iterable[tuple[str, Changes]], version: str, *, replace: bool) -> None:
        """Apply accepted changes in one transaction and set the version; `replace` deletes all earlier entries.

        Nothing is applied if the store is no longer at the version that the changes follow, or had to be enlarged
        first: after `refresh` the caller finds what is missing, and calls again."""

    def refresh(self) -> None:
        """Read the newest version that a process of this host applied, and no other until the next call."""

    def release(self) -> None:
        """Stop reading the current version, so that its space can be reused."""

    def close(self) -> None:
        """Close the files of the store."""


OpenStore = Callable[[], Store]
StoredGroup = tuple[list[Any], list[Any], list[Any], int]  # namespaces, keys, values, and their total size in bytes
