"""State descriptors, which declare state, and the interfaces through which functions access it.

Promises: a descriptor is picklable and compares by all of its properties. A state handle always refers to the current
key.
Does not know: state backends, serialization and when a TTL is applied."""

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
from millstream.types.type_hints import find_type_of_hint

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
    """A state descriptor has no valid name."""

    def __init__(self, name: object) -> None:
        self.name = name
        super().__init__(f"a state needs a name, not {name!r}", hint="pass a string that is unique in the function")


class NotAType(UserError, TypeError):
    """A value that is not a type was given as one."""

    hint = "pass a type such as Types.LONG(), or a Python type hint such as int"

    def __init__(self, value: object) -> None:
        self.value = value
        super().__init__(f"{value!r} is not a type")


class State(ABC):
    """State of the current key.

    Example:
        >>> from millstream.datastream import KeyedProcessFunction
        >>> class Reset(KeyedProcessFunction):
        ...     def open(self, runtime_context):
        ...         self.total = runtime_context.get_state(ValueStateDescriptor("total", int))
        ...     def process_element(self, value, ctx):
        ...         if value["reset"]:
        ...             self.total.clear()

    """

    @abstractmethod
    def clear(self) -> None:
        """Delete the state of the current key."""


class ValueState(State, Generic[T]):
    """State of a single value.

    Example:
        >>> from millstream.datastream import KeyedProcessFunction
        >>> from millstream.testing import harness_for
        >>> class Previous(KeyedProcessFunction):
        ...     def open(self, runtime_context):
        ...         self.previous = runtime_context.get_state(ValueStateDescriptor("previous", int))
        ...     def process_element(self, value, ctx):
        ...         yield self.previous.value(), value
        ...         self.previous.update(value)
        >>> with harness_for(Previous(), key=lambda number: number % 2) as harness:
        ...     harness.process_all([1, 3])
        ...     harness.values()
        [(None, 1), (1, 3)]

    """

    @abstractmethod
    def value(self) -> T | None:
        """Return the value; None if there is none."""

    @abstractmethod
    def update(self, value: T) -> None:
        """Replace the value; None deletes it.

        Args:
            value: The new value.

        """


class AppendingState(State, Generic[IN, OUT]):
    """State to which values are added.

    Example:
        >>> issubclass(ListState, AppendingState), issubclass(ReducingState, AppendingState)
        (True, True)

    """

    @abstractmethod
    def get(self) -> OUT | None:
        """Return the result of the values added so far; None if there are none."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add a value.

        Args:
            value: The value; what happens to it depends on the state.

        """


class MergingState(AppendingState[IN, OUT]):
    """Appending state that can be merged, as when two session windows merge.

    Example:
        >>> issubclass(AggregatingState, MergingState), issubclass(ValueState, MergingState)
        (True, False)

    """


class ReducingState(MergingState[T, T]):
    """State that combines values with a `ReduceFunction`.

    Example:
        >>> from millstream.datastream import KeyedProcessFunction
        >>> from millstream.testing import harness_for
        >>> class Largest(KeyedProcessFunction):
        ...     def open(self, runtime_context):
        ...         self.largest = runtime_context.get_reducing_state(ReducingStateDescriptor("largest", max, int))
        ...     def process_element(self, value, ctx):
        ...         self.largest.add(value)
        ...         yield self.largest.get()
        >>> with harness_for(Largest(), key=lambda number: 0) as harness:
        ...     harness.process_all([3, 5, 4])
        ...     harness.values()
        [3, 5, 5]

    """


