"""What may be below the live values of a state: entries at one accepted version, and the mark of no entry.

Promises: nothing but the contract that a store keeps and that tables of live values rely on.
Does not know: tables, epochs, files, which stores there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from millstream.state.deltas import Changes
from millstream.state.key_groups import KeyGrouper


class _Absent:
    """The mark of a key that has no value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"

    def __reduce__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


class Store(Protocol):
    """What is below the live values; only accepted versions ever reach it."""

    version: str

    def get(self, table: str, namespace: Any, key: Any) -> Any:
        """The stored value or ABSENT."""

    def scan(self, table: str, namespace: Any) -> Iterator[tuple[Any, Any]]:
        """Every (key, value) of a namespace."""

    def chunks(self, table: str) -> Iterable[tuple[Any, bytes | memoryview]]:
        """Every (key, value) of a table of bytes without namespaces. Large ones are not copied: they are there until
        the version that is read is released, and until then the same objects each time."""

    def namespaces(self, table: str) -> Iterable[Any]:
        """Every namespace that has entries."""

    def arrange(self, grouper: KeyGrouper) -> None:
        """Keep entries by these key groups; a store that kept them by others is emptied."""

    def group(self, table: str, group: int) -> StoredGroup:
        """All entries of a key group."""

    def apply(self, changes: Iterable[tuple[str, Changes]], version: str, *, afresh: bool) -> None:
        """Take over accepted changes in one transaction; `afresh` forgets all that was before.

        Changes that begin at another version than the store has by now are not applied."""

    def refresh(self) -> None:
        """See what other processes of this host applied; what is read from now on is of that one version."""

    def release(self) -> None:
        """Let go of the version that is read, so that its space can be used again."""

    def close(self) -> None:
        """Let go of files."""


OpenStore = Callable[[], "Store | None"]
StoredGroup = tuple[list[Any], list[Any], list[Any], int]  # namespaces, keys, values, and their bytes together
