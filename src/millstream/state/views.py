"""State as user code sees it: one key's view on the tables.

Promises: the state interfaces of Flink, with its TTL rules; each call costs a dictionary lookup.
Does not know: stores, files, epochs. The current key and time come from the `Scope` that the operator moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from millstream.errors import UserError
from millstream.functions import AggregateFunction, ReduceFunction
from millstream.serialization import codec
from millstream.state.backend import OperatorState
from millstream.state.deltas import Redistribution
from millstream.state.evolution import classes_in, stamped
from millstream.state.store import ABSENT
from millstream.state.table import StateTable
from millstream.state_descriptors import descriptors as model
from millstream.types.factory import TypeInformation, Types


class Scope:
    """Where an operator stands: the key whose state is meant, the namespace, and the processing time of the epoch."""

    __slots__ = ("key", "namespace", "now")

    def __init__(self) -> None:
        self.key: Any = None
        self.namespace: Any = None
        self.now = 0


class _View:
    """What all views share: the table, the scope, and the expiry of what is stored.

    Without TTL a table holds plain values; with it, pairs (value, time of the last access that counts)."""

    def __init__(self, table: StateTable, scope: Scope, ttl: model.StateTtlConfig | None) -> None:
        self._table = table
        self._scope = scope
        self._ttl_millis = None if ttl is None else ttl.get_ttl().to_milliseconds()
        self._touch_on_read = ttl is not None and ttl.get_update_type() == ttl.UpdateType.OnReadAndWrite
        self._show_expired = (
            ttl is not None and ttl.get_state_visibility() == ttl.StateVisibility.ReturnExpiredIfNotCleanedUp
        )

    def _expired(self, at: int) -> bool:
        return self._ttl_millis is not None and at + self._ttl_millis <= self._scope.now

    def _get(self) -> Any:
        scope = self._scope
        return self._table.get(scope.namespace, scope.key)

    def _put(self, value: Any) -> None:
        scope = self._scope
        self._table.put(scope.namespace, scope.key, value)

    def clear(self) -> None:
        """Forget the value of the current key."""
        self._put(ABSENT)


class ValueView(_View, model.ValueState[Any]):
    """ValueState without TTL in one namespace: the hot path of keyed functions."""

    def __init__(self, table: StateTable, scope: Scope) -> None:
        super().__init__(table, scope, None)
        self._live, self._dirty = table.by_key()

    def value(self) -> Any:
        """The value of the current key, or None."""
        value = self._live[self._scope.key]
        return None if value is ABSENT else value

    def update(self, value: Any) -> None:
        """Set the value of the current key."""
        key = self._scope.key
        self._live[key] = value
        self._dirty.add(key)

    def clear(self) -> None:
        """Forget the value of the current key."""
        self.update(ABSENT)


class ScopedValueView(_View, model.ValueState[Any]):
    """ValueState in the scope's namespace, with or without TTL."""

    def value(self) -> Any:
        """The value of the current key, or None when there is none or it has expired."""
        found = self._get()
        if found is ABSENT:
            return None
        if self._ttl_millis is None:
            return found
        value, at = found
        if self._expired(at):
            self._put(ABSENT)
            return value if self._show_expired else None
        if self._touch_on_read:
            self.update(value)
        return value

    def update(self, value: Any) -> None:
        """Set the value of the current key."""
        self._put(value if self._ttl_millis is None else (value, self._scope.now))


