"""One state table as a Parquet file: what savepoints are made of.

Promises: anybody can read it: keys, values and windows are columns of their own types wherever every value fits one;
reading it here gives back exactly what was written; nothing in it is ever executed.
Does not know: savepoints, files, operators.

Columns: `key_group` for keyed state, the namespace (none, `window_start` and `window_end`, `window_id`, `namespace`),
`key`, `value`. The description is JSON in the file's metadata, under `millstream.state`."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.errors import ExternalError
from millstream.serialization import codec
from millstream.types.arrow_types import TypeMismatch, python_values
from millstream.types.basic_types import LocalTimeTypeInfo
from millstream.types.factory import TypeInformation, Types
from millstream.types.row import Row, RowKind
from millstream.windows.window import CountWindow, TimeWindow

MAGIC = b"PAR1"
DESCRIPTION = b"millstream.state"
_INT64 = range(-(1 << 63), 1 << 63)
_NONE = type(None)


class UnreadableTable(ExternalError):
    """A Parquet file is not one that holds state."""

    hint = "restore the file from a copy, or use another savepoint"

    def __init__(self, problem: object) -> None:
        super().__init__(f"a file of the savepoint does not hold state: {problem}")


def is_canonical(data: bytes | memoryview) -> bool:
    """Whether a state file is in this form."""
    return bytes(data[:4]) == MAGIC


def to_table(
    description: dict[str, Any],
    key_type: TypeInformation,
    value_type: TypeInformation,
    namespaces: Sequence[Any],
    keys: Sequence[Any],
    values: Sequence[Any],
    groups: np.ndarray[Any, Any] | None = None,
) -> pa.Table:
    """Entries as a table that says what it is."""
    key_as, key_column = _column(key_type, keys)
    value_as, value_column = _column(value_type, values)
    space, columns = _namespace_columns(namespaces)
    names = dict(columns)
    if groups is not None:
        names = {"key_group": pa.array(groups, pa.int32()), **names}
    names.update(key=key_column, value=value_column)
    told = {**description, "namespace": space, "key_as": key_as.to_json(), "value_as": value_as.to_json()}
    return pa.table(names).replace_schema_metadata({DESCRIPTION: json.dumps(told).encode()})


def parquet(table: pa.Table) -> bytes:
    """The bytes of the file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def read(data: bytes | memoryview) -> tuple[dict[str, Any], pa.Table]:
    """The description and the table of a file."""
    try:
        table = pq.read_table(pa.BufferReader(pa.py_buffer(data)))
        description = json.loads((table.schema.metadata or {})[DESCRIPTION])
        if not isinstance(description, dict):
            raise UnreadableTable(description)
    except (pa.ArrowException, OSError, KeyError, ValueError) as problem:
        raise UnreadableTable(problem) from problem
    return description, table


def describe(data: bytes | memoryview) -> dict[str, Any]:
    """The description alone, with the number of rows."""
    try:
        file = pq.ParquetFile(pa.BufferReader(pa.py_buffer(data)))
        told: dict[str, Any] = json.loads((file.metadata.metadata or {})[DESCRIPTION])
        return {**told, "rows": file.metadata.num_rows, "length": len(data)}
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as problem:
        raise UnreadableTable(problem) from problem


def namespaces_of(description: dict[str, Any], table: pa.Table) -> list[Any]:
    """The namespace of every row."""
    match description["namespace"]:
        case "none":
            return [None] * len(table)
        case "time_window":
            starts, ends = _values(table, "window_start"), _values(table, "window_end")
            return [TimeWindow(start, end) for start, end in zip(starts, ends, strict=True)]
        case "count_window":
            return [CountWindow(number) for number in _values(table, "window_id")]
        case "long":
            return _values(table, "namespace")
    return [None if each is None else codec.decode(each) for each in _values(table, "namespace")]


