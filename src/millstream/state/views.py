"""The state objects of user functions: views of the state tables for the current key.

Promises: the state interfaces of Flink with its TTL rules; each access costs one dictionary lookup.
Does not know: stores, state files, epochs. The operator sets the current key and time in the `Scope`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from millstream.errors import UserError
from millstream.functions import AggregateFunction, ReduceFunction
from millstream.serialization import codec
from millstream.state.backend import OperatorState
from millstream.state.deltas import Redistribution
from millstream.state.evolution import find_classes, to_timed_type
from millstream.state.store import ABSENT
from millstream.state.table import StateTable
from millstream.state_descriptors import descriptors as model
from millstream.types.factory import TypeInformation, Types


class Scope:
    """The current key and namespace of an operator, and the processing time of the epoch."""

    __slots__ = ("key", "namespace", "now")

    def __init__(self) -> None:
        self.key: Any = None
        self.namespace: Any = None
        self.now = 0


class _View:
    """The table, the scope and the TTL rules of a view.

    Without TTL a table holds values, with TTL pairs (value, time of the last write, or access if reads count)."""

    def __init__(self, table: StateTable, scope: Scope, ttl: model.StateTtlConfig | None) -> None:
        self._table = table
        self._scope = scope
        self._ttl_millis = None if ttl is None else ttl.get_ttl().to_milliseconds()
        self._touch_on_read = ttl is not None and ttl.get_update_type() == ttl.UpdateType.OnReadAndWrite
        self._show_expired = (
            ttl is not None and ttl.get_state_visibility() == ttl.StateVisibility.ReturnExpiredIfNotCleanedUp
        )

    def _is_expired(self, timestamp: int) -> bool:
        return self._ttl_millis is not None and timestamp + self._ttl_millis <= self._scope.now

    def _get(self) -> Any:
        scope = self._scope
        return self._table.get(scope.namespace, scope.key)

    def _put(self, value: Any) -> None:
        scope = self._scope
        self._table.put(scope.namespace, scope.key, value)

    def clear(self) -> None:
        """Delete the value of the current key."""
        self._put(ABSENT)


class ValueView(_View, model.ValueState[Any]):
    """ValueState without TTL and namespace. It is separate because it is the hot path of keyed functions."""

    def __init__(self, table: StateTable, scope: Scope) -> None:
        super().__init__(table, scope, None)
        self._live, self._dirty = table.by_key()

    def value(self) -> Any:
        """Return the value of the current key, or None."""
        value = self._live[self._scope.key]
        return None if value is ABSENT else value

    def update(self, value: Any) -> None:
        """Set the value of the current key."""
        key = self._scope.key
        self._live[key] = value
        self._dirty.add(key)

    def clear(self) -> None:
        """Delete the value of the current key."""
        self.update(ABSENT)


class ScopedValueView(_View, model.ValueState[Any]):
    """ValueState in the namespace of the scope, with or without TTL."""

    def value(self) -> Any:
        """Return the value of the current key, or None if there is none or it has expired."""
        stored = self._get()
        if stored is ABSENT:
            return None
        if self._ttl_millis is None:
            return stored
        value, timestamp = stored
        if self._is_expired(timestamp):
            self._put(ABSENT)
            return value if self._show_expired else None
        if self._touch_on_read:
            self.update(value)
        return value

    def update(self, value: Any) -> None:
        """Set the value of the current key."""
        self._put(value if self._ttl_millis is None else (value, self._scope.now))


class ListView(_View, model.ListState[Any]):
    """ListState; with TTL, each element expires separately."""

    def get(self) -> Iterator[Any]:
        """Return an iterator over the elements, oldest first."""
        stored = self._get()
        if stored is ABSENT:
            return iter(())
        if self._ttl_millis is None:
            return iter(list(stored))
        unexpired = [pair for pair in stored if not self._is_expired(pair[1])]
        visible = [value for value, _ in (stored if self._show_expired else unexpired)]
        if self._touch_on_read:
            unexpired = [(value, self._scope.now) for value, _ in unexpired]
        elif self._show_expired and unexpired:
            return iter(visible)  # expired elements are removed by the next write, or when all have expired
        if unexpired != stored:
            self._put(unexpired or ABSENT)
        return iter(visible)

    def add(self, value: Any) -> None:
        """Append an element."""
        self.add_all([value])

    def add_all(self, values: Iterable[Any]) -> None:
        """Append elements."""
        stored = self._get()
        elements = [] if stored is ABSENT else stored
        elements.extend(self._add_times(values))
        self._put(elements or ABSENT)

    def update(self, values: Iterable[Any]) -> None:
        """Replace all elements."""
        self._put(self._add_times(values) or ABSENT)

    def _add_times(self, values: Iterable[Any]) -> list[Any]:
        return list(values) if self._ttl_millis is None else [(value, self._scope.now) for value in values]

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Move the elements of the current key from the source namespaces to the target one."""
        key = self._scope.key
        merged: list[Any] = []
        for namespace in (target, *sources):
            elements = self._table.get(namespace, key)
            if elements is not ABSENT:
                merged.extend(elements)
                self._table.delete(namespace, key)
        if merged:
            self._table.put(target, key, merged)