class AggregatingState(MergingState[IN, OUT]):
    """State that adds values with an `AggregateFunction`.

    Example:
        >>> from millstream.datastream import AggregateFunction, KeyedProcessFunction
        >>> class Count(AggregateFunction):
        ...     def create_accumulator(self):
        ...         return 0
        ...     def add(self, value, accumulator):
        ...         return accumulator + 1
        ...     def get_result(self, accumulator):
        ...         return accumulator
        ...     def merge(self, acc_a, acc_b):
        ...         return acc_a + acc_b
        >>> class CountPerKey(KeyedProcessFunction):
        ...     def open(self, runtime_context):
        ...         descriptor = AggregatingStateDescriptor("count", Count(), int)
        ...         self.count = runtime_context.get_aggregating_state(descriptor)
        ...     def process_element(self, value, ctx):
        ...         self.count.add(value)
        ...         yield ctx.get_current_key(), self.count.get()

    """


class ListState(MergingState[T, Iterable[T]]):
    """State of a list; iterating over the state iterates over its elements.

    Example:
        >>> from millstream.datastream import KeyedProcessFunction
        >>> from millstream.testing import harness_for
        >>> class Pairs(KeyedProcessFunction):
        ...     def open(self, runtime_context):
        ...         self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", int))
        ...     def process_element(self, value, ctx):
        ...         self.waiting.add(value)
        ...         if len(pair := list(self.waiting.get())) == 2:
        ...             self.waiting.clear()
        ...             yield pair
        >>> with harness_for(Pairs(), key=lambda number: 0) as harness:
        ...     harness.process_all([1, 2, 3])
        ...     harness.values()
        [[1, 2]]

    """

    @abstractmethod
    def update(self, values: list[T]) -> None:
        """Replace the list; an empty list deletes it.

        Args:
            values: The new list.

        """

    @abstractmethod
    def add_all(self, values: list[T]) -> None:
        """Append the values.

        Args:
            values: The values, in order.

        """

    def __iter__(self) -> Iterator[T]:
        return iter(self.get() or ())


class ReadableMap(State, Generic[K, V]):
    """The reading part of map state and broadcast state."""

    @abstractmethod
    def get(self, key: K) -> V | None:
        """Return the value of a key; None if there is none."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Return whether the key has a value."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """Return all pairs of key and value."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """Return all keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """Return all values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return whether the map is empty."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class WritableMap(ABC, Generic[K, V]):
    """The writing part of map state and broadcast state."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of a key."""

    @abstractmethod
    def put_all(self, dict_value: dict[K, V]) -> None:
        """Set the value of each key."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Delete a key; without effect if it is not there."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(ReadableMap[K, V], WritableMap[K, V]):
    """State of a map; iterating over the state iterates over its keys.

    Example:
        >>> from millstream.datastream import KeyedProcessFunction
        >>> from millstream.testing import harness_for
        >>> class CountOfPages(KeyedProcessFunction):
        ...     def open(self, runtime_context):
        ...         self.pages = runtime_context.get_map_state(MapStateDescriptor("pages", str, int))
        ...     def process_element(self, value, ctx):
        ...         user, page = value
        ...         self.pages.put(page, (self.pages.get(page) or 0) + 1)
        ...         yield user, dict(self.pages.items())
        >>> with harness_for(CountOfPages(), key=lambda visit: visit[0]) as harness:
        ...     harness.process_all([("ann", "home"), ("ann", "cart")])
        ...     harness.values()
        [('ann', {'home': 1}), ('ann', {'home': 1, 'cart': 1})]

    """


class ReadOnlyBroadcastState(ReadableMap[K, V]):
    """Broadcast state for the stream that is not broadcast, which can only read it.

    Example:
        >>> from millstream.datastream import BroadcastProcessFunction
        >>> NAMES = MapStateDescriptor("names", int, str)
        >>> class WithName(BroadcastProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield value, ctx.get_broadcast_state(NAMES).get(value)
        ...     def process_broadcast_element(self, value, ctx):
        ...         ctx.get_broadcast_state(NAMES).put(*value)

    """


class BroadcastState(ReadOnlyBroadcastState[K, V], WritableMap[K, V]):
    """State of a map of which every subtask has the same copy.

    Example:
        >>> from millstream.datastream import BroadcastProcessFunction
        >>> NAMES = MapStateDescriptor("names", int, str)
        >>> class WithName(BroadcastProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield value, ctx.get_broadcast_state(NAMES).get(value)
        ...     def process_broadcast_element(self, value, ctx):
        ...         ctx.get_broadcast_state(NAMES).put(*value)

    """


class StateDescriptor(ABC):  # noqa: B024 - the base class of descriptors, without methods to implement
    """The name, the type and the TTL of a state.

    A type is a `TypeInformation`, a Python type hint, or None for any pickled object.

    Example:
        >>> from millstream.common import Time
        >>> from millstream.datastream.state import StateTtlConfig
        >>> descriptor = ValueStateDescriptor("last", str)
        >>> descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        >>> descriptor.get_name(), descriptor.ttl_config.get_ttl().to_milliseconds()
        ('last', 3600000)

    """

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
        """Return the TTL configuration; None if values do not expire."""
        return self._ttl_config

    def get_name(self) -> str:
        """Return the name of the state."""
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Set the TTL configuration; a disabled one means that values do not expire.

        Args:
            ttl_config: The configuration.

        """
        self._ttl_config = ttl_config if ttl_config.is_enabled() else None

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.type_info})"


