"""State as user code sees it: descriptors that name it, interfaces that read and write it.

Promises: a descriptor is comparable by everything it says and picklable; a state handle is always that of the
current key.
Does not know: backends, serialisation or when TTL is applied."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, get_origin

from typing_extensions import TypeVar

from millstream.errors import UserError
from millstream.functions import AggregateFunction, ReduceFunction, as_function
from millstream.state_descriptors.ttl import StateTtlConfig
from millstream.times import Duration
from millstream.types.collection_types import ListTypeInfo, MapTypeInfo
from millstream.types.factory import TypeInformation, Types
from millstream.types.type_hints import type_of_hint

__all__ = [
    "AggregatingState",
    "AggregatingStateDescriptor",
    "AppendingState",
    "BroadcastState",
    "InvalidStateDescriptor",
    "ListState",
    "ListStateDescriptor",
    "MapState",
    "MapStateDescriptor",
    "MergingState",
    "NotAType",
    "OperatorStateStore",
    "ReadOnlyBroadcastState",
    "ReducingState",
    "ReducingStateDescriptor",
    "State",
    "StateDescriptor",
    "StateTtlConfig",
    "ValueState",
    "ValueStateDescriptor",
    "as_type",
]

T = TypeVar("T", default=Any)
K = TypeVar("K", default=Any)
V = TypeVar("V", default=Any)
IN = TypeVar("IN", default=Any)
OUT = TypeVar("OUT", default=Any)


class InvalidStateDescriptor(UserError, ValueError):
    """A state descriptor without a usable name."""

    def __init__(self, name: object) -> None:
        self.name = name
        super().__init__(f"a state needs a name, not {name!r}", hint="pass a string that is unique in the function")


class NotAType(UserError, TypeError):
    """A type was asked for and something else given."""

    hint = "pass a type such as Types.LONG(), or a Python type hint such as int"

    def __init__(self, given: object) -> None:
        self.given = given
        super().__init__(f"{given!r} is not a type")


class State(ABC):
    """Any state of one key."""

    @abstractmethod
    def clear(self) -> None:
        """Forget what is stored for the current key."""


class ValueState(State, Generic[T]):
    """One value."""

    @abstractmethod
    def value(self) -> T | None:
        """The value, or None where there is none."""

    @abstractmethod
    def update(self, value: T) -> None:
        """Replace the value; None clears it."""


class AppendingState(State, Generic[IN, OUT]):
    """State that values are added to."""

    @abstractmethod
    def get(self) -> OUT | None:
        """What the values added so far amount to; None where there are none."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add a value."""


class MergingState(AppendingState[IN, OUT]):
    """Appending state of two windows that can become that of one."""


class ReducingState(MergingState[T, T]):
    """Values folded by a `ReduceFunction`."""


class AggregatingState(MergingState[IN, OUT]):
    """Values folded by an `AggregateFunction`."""


class ListState(MergingState[T, Iterable[T]]):
    """A list; iterating the state iterates its elements."""

    @abstractmethod
    def update(self, values: list[T]) -> None:
        """Replace the list; an empty one clears it."""

    @abstractmethod
    def add_all(self, values: list[T]) -> None:
        """Append the values."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get() or ())


class MapView(State, Generic[K, V]):
    """What keyed map state and broadcast state can both do: read a map."""

    @abstractmethod
    def get(self, key: K) -> V | None:
        """The value of a key, or None."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Whether the key has a value."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """All pairs."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """All keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """All values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is no pair."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class WritableMap(ABC, Generic[K, V]):
    """What keyed map state and broadcast state can both do: write a map."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of a key."""

    @abstractmethod
    def put_all(self, dict_value: dict[K, V]) -> None:
        """Set the value of each key."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Forget a key; nothing happens where it is not there."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(MapView[K, V], WritableMap[K, V]):
    """A map; iterating the state iterates its keys."""


class ReadOnlyBroadcastState(MapView[K, V]):
    """Broadcast state as the side that is not broadcast sees it."""


class BroadcastState(ReadOnlyBroadcastState[K, V], WritableMap[K, V]):
    """A map of which every subtask holds the same copy."""


class OperatorStateStore(ABC):
    """Hands out state that belongs to the operator and not to a key."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """The broadcast state of that descriptor."""


class StateDescriptor(ABC):  # noqa: B024 - the constructor is shared; only its kinds mean something
    """Name, type and lifetime of a state. A type is a `TypeInformation`, a Python type hint, or None for any object."""

    def __init__(
        self,
        name: str,
        type_info: TypeInformation | Any,
        *,
        ttl: StateTtlConfig | Duration | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidStateDescriptor(name)
        self.name = name
        self.type_info: TypeInformation = as_type(type_info)
        self._ttl_config = StateTtlConfig.new_builder(ttl).build() if isinstance(ttl, Duration) else ttl

    @property
    def ttl_config(self) -> StateTtlConfig | None:
        """When values expire; None for never."""
        return self._ttl_config

    def get_name(self) -> str:
        """The name."""
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let values expire."""
        self._ttl_config = ttl_config if ttl_config.is_enabled() else None

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.type_info})"


