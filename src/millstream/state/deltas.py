"""A state file: what one operator's subtask changed, as Arrow columns.

Promises: typed keys and values are stored as their Arrow types, untyped ones through the safe codec, so nothing in a
state file is ever executed; reading gives back exactly what was written.
Does not know: stores, epochs, or who wrote the file.

Layout: magic, length of the header, JSON header (one entry per table), then one Arrow stream per table with the columns
namespace, key, deleted, value. Key groups follow from keys and are not stored."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import repeat
from operator import is_
from typing import Any

import pyarrow as pa

from millstream.errors import ExternalError
from millstream.model import codec
from millstream.model.types import TypeInformation

_MAGIC = b"MSD1"


class Redistribution(Enum):
    """How the entries of a table find their subtask after rescaling."""

    KEYED = "keyed"  # by key group
    BROADCAST = "broadcast"  # every subtask gets one old subtask's copy
    SPLIT = "split"  # round-robin
    UNION = "union"  # every subtask gets all
    CUT = "cut"  # every subtask cuts its key groups out of each value: chunks of many keys


class UnreadableState(ExternalError):
    """A state file does not have the layout of one."""

    hint = "restore from an earlier checkpoint"


@dataclass(frozen=True, slots=True)
class TableSchema:
    """Name and types of one state table."""

    name: str
    key_type: TypeInformation
    value_type: TypeInformation
    redistribution: Redistribution = Redistribution.KEYED


@dataclass(frozen=True, slots=True)
class Changes:
    """Entries of one table, column by column; `deleted[i]` says that the entry is gone."""

    namespaces: Sequence[Any]
    keys: Sequence[Any]
    deleted: Sequence[bool]
    values: Sequence[Any]

    def __len__(self) -> int:
        return len(self.keys)

    def rows(self) -> Iterator[tuple[Any, Any, bool, Any]]:
        """Entry by entry: namespace, key, deleted, value."""
        return zip(self.namespaces, self.keys, self.deleted, self.values, strict=True)


def encode(tables: Iterable[tuple[TableSchema, Changes]], *, compressed: bool = False) -> bytes:
    """The tables as the bytes of one state file; readers need not know whether it is compressed."""
    header: list[dict[str, Any]] = []
    streams: list[pa.Buffer] = []
    for schema, changes in tables:
        stream = _to_stream(schema, changes, compressed)
        header.append(
            {
                "name": schema.name,
                "redistribution": schema.redistribution.value,
                "key": schema.key_type.to_json(),
                "value": schema.value_type.to_json(),
                "rows": len(changes),
                "length": stream.size,
            }
        )
        streams.append(stream)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # Arrow wants its buffers aligned
    return b"".join((_MAGIC, struct.pack("<I", len(text)), text, *streams))


def decode(data: bytes | memoryview, schemas: dict[str, TableSchema]) -> Iterator[tuple[str, Redistribution, Changes]]:
    """The tables of a state file whose schema is known; others are passed over."""
    for entry, stream in _streams(data):
        schema = schemas.get(entry["name"])
        if schema is not None:
            yield entry["name"], Redistribution(entry["redistribution"]), _from_stream(schema, stream)


def describe(data: bytes | memoryview) -> list[dict[str, Any]]:
    """The header of a state file: table names, types and row counts."""
    return [entry for entry, _ in _streams(data)]


def _streams(data: bytes | memoryview) -> Iterator[tuple[dict[str, Any], memoryview]]:
    view = memoryview(data)
    try:
        if bytes(view[:4]) != _MAGIC:
            msg = f"not a state file: it begins with {bytes(view[:4])!r}"
            raise UnreadableState(msg)
        (size,) = struct.unpack_from("<I", view, 4)
        header = json.loads(bytes(view[8 : 8 + size]))
    except (struct.error, ValueError) as problem:
        msg = f"damaged header of a state file: {problem}"
        raise UnreadableState(msg) from problem
    at = 8 + size
    for entry in header:
        yield entry, view[at : at + entry["length"]]
        at += entry["length"]


def _to_stream(schema: TableSchema, changes: Changes, compressed: bool) -> pa.Buffer:
    batch = pa.RecordBatch.from_arrays(
        [
            _namespaces_to_arrow(changes.namespaces),
            schema.key_type.to_arrow(changes.keys),
            pa.array(changes.deleted, type=pa.bool_()),
            schema.value_type.to_arrow(changes.values),
        ],
        names=["namespace", "key", "deleted", "value"],
    )
    sink = pa.BufferOutputStream()
    how = pa.ipc.IpcWriteOptions(compression="lz4" if compressed else None)
    with pa.ipc.new_stream(sink, batch.schema, options=how) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _from_stream(schema: TableSchema, stream: memoryview) -> Changes:
    table = pa.ipc.open_stream(pa.py_buffer(stream)).read_all().combine_chunks()
    return Changes(
        namespaces=_namespaces_from_arrow(table.column("namespace")),
        keys=schema.key_type.from_arrow(table.column("key")),
        deleted=_plain(table.column("deleted")),
        values=schema.value_type.from_arrow(table.column("value")),
    )


def _namespaces_to_arrow(namespaces: Sequence[Any]) -> pa.Array:
    count = len(namespaces)
    if all(map(is_, namespaces, repeat(None))):  # state without windows
        return pa.nulls(count, pa.binary())
    memo: dict[Any, bytes | None] = {None: None}
    for namespace in set(namespaces):
        memo[namespace] = None if namespace is None else codec.encode(namespace)
    return pa.array([memo[namespace] for namespace in namespaces], type=pa.binary())


def _namespaces_from_arrow(column: pa.ChunkedArray) -> list[Any]:
    if column.null_count == len(column):
        return [None] * len(column)
    encoded = _plain(column)
    memo = {each: None if each is None else codec.decode(each) for each in set(encoded)}
    return [memo[each] for each in encoded]


def _plain(column: pa.ChunkedArray) -> list[Any]:
    return list(column.to_numpy().tolist())