class MapView(_View, model.MapState[Any, Any]):
    """MapState; with TTL, each entry expires separately."""

    def _stored(self) -> dict[Any, Any]:
        entries = self._get()
        return {} if entries is ABSENT else entries

    def _write(self, entries: dict[Any, Any], changed: Iterable[Any]) -> None:
        self._put(entries or ABSENT)
        self._table.touch(self._scope.namespace, self._scope.key, changed)

    def _read(self, keys: Iterable[Any] | None = None) -> dict[Any, Any]:
        """Return the entries of `keys`, or all.

        With TTL, reading removes expired entries, so they are seen at most once."""
        stored = self._stored()
        selected = list(stored) if keys is None else [key for key in keys if key in stored]
        if self._ttl_millis is None:
            return {key: stored[key] for key in selected}
        visible: dict[Any, Any] = {}
        kept = dict(stored)
        changed: list[Any] = []
        for key in selected:
            value, timestamp = stored[key]
            is_expired = self._is_expired(timestamp)
            if is_expired or self._touch_on_read:
                changed.append(key)
            if is_expired:
                del kept[key]
            elif self._touch_on_read:
                kept[key] = (value, self._scope.now)
            if self._show_expired or not is_expired:
                visible[key] = value
        if kept != stored:
            self._write(kept, changed)
        return visible

    def get(self, key: Any) -> Any:
        """Return the value of `key`, or None."""
        if self._ttl_millis is None:
            return self._stored().get(key)
        return self._read([key]).get(key)

    def put(self, key: Any, value: Any) -> None:
        """Set the value of `key`."""
        entries = self._stored()
        entries[key] = value if self._ttl_millis is None else (value, self._scope.now)
        self._write(entries, (key,))

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        """Set several entries."""
        entries = self._stored()
        if self._ttl_millis is None:
            entries.update(dict_value)
        else:
            entries.update((key, (value, self._scope.now)) for key, value in dict_value.items())
        self._write(entries, dict_value)

    def remove(self, key: Any) -> None:
        """Remove one entry."""
        entries = self._stored()
        if key in entries:
            del entries[key]
            self._write(entries, (key,))

    def contains(self, key: Any) -> bool:
        """Whether the map has an entry for `key`."""
        return key in (self._stored() if self._ttl_millis is None else self._read([key]))

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Return all entries."""
        return list(self._read().items())

    def keys(self) -> Iterable[Any]:
        """Return all keys."""
        return list(self._read())

    def values(self) -> Iterable[Any]:
        """Return all values."""
        return list(self._read().values())

    def is_empty(self) -> bool:
        """Whether the map has no entries."""
        if self._ttl_millis is None:
            return not self._stored()
        return all(self._is_expired(time) and not self._show_expired for _, time in self._stored().values())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._read())


class _AggregatedView(ScopedValueView):
    """The common part of ReducingState and AggregatingState: a value that aggregates what is added."""

    def __init__(
        self,
        table: StateTable,
        scope: Scope,
        ttl: model.StateTtlConfig | None,
        add: Callable[[Any, Any], Any],
        merge: Callable[[Any, Any], Any],
        result: Callable[[Any], Any],
    ) -> None:
        super().__init__(table, scope, ttl)
        self._add, self._merge, self._result = add, merge, result

    def get(self) -> Any:
        """Return the current result, or None."""
        value = self.value()
        return None if value is None else self._result(value)

    def add(self, value: Any) -> None:
        """Add a value."""
        self.update(self._add(self.value(), value))

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Merge the values of the current key from the source namespaces into the target one."""
        key, merged = self._scope.key, ABSENT
        for namespace in (target, *sources):
            value = self._table.get(namespace, key)
            if value is not ABSENT:
                self._table.delete(namespace, key)
                merged = value if merged is ABSENT else self._merge_values(merged, value)
        if merged is not ABSENT:
            self._table.put(target, key, merged)

    def _merge_values(self, one: Any, other: Any) -> Any:
        if self._ttl_millis is None:
            return self._merge(one, other)
        return self._merge(one[0], other[0]), max(one[1], other[1])


