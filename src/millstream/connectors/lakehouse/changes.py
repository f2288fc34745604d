"""Changes of a table by primary key, staged until their checkpoint.

Promises: the files of a checkpoint contain the last change of each key in each epoch. They are stored beside the data
files, are not part of the table, and are removed after their changes were applied to it.
Does not know: table formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millstream.connector.sink import WriterContext
from millstream.connectors.lakehouse.columns import to_columns
from millstream.connectors.lakehouse.staging import ParquetWriter, StagedDataFile, open_location
from millstream.errors import UserError
from millstream.files.errors import ConnectorStorageFailure
from millstream.types.factory import RowTypeInfo
from millstream.types.row import RowKind

DELETED = "__deleted"
_DIRECTORY = "_changes"  # readers of lakehouse tables ignore directories that begin with an underscore
_ROW = "__row"
_DELETIONS = pa.array([RowKind.UPDATE_BEFORE.value, RowKind.DELETE.value], pa.int8())


class UnsuitableKey(UserError):
    """A primary key that does not identify rows."""


class KeyIsNull(UserError):
    """A row has no value in a column of the primary key."""

    def __init__(self, column: str) -> None:
        super().__init__(
            f"a row is NULL in column {column}, which is part of the primary key",
            hint="filter such rows out, or use no primary key",
        )


def check_primary_key(key: Sequence[str], row_type: RowTypeInfo, *, overwrites: bool) -> None:
    """Refuse a key whose columns the rows do not have, or a sink that also overwrites."""
    names = row_type.get_field_names()
    if unknown := [column for column in key if column not in names]:
        message = f"the rows have no column {', '.join(unknown)}, which the primary key names"
        raise UnsuitableKey(message, hint=f"they have {', '.join(names)}")
    if key and overwrites:
        message = "a sink that replaces rows by primary key cannot overwrite the table"
        raise UnsuitableKey(message, hint="use either a primary key or overwrite()")


class ChangeWriter(ParquetWriter):
    """Writes the last change of each key of one epoch. Rows of one key must come to one subtask."""

    def __init__(
        self, location: str, row_type: RowTypeInfo, schema: pa.Schema, key: Sequence[str], context: WriterContext
    ) -> None:
        nullable = pa.schema([field.with_nullable(True) for field in schema])  # a deletion may contain only its key
        super().__init__(location, _DIRECTORY, row_type, nullable, (), context, partition_columns_inside=True)
        self._key = list(key)

    def convert(self, values: Any) -> pa.Table:
        """Return rows as columns, with a column that marks deletions."""
        array = values if isinstance(values, pa.Array) else self._row_type.to_arrow(list(values))
        table = to_columns(array, self._row_type, self._schema)
        for column in self._key:
            if table.column(column).null_count:
                raise KeyIsNull(column)
        row_kinds = array.field(len(self._row_type.get_field_names()))
        return table.append_column(DELETED, pc.fill_null(pc.is_in(row_kinds, _DELETIONS), False))

    def combine(self, tables: list[pa.Table]) -> pa.Table:
        """Return the last change of each key."""
        return keep_last(pa.concat_tables(tables), self._key)


def keep_last(changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the last row of each key, in the order of the rows."""
    rows = pa.array(range(changes.num_rows), pa.int64())
    last = changes.select(list(key)).append_column(_ROW, rows).group_by(list(key)).aggregate([(_ROW, "max")])
    return changes.take(last.column(f"{_ROW}_max").combine_chunks().sort())


def remove_keys(table: pa.Table, changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the rows of a table whose keys have not changed."""
    if len(key) == 1:
        values = changes.column(key[0]).combine_chunks().cast(table.schema.field(key[0]).type)
        return table.filter(pc.invert(pc.is_in(table.column(key[0]), value_set=values)))
    rows = pa.array(range(table.num_rows), pa.int64())
    keys = table.select(list(key)).append_column(_ROW, rows)
    changed = pa.table([changes.column(name).cast(table.schema.field(name).type) for name in key], names=list(key))
    left = keys.join(changed, list(key), join_type="left anti")
    return table.take(left.column(_ROW).combine_chunks().sort())


def read_changes(location: str, files: Sequence[StagedDataFile], key: Sequence[str]) -> pa.Table:
    """Read staged changes: the last change of each key, with the column `DELETED`."""
    storage, base = open_location(location)
    tables = []
    # names begin with the epoch and the subtask; a key is processed by one subtask in an epoch
    for file in sorted(files, key=lambda file: (file.epoch, file.path)):
        try:
            with storage.open_input_file(f"{base}/{file.path}") as stream:
                tables.append(pq.ParquetFile(stream).read())
        except (pa.ArrowException, OSError) as problem:
            raise ConnectorStorageFailure(file.path, "read", problem) from problem
    return keep_last(pa.concat_tables(tables), key)
