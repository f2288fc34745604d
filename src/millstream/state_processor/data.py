"""Records for state, from wherever they are: Python, Arrow, pandas, Spark.

Promises: a table is read column by column; its rows have the names of its columns.
Does not know: state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from millstream.errors import UserError
from millstream.types.arrow_types import python_values
from millstream.types.factory import DataclassTypeInfo, ListTypeInfo, MapTypeInfo, NamedTupleTypeInfo, TypeInformation
from millstream.types.row import rows_of


class NotTabular(UserError):
    """Something was given as data that is none."""

    hint = "give a pandas or Spark DataFrame, an Arrow table, a dictionary of keys and values, or an iterable"

    def __init__(self, data: object) -> None:
        super().__init__(f"a {type(data).__name__} is no table of keys and values")


class NoSuchColumn(UserError):
    """A column was named that the data does not have."""

    def __init__(self, name: str, have: Sequence[str]) -> None:
        super().__init__(f"the data has no column '{name}'; it has {', '.join(have)}")


def arrow(data: Any) -> pa.Table | None:
    """The data as an Arrow table, if it is one in some guise."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "toArrow"):  # a Spark DataFrame
        return data.toArrow()
    if hasattr(data, "iloc") and hasattr(data, "columns"):  # a pandas DataFrame
        return pa.Table.from_pandas(data, preserve_index=False)
    return None


def column(table: pa.Table, name: str) -> list[Any]:
    """The values of a column."""
    if name not in table.column_names:
        raise NoSuchColumn(name, table.column_names)
    return [value for chunk in table.column(name).chunks for value in python_values(chunk)]


def records(data: Any) -> Iterable[Any]:
    """The records of data: rows of a table, or whatever the iterable gives."""
    table = arrow(data)
    if table is None:
        return data  # type: ignore[no-any-return]
    columns = [column(table, name) for name in table.column_names]
    return rows_of(list(table.column_names), zip(*columns, strict=True), table.num_rows)


def keys_and_values(data: Any, key: str | Sequence[str], value: str) -> tuple[list[Any], list[Any]]:
    """Keys and values of a table's columns, or of a dictionary; several key columns make a tuple."""
    if isinstance(data, Mapping):
        return list(data.keys()), list(data.values())
    table = arrow(data)
    if table is None:
        raise NotTabular(data)
    if isinstance(key, str):
        return column(table, key), column(table, value)
    return list(zip(*(column(table, name) for name in key), strict=True)), column(table, value)


def declared(kind: TypeInformation, values: list[Any]) -> list[Any]:
    """Values as a type has them: records of a table become its class's, pairs of a map column dictionaries."""
    if isinstance(kind, DataclassTypeInfo | NamedTupleTypeInfo):
        return [kind.cls(**each) if isinstance(each, dict) else each for each in values]
    if isinstance(kind, ListTypeInfo):
        return [None if each is None else declared(kind.elem_type, list(each)) for each in values]
    if isinstance(kind, MapTypeInfo):
        pairs = [None if each is None else dict(each) for each in values]
        return [
            None if each is None else dict(zip(each, declared(kind.value_type, list(each.values())), strict=True))
            for each in pairs
        ]
    return values