class ReducingView(_AggregatedView, model.ReducingState[Any]):
    """ReducingState."""


class AggregatingView(_AggregatedView, model.AggregatingState[Any, Any]):
    """AggregatingState."""


class OperatorListView(model.ListState[Any]):
    """Operator list state: it belongs to a subtask, not to a key, and is redistributed when the parallelism changes."""

    def __init__(self, table: StateTable) -> None:
        self._table = table

    def get(self) -> Iterator[Any]:
        """Return an iterator over the elements of this subtask."""
        return iter([value for _, value in sorted(self._table.scan(None), key=lambda item: str(item[0]))])

    def add(self, value: Any) -> None:
        """Append an element."""
        self.add_all([value])

    def add_all(self, values: Iterable[Any]) -> None:
        """Append elements."""
        self.update([*self.get(), *values])

    def update(self, values: Iterable[Any]) -> None:
        """Replace all elements."""
        self.clear()
        for index, value in enumerate(values):
            self._table.put(None, f"{index:012d}", value)

    def clear(self) -> None:
        """Remove all elements."""
        self._table.clear_namespace(None)


class BroadcastView(model.BroadcastState[Any, Any]):
    """Broadcast state: a map of which every subtask has a copy."""

    def __init__(self, table: StateTable) -> None:
        self._table = table

    def get(self, key: Any) -> Any:
        """Return the value of `key`, or None."""
        value = self._table.get(None, key)
        return None if value is ABSENT else value

    def put(self, key: Any, value: Any) -> None:
        """Set the value of `key`."""
        self._table.put(None, key, value)

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        """Set several entries."""
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        """Remove one entry."""
        self._table.delete(None, key)

    def contains(self, key: Any) -> bool:
        """Whether the map has an entry for `key`."""
        return self._table.get(None, key) is not ABSENT

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Return all entries."""
        return list(self._table.scan(None))

    def keys(self) -> Iterable[Any]:
        """Return all keys."""
        return [key for key, _ in self._table.scan(None)]

    def values(self) -> Iterable[Any]:
        """Return all values."""
        return [value for _, value in self._table.scan(None)]

    def is_empty(self) -> bool:
        """Whether the map has no entries."""
        return not self.keys()

    def clear(self) -> None:
        """Remove all entries."""
        self._table.clear_namespace(None)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())


class BroadcastStateReadOnly(UserError):
    """Broadcast state was changed while a record of the other input was processed, so the copies would differ."""

    hint = "change broadcast state in process_broadcast_element"

    def __init__(self) -> None:
        super().__init__("broadcast state is read-only in process_element")


class ReadOnlyBroadcastView(model.ReadOnlyBroadcastState[Any, Any]):
    """Broadcast state for the input that is not broadcast: read-only."""

    def __init__(self, view: BroadcastView) -> None:
        self._view = view

    def get(self, key: Any) -> Any:
        """Return the value of `key`, or None."""
        return self._view.get(key)

    def contains(self, key: Any) -> bool:
        """Whether the map has an entry for `key`."""
        return self._view.contains(key)

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Return all entries."""
        return self._view.items()

    def keys(self) -> Iterable[Any]:
        """Return all keys."""
        return self._view.keys()

    def values(self) -> Iterable[Any]:
        """Return all values."""
        return self._view.values()

    def is_empty(self) -> bool:
        """Whether the map has no entries."""
        return self._view.is_empty()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._view)

    def clear(self) -> None:
        """Raise `BroadcastStateReadOnly`."""
        raise BroadcastStateReadOnly

    def __getattr__(self, name: str) -> Any:
        if name in ("put", "put_all", "remove"):
            raise BroadcastStateReadOnly
        raise AttributeError(name)


