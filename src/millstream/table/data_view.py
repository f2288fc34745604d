"""Views on data inside an accumulator: ListView and MapView.

Promises: PyFlink's methods; the data is part of the accumulator and so of the state.
Does not know: state backends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class DataView(ABC):
    """Data inside an accumulator."""

    @abstractmethod
    def clear(self) -> None:
        """Forget the data."""


class ListView(DataView, Generic[T]):
    """A list."""

    def __init__(self) -> None:
        self._list: list[T] = []

    def get(self) -> Iterable[T]:
        """The elements."""
        return iter(self._list)

    def add(self, value: T) -> None:
        """Append."""
        self._list.append(value)

    def add_all(self, values: list[T]) -> None:
        """Append all."""
        self._list.extend(values)

    def clear(self) -> None:
        """Forget all."""
        self._list = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ListView) and self._list == other._list

    def __hash__(self) -> int:
        return hash(tuple(self._list))

    def __iter__(self) -> Iterator[T]:
        return iter(self._list)


class MapView(DataView, Generic[K, V]):
    """A dict."""

    def __init__(self) -> None:
        self._dict: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """The value of a key, or None."""
        return self._dict.get(key)

    def put(self, key: K, value: V) -> None:
        """Set the value of a key."""
        self._dict[key] = value

    def put_all(self, dict_value: dict[K, V]) -> None:
        """Set many."""
        self._dict.update(dict_value)

    def remove(self, key: K) -> None:
        """Forget a key."""
        del self._dict[key]

    def contains(self, key: K) -> bool:
        """Whether a key is there."""
        return key in self._dict

    def items(self) -> Iterable[tuple[K, V]]:
        """All pairs."""
        return self._dict.items()

    def keys(self) -> Iterable[K]:
        """All keys."""
        return self._dict.keys()

    def values(self) -> Iterable[V]:
        """All values."""
        return self._dict.values()

    def is_empty(self) -> bool:
        """Whether there is nothing."""
        return not self._dict

    def clear(self) -> None:
        """Forget all."""
        self._dict = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MapView) and self._dict == other._dict

    def __hash__(self) -> int:
        return hash(tuple(self._dict))

    def __getitem__(self, key: K) -> V:
        return self._dict[key]

    def __setitem__(self, key: K, value: V) -> None:
        self._dict[key] = value

    def __delitem__(self, key: K) -> None:
        del self._dict[key]

    def __contains__(self, key: Any) -> bool:
        return key in self._dict

    def __iter__(self) -> Iterator[K]:
        return iter(self._dict)
