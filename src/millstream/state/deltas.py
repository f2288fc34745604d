"""A state file: what one operator's subtask changed, as Arrow columns.

Promises: typed keys and values are stored as their Arrow types, untyped ones through the safe codec, so nothing in a
state file is ever executed; reading gives back exactly what was written.
Does not know: stores, epochs, or who wrote the file.

Layout: magic, length of the header, JSON header (one entry per table), then one Arrow stream per table with the columns
key_group, namespace, key, deleted, value."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
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

    key_groups: Sequence[int] | np.ndarray
    namespaces: Sequence[Any]
    keys: Sequence[Any]
    deleted: Sequence[bool]
    values: Sequence[Any]

    def __len__(self) -> int:
        return len(self.keys)

    def rows(self) -> Iterator[tuple[int, Any, Any, bool, Any]]:
        """Entry by entry."""
        return zip(self.key_groups, self.namespaces, self.keys, self.deleted, self.values, strict=True)


def encode(tables: Iterable[tuple[TableSchema, Changes]]) -> bytes:
    """The tables as the bytes of one state file."""
    header: list[dict[str, Any]] = []
    streams: list[pa.Buffer] = []
    for schema, changes in tables:
        stream = _to_stream(schema, changes)
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


def _to_stream(schema: TableSchema, changes: Changes) -> pa.Buffer:
    memo: dict[Any, bytes] = {}
    namespaces: list[bytes | None] = []
    for namespace in changes.namespaces:
        if namespace is None:
            namespaces.append(None)
            continue
        encoded = memo.get(namespace)
        if encoded is None:
            encoded = memo[namespace] = codec.encode(namespace)
        namespaces.append(encoded)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(np.asarray(changes.key_groups, dtype=np.int32)),
            pa.array(namespaces, type=pa.binary()),
            schema.key_type.to_arrow(changes.keys),
            pa.array(changes.deleted, type=pa.bool_()),
            schema.value_type.to_arrow(changes.values),
        ],
        names=["key_group", "namespace", "key", "deleted", "value"],
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _from_stream(schema: TableSchema, stream: memoryview) -> Changes:
    table = pa.ipc.open_stream(pa.py_buffer(stream)).read_all().combine_chunks()
    memo: dict[bytes | None, Any] = {None: None}
    namespaces = []
    for encoded in _plain(table.column("namespace")):
        if encoded not in memo:
            memo[encoded] = codec.decode(encoded)
        namespaces.append(memo[encoded])
    return Changes(
        key_groups=_plain(table.column("key_group")),
        namespaces=namespaces,
        keys=schema.key_type.from_arrow(table.column("key")),
        deleted=_plain(table.column("deleted")),
        values=schema.value_type.from_arrow(table.column("value")),
    )


def _plain(column: pa.ChunkedArray) -> list[Any]:
    return list(column.to_numpy().tolist())