class ValueStateDescriptor(StateDescriptor, Generic[T]):
    """Describes a `ValueState`."""

    def __init__(
        self, name: str, value_type_info: TypeInformation | Any, *, ttl: StateTtlConfig | Duration | None = None
    ) -> None:
        super().__init__(name, value_type_info, ttl=ttl)


class ListStateDescriptor(StateDescriptor, Generic[T]):
    """Describes a `ListState` by the type of its elements."""

    type_info: ListTypeInfo

    def __init__(
        self, name: str, elem_type_info: TypeInformation | Any, *, ttl: StateTtlConfig | Duration | None = None
    ) -> None:
        super().__init__(name, Types.LIST(as_type(elem_type_info)), ttl=ttl)


class MapStateDescriptor(StateDescriptor, Generic[K, V]):
    """Describes a `MapState`, or a broadcast state, by the types of its keys and values."""

    type_info: MapTypeInfo

    def __init__(
        self,
        name: str,
        key_type_info: TypeInformation | Any,
        value_type_info: TypeInformation | Any,
        *,
        ttl: StateTtlConfig | Duration | None = None,
    ) -> None:
        super().__init__(name, Types.MAP(as_type(key_type_info), as_type(value_type_info)), ttl=ttl)


class ReducingStateDescriptor(StateDescriptor, Generic[T]):
    """Describes a `ReducingState` by its function and the type of its values."""

    def __init__(
        self,
        name: str,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        type_info: TypeInformation | Any,
        *,
        ttl: StateTtlConfig | Duration | None = None,
    ) -> None:
        super().__init__(name, type_info, ttl=ttl)
        self._reduce_function: ReduceFunction[T] = as_function(reduce_function, ReduceFunction)

    def get_reduce_function(self) -> ReduceFunction[T]:
        """How two values become one."""
        return self._reduce_function


class AggregatingStateDescriptor(StateDescriptor, Generic[IN, OUT]):
    """Describes an `AggregatingState` by its function and the type of its accumulator."""

    def __init__(
        self,
        name: str,
        agg_function: AggregateFunction,
        state_type_info: TypeInformation | Any,
        *,
        ttl: StateTtlConfig | Duration | None = None,
    ) -> None:
        super().__init__(name, state_type_info, ttl=ttl)
        self._agg_function: AggregateFunction = as_function(agg_function, AggregateFunction)

    def get_agg_function(self) -> AggregateFunction:
        """How values become an accumulator, and an accumulator a result."""
        return self._agg_function


def as_type(given: TypeInformation | Any) -> TypeInformation:
    """A type as `TypeInformation`: itself, or what a Python hint means; any object for None and for other classes."""
    if isinstance(given, TypeInformation):
        return given
    if given is None or given is Any or isinstance(given, type) or get_origin(given) is not None:
        return type_of_hint(given) or Types.PICKLED_BYTE_ARRAY()
    raise NotAType(given)
