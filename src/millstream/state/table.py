"""One named state of an operator subtask: live values by place, over an optional store.

Promises: a value read is the value of the epoch before, changed by this epoch; `changes` is what this epoch changed and
no more; an epoch costs what it touches, however many namespaces that is.
Does not know: versions, files, the other tables of its operator.

The place of an entry is its key, or, in a namespace (a window), the pair of both. User code pays one dictionary lookup:
`live[place]` is the value or ABSENT."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import compress, repeat
from operator import is_, itemgetter
from typing import Any

from millstream.state.deltas import Changes, Patch, TableSchema
from millstream.state.store import ABSENT, Store, StoredGroup

_LARGE_MAP = 32  # entries; a smaller map is written whole


class Live(dict[Any, Any]):
    """place -> value; what is not here is absent, or still in the store."""

    __slots__ = ("_load",)

    def __init__(self, load: Callable[[Any], Any] | None) -> None:
        super().__init__()
        self._load = load

    def __missing__(self, place: Any) -> Any:
        if self._load is None:
            return ABSENT
        value = self[place] = self._load(place)
        return value

    def drop(self, place: Any) -> None:
        """Have nothing there, whatever the store has."""
        if self._load is None:
            self.pop(place, None)
        else:
            self[place] = ABSENT


class InNamespace:
    """key -> value of one namespace, to read."""

    __slots__ = ("_live", "_namespace")

    def __init__(self, live: Live, namespace: Any) -> None:
        self._live, self._namespace = live, namespace

    def __getitem__(self, key: Any) -> Any:
        return self._live[self._namespace, key]


class StateTable:
    """One named state: values by namespace and key, and which of them this epoch changed."""

    def __init__(self, schema: TableSchema, store: Store | None) -> None:
        self.schema = schema
        self.store = store
        self._live = Live(None if store is None else lambda key: self._stored(None, key))
        self._dirty: set[Any] = set()
        self._spaced = Live(None if store is None else self._load_spaced)
        self._spaced_dirty: dict[tuple[Any, Any], Any] = {}  # with the values, so that none is looked up again
        self._spaces: defaultdict[Any, dict[Any, None]] | None = None  # namespace -> keys, once someone asked
        self._written_directly = False
        self._read_in_place = False
        self.touched: dict[tuple[Any, Any], set[Any]] = {}  # by namespace and key, the entries of a map that changed
        self._listener: Callable[[Any, Any, Any], None] | None = None
        self._rebuild: Callable[[list[Any]], list[Any]] | None = None
        self._gone: list[tuple[Any, Any]] | None = None  # what was deleted, once `changes` has found out

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
        for live in (self._live, self._spaced):
            live.update(zip(live, rebuild(list(live.values())), strict=True))

    def _stored(self, namespace: Any, key: Any) -> Any:
        assert self.store is not None
        value = self.store.get(self.schema.name, namespace, key)
        return value if self._rebuild is None or value is ABSENT else self._rebuild([value])[0]

    def _load_spaced(self, place: tuple[Any, Any]) -> Any:
        if self._spaces is not None:
            self._spaces[place[0]][place[1]] = None
        return self._stored(*place)

    def stored_group(self, group: int) -> StoredGroup:
        """The entries of a key group that are in the store, as they were before this epoch."""
        assert self.store is not None
        namespaces, keys, values, size = self.store.group(self.schema.name, group)
        return namespaces, keys, values if self._rebuild is None else self._rebuild(values), size

    def listen(self, listener: Callable[[Any, Any, Any], None]) -> None:
        """Call `listener` with namespace, key and value of every entry that a table in memory has, and of those that
        `take_over` adds. It replaces an earlier one."""
        self._listener = listener
        for namespace, key, _, value in self.everything().rows():
            listener(namespace, key, value)

    def by_key(self) -> tuple[Live, set[Any]]:
        """The live values and the changed keys outside of namespaces, for the table's life."""
        return self._live, self._dirty

    def by_place(self) -> tuple[Live, dict[tuple[Any, Any], Any]]:
        """The live and the changed values in namespaces, by place, for the table's life: a change is written to both.

        For tables that are not scanned: what is written directly is not noted by namespace."""
        self._written_directly = True
        return self._spaced, self._spaced_dirty

    def reader(self, namespace: Any) -> Live | InNamespace:
        """key -> value or ABSENT of a namespace, for the table's life."""
        return self._live if namespace is None else InNamespace(self._spaced, namespace)

    def get(self, namespace: Any, key: Any) -> Any:
        """The value, or ABSENT."""
        return self._live[key] if namespace is None else self._spaced[namespace, key]

    def put(self, namespace: Any, key: Any, value: Any) -> None:
        """Set, or with ABSENT delete, a value."""
        if namespace is None:
            self._live[key] = value
            self._dirty.add(key)
            return
        place = namespace, key
        self._spaced_dirty[place] = value
        if value is ABSENT:
            self._spaced.drop(place)
        else:
            self._spaced[place] = value
        if self._spaces is not None:
            self._spaces[namespace][key] = None

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
        return list(map(self.reader(namespace).__getitem__, keys))

    def put_many(self, namespace: Any, keys: list[Any], values: list[Any]) -> None:
        """Set many values."""
        if namespace is None:
            self._live.update(zip(keys, values, strict=True))
            self._dirty.update(keys)
            return
        for key, value in zip(keys, values, strict=True):
            self.put(namespace, key, value)

    def scan(self, namespace: Any) -> Iterator[tuple[Any, Any]]:
        """Every (key, value) of a namespace."""
        live, keys = self.reader(namespace), self._keys(namespace)
        if self.store is not None:
            for key, value in self.store.scan(self.schema.name, namespace):
                if key not in keys:
                    yield key, value if self._rebuild is None else self._rebuild([value])[0]
        for key, value in [(key, live[key]) for key in keys]:
            if value is not ABSENT:
                yield key, value

    def chunks(self) -> Iterator[tuple[Any, bytes | memoryview]]:
        """Every (key, value) of a table of bytes without namespaces, for this epoch: a store's large values are not
        copied, nor are they kept in memory beyond the epoch that wrote them."""
        self._read_in_place = True
        if self.store is not None:
            for key, value in self.store.chunks(self.schema.name):
                if key not in self._live:
                    yield key, value
        for key, value in self._live.items():
            if value is not ABSENT:
                yield key, value

    def _keys(self, namespace: Any) -> dict[Any, Any]:
        """The live keys of a namespace."""
        return self._live if namespace is None else self._indexed().get(namespace, {})

    def _indexed(self) -> dict[Any, dict[Any, None]]:
        """Which keys a namespace has: kept from the first time someone asks."""
        if self._spaces is None or self._written_directly:
            self._spaces = defaultdict(dict)
            for namespace, key in self._spaced:
                self._spaces[namespace][key] = None
        return self._spaces

    def namespaces(self) -> list[Any]:
        """Every namespace that has entries."""
        found = dict.fromkeys(() if self.store is None else self.store.namespaces(self.schema.name))
        found.update(dict.fromkeys((None, *self._indexed())))
        return [namespace for namespace in found if any(True for _ in self.scan(namespace))]

    def clear_namespace(self, namespace: Any) -> None:
        """Forget every value of a namespace."""
        for key, _ in list(self.scan(namespace)):
            self.delete(namespace, key)

    @property
    def changed(self) -> bool:
        """Whether this epoch changed anything."""
        return bool(self._dirty or self._spaced_dirty)

    def unchanged(self, namespaces: Iterable[Any], keys: Iterable[Any]) -> list[bool]:
        """For each of these entries, whether this epoch left it alone."""
        plain, spaced = self._dirty, self._spaced_dirty
        pairs = zip(namespaces, keys, strict=True)
        return [key not in plain if space is None else (space, key) not in spaced for space, key in pairs]

    def latest(self) -> tuple[list[Any], list[Any], list[Any]]:
        """Namespaces, keys and values of what this epoch changed; ABSENT for what is gone."""
        keys = list(self._dirty)
        values = list(map(self._live.__getitem__, keys))
        namespaces: list[Any] = [None] * len(keys)
        values.extend(self._spaced_dirty.values())
        namespaces.extend(map(itemgetter(0), self._spaced_dirty))
        keys.extend(map(itemgetter(1), self._spaced_dirty))
        return namespaces, keys, values

    def changes(self) -> Changes:
        """What this epoch changed."""
        namespaces, keys, values = self.latest()
        deleted = list(map(is_, values, repeat(ABSENT)))
        self._gone = list(compress(zip(namespaces, keys, strict=True), deleted)) if True in deleted else []
        if self._gone:
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
        keys, values = _present(self._live)
        places, more = _present(self._spaced)
        namespaces = [*repeat(None, len(keys)), *map(itemgetter(0), places)]
        keys.extend(map(itemgetter(1), places))
        return Changes(namespaces, keys, [False] * len(keys), values + more)

    def settle(self, limit: int | None) -> None:
        """The epoch is over: its changes are the new truth; a cache over `limit` values is emptied."""
        if self._gone is None:
            self._gone = [(space, key) for space, key, value in zip(*self.latest(), strict=True) if value is ABSENT]
        if self._spaces is not None:
            _unlist(self._spaces, self._gone)
        for place in self._gone:
            if place[0] is None and self.store is None:
                del self._live[place[1]]
            elif place[0] is not None and self.store is not None:  # windows do not come back
                self._spaced.pop(place, None)
        limit = 0 if self._read_in_place else limit
        if self.store is not None and limit is not None and len(self._live) + len(self._spaced) > limit:
            self.forget()
        self._end_epoch()

    def take_over(self, changes: Changes) -> None:
        """Apply accepted changes of another worker: decoded into memory, or just forgotten when a store has them."""
        self._spaces = None
        if self.store is None and self._listener is None and not changes.patched and True not in changes.deleted:
            outside = sum(map(is_, changes.namespaces, repeat(None)))
            if outside == len(changes):
                self._live.update(zip(changes.keys, changes.values, strict=True))
                return
            if not outside:
                places = zip(changes.namespaces, changes.keys, strict=True)
                self._spaced.update(zip(places, changes.values, strict=True))
                return
        for namespace, key, gone, value in changes.rows():
            live, place = (self._live, key) if namespace is None else (self._spaced, (namespace, key))
            if self.store is not None or gone:
                live.pop(place, None)
            else:
                live[place] = value.on(live.get(place)) if isinstance(value, Patch) else value
            if self._listener is not None and not gone:
                self._listener(namespace, key, value)

    def forget(self) -> None:
        """Drop everything live."""
        self._live.clear()
        self._spaced.clear()
        self._spaces = None
        self._end_epoch()

    def _end_epoch(self) -> None:
        """Nothing has changed so far."""
        self._dirty.clear()
        self._spaced_dirty.clear()
        self.touched.clear()
        self._gone = None


def _unlist(spaces: dict[Any, dict[Any, None]], places: Iterable[tuple[Any, Any]]) -> None:
    """Take keys out of namespaces."""
    for namespace, key in places:
        keys = spaces.get(namespace)
        if keys is not None:
            keys.pop(key, None)
            if not keys:
                del spaces[namespace]


def _present(live: Live) -> tuple[list[Any], list[Any]]:
    """Places and values, without what is absent."""
    places, values = list(live), list(live.values())
    if any(map(is_, values, repeat(ABSENT))):
        there = [value is not ABSENT for value in values]
        return list(compress(places, there)), list(compress(values, there))
    return places, values