def stored_type(descriptor: model.StateDescriptor) -> TypeInformation:
    """Return the type of stored values for a descriptor: a list or map is one value; with TTL, timestamps are added."""
    type_info = descriptor.type_info
    return type_info if _enabled_ttl(descriptor) is None else to_timed_type(type_info, state_kind(descriptor))


def state_kind(descriptor: model.StateDescriptor) -> str:
    """Return the kind of state of a descriptor, as state files name it."""
    match descriptor:
        case model.ListStateDescriptor():
            return "list"
        case model.MapStateDescriptor():
            return "map"
        case model.ReducingStateDescriptor():
            return "reducing"
        case model.AggregatingStateDescriptor():
            return "aggregating"
    return "value"


def create_view(
    descriptor: model.StateDescriptor,
    state: OperatorState,
    scope: Scope,
    *,
    scoped: bool = False,
    name: str | None = None,
) -> Any:
    """Create the view of a keyed state; with `scoped` in the namespace of the scope, else without namespace."""
    ttl = _enabled_ttl(descriptor)
    codec.declare(*find_classes(descriptor.type_info))  # the local store encodes objects of these classes
    table = state.table(
        f"user/{name or descriptor.name}", stored_type(descriptor), kind=state_kind(descriptor), ttl=ttl is not None
    )
    match descriptor:
        case model.ReducingStateDescriptor():
            reduce = _reduce_first(descriptor.get_reduce_function())
            return ReducingView(table, scope, ttl, reduce, reduce, lambda value: value)
        case model.AggregatingStateDescriptor():
            return AggregatingView(table, scope, ttl, *split_aggregate(descriptor.get_agg_function()))
        case model.ListStateDescriptor():
            return ListView(table, scope, ttl)
        case model.MapStateDescriptor():
            return MapView(table, scope, ttl)
    if scoped or ttl is not None:
        return ScopedValueView(table, scope, ttl)
    return ValueView(table, scope)


def create_broadcast_view(descriptor: model.MapStateDescriptor, state: OperatorState) -> BroadcastView:
    """Create the view of a broadcast state."""
    type_info = descriptor.type_info
    table = state.table(
        f"broadcast/{descriptor.name}",
        type_info.value_type,
        Redistribution.BROADCAST,
        key_type=type_info.key_type,
        kind="broadcast",
    )
    return BroadcastView(table)


def create_operator_list_view(
    descriptor: model.ListStateDescriptor, state: OperatorState, *, union: bool
) -> OperatorListView:
    """Create the view of an operator list state."""
    table = state.table(
        f"operator/{descriptor.name}",
        descriptor.type_info.elem_type,
        Redistribution.UNION if union else Redistribution.SPLIT,
        key_type=Types.PICKLED_BYTE_ARRAY(),
        kind="union" if union else "operator-list",
    )
    return OperatorListView(table)


def _reduce_first(function: ReduceFunction) -> Callable[[Any, Any], Any]:
    return lambda one, other: other if one is None else function.reduce(one, other)


def split_aggregate(
    function: AggregateFunction,
) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any], Callable[[Any], Any]]:
    """Return an aggregate function as three functions: add (to None for the first value), merge and result."""

    def add(accumulator: Any, value: Any) -> Any:
        start = function.create_accumulator() if accumulator is None else accumulator
        return function.add(value, start)

    return add, function.merge, function.get_result


def _enabled_ttl(descriptor: model.StateDescriptor) -> model.StateTtlConfig | None:
    config = descriptor.ttl_config
    return config if config is not None and config.is_enabled() else None