class ListView(_View, model.ListState[Any]):
    """ListState; with TTL each element expires by itself."""

    def get(self) -> Iterator[Any]:
        """The elements, oldest first."""
        found = self._get()
        if found is ABSENT:
            return iter(())
        if self._ttl_millis is None:
            return iter(list(found))
        living = [pair for pair in found if not self._expired(pair[1])]
        shown = [value for value, _ in (found if self._show_expired else living)]
        if self._touch_on_read:
            living = [(value, self._scope.now) for value, _ in living]
        elif self._show_expired and living:
            return iter(shown)  # expired elements go with the last living one, or when someone writes
        if living != found:
            self._put(living or ABSENT)
        return iter(shown)

    def add(self, value: Any) -> None:
        """Append an element."""
        self.add_all([value])

    def add_all(self, values: Iterable[Any]) -> None:
        """Append elements."""
        found = self._get()
        elements = [] if found is ABSENT else found
        elements.extend(self._stamped(values))
        self._put(elements or ABSENT)

    def update(self, values: Iterable[Any]) -> None:
        """Replace all elements."""
        self._put(self._stamped(values) or ABSENT)

    def _stamped(self, values: Iterable[Any]) -> list[Any]:
        return list(values) if self._ttl_millis is None else [(value, self._scope.now) for value in values]

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Move the elements of the current key from the source namespaces to the target one."""
        key = self._scope.key
        merged: list[Any] = []
        for namespace in (target, *sources):
            found = self._table.get(namespace, key)
            if found is not ABSENT:
                merged.extend(found)
                self._table.delete(namespace, key)
        if merged:
            self._table.put(target, key, merged)


class MapView(_View, model.MapState[Any, Any]):
    """MapState; with TTL each entry expires by itself."""

    def _stored(self) -> dict[Any, Any]:
        found = self._get()
        return {} if found is ABSENT else found

    def _write(self, entries: dict[Any, Any], changed: Iterable[Any]) -> None:
        self._put(entries or ABSENT)
        self._table.touch(self._scope.namespace, self._scope.key, changed)

    def _read(self, keys: Iterable[Any] | None = None) -> dict[Any, Any]:
        """The entries under `keys`, or all; with TTL reading drops what has expired, which is seen once at most."""
        stored = self._stored()
        wanted = list(stored) if keys is None else [key for key in keys if key in stored]
        if self._ttl_millis is None:
            return {key: stored[key] for key in wanted}
        seen: dict[Any, Any] = {}
        kept = dict(stored)
        changed: list[Any] = []
        for key in wanted:
            value, at = stored[key]
            expired = self._expired(at)
            if expired or self._touch_on_read:
                changed.append(key)
            if expired:
                del kept[key]
            elif self._touch_on_read:
                kept[key] = (value, self._scope.now)
            if self._show_expired or not expired:
                seen[key] = value
        if kept != stored:
            self._write(kept, changed)
        return seen

    def get(self, key: Any) -> Any:
        """The value under `key`, or None."""
        if self._ttl_millis is None:
            return self._stored().get(key)
        return self._read([key]).get(key)

    def put(self, key: Any, value: Any) -> None:
        """Set the value under `key`."""
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
        """Forget one entry."""
        entries = self._stored()
        if key in entries:
            del entries[key]
            self._write(entries, (key,))

    def contains(self, key: Any) -> bool:
        """Whether there is an entry under `key`."""
        return key in (self._stored() if self._ttl_millis is None else self._read([key]))

    def items(self) -> Iterable[tuple[Any, Any]]:
        """All entries."""
        return list(self._read().items())

    def keys(self) -> Iterable[Any]:
        """All keys."""
        return list(self._read())

    def values(self) -> Iterable[Any]:
        """All values."""
        return list(self._read().values())

    def is_empty(self) -> bool:
        """Whether there is no entry."""
        if self._ttl_millis is None:
            return not self._stored()
        return all(self._expired(at) and not self._show_expired for _, at in self._stored().values())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._read())


class FoldingView(ScopedValueView):
    """What ReducingState and AggregatingState share: a value that additions are folded into."""

    def __init__(
        self,
        table: StateTable,
        scope: Scope,
        ttl: model.StateTtlConfig | None,
        fold: Callable[[Any, Any], Any],
        merge: Callable[[Any, Any], Any],
        result: Callable[[Any], Any],
    ) -> None:
        super().__init__(table, scope, ttl)
        self._fold, self._merge, self._result = fold, merge, result

    def get(self) -> Any:
        """The result so far, or None."""
        value = self.value()
        return None if value is None else self._result(value)

    def add(self, value: Any) -> None:
        """Fold one more value in."""
        self.update(self._fold(self.value(), value))

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Merge the current key's values of the source namespaces into the target one."""
        key, merged = self._scope.key, ABSENT
        for namespace in (target, *sources):
            found = self._table.get(namespace, key)
            if found is not ABSENT:
                self._table.delete(namespace, key)
                merged = found if merged is ABSENT else self._combined(merged, found)
        if merged is not ABSENT:
            self._table.put(target, key, merged)

    def _combined(self, one: Any, other: Any) -> Any:
        if self._ttl_millis is None:
            return self._merge(one, other)
        return self._merge(one[0], other[0]), max(one[1], other[1])


class ReducingView(FoldingView, model.ReducingState[Any]):
    """ReducingState."""


class AggregatingView(FoldingView, model.AggregatingState[Any, Any]):
    """AggregatingState."""


class OperatorListView(model.ListState[Any]):
    """List state of an operator subtask, not of a key: it is split or united when the parallelism changes."""

    def __init__(self, table: StateTable) -> None:
        self._table = table

    def get(self) -> Iterator[Any]:
        """The elements of this subtask."""
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
        """Forget all elements."""
        self._table.clear_namespace(None)


class BroadcastView(model.BroadcastState[Any, Any]):
    """Broadcast state: a map that every subtask has a copy of."""

    def __init__(self, table: StateTable) -> None:
        self._table = table

    def get(self, key: Any) -> Any:
        """The value under `key`, or None."""
        value = self._table.get(None, key)
        return None if value is ABSENT else value

    def put(self, key: Any, value: Any) -> None:
        """Set the value under `key`."""
        self._table.put(None, key, value)

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        """Set several entries."""
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        """Forget one entry."""
        self._table.delete(None, key)

    def contains(self, key: Any) -> bool:
        """Whether there is an entry under `key`."""
        return self._table.get(None, key) is not ABSENT

    def items(self) -> Iterable[tuple[Any, Any]]:
        """All entries."""
        return list(self._table.scan(None))

    def keys(self) -> Iterable[Any]:
        """All keys."""
        return [key for key, _ in self._table.scan(None)]

    def values(self) -> Iterable[Any]:
        """All values."""
        return [value for _, value in self._table.scan(None)]

    def is_empty(self) -> bool:
        """Whether there is no entry."""
        return not self.keys()

    def clear(self) -> None:
        """Forget all entries."""
        self._table.clear_namespace(None)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())