def columns_of(description: dict[str, Any], table: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Keys and values in the layout of the types the description names as `key` and `value`."""
    found = []
    for name in ("key", "value"):
        stored = TypeInformation.type_from_json(description[f"{name}_as"])
        logical = TypeInformation.type_from_json(description[name])
        array = table.column(name).combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
        if array.type != stored.arrow_type:
            array = array.cast(stored.arrow_type)
        found.append(array if stored == logical else logical.to_arrow(stored.from_arrow(array)))
    return found[0], found[1]


def _values(table: pa.Table, name: str) -> list[Any]:
    column = table.column(name).combine_chunks()
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return [value for chunk in chunks for value in python_values(chunk)]


def _namespace_columns(namespaces: Sequence[Any]) -> tuple[str, dict[str, pa.Array]]:
    kinds = set(map(type, namespaces))
    if kinds <= {_NONE}:
        return "none", {}
    if kinds == {TimeWindow}:
        starts, ends = [each.start for each in namespaces], [each.end for each in namespaces]
        return "time_window", {"window_start": pa.array(starts, pa.int64()), "window_end": pa.array(ends, pa.int64())}
    if kinds == {CountWindow}:
        return "count_window", {"window_id": pa.array([each.id for each in namespaces], pa.int64())}
    if kinds == {int} and all(each in _INT64 for each in namespaces):
        return "long", {"namespace": pa.array(namespaces, pa.int64())}
    memo = {each: None if each is None else codec.encode(each) for each in set(namespaces)}
    return "object", {"namespace": pa.array([memo[each] for each in namespaces], pa.binary())}


def _column(kind: TypeInformation, values: Sequence[Any]) -> tuple[TypeInformation, pa.Array]:
    """The values, as `kind` or as the plainest type that holds them all; with that type."""
    listed = values if isinstance(values, list) else list(values)
    objects = Types.PICKLED_BYTE_ARRAY()
    plain = narrowest(listed) if kind == objects else kind
    if plain is not None and _storable(plain.arrow_type):
        try:
            return plain, plain.to_arrow(listed)
        except TypeMismatch:
            if kind != objects:
                raise
    return objects, objects.to_arrow(listed)


def _storable(kind: pa.DataType) -> bool:
    """Parquet has no record without fields."""
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(_storable(kind.field(place).type) for place in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _storable(kind.key_type) and _storable(kind.item_type)
    return not pa.types.is_list(kind) or _storable(kind.value_type)


_PLAIN: dict[type, TypeInformation] = {
    str: Types.STRING(),
    float: Types.DOUBLE(),
    bool: Types.BOOLEAN(),
    bytes: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    datetime.date: LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE),
}


def narrowest(values: Sequence[Any]) -> TypeInformation | None:
    """The type that gives exactly these objects back, if it holds them at all; None if there is no plain one."""
    kinds = set(map(type, values)) - {_NONE}
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if kind is int:
        return Types.LONG()
    if kind in _PLAIN:
        return _PLAIN[kind]
    present = [value for value in values if value is not None]
    if kind is tuple and present[0] and len(set(map(len, present))) == 1:
        parts = [narrowest(column) for column in zip(*present, strict=True)]
        known = [part for part in parts if part is not None]
        return Types.TUPLE(known) if len(known) == len(parts) else None
    if kind is list:
        element = narrowest([each for value in present for each in value])
        return None if element is None else Types.LIST(element)
    if kind is dict:
        key = narrowest([each for value in present for each in value])
        item = narrowest([each for value in present for each in value.values()])
        return None if key is None or item is None else Types.MAP(key, item)
    return _row(present) if kind is Row else None


def _row(rows: Sequence[Row]) -> TypeInformation | None:
    names = getattr(rows[0], "_fields", None)
    if not names or any(getattr(row, "_fields", None) != names for row in rows):
        return None
    if any(row.get_row_kind() is not RowKind.INSERT for row in rows):
        return None
    parts = [narrowest(column) for column in zip(*(row._values for row in rows), strict=True)]
    known = [part for part in parts if part is not None]
    return Types.ROW_NAMED(list(names), known) if len(known) == len(parts) else None
