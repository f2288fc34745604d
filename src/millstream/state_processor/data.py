"""Input data of new state: Python values, Arrow tables, pandas and Spark DataFrames.

Promises: a table is read column by column; its rows have the names of its columns as field names.
Does not know: state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from millstream.errors import UserError
from millstream.types.arrow_types import to_python_values
from millstream.types.factory import DataclassTypeInfo, ListTypeInfo, MapTypeInfo, NamedTupleTypeInfo, TypeInformation
from millstream.types.row import create_rows


class NotTabular(UserError):
    """The data for a state is not a table."""

    hint = "pass a pandas or Spark DataFrame, an Arrow table, or a dictionary of keys and values"

    def __init__(self, data: object) -> None:
        super().__init__(
            f"state cannot be created from a value of type {type(data).__name__}: it has no keys and values"
        )


class NoSuchColumn(UserError):
    """The data does not have a column of this name."""

    def __init__(self, name: str, have: Sequence[str]) -> None:
        super().__init__(f"the data has no column '{name}'; its columns are {', '.join(have)}")


def to_arrow(data: Any) -> pa.Table | None:
    """Return tabular data as an Arrow table, None if it is not tabular."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "toArrow"):  # a Spark DataFrame
        return data.toArrow()
    if hasattr(data, "iloc") and hasattr(data, "columns"):  # a pandas DataFrame
        return pa.Table.from_pandas(data, preserve_index=False)
    return None


def column_values(table: pa.Table, name: str) -> list[Any]:
    """Return the values of a column."""
    if name not in table.column_names:
        raise NoSuchColumn(name, table.column_names)
    return [value for chunk in table.column(name).chunks for value in to_python_values(chunk)]


def iterate_records(data: Any) -> Iterable[Any]:
    """Return the rows of tabular data, or the iterable itself."""
    table = to_arrow(data)
    if table is None:
        return data  # type: ignore[no-any-return]
    columns = [column_values(table, name) for name in table.column_names]
    return create_rows(list(table.column_names), zip(*columns, strict=True), table.num_rows)


def split_keys_and_values(data: Any, key: str | Sequence[str], value: str) -> tuple[list[Any], list[Any]]:
    """Return the keys and values of a dictionary, or of columns of a table; several key columns form a tuple."""
    if isinstance(data, Mapping):
        return list(data.keys()), list(data.values())
    table = to_arrow(data)
    if table is None:
        raise NotTabular(data)
    if isinstance(key, str):
        return column_values(table, key), column_values(table, value)
    return list(zip(*(column_values(table, name) for name in key), strict=True)), column_values(table, value)


def convert_values(type_info: TypeInformation, values: list[Any]) -> list[Any]:
    """Convert values of a table to a type: structs become instances of its class, pairs of a map a dictionary."""
    if isinstance(type_info, DataclassTypeInfo | NamedTupleTypeInfo):
        return [type_info.cls(**value) if isinstance(value, dict) else value for value in values]
    if isinstance(type_info, ListTypeInfo):
        return [None if value is None else convert_values(type_info.elem_type, list(value)) for value in values]
    if isinstance(type_info, MapTypeInfo):
        maps = [None if value is None else dict(value) for value in values]
        return [
            None
            if pairs is None
            else dict(zip(pairs, convert_values(type_info.value_type, list(pairs.values())), strict=True))
            for pairs in maps
        ]
    return values
