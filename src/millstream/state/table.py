"""A state table: one named state of an operator subtask, with live values in memory over an optional local store.

Promises: a read returns the value as this epoch changed it; `changes` returns exactly what this epoch changed; the cost
of an epoch depends on the entries it accesses, not on the number of namespaces or entries.
Does not know: versions, state files, the other tables of its operator.

Entries without a namespace are found by their key, entries in a namespace (such as a window) by their scoped key, the
pair (namespace, key). A read by user code costs one dictionary lookup: `live[key]` is the value or ABSENT."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import compress, repeat
from operator import is_, itemgetter
from typing import Any

from millstream.state.deltas import Changes, Patch, TableSchema
from millstream.state.store import ABSENT, Store, StoredGroup

_LARGE_MAP = 32  # entries; a smaller map is always written as a whole


class Live(dict[Any, Any]):
    """Live values by key or scoped key. A key that is missing here is loaded from the store, or ABSENT without one."""

    __slots__ = ("_load",)

    def __init__(self, load: Callable[[Any], Any] | None) -> None:
        super().__init__()
        self._load = load

    def __missing__(self, key: Any) -> Any:
        if self._load is None:
            return ABSENT
        value = self[key] = self._load(key)
        return value

    def drop(self, key: Any) -> None:
        """Delete a value, and hide the value that the store may have."""
        if self._load is None:
            self.pop(key, None)
        else:
            self[key] = ABSENT


class InNamespace:
    """The live values of one namespace by key, read-only."""

    __slots__ = ("_live", "_namespace")

    def __init__(self, live: Live, namespace: Any) -> None:
        self._live, self._namespace = live, namespace

    def __getitem__(self, key: Any) -> Any:
        return self._live[self._namespace, key]


class StateTable:
    """The values of one named state by namespace and key, and the set of those that this epoch changed."""

    def __init__(self, schema: TableSchema, store: Store | None) -> None:
        self.schema = schema
        self.store = store
        self._live = Live(None if store is None else lambda key: self._load(None, key))
        self._dirty: set[Any] = set()
        self._scoped = Live(None if store is None else self._load_scoped)
        self._scoped_dirty: dict[tuple[Any, Any], Any] = {}  # maps to values, which saves a lookup
        self._keys_by_namespace: defaultdict[Any, dict[Any, None]] | None = None  # built by the first scan
        self._written_directly = False
        self._read_in_place = False
        self.touched: dict[tuple[Any, Any], set[Any]] = {}  # changed map entries by (namespace, key)
        self._listener: Callable[[Any, Any, Any], None] | None = None
        self._convert: Callable[[list[Any]], list[Any]] | None = None
        self._deleted: list[tuple[Any, Any]] | None = None  # deleted scoped keys; set by `changes`

    def migrate(self, schema: TableSchema, now: int) -> None:
        """Convert the values to the schema that the program declares, before anything is written to the table."""
        before, self.schema = self.schema, schema
        _, resolution = schema.resolve(before.describe())
        if before.value_type.to_json() == schema.value_type.to_json():
            return

        def convert(values: list[Any]) -> list[Any]:
            return schema.value_type.from_arrow(resolution(before.value_type.to_arrow(values), now))

        if self.store is not None:
            self._convert = convert
            self.clear_live()
            return
        for live in (self._live, self._scoped):
            live.update(zip(live, convert(list(live.values())), strict=True))

    def _load(self, namespace: Any, key: Any) -> Any:
        assert self.store is not None
        value = self.store.get(self.schema.name, namespace, key)
        return value if self._convert is None or value is ABSENT else self._convert([value])[0]

    def _load_scoped(self, scoped_key: tuple[Any, Any]) -> Any:
        namespace, key = scoped_key
        if self._keys_by_namespace is not None:
            self._keys_by_namespace[namespace][key] = None
        return self._load(namespace, key)

    def read_stored_group(self, group: int) -> StoredGroup:
        """Return the entries of a key group in the store, as they were before this epoch."""
        assert self.store is not None
        namespaces, keys, values, size = self.store.group(self.schema.name, group)
        return namespaces, keys, values if self._convert is None else self._convert(values), size

    def set_listener(self, listener: Callable[[Any, Any, Any], None]) -> None:
        """Set the listener of a table in memory; it replaces an earlier one.

        It is called with namespace, key and value of every entry that the table has, and of every entry that `apply`
        adds."""
        self._listener = listener
        for namespace, key, _, value in self.entries().rows():
            listener(namespace, key, value)

    def by_key(self) -> tuple[Live, set[Any]]:
        """Return the live values without namespace and the set of changed keys.

        Both stay valid as long as the table."""
        return self._live, self._dirty

    def by_scoped_key(self) -> tuple[Live, dict[tuple[Any, Any], Any]]:
        """Return the live and the changed values in namespaces by scoped key, valid as long as the table.

        Callers write a change to both. It is for tables that are seldom scanned: direct writes do not update the index
        of namespaces, so each scan builds it again."""
        self._written_directly = True
        return self._scoped, self._scoped_dirty

    def reader(self, namespace: Any) -> Live | InNamespace:
        """Return the live values of a namespace by key, valid as long as the table; ABSENT for missing keys."""
        return self._live if namespace is None else InNamespace(self._scoped, namespace)

    def get(self, namespace: Any, key: Any) -> Any:
        """Return the value, or ABSENT."""
        return self._live[key] if namespace is None else self._scoped[namespace, key]

    def put(self, namespace: Any, key: Any, value: Any) -> None:
        """Set a value; ABSENT deletes it."""
        if namespace is None:
            self._live[key] = value
            self._dirty.add(key)
            return
        scoped_key = namespace, key
        self._scoped_dirty[scoped_key] = value
        if value is ABSENT:
            self._scoped.drop(scoped_key)
        else:
            self._scoped[scoped_key] = value
        if self._keys_by_namespace is not None:
            self._keys_by_namespace[namespace][key] = None

    def touch(self, namespace: Any, key: Any, entries: Iterable[Any]) -> None:
        """Note which entries of a stored map have changed, so that only these are written to the state file."""
        touched = self.touched.get((namespace, key))
        if touched is None:
            self.touched[namespace, key] = set(entries)
        else:
            touched.update(entries)

    def delete(self, namespace: Any, key: Any) -> None:
        """Delete a value."""
        self.put(namespace, key, ABSENT)

    def put_many(self, namespace: Any, keys: list[Any], values: list[Any]) -> None:
        """Set many values."""
        if namespace is None:
            self._live.update(zip(keys, values, strict=True))
            self._dirty.update(keys)
            return
        for key, value in zip(keys, values, strict=True):
            self.put(namespace, key, value)

    def scan(self, namespace: Any) -> Iterator[tuple[Any, Any]]:
        """Iterate over the (key, value) pairs of a namespace."""
        live, keys = self.reader(namespace), self._keys(namespace)
        if self.store is not None:
            for key, value in self.store.scan(self.schema.name, namespace):
                if key not in keys:
                    yield key, value if self._convert is None else self._convert([value])[0]
        for key, value in [(key, live[key]) for key in keys]:
            if value is not ABSENT:
                yield key, value

    def chunks(self) -> Iterator[tuple[Any, bytes | memoryview]]:
        """Iterate over the (key, value) pairs of a table of bytes that has no namespaces.

        Large values in the store are not copied; they are valid during this epoch. The table keeps no values in memory
        beyond the epoch that wrote them."""
        self._read_in_place = True
        if self.store is not None:
            for key, value in self.store.chunks(self.schema.name):
                if key not in self._live:
                    yield key, value
        for key, value in self._live.items():
            if value is not ABSENT:
                yield key, value

    def _keys(self, namespace: Any) -> dict[Any, Any]:
        """Return the live keys of a namespace."""
        return self._live if namespace is None else self._index_namespaces().get(namespace, {})

    def _index_namespaces(self) -> dict[Any, dict[Any, None]]:
        """Return the keys of each namespace; the first call builds the index."""
        if self._keys_by_namespace is None or self._written_directly:
            self._keys_by_namespace = defaultdict(dict)
            for namespace, key in self._scoped:
                self._keys_by_namespace[namespace][key] = None
        return self._keys_by_namespace

    def namespaces(self) -> list[Any]:
        """Return the namespaces that have entries."""
        candidates = dict.fromkeys(() if self.store is None else self.store.namespaces(self.schema.name))
        candidates.update(dict.fromkeys((None, *self._index_namespaces())))
        return [namespace for namespace in candidates if any(True for _ in self.scan(namespace))]

    def clear_namespace(self, namespace: Any) -> None:
        """Delete all values of a namespace."""
        for key, _ in list(self.scan(namespace)):
            self.delete(namespace, key)

    @property
    def has_changes(self) -> bool:
        """Whether this epoch changed anything."""
        return bool(self._dirty or self._scoped_dirty)

    def mask_unchanged(self, namespaces: Iterable[Any], keys: Iterable[Any]) -> list[bool]:
        """Return for each entry whether this epoch did not change it."""
        dirty, scoped_dirty = self._dirty, self._scoped_dirty
        pairs = zip(namespaces, keys, strict=True)
        return [
            key not in dirty if namespace is None else (namespace, key) not in scoped_dirty for namespace, key in pairs
        ]

    def changed_entries(self) -> tuple[list[Any], list[Any], list[Any]]:
        """Return namespaces, keys and values of the entries that this epoch changed; ABSENT for deleted ones."""
        keys = list(self._dirty)
        values = list(map(self._live.__getitem__, keys))
        namespaces: list[Any] = [None] * len(keys)
        values.extend(self._scoped_dirty.values())
        namespaces.extend(map(itemgetter(0), self._scoped_dirty))
        keys.extend(map(itemgetter(1), self._scoped_dirty))
        return namespaces, keys, values

    def changes(self) -> Changes:
        """Return the changes of this epoch."""
        namespaces, keys, values = self.changed_entries()
        deleted = list(map(is_, values, repeat(ABSENT)))
        self._deleted = list(compress(zip(namespaces, keys, strict=True), deleted)) if True in deleted else []
        if self._deleted:
            values = [None if is_deleted else value for value, is_deleted in zip(values, deleted, strict=True)]
        if not self.touched:
            return Changes(namespaces, keys, deleted, values)
        values = list(map(self._patch, namespaces, keys, values))
        return Changes(namespaces, keys, deleted, values, patched=any(isinstance(value, Patch) for value in values))

    def _patch(self, namespace: Any, key: Any, value: Any) -> Any:
        """Return a `Patch` for a large map with few changed entries; any other value unchanged."""
        touched = self.touched.get((namespace, key))
        if touched is None or value is None or len(value) < _LARGE_MAP or 2 * len(touched) >= len(value):
            return value
        removed = tuple(entry for entry in touched if entry not in value)
        return Patch({entry: value[entry] for entry in touched if entry in value}, removed)

    def entries(self) -> Changes:
        """Return all entries of a table in memory."""
        keys, values = _present(self._live)
        scoped_keys, scoped_values = _present(self._scoped)
        namespaces = [*repeat(None, len(keys)), *map(itemgetter(0), scoped_keys)]
        keys.extend(map(itemgetter(1), scoped_keys))
        return Changes(namespaces, keys, [False] * len(keys), values + scoped_values)

    def end_epoch(self, cache_limit: int | None) -> None:
        """Forget which entries the epoch changed.

        If the cache over a store has more than `cache_limit` values, clear it."""
        if self._deleted is None:
            entries = zip(*self.changed_entries(), strict=True)
            self._deleted = [(namespace, key) for namespace, key, value in entries if value is ABSENT]
        if self._keys_by_namespace is not None:
            _remove_keys(self._keys_by_namespace, self._deleted)
        for scoped_key in self._deleted:
            namespace, key = scoped_key
            if namespace is None and self.store is None:
                del self._live[key]
            elif namespace is not None and self.store is not None:  # a cleared window is not read again
                self._scoped.pop(scoped_key, None)
        cache_limit = 0 if self._read_in_place else cache_limit
        if self.store is not None and cache_limit is not None and len(self._live) + len(self._scoped) > cache_limit:
            self.clear_live()
        self._clear_changes()

    def apply(self, changes: Changes) -> None:
        """Apply accepted changes of another worker: to the values in memory, or by dropping old values if a store has
        the new ones."""
        self._keys_by_namespace = None
        if self.store is None and self._listener is None and not changes.patched and True not in changes.deleted:
            without_namespace = sum(map(is_, changes.namespaces, repeat(None)))
            if without_namespace == len(changes):
                self._live.update(zip(changes.keys, changes.values, strict=True))
                return
            if not without_namespace:
                scoped_keys = zip(changes.namespaces, changes.keys, strict=True)
                self._scoped.update(zip(scoped_keys, changes.values, strict=True))
                return
        for namespace, key, is_deleted, value in changes.rows():
            live, live_key = (self._live, key) if namespace is None else (self._scoped, (namespace, key))
            if self.store is not None or is_deleted:
                live.pop(live_key, None)
            else:
                live[live_key] = value.apply_to(live.get(live_key)) if isinstance(value, Patch) else value
            if self._listener is not None and not is_deleted:
                self._listener(namespace, key, value)

    def clear_live(self) -> None:
        """Drop all values in memory."""
        self._live.clear()
        self._scoped.clear()
        self._keys_by_namespace = None
        self._clear_changes()

    def _clear_changes(self) -> None:
        self._dirty.clear()
        self._scoped_dirty.clear()
        self.touched.clear()
        self._deleted = None


def _remove_keys(keys_by_namespace: dict[Any, dict[Any, None]], scoped_keys: Iterable[tuple[Any, Any]]) -> None:
    for namespace, key in scoped_keys:
        keys = keys_by_namespace.get(namespace)
        if keys is not None:
            keys.pop(key, None)
            if not keys:
                del keys_by_namespace[namespace]


def _present(live: Live) -> tuple[list[Any], list[Any]]:
    """Return the keys and values that are not ABSENT."""
    keys, values = list(live), list(live.values())
    if any(map(is_, values, repeat(ABSENT))):
        is_present = [value is not ABSENT for value in values]
        return list(compress(keys, is_present)), list(compress(values, is_present))
    return keys, values
