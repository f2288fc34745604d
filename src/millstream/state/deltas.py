"""Reads and writes state files: the changed entries of the state tables of one operator subtask, as Arrow columns.

Promises: typed keys and values are stored as their Arrow types, untyped ones through the safe codec, so reading a state
file never executes code; values are read exactly as written, or converted to the types that the program declares now;
tables of savepoints in canonical form are read too.
Does not know: stores, epochs, or which subtask wrote the file.

Layout: magic bytes, length of the header, JSON header (one entry per table), then one Arrow stream per table with the
columns namespace (start and end of a time window, any other namespace through the codec), key, deleted and value.
Tables with patches of large maps have another column with the removed keys. Key groups are computed from keys, not
stored."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import chain, repeat
from operator import is_
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.errors import ExternalError, MillstreamError, UserError
from millstream.serialization import codec
from millstream.state import canonical
from millstream.state.evolution import Resolution, Unresolvable, resolve_key, resolve_stored
from millstream.types.arrow_streams import write_stream_pieces
from millstream.types.arrow_types import TypeMismatch
from millstream.types.factory import MapTypeInfo, TypeInformation, Types
from millstream.windows.window import TimeWindow

_MAGIC = b"MSD1"
_REMOVED = "removed"  # column of tables with patches: the removed keys of the map, null if the value is complete


class Redistribution(Enum):
    """How the entries of a table are redistributed to subtasks after rescaling."""

    KEYED = "keyed"  # by key group
    BROADCAST = "broadcast"  # every subtask gets the copy of one old subtask
    SPLIT = "split"  # round-robin
    UNION = "union"  # every subtask gets all entries
    CUT = "cut"  # a value is a chunk of many keys; every subtask extracts its key groups from each


Keys = Any  # a sequence, or a chunked Arrow column if the Arrow values are the keys
Selection = Callable[["TableSchema", Keys], "np.ndarray[Any, Any]"]  # a mask of entries, from their keys
_Table = tuple["TableSchema", Callable[[pa.Table], Keys], Callable[[pa.Table], "Changes"], pa.Table]
_SLICE_ROWS = 1 << 16


class UnreadableState(ExternalError):
    """A state file is damaged, or is not a state file."""

    hint = "restore the job from an earlier checkpoint"


class IncompatibleState(UserError):
    """State was written with a type that cannot be converted to the type that the program declares."""

    hint = (
        "declare the type that was written, rename the state so that it starts empty, "
        "or rewrite the savepoint with millstream.state_processor"
    )

    def __init__(self, state: str, what: str, problem: MillstreamError, operator: str = "") -> None:
        self.state, self.what, self.problem, self.operator = state, what, problem, operator
        where = f" of operator '{operator}'" if operator else ""
        super().__init__(f"the {what} of state '{state}'{where} cannot be restored: {problem.message}")

    def with_operator(self, operator: str) -> IncompatibleState:
        """Return the same error with the name of the operator."""
        return IncompatibleState(self.state, self.what, self.problem, operator)


@dataclass(frozen=True, slots=True)
class TableSchema:
    """Name and types of one state table.

    `kind` comes from its descriptor; with `ttl`, values are stored with timestamps."""

    name: str
    key_type: TypeInformation
    value_type: TypeInformation
    redistribution: Redistribution = Redistribution.KEYED
    kind: str = ""
    ttl: bool = False

    def describe(self) -> dict[str, Any]:
        """Return the schema as a JSON value."""
        return {
            "name": self.name,
            "redistribution": self.redistribution.value,
            "key": self.key_type.to_json(),
            "value": self.value_type.to_json(),
            "kind": self.kind,
            "ttl": self.ttl,
        }

    def resolve(self, written: Mapping[str, Any]) -> tuple[Resolution, Resolution]:
        """Return how keys and values of the table described by `written` are converted to this schema.

        Raises `IncompatibleState` if they cannot be converted."""
        kind = written.get("kind") or self.kind
        had_ttl = bool(written.get("ttl"))
        try:
            keys = resolve_key(written["key"], self.key_type)
        except Unresolvable as problem:
            raise IncompatibleState(display_name(self.name), "key", problem) from None
        try:
            return keys, resolve_stored(written["value"], self.value_type, kind, had_ttl=had_ttl, has_ttl=self.ttl)
        except Unresolvable as problem:
            raise IncompatibleState(display_name(self.name), "value", problem) from None


def display_name(table: str) -> str:
    """Return the name of a table without its internal prefix."""
    for prefix in ("user/", "broadcast/", "operator/"):
        if table.startswith(prefix):
            return table.removeprefix(prefix)
    return table


@dataclass(frozen=True, slots=True)
class Patch:
    """The changes of a large map: entries that were set, and keys that were removed."""

    entries: dict[Any, Any]
    removed: tuple[Any, ...] = ()

    def apply_to(self, before: Any) -> dict[Any, Any]:
        """Return the map after the change; a dictionary is changed in place."""
        changed: dict[Any, Any] = before if isinstance(before, dict) else {}
        changed.update(self.entries)
        for key in self.removed:
            changed.pop(key, None)
        return changed

    def merge_after(self, earlier: Patch) -> Patch:
        """Return one patch with the effect of `earlier` and then this one."""
        entries = {**earlier.entries, **self.entries}
        for key in self.removed:
            entries.pop(key, None)
        removed = dict.fromkeys((*(key for key in earlier.removed if key not in self.entries), *self.removed))
        return Patch(entries, tuple(removed))


@dataclass(frozen=True, slots=True)
class Changes:
    """Changed entries of one table as columns; `deleted[i]` says that entry `i` was deleted.

    With `patched`, some values are a `Patch` of the earlier value."""

    namespaces: Sequence[Any]
    keys: Sequence[Any]
    deleted: Sequence[bool]
    values: Sequence[Any]
    patched: bool = False

    def __len__(self) -> int:
        return len(self.keys)

    def rows(self) -> Iterator[tuple[Any, Any, bool, Any]]:
        """Iterate over entries as (namespace, key, deleted, value)."""
        return zip(self.namespaces, self.keys, self.deleted, self.values, strict=True)


def encode(tables: Iterable[tuple[TableSchema, Changes]], *, compressed: bool = False) -> bytes:
    """Encode tables as one state file. Readers recognize compression by themselves."""
    header: list[dict[str, Any]] = []
    streams: list[Any] = []
    for schema, changes in tables:
        pieces = _to_stream(schema, changes, compressed)
        header.append({**schema.describe(), "rows": len(changes), "length": sum(map(len, pieces))})
        streams += pieces
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # Arrow needs aligned buffers
    return b"".join((_MAGIC, struct.pack("<I", len(text)), text, *streams))


def decode(
    data: bytes | memoryview, schemas: Mapping[str, TableSchema], now: int = 0
) -> Iterator[tuple[str, Redistribution, Changes]]:
    """Decode the tables of a state file that are in `schemas`, converted to these schemas; others are skipped.

    `now` is the timestamp of values that get a time to live but were written without one."""
    if canonical.is_canonical(data):
        with _raise_unreadable():
            description, table = canonical.read(data)
            schema = schemas.get(description["name"])
            if schema is None:
                return
            keys, values = canonical.read_columns(description, table)
            namespaces = canonical.read_namespaces(description, table)
            changes = _to_changes(schema, description, namespaces, keys, [False] * len(table), values, now)
            redistribution = Redistribution(description["redistribution"])
        yield schema.name, redistribution, changes
        return
    for entry, stream in _streams(data):
        schema = schemas.get(entry["name"])
        if schema is not None:
            with _raise_unreadable():
                redistribution = Redistribution(entry["redistribution"])
                changes = _from_stream(schema, entry, stream, now)
            yield schema.name, redistribution, changes


def decode_selected(
    data: bytes | memoryview, schemas: Mapping[str, TableSchema], select: Selection
) -> Iterator[tuple[str, Changes]]:
    """Decode the entries that `select` chooses. A table is decoded in slices, so that the others need little memory."""
    for schema, read_keys, read, table in _open_tables(data, schemas):
        for start in range(0, len(table), _SLICE_ROWS):
            with _raise_unreadable():
                rows = table.slice(start, _SLICE_ROWS)
                selected = select(schema, read_keys(rows))
                changes = read(rows if selected.all() else rows.filter(pa.array(selected)))
            yield schema.name, changes


def _open_tables(data: bytes | memoryview, schemas: Mapping[str, TableSchema]) -> Iterator[_Table]:
    """The tables that are in `schemas`, each with a function that reads keys and one that reads whole rows."""
    if canonical.is_canonical(data):
        description, table = canonical.read(data)
        schema = schemas.get(description["name"])
        if schema is not None:
            read_keys = _canonical_key_reader(schema.key_type, description)

            def read(rows: pa.Table) -> Changes:
                keys, values = canonical.read_columns(description, rows)
                namespaces = canonical.read_namespaces(description, rows)
                return _to_changes(schema, description, namespaces, keys, [False] * len(rows), values, 0)

            yield schema, read_keys, read, table
        return
    for entry, stream in _streams(data):
        known = schemas.get(entry["name"])
        if known is not None:
            with _raise_unreadable():
                table = _read_table(stream)
            yield known, partial(_read_keys, known.key_type), partial(_from_table, known, entry, now=0), table


_ARROW_KEYS = (Types.LONG(), Types.INT(), Types.STRING())  # key types whose Arrow values equal their Python values


def _canonical_key_reader(
    key_type: TypeInformation, description: dict[str, Any]
) -> Callable[[pa.Table], Sequence[Any]]:
    return lambda rows: key_type.from_arrow(canonical.read_columns(description, rows)[0])


def _read_keys(key_type: TypeInformation, rows: pa.Table) -> Keys:
    column = rows.column("key")
    return column if key_type in _ARROW_KEYS else key_type.from_arrow(column)


def describe(data: bytes | memoryview) -> list[dict[str, Any]]:
    """Return the header of a state file: table names, types and row counts."""
    if canonical.is_canonical(data):
        return [canonical.describe(data)]
    return [entry for entry, _ in _streams(data)]


def _streams(data: bytes | memoryview) -> Iterator[tuple[dict[str, Any], memoryview]]:
    view = memoryview(data)
    with _raise_unreadable():
        if bytes(view[:4]) != _MAGIC:
            msg = f"not a state file: it begins with {bytes(view[:4])!r}"
            raise UnreadableState(msg)
        (size,) = struct.unpack_from("<I", view, 4)
        header = json.loads(bytes(view[8 : 8 + size]))
        if not all(type(entry["name"]) is str and type(entry["length"]) is int for entry in header):
            msg = "the header of a state file does not name its tables"
            raise UnreadableState(msg)
    offset = 8 + size
    for entry in header:
        yield entry, view[offset : offset + entry["length"]]
        offset += entry["length"]


@contextmanager
def _raise_unreadable() -> Iterator[None]:
    """Raise `UnreadableState` for all errors that a damaged state file can cause."""
    try:
        yield
    except (struct.error, pa.ArrowException, ValueError, LookupError, TypeError, AttributeError) as problem:
        msg = f"damaged state file: {problem!r}"
        raise UnreadableState(msg) from problem
    except (OSError, RecursionError, OverflowError) as problem:  # raised by Arrow for a truncated stream
        msg = f"damaged state file: {problem}"
        raise UnreadableState(msg) from problem


def _to_stream(schema: TableSchema, changes: Changes, compressed: bool) -> list[Any]:
    """The buffers of a table's stream, in order."""
    values: Sequence[Any] = changes.values
    removed_column: list[pa.Array] = []
    if changes.patched and isinstance(schema.value_type, MapTypeInfo):
        patches = [value if isinstance(value, Patch) else None for value in values]
        values = [value.entries if isinstance(value, Patch) else value for value in values]
        removed = [None if patch is None else list(patch.removed) for patch in patches]
        removed_column = [Types.LIST(schema.value_type.key_type).to_arrow(removed)]
    batch = pa.RecordBatch.from_arrays(
        [
            _namespaces_to_arrow(changes.namespaces),
            schema.key_type.to_arrow(changes.keys),
            pa.array(changes.deleted, type=pa.bool_()),
            schema.value_type.to_arrow(values),
            *removed_column,
        ],
        names=["namespace", "key", "deleted", "value", *([_REMOVED] if removed_column else [])],
    )
    return write_stream_pieces(batch, compression="lz4" if compressed else None)