class BroadcastStateReadOnly(UserError):
    """Broadcast state was changed on the side that is not broadcast: subtasks would no longer agree."""

    hint = "change it in process_broadcast_element"

    def __init__(self) -> None:
        super().__init__("broadcast state can only be read here")


class ReadOnlyBroadcastView(model.ReadOnlyBroadcastState[Any, Any]):
    """Broadcast state as the other side sees it."""

    def __init__(self, view: BroadcastView) -> None:
        self._view = view

    def get(self, key: Any) -> Any:
        """The value under `key`, or None."""
        return self._view.get(key)

    def contains(self, key: Any) -> bool:
        """Whether there is an entry under `key`."""
        return self._view.contains(key)

    def items(self) -> Iterable[tuple[Any, Any]]:
        """All entries."""
        return self._view.items()

    def keys(self) -> Iterable[Any]:
        """All keys."""
        return self._view.keys()

    def values(self) -> Iterable[Any]:
        """All values."""
        return self._view.values()

    def is_empty(self) -> bool:
        """Whether there is no entry."""
        return self._view.is_empty()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._view)

    def clear(self) -> None:
        """Refused."""
        raise BroadcastStateReadOnly

    def __getattr__(self, name: str) -> Any:
        if name in ("put", "put_all", "remove"):
            raise BroadcastStateReadOnly
        raise AttributeError(name)


def stored_type(descriptor: model.StateDescriptor) -> TypeInformation:
    """The type of what a table holds for a descriptor: lists and maps whole, with TTL each value beside its time."""
    kind = descriptor.type_info
    return kind if _ttl(descriptor) is None else stamped(kind, kind_of(descriptor))


def kind_of(descriptor: model.StateDescriptor) -> str:
    """What a descriptor describes, in a word."""
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


def view_of(
    descriptor: model.StateDescriptor,
    state: OperatorState,
    scope: Scope,
    *,
    scoped: bool = False,
    name: str | None = None,
) -> Any:
    """The view for a descriptor: keyed, in the scope's namespace when `scoped`, else in none."""
    ttl = _ttl(descriptor)
    codec.declare(*classes_in(descriptor.type_info))  # a store keeps objects
    table = state.table(
        f"user/{name or descriptor.name}", stored_type(descriptor), kind=kind_of(descriptor), ttl=ttl is not None
    )
    match descriptor:
        case model.ReducingStateDescriptor():
            reduce = _reduce(descriptor.get_reduce_function())
            return ReducingView(table, scope, ttl, reduce, reduce, lambda value: value)
        case model.AggregatingStateDescriptor():
            return AggregatingView(table, scope, ttl, *aggregation(descriptor.get_agg_function()))
        case model.ListStateDescriptor():
            return ListView(table, scope, ttl)
        case model.MapStateDescriptor():
            return MapView(table, scope, ttl)
    if scoped or ttl is not None:
        return ScopedValueView(table, scope, ttl)
    return ValueView(table, scope)


def broadcast_view(descriptor: model.MapStateDescriptor, state: OperatorState) -> BroadcastView:
    """The broadcast state of a descriptor."""
    kind = descriptor.type_info
    table = state.table(
        f"broadcast/{descriptor.name}",
        kind.value_type,
        Redistribution.BROADCAST,
        key_type=kind.key_type,
        kind="broadcast",
    )
    return BroadcastView(table)


def operator_list_view(descriptor: model.ListStateDescriptor, state: OperatorState, *, union: bool) -> OperatorListView:
    """The operator list state of a descriptor."""
    how = Redistribution.UNION if union else Redistribution.SPLIT
    name = f"operator/{descriptor.name}"
    kind = "union" if union else "operator-list"
    places = Types.PICKLED_BYTE_ARRAY()
    return OperatorListView(state.table(name, descriptor.type_info.elem_type, how, key_type=places, kind=kind))


def _reduce(function: ReduceFunction) -> Callable[[Any, Any], Any]:
    return lambda one, other: other if one is None else function.reduce(one, other)


def aggregation(
    function: AggregateFunction,
) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any], Callable[[Any], Any]]:
    """fold, merge and result of an aggregate function, from the first element on."""

    def fold(accumulator: Any, value: Any) -> Any:
        start = function.create_accumulator() if accumulator is None else accumulator
        return function.add(value, start)

    return fold, function.merge, function.get_result


def _ttl(descriptor: model.StateDescriptor) -> model.StateTtlConfig | None:
    config = descriptor.ttl_config
    return config if config is not None and config.is_enabled() else None
