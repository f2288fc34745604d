"""The canonical form of a state table: a Parquet file of a savepoint.

Promises: other programs can read the file: keys, values and windows are columns with a type of their own wherever all
values fit one; reading it here returns exactly what was written, and never executes code.
Does not know: savepoints, storage, operators.

Columns: `key_group` for keyed state, the namespace (none, `window_start` and `window_end`, `window_id`, `namespace`),
`key`, `value`. The description is JSON in the metadata of the file, under `millstream.state`."""

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
from millstream.types.arrow_types import TypeMismatch, to_python_values
from millstream.types.basic_types import LocalTimeTypeInfo
from millstream.types.factory import TypeInformation, Types
from millstream.types.row import Row, RowKind
from millstream.windows.window import CountWindow, TimeWindow

MAGIC = b"PAR1"
DESCRIPTION = b"millstream.state"
_INT64 = range(-(1 << 63), 1 << 63)
_NONE = type(None)


class UnreadableTable(ExternalError):
    """A Parquet file does not hold a state table."""

    hint = "restore the file from a copy, or use another savepoint"

    def __init__(self, problem: object) -> None:
        super().__init__(f"a Parquet file of the savepoint does not hold a state table: {problem}")


def is_canonical(data: bytes | memoryview) -> bool:
    """Whether a state file is in canonical form."""
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
    """Return entries as an Arrow table whose metadata describe them."""
    key_as, key_column = _column(key_type, keys)
    value_as, value_column = _column(value_type, values)
    namespace_form, namespace_columns = _namespace_columns(namespaces)
    columns = dict(namespace_columns)
    if groups is not None:
        columns = {"key_group": pa.array(groups, pa.int32()), **columns}
    columns.update(key=key_column, value=value_column)
    types = {"key_as": key_as.to_json(), "value_as": value_as.to_json()}
    metadata = {**description, "namespace": namespace_form, **types}
    return pa.table(columns).replace_schema_metadata({DESCRIPTION: json.dumps(metadata).encode()})


def to_parquet(table: pa.Table) -> bytes:
    """Return the table as the bytes of a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def read(data: bytes | memoryview) -> tuple[dict[str, Any], pa.Table]:
    """Return the description and the table of a file."""
    try:
        table = pq.read_table(pa.BufferReader(pa.py_buffer(data)))
        description = json.loads((table.schema.metadata or {})[DESCRIPTION])
        if not isinstance(description, dict):
            raise UnreadableTable(description)
    except (pa.ArrowException, OSError, KeyError, ValueError) as problem:
        raise UnreadableTable(problem) from problem
    return description, table


def describe(data: bytes | memoryview) -> dict[str, Any]:
    """Return the description with the number of rows, without reading the table."""
    try:
        file = pq.ParquetFile(pa.BufferReader(pa.py_buffer(data)))
        description: dict[str, Any] = json.loads((file.metadata.metadata or {})[DESCRIPTION])
        return {**description, "rows": file.metadata.num_rows, "length": len(data)}
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as problem:
        raise UnreadableTable(problem) from problem


def read_namespaces(description: dict[str, Any], table: pa.Table) -> list[Any]:
    """Return the namespace of every row."""
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
    return [None if data is None else codec.decode(data) for data in _values(table, "namespace")]


def read_columns(description: dict[str, Any], table: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Return keys and values as Arrow arrays of the types `key` and `value` of the description."""
    columns = []
    for name in ("key", "value"):
        stored = TypeInformation.type_from_json(description[f"{name}_as"])
        logical = TypeInformation.type_from_json(description[name])
        array = table.column(name).combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
        if array.type != stored.arrow_type:
            array = array.cast(stored.arrow_type)
        columns.append(array if stored == logical else logical.to_arrow(stored.from_arrow(array)))
    return columns[0], columns[1]


def _values(table: pa.Table, name: str) -> list[Any]:
    column = table.column(name).combine_chunks()
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return [value for chunk in chunks for value in to_python_values(chunk)]