def _from_stream(schema: TableSchema, entry: Mapping[str, Any], stream: memoryview, now: int) -> Changes:
    return _from_table(schema, entry, _read_table(stream).combine_chunks(), now)


def _read_table(stream: memoryview) -> pa.Table:
    table = pa.ipc.open_stream(pa.py_buffer(stream)).read_all()
    table.validate(full=True)  # damaged offsets would read memory outside of the buffers
    return table


def _from_table(schema: TableSchema, entry: Mapping[str, Any], table: pa.Table, now: int) -> Changes:
    namespaces = _namespaces_from_arrow(table.column("namespace"))
    deleted = _to_list(table.column("deleted"))
    changes = _to_changes(schema, entry, namespaces, table.column("key"), deleted, table.column("value"), now)
    if _REMOVED not in table.column_names:
        return changes
    removed_type = Types.LIST(TypeInformation.type_from_json(entry["value"]["key"]))
    removed = removed_type.from_arrow(table.column(_REMOVED))
    pairs = zip(changes.values, removed, strict=True)
    values = [value if keys is None else Patch(value, tuple(keys)) for value, keys in pairs]
    return replace(changes, values=values, patched=True)


def _to_changes(
    schema: TableSchema,
    written: Mapping[str, Any],
    namespaces: list[Any],
    keys: pa.Array | pa.ChunkedArray,
    deleted: list[bool],
    values: pa.Array | pa.ChunkedArray,
    now: int,
) -> Changes:
    key_resolution, value_resolution = schema.resolve(written)
    try:
        read_keys = schema.key_type.from_arrow(_convert(keys, key_resolution, now))
    except (TypeMismatch, Unresolvable) as problem:
        raise IncompatibleState(display_name(schema.name), "key", problem) from problem
    try:
        read_values = schema.value_type.from_arrow(_convert(values, value_resolution, now))
    except TypeMismatch as problem:
        raise IncompatibleState(display_name(schema.name), "value", problem) from problem
    return Changes(namespaces, read_keys, deleted, read_values)


