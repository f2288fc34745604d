"""ListView and MapView: collections in the accumulator of an aggregate function.

Promises: PyFlink's methods. A view is part of the accumulator, and so of the state.
Does not know: state backends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class DataView(ABC):
    """A collection in the accumulator of an aggregate function.

    Example:
        >>> view = ListView()
        >>> view.add("a")
        >>> view.clear()
        >>> list(view.get())
        []

    """

    @abstractmethod
    def clear(self) -> None:
        """Remove all elements."""


class ListView(DataView, Generic[T]):
    """A list in the accumulator of an aggregate function.

    Example:
        >>> view = ListView()
        >>> view.add_all([1, 2])
        >>> list(view.get())
        [1, 2]

    """

    def __init__(self) -> None:
        self._list: list[T] = []

    def get(self) -> Iterable[T]:
        """Return an iterator over the elements."""
        return iter(self._list)

    def add(self, value: T) -> None:
        """Append an element.

        Args:
            value: The element.

        """
        self._list.append(value)

    def add_all(self, values: list[T]) -> None:
        """Append all elements of a list.

        Args:
            values: The elements.

        """
        self._list.extend(values)

    def clear(self) -> None:
        """Remove all elements."""
        self._list = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ListView) and self._list == other._list

    def __hash__(self) -> int:
        return hash(tuple(self._list))

    def __iter__(self) -> Iterator[T]:
        return iter(self._list)


class MapView(DataView, Generic[K, V]):
    """A map in the accumulator of an aggregate function.

    Example:
        >>> view = MapView()
        >>> view.put("ann", 3)
        >>> view.get("ann")
        3

    """

    def __init__(self) -> None:
        self._dict: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None if the map does not contain it.

        Args:
            key: The key.

        """
        return self._dict.get(key)

    def put(self, key: K, value: V) -> None:
        """Set the value of a key.

        Args:
            key: The key.
            value: The value.

        """
        self._dict[key] = value

    def put_all(self, dict_value: dict[K, V]) -> None:
        """Set the values of all keys of a dict.

        Args:
            dict_value: The values by key.

        """
        self._dict.update(dict_value)

    def remove(self, key: K) -> None:
        """Remove a key, which must be in the map.

        Args:
            key: The key.

        """
        del self._dict[key]

    def contains(self, key: K) -> bool:
        """Return whether the map contains a key.

        Args:
            key: The key.

        """
        return key in self._dict

    def items(self) -> Iterable[tuple[K, V]]:
        """Return all pairs of key and value."""
        return self._dict.items()

    def keys(self) -> Iterable[K]:
        """Return all keys."""
        return self._dict.keys()

    def values(self) -> Iterable[V]:
        """Return all values."""
        return self._dict.values()

    def is_empty(self) -> bool:
        """Return whether the map has no entries."""
        return not self._dict

    def clear(self) -> None:
        """Remove all entries."""
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
