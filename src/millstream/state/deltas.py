"""A state file: what one operator's subtask changed, as Arrow columns.

Promises: typed keys and values are stored as their Arrow types, untyped ones through the safe codec, so nothing in a
state file is ever executed; reading gives back exactly what was written, or what it means as the types that the
program declares now; a table of a savepoint is read like any other.
Does not know: stores, epochs, or who wrote the file.

Layout: magic, length of the header, JSON header (one entry per table), then one Arrow stream per table with the columns
namespace (start and end of time windows, anything else through the codec), key, deleted, value, and for maps of which
only some entries changed, the keys that were removed. Key groups follow from keys and are not stored."""

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
from millstream.types.arrow_streams import stream_pieces
from millstream.types.arrow_types import TypeMismatch
from millstream.types.factory import MapTypeInfo, TypeInformation, Types
from millstream.windows.window import TimeWindow

_MAGIC = b"MSD1"
_REMOVED = "removed"  # a column of tables with patches: null for a whole value


class Redistribution(Enum):
    """How the entries of a table find their subtask after rescaling."""

    KEYED = "keyed"  # by key group
    BROADCAST = "broadcast"  # every subtask gets one old subtask's copy
    SPLIT = "split"  # round-robin
    UNION = "union"  # every subtask gets all
    CUT = "cut"  # every subtask cuts its key groups out of each value: chunks of many keys


Keys = Any  # a sequence, or a chunked Arrow column if its values are the keys
Wanted = Callable[["TableSchema", Keys], "np.ndarray[Any, Any]"]  # which entries, by their keys
_Table = tuple["TableSchema", Callable[[pa.Table], Keys], Callable[[pa.Table], "Changes"], pa.Table]
PIECE = 1 << 16  # entries that are looked at together


class UnreadableState(ExternalError):
    """A state file does not have the layout of one."""

    hint = "restore from an earlier checkpoint"


class IncompatibleState(UserError):
    """State was written as something that the program's types cannot read."""

    hint = (
        "declare the type it has, give the state another name, or rewrite the savepoint with millstream.state_processor"
    )

    def __init__(self, state: str, what: str, problem: MillstreamError, operator: str = "") -> None:
        self.state, self.what, self.problem, self.operator = state, what, problem, operator
        where = f" of operator '{operator}'" if operator else ""
        super().__init__(f"the {what} of state '{state}'{where} cannot be restored: {problem.message}")

    def of(self, operator: str) -> IncompatibleState:
        """The same, with the operator's name."""
        return IncompatibleState(self.state, self.what, self.problem, operator)


@dataclass(frozen=True, slots=True)
class TableSchema:
    """Name and types of one state table. `kind` is that of its descriptor; with `ttl`, values are kept with times."""

    name: str
    key_type: TypeInformation
    value_type: TypeInformation
    redistribution: Redistribution = Redistribution.KEYED
    kind: str = ""
    ttl: bool = False

    def describe(self) -> dict[str, Any]:
        """The schema as plain values."""
        return {
            "name": self.name,
            "redistribution": self.redistribution.value,
            "key": self.key_type.to_json(),
            "value": self.value_type.to_json(),
            "kind": self.kind,
            "ttl": self.ttl,
        }

    def resolved(self, written: Mapping[str, Any]) -> tuple[Resolution, Resolution]:
        """How keys and values of a table described as `written` are read as this one; `IncompatibleState` if not."""
        shape = written.get("kind") or self.kind
        had, has = bool(written.get("ttl")), self.ttl
        try:
            keys = resolve_key(written["key"], self.key_type)
        except Unresolvable as problem:
            raise IncompatibleState(shown_name(self.name), "key", problem) from None
        try:
            return keys, resolve_stored(written["value"], self.value_type, shape, had_ttl=had, has_ttl=has)
        except Unresolvable as problem:
            raise IncompatibleState(shown_name(self.name), "value", problem) from None


def shown_name(table: str) -> str:
    """A table's name as its user knows it."""
    for prefix in ("user/", "broadcast/", "operator/"):
        if table.startswith(prefix):
            return table.removeprefix(prefix)
    return table


@dataclass(frozen=True, slots=True)
class Patch:
    """What changed of a large map: entries that were set, and keys of those that are gone."""

    entries: dict[Any, Any]
    removed: tuple[Any, ...] = ()

    def on(self, before: Any) -> dict[Any, Any]:
        """The map after the change; one that was there is changed in place."""
        changed: dict[Any, Any] = before if isinstance(before, dict) else {}
        changed.update(self.entries)
        for key in self.removed:
            changed.pop(key, None)
        return changed

    def after(self, earlier: Patch) -> Patch:
        """Both changes as one."""
        entries = {**earlier.entries, **self.entries}
        for key in self.removed:
            entries.pop(key, None)
        removed = dict.fromkeys((*(key for key in earlier.removed if key not in self.entries), *self.removed))
        return Patch(entries, tuple(removed))