def _convert(column: pa.Array | pa.ChunkedArray, resolution: Resolution, now: int) -> Any:
    if resolution.convert is None:
        return column
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.chunked_array([resolution(chunk, now) for chunk in chunks]) if chunks else column


def _namespaces_to_arrow(namespaces: Sequence[Any]) -> pa.Array:
    count = len(namespaces)
    if all(map(is_, namespaces, repeat(None))):  # state without windows
        return pa.nulls(count, pa.binary())
    if set(map(type, namespaces)) == {TimeWindow}:
        with suppress(OverflowError):  # bounds that do not fit 64 bits are encoded by the codec
            bounds = np.fromiter(chain.from_iterable(namespaces), np.int64, 2 * count)
            return pa.StructArray.from_arrays([pa.array(bounds[::2]), pa.array(bounds[1::2])], ["start", "end"])
    memo: dict[Any, bytes | None] = {None: None}
    for namespace in set(namespaces):
        memo[namespace] = None if namespace is None else codec.encode(namespace)
    return pa.array([memo[namespace] for namespace in namespaces], type=pa.binary())


def _namespaces_from_arrow(column: pa.ChunkedArray) -> list[Any]:
    if column.null_count == len(column):
        return [None] * len(column)
    if pa.types.is_struct(column.type):
        starts, ends = (_to_list(bounds) for bounds in column.flatten())
        return list(map(TimeWindow, starts, ends))
    encoded = _to_list(column)
    memo = {data: None if data is None else codec.decode(data) for data in set(encoded)}
    return [memo[data] for data in encoded]


def _to_list(column: pa.ChunkedArray) -> list[Any]:
    return list(column.to_numpy().tolist())