class ValueStateDescriptor(StateDescriptor, Generic[T]):
    """Describes a `ValueState`.

    Example:
        >>> from millstream.common import Types
        >>> ValueStateDescriptor("count", Types.LONG())
        ValueStateDescriptor('count', Long)

    """

    def __init__(
        self, name: str, value_type_info: TypeInformation | Any, *, ttl: StateTtlConfig | Duration | None = None
    ) -> None:
        super().__init__(name, value_type_info, ttl=ttl)


class ListStateDescriptor(StateDescriptor, Generic[T]):
    """Describes a `ListState` by the type of its elements.

    Example:
        >>> from millstream.common import Types
        >>> ListStateDescriptor("orders", Types.STRING()).type_info
        ListTypeInfo<String>

    """

    type_info: ListTypeInfo

    def __init__(
        self, name: str, elem_type_info: TypeInformation | Any, *, ttl: StateTtlConfig | Duration | None = None
    ) -> None:
        super().__init__(name, Types.LIST(as_type(elem_type_info)), ttl=ttl)


class MapStateDescriptor(StateDescriptor, Generic[K, V]):
    """Describes a `MapState`, or a broadcast state, by the types of its keys and values.

    Example:
        >>> from millstream.common import Types
        >>> MapStateDescriptor("pages", Types.STRING(), Types.LONG()).type_info
        MapTypeInfo<String, Long>

    """

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
    """Describes a `ReducingState` by its function and the type of its values.

    Example:
        >>> from millstream.common import Types
        >>> ReducingStateDescriptor("largest", max, Types.LONG()).get_reduce_function().reduce(3, 5)
        5

    """

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
        """Return the function that combines two values."""
        return self._reduce_function


class AggregatingStateDescriptor(StateDescriptor, Generic[IN, OUT]):
    """Describes an `AggregatingState` by its function and the type of its accumulator.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.functions.aggregations import Aggregations, Count
        >>> AggregatingStateDescriptor("counts", Aggregations(n=Count()), Types.PICKLED_BYTE_ARRAY()).get_agg_function()
        Aggregations(n=Count(field=None))

    """

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
        """Return the aggregate function."""
        return self._agg_function


def as_type(type_or_hint: TypeInformation | Any) -> TypeInformation:
    """Return the type information for a type or a Python type hint; pickled objects for None and other classes."""
    if isinstance(type_or_hint, TypeInformation):
        return type_or_hint
    is_hint = type_or_hint is Any or isinstance(type_or_hint, type) or get_origin(type_or_hint) is not None
    if type_or_hint is None or is_hint:
        return find_type_of_hint(type_or_hint) or Types.PICKLED_BYTE_ARRAY()
    raise NotAType(type_or_hint)