@dataclass(frozen=True, slots=True)
class Changes:
    """Entries of one table, column by column; `deleted[i]` says that the entry is gone.

    With `patched`, some values are a `Patch` of what was there before."""

    namespaces: Sequence[Any]
    keys: Sequence[Any]
    deleted: Sequence[bool]
    values: Sequence[Any]
    patched: bool = False

    def __len__(self) -> int:
        return len(self.keys)

    def rows(self) -> Iterator[tuple[Any, Any, bool, Any]]:
        """Entry by entry: namespace, key, deleted, value."""
        return zip(self.namespaces, self.keys, self.deleted, self.values, strict=True)


def encode(tables: Iterable[tuple[TableSchema, Changes]], *, compressed: bool = False) -> bytes:
    """The tables as the bytes of one state file; readers need not know whether it is compressed."""
    header: list[dict[str, Any]] = []
    streams: list[Any] = []
    for schema, changes in tables:
        pieces = _to_stream(schema, changes, compressed)
        header.append({**schema.describe(), "rows": len(changes), "length": sum(map(len, pieces))})
        streams += pieces
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # Arrow wants its buffers aligned
    return b"".join((_MAGIC, struct.pack("<I", len(text)), text, *streams))


def decode(
    data: bytes | memoryview, schemas: Mapping[str, TableSchema], now: int = 0
) -> Iterator[tuple[str, Redistribution, Changes]]:
    """The tables of a state file whose schema is known, as their schema says; others are passed over.

    `now` is the time that values get which have none yet but are to expire."""
    if canonical.is_canonical(data):
        with _refusing_damage():
            description, table = canonical.read(data)
            schema = schemas.get(description["name"])
            if schema is None:
                return
            keys, values = canonical.columns_of(description, table)
            spaces = canonical.namespaces_of(description, table)
            found = _changes(schema, description, spaces, keys, [False] * len(table), values, now)
            redistribution = Redistribution(description["redistribution"])
        yield schema.name, redistribution, found
        return
    for entry, stream in _streams(data):
        schema = schemas.get(entry["name"])
        if schema is not None:
            with _refusing_damage():
                redistribution, found = (
                    Redistribution(entry["redistribution"]),
                    _from_stream(schema, entry, stream, now),
                )
            yield schema.name, redistribution, found


def decode_some(
    data: bytes | memoryview, schemas: Mapping[str, TableSchema], wanted: Wanted
) -> Iterator[tuple[str, Changes]]:
    """As `decode`, but some entries only, and never many of the others in memory: a table comes in several pieces."""
    for schema, read_keys, read, table in _tables(data, schemas):
        for start in range(0, len(table), PIECE):
            with _refusing_damage():
                piece = table.slice(start, PIECE)
                chosen = wanted(schema, read_keys(piece))
                found = read(piece if chosen.all() else piece.filter(pa.array(chosen)))
            yield schema.name, found


def _tables(data: bytes | memoryview, schemas: Mapping[str, TableSchema]) -> Iterator[_Table]:
    """The tables whose schema is known, each with how keys alone and how all of its rows are read."""
    if canonical.is_canonical(data):
        description, table = canonical.read(data)
        schema = schemas.get(description["name"])
        if schema is not None:
            keys_of = _canonical_keys(schema.key_type, description)

            def read(piece: pa.Table) -> Changes:
                keys, values = canonical.columns_of(description, piece)
                spaces = canonical.namespaces_of(description, piece)
                return _changes(schema, description, spaces, keys, [False] * len(piece), values, 0)

            yield schema, keys_of, read, table
        return
    for entry, stream in _streams(data):
        known = schemas.get(entry["name"])
        if known is not None:
            with _refusing_damage():
                table = _table(stream)
            yield known, partial(_keys, known.key_type), partial(_from_table, known, entry, now=0), table


_COLUMNS = (Types.LONG(), Types.INT(), Types.STRING())  # types of keys whose values in Arrow are those in Python


def _canonical_keys(kind: TypeInformation, description: dict[str, Any]) -> Callable[[pa.Table], Sequence[Any]]:
    return lambda piece: kind.from_arrow(canonical.columns_of(description, piece)[0])


def _keys(kind: TypeInformation, piece: pa.Table) -> Keys:
    column = piece.column("key")
    return column if kind in _COLUMNS else kind.from_arrow(column)


def describe(data: bytes | memoryview) -> list[dict[str, Any]]:
    """The header of a state file: table names, types and row counts."""
    if canonical.is_canonical(data):
        return [canonical.describe(data)]
    return [entry for entry, _ in _streams(data)]