def _namespace_columns(namespaces: Sequence[Any]) -> tuple[str, dict[str, pa.Array]]:
    classes = set(map(type, namespaces))
    if classes <= {_NONE}:
        return "none", {}
    if classes == {TimeWindow}:
        starts, ends = [window.start for window in namespaces], [window.end for window in namespaces]
        return "time_window", {"window_start": pa.array(starts, pa.int64()), "window_end": pa.array(ends, pa.int64())}
    if classes == {CountWindow}:
        return "count_window", {"window_id": pa.array([window.id for window in namespaces], pa.int64())}
    if classes == {int} and all(number in _INT64 for number in namespaces):
        return "long", {"namespace": pa.array(namespaces, pa.int64())}
    memo = {namespace: None if namespace is None else codec.encode(namespace) for namespace in set(namespaces)}
    return "object", {"namespace": pa.array([memo[namespace] for namespace in namespaces], pa.binary())}


def _column(type_info: TypeInformation, values: Sequence[Any]) -> tuple[TypeInformation, pa.Array]:
    """The values as a column, and its type.

    The declared one, or for untyped values the narrowest that fits them all."""
    listed = values if isinstance(values, list) else list(values)
    objects = Types.PICKLED_BYTE_ARRAY()
    column_type = infer_type(listed) if type_info == objects else type_info
    if column_type is not None and _is_storable(column_type.arrow_type):
        try:
            return column_type, column_type.to_arrow(listed)
        except TypeMismatch:
            if type_info != objects:
                raise
    return objects, objects.to_arrow(listed)


def _is_storable(data_type: pa.DataType) -> bool:
    """Whether Parquet can store the type: it has no structs without fields."""
    if pa.types.is_struct(data_type):
        fields = [data_type.field(index).type for index in range(data_type.num_fields)]
        return bool(fields) and all(map(_is_storable, fields))
    if pa.types.is_map(data_type):
        return _is_storable(data_type.key_type) and _is_storable(data_type.item_type)
    return not pa.types.is_list(data_type) or _is_storable(data_type.value_type)


_TYPES_BY_CLASS: dict[type, TypeInformation] = {
    str: Types.STRING(),
    float: Types.DOUBLE(),
    bool: Types.BOOLEAN(),
    bytes: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    datetime.date: LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE),
}


def infer_type(values: Sequence[Any]) -> TypeInformation | None:
    """Return the type that restores exactly these values, if it can hold them; None if there is none."""
    classes = set(map(type, values)) - {_NONE}
    if len(classes) != 1:
        return None
    (cls,) = classes
    if cls is int:
        return Types.LONG()
    if cls in _TYPES_BY_CLASS:
        return _TYPES_BY_CLASS[cls]
    present = [value for value in values if value is not None]
    if cls is tuple and present[0] and len(set(map(len, present))) == 1:
        fields = [infer_type(column) for column in zip(*present, strict=True)]
        known = [field for field in fields if field is not None]
        return Types.TUPLE(known) if len(known) == len(fields) else None
    if cls is list:
        element = infer_type([element for value in present for element in value])
        return None if element is None else Types.LIST(element)
    if cls is dict:
        key = infer_type([key for value in present for key in value])
        item = infer_type([item for value in present for item in value.values()])
        return None if key is None or item is None else Types.MAP(key, item)
    return _infer_row_type(present) if cls is Row else None


def _infer_row_type(rows: Sequence[Row]) -> TypeInformation | None:
    names = getattr(rows[0], "_fields", None)
    if not names or any(getattr(row, "_fields", None) != names for row in rows):
        return None
    if any(row.get_row_kind() is not RowKind.INSERT for row in rows):
        return None
    fields = [infer_type(column) for column in zip(*(row._values for row in rows), strict=True)]
    known = [field for field in fields if field is not None]
    return Types.ROW_NAMED(list(names), known) if len(known) == len(fields) else None
