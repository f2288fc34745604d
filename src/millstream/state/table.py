"""One named state of an operator subtask: live values by namespace and key, over an optional store.

Promises: a value read is the value of the epoch before, changed by this epoch; `changes` is what this epoch changed and
no more; an epoch costs what it touches.
Does not know: versions, files, the other tables of its operator.

User code pays one dictionary lookup: `table.live[namespace][key]` is the value or ABSENT."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from millstream.state.deltas import Changes, Patch, TableSchema
from millstream.state.store import ABSENT, Store, StoredGroup

_LARGE_MAP = 32  # entries; a smaller map is written whole


class Live(dict[Any, Any]):
    """key -> value of one namespace; what is not here is absent, or still in the store."""

    __slots__ = ("_load",)

    def __init__(self, load: Callable[[Any], Any] | None) -> None:
        super().__init__()
        self._load = load

    def __missing__(self, key: Any) -> Any:
        if self._load is None:
            return ABSENT
        value = self[key] = self._load(key)
        return value


class StateTable:
    """One named state: values by namespace and key, and which of them this epoch changed."""

    def __init__(self, schema: TableSchema, store: Store | None) -> None:
        self.schema = schema
        self.store = store
        self.live: dict[Any, Live] = {}
        self.dirty: dict[Any, set[Any]] = {}
        self.touched: dict[tuple[Any, Any], set[Any]] = {}  # by namespace and key, the entries of a map that changed
        self.listener: Callable[[Any, Any, Any], None] | None = None
        self._rebuild: Callable[[list[Any]], list[Any]] | None = None
        self._forgotten = True  # whether values may have been deleted; `changes` finds out

    def become(self, schema: TableSchema, now: int) -> None:
        """Be what the program has only now declared; nobody has written to the table yet."""
        before, self.schema = self.schema, schema
        _, way = schema.resolved(before.describe())
        if before.value_type.to_json() == schema.value_type.to_json():
            return

        def rebuild(values: list[Any]) -> list[Any]:
            return schema.value_type.from_arrow(way(before.value_type.to_arrow(values), now))

        if self.store is not None:
            self._rebuild = rebuild
            self.forget()
            return
        for live in self.live.values():
            live.update(zip(live, rebuild(list(live.values())), strict=True))

    def _stored(self, namespace: Any, key: Any) -> Any:
        assert self.store is not None
        value = self.store.get(self.schema.name, namespace, key)
        return value if self._rebuild is None or value is ABSENT else self._rebuild([value])[0]

    def stored_group(self, group: int) -> StoredGroup:
        """The entries of a key group that are in the store, as they were before this epoch."""
        assert self.store is not None
        namespaces, keys, values, size = self.store.group(self.schema.name, group)
        return namespaces, keys, values if self._rebuild is None else self._rebuild(values), size

    def namespace(self, namespace: Any) -> tuple[Live, set[Any]]:
        """The live values and the changed keys of a namespace, for this epoch; those of None for the table's life."""
        dirty = self.dirty.get(namespace)
        if dirty is None:
            dirty = self.dirty[namespace] = set()
            if namespace not in self.live:
                self.live[namespace] = Live(None if self.store is None else self._loader(namespace))
        return self.live[namespace], dirty

    def _loader(self, namespace: Any) -> Callable[[Any], Any]:
        return lambda key: self._stored(namespace, key)

    def get(self, namespace: Any, key: Any) -> Any:
        """The value, or ABSENT."""
        return self.namespace(namespace)[0][key]

    def put(self, namespace: Any, key: Any, value: Any) -> None:
        """Set, or with ABSENT delete, a value."""
        live, dirty = self.namespace(namespace)
        live[key] = value
        dirty.add(key)

    def touch(self, namespace: Any, key: Any, entries: Iterable[Any]) -> None:
        """These entries of a map that was put have changed, and no others."""
        touched = self.touched.get((namespace, key))
        if touched is None:
            self.touched[namespace, key] = set(entries)
        else:
            touched.update(entries)

    def delete(self, namespace: Any, key: Any) -> None:
        """Forget a value."""
        self.put(namespace, key, ABSENT)

    def get_many(self, namespace: Any, keys: Iterable[Any]) -> list[Any]:
        """The values of keys, ABSENT where there is none."""
        live = self.namespace(namespace)[0]
        return [live[key] for key in keys]

    def put_many(self, namespace: Any, keys: list[Any], values: list[Any]) -> None:
        """Set many values."""
        live, dirty = self.namespace(namespace)
        live.update(zip(keys, values, strict=True))
        dirty.update(keys)

    def scan(self, namespace: Any) -> Iterator[tuple[Any, Any]]:
        """Every (key, value) of a namespace."""
        live = self.namespace(namespace)[0]
        if self.store is not None:
            for key, value in self.store.scan(self.schema.name, namespace):
                if key not in live:
                    yield key, value if self._rebuild is None else self._rebuild([value])[0]
        yield from ((key, value) for key, value in list(live.items()) if value is not ABSENT)

    def namespaces(self) -> list[Any]:
        """Every namespace that has entries."""
        found = dict.fromkeys(() if self.store is None else self.store.namespaces(self.schema.name))
        found.update(dict.fromkeys(self.live))
        return [namespace for namespace in found if any(True for _ in self.scan(namespace))]

    def clear_namespace(self, namespace: Any) -> None:
        """Forget every value of a namespace."""
        for key, _ in list(self.scan(namespace)):
            self.delete(namespace, key)

    def changes(self) -> Changes:
        """What this epoch changed."""
        namespaces: list[Any] = []
        keys: list[Any] = []
        values: list[Any] = []
        for namespace, dirty in self.dirty.items():
            live = self.live[namespace]
            keys.extend(dirty)
            values.extend([live[key] for key in dirty])
            namespaces.extend([namespace] * len(dirty))
        deleted = [value is ABSENT for value in values]
        self._forgotten = any(deleted)
        if self._forgotten:
            values = [None if gone else value for value, gone in zip(values, deleted, strict=True)]
        if not self.touched:
            return Changes(namespaces, keys, deleted, values)
        values = list(map(self._patch, namespaces, keys, values))
        return Changes(namespaces, keys, deleted, values, patched=any(isinstance(each, Patch) for each in values))

    def _patch(self, namespace: Any, key: Any, value: Any) -> Any:
        """A map of which little has changed as what has; what was cleared is all new."""
        touched = self.touched.get((namespace, key))
        if touched is None or value is None or len(value) < _LARGE_MAP or 2 * len(touched) >= len(value):
            return value
        gone = tuple(entry for entry in touched if entry not in value)
        return Patch({entry: value[entry] for entry in touched if entry in value}, gone)

    def everything(self) -> Changes:
        """All values of a table that is in memory."""
        namespaces: list[Any] = []
        keys: list[Any] = []
        values: list[Any] = []
        for namespace, live in self.live.items():
            before = len(keys)
            for key, value in live.items():
                if value is not ABSENT:
                    keys.append(key)
                    values.append(value)
            namespaces.extend([namespace] * (len(keys) - before))
        return Changes(namespaces, keys, [False] * len(keys), values)

    def settle(self, limit: int | None) -> None:
        """The epoch is over: its changes are the new truth; a cache over `limit` values is emptied."""
        if self.store is None:
            for namespace, dirty in self.dirty.items():
                live = self.live[namespace]
                for key in dirty if self._forgotten else ():
                    if live.get(key) is ABSENT:
                        del live[key]
                if not live and namespace is not None:  # windows come and go
                    del self.live[namespace]
        elif limit is not None and sum(map(len, self.live.values())) > limit:
            self.forget()
        self._end_epoch()

    def take_over(self, changes: Changes) -> None:
        """Apply accepted changes of another worker: decoded into memory, or just forgotten when a store has them."""
        if (
            self.store is None
            and self.listener is None
            and not any(changes.deleted)
            and not changes.patched
            and len(set(changes.namespaces)) == 1
        ):
            self.namespace(changes.namespaces[0])[0].update(zip(changes.keys, changes.values, strict=True))
            return
        for namespace, key, gone, value in changes.rows():
            live = self.namespace(namespace)[0]
            if self.store is not None or gone:
                live.pop(key, None)
            else:
                live[key] = value.on(live.get(key)) if isinstance(value, Patch) else value
            if self.listener is not None and not gone:
                self.listener(namespace, key, value)

    def forget(self) -> None:
        """Drop everything live."""
        for live in self.live.values():
            live.clear()
        self.live = {None: self.live[None]} if None in self.live else {}
        self._end_epoch()

    def _end_epoch(self) -> None:
        """Nothing has changed so far. Only what views hold on to stays: an epoch costs what it touches."""
        held = self.dirty.get(None)
        self.dirty.clear()
        if held is not None:
            held.clear()
            self.dirty[None] = held
        self.touched.clear()
        self._forgotten = True