def _streams(data: bytes | memoryview) -> Iterator[tuple[dict[str, Any], memoryview]]:
    view = memoryview(data)
    with _refusing_damage():
        if bytes(view[:4]) != _MAGIC:
            msg = f"not a state file: it begins with {bytes(view[:4])!r}"
            raise UnreadableState(msg)
        (size,) = struct.unpack_from("<I", view, 4)
        header = json.loads(bytes(view[8 : 8 + size]))
        if not all(type(entry["name"]) is str and type(entry["length"]) is int for entry in header):
            msg = "the header of a state file does not name its tables"
            raise UnreadableState(msg)
    at = 8 + size
    for entry in header:
        yield entry, view[at : at + entry["length"]]
        at += entry["length"]


@contextmanager
def _refusing_damage() -> Iterator[None]:
    """Raise `UnreadableState` for whatever is wrong with the bytes of a state file."""
    try:
        yield
    except (struct.error, pa.ArrowException, ValueError, LookupError, TypeError, AttributeError) as problem:
        msg = f"damaged state file: {problem!r}"
        raise UnreadableState(msg) from problem
    except (OSError, RecursionError, OverflowError) as problem:  # how Arrow says that a stream ends too early
        msg = f"damaged state file: {problem}"
        raise UnreadableState(msg) from problem


def _to_stream(schema: TableSchema, changes: Changes, compressed: bool) -> list[Any]:
    """The parts of a table's stream, in order."""
    values: Sequence[Any] = changes.values
    partial: list[pa.Array] = []
    if changes.patched and isinstance(schema.value_type, MapTypeInfo):
        patches = [value if isinstance(value, Patch) else None for value in values]
        values = [value.entries if isinstance(value, Patch) else value for value in values]
        removed = [None if each is None else list(each.removed) for each in patches]
        partial = [Types.LIST(schema.value_type.key_type).to_arrow(removed)]
    batch = pa.RecordBatch.from_arrays(
        [
            _namespaces_to_arrow(changes.namespaces),
            schema.key_type.to_arrow(changes.keys),
            pa.array(changes.deleted, type=pa.bool_()),
            schema.value_type.to_arrow(values),
            *partial,
        ],
        names=["namespace", "key", "deleted", "value", *([_REMOVED] if partial else [])],
    )
    return stream_pieces(batch, compression="lz4" if compressed else None)


def _from_stream(schema: TableSchema, entry: Mapping[str, Any], stream: memoryview, now: int) -> Changes:
    return _from_table(schema, entry, _table(stream).combine_chunks(), now)


def _table(stream: memoryview) -> pa.Table:
    table = pa.ipc.open_stream(pa.py_buffer(stream)).read_all()
    table.validate(full=True)  # offsets that point elsewhere would be followed
    return table


def _from_table(schema: TableSchema, entry: Mapping[str, Any], table: pa.Table, now: int) -> Changes:
    spaces = _namespaces_from_arrow(table.column("namespace"))
    deleted = _plain(table.column("deleted"))
    found = _changes(schema, entry, spaces, table.column("key"), deleted, table.column("value"), now)
    if _REMOVED not in table.column_names:
        return found
    kind = Types.LIST(TypeInformation.type_from_json(entry["value"]["key"]))
    gone = kind.from_arrow(table.column(_REMOVED))
    pairs = zip(found.values, gone, strict=True)
    return replace(found, values=[v if r is None else Patch(v, tuple(r)) for v, r in pairs], patched=True)


def _changes(
    schema: TableSchema,
    written: Mapping[str, Any],
    namespaces: list[Any],
    keys: pa.Array | pa.ChunkedArray,
    deleted: list[bool],
    values: pa.Array | pa.ChunkedArray,
    now: int,
) -> Changes:
    key_way, value_way = schema.resolved(written)
    try:
        read_keys = schema.key_type.from_arrow(_resolved(keys, key_way, now))
    except (TypeMismatch, Unresolvable) as problem:
        raise IncompatibleState(shown_name(schema.name), "key", problem) from problem
    try:
        read_values = schema.value_type.from_arrow(_resolved(values, value_way, now))
    except TypeMismatch as problem:
        raise IncompatibleState(shown_name(schema.name), "value", problem) from problem
    return Changes(namespaces, read_keys, deleted, read_values)


def _resolved(column: pa.Array | pa.ChunkedArray, way: Resolution, now: int) -> Any:
    if way.convert is None:
        return column
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.chunked_array([way(chunk, now) for chunk in chunks]) if chunks else column


def _namespaces_to_arrow(namespaces: Sequence[Any]) -> pa.Array:
    count = len(namespaces)
    if all(map(is_, namespaces, repeat(None))):  # state without windows
        return pa.nulls(count, pa.binary())
    if set(map(type, namespaces)) == {TimeWindow}:
        with suppress(OverflowError):  # a window beyond all time
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
        starts, ends = (_plain(each) for each in column.flatten())
        return list(map(TimeWindow, starts, ends))
    encoded = _plain(column)
    memo = {each: None if each is None else codec.decode(each) for each in set(encoded)}
    return [memo[each] for each in encoded]


def _plain(column: pa.ChunkedArray) -> list[Any]:
    return list(column.to_numpy().tolist())
