"""Reads a bounded table completely in one task, for 'lookup.cache' = 'FULL'.

Promises: all current rows, each once, as columns.
Does not know: when the table is reloaded, and the connector of the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from millstream.connector.lookup_cache import Key
from millstream.connector.source import Boundedness, Budget, ReaderContext, Source
from millstream.errors import ExternalError
from millstream.runtime.batch import Batch
from millstream.sql.columns import combine_columns, to_tuples
from millstream.sql.connector.lookup import Lookup, LookupRows, TableLookup
from millstream.sql.connector.lookup_reload import read_reload_policy
from millstream.sql.connector.table_connector import TableContext, TableSource
from millstream.sql.operators.enter import EnterSpec, RecordConverter
from millstream.sql.types import data_types as t

_UNLIMITED = 1 << 62
_BATCH_SIZE = 8192


class TableStopped(ExternalError):
    """A bounded table returned no rows before its end."""

    def __init__(self, table: str) -> None:
        super().__init__(f"table '{table}' could not be read to its end: its source plans no further splits")


@dataclass(frozen=True)
class WholeTable(Lookup):
    """The rows of `source` as a lookup table.

    `source_schema` are the columns of the source, `columns` the indexes of the columns that are read, and `keys` the
    indexes of the lookup keys among these."""

    name: str
    source: Source
    source_schema: t.RowType
    needs_conversion: bool
    columns: tuple[int, ...]
    keys: tuple[int, ...]

    def find(self, keys: Sequence[Key]) -> Mapping[Key, LookupRows]:
        """Return the rows of keys, by reading the whole table."""
        rows_by_key: dict[Key, list[tuple[object, ...]]] = {key: [] for key in keys}
        for array in self.read(0):
            for row in to_tuples(array, self.schema):
                rows = rows_by_key.get(tuple(row[i] for i in self.keys))
                if rows is not None:
                    rows.append(row)
        return rows_by_key

    def project(self, columns: tuple[int, ...]) -> Lookup | None:
        """Return the lookup with some columns only; None if a key column is missing."""
        if not set(self.keys) <= set(columns):
            return None
        keys = tuple(columns.index(i) for i in self.keys)
        return replace(self, columns=tuple(self.columns[i] for i in columns), keys=keys)

    @property
    def schema(self) -> t.RowType:
        """Return the columns that are read."""
        names, data_types = self.source_schema.names, self.source_schema.types
        return t.row_of([names[i] for i in self.columns], [data_types[i] for i in self.columns], null=False)

    def read(self, now: int) -> Iterator[pa.Array]:
        """Read all rows, batch by batch."""
        converter, width, schema = RecordConverter(EnterSpec(self.source_schema)), len(self.source_schema), self.schema
        for batch in self._take_batches(now):
            array = converter.array(batch) if self.needs_conversion else batch.array()
            columns = [array.field(i) for i in self.columns]
            yield combine_columns(columns, array.field(width), schema, len(array))

    def _take_batches(self, now: int) -> Iterator[Batch]:
        type_info = self.source.type_info()
        enumerator = self.source.create_enumerator(1)
        reader = self.source.create_reader(ReaderContext(0, 1, _BATCH_SIZE, job=str(now), now=now))
        try:
            while not enumerator.finished():
                split_ranges = enumerator.plan(Budget(_UNLIMITED, _UNLIMITED, now))
                if not split_ranges and not enumerator.finished():
                    raise TableStopped(self.name)
                for split_range in split_ranges:
                    for records in reader.read(split_range):
                        values = records.values
                        columnar = isinstance(values, pa.Array)
                        yield Batch(type_info, array=values) if columnar else Batch(type_info, rows=list(values))
        finally:
            reader.close()
            enumerator.close()


def read_whole_table(context: TableContext, source: TableSource, keys: Sequence[str]) -> TableLookup:
    """Return the lookup of a table that is loaded completely, and reloaded by the policy of its options."""
    if source.source.boundedness() is not Boundedness.BOUNDED or not source.mode.insert_only:
        message = "'lookup.cache' = 'FULL' needs a bounded table without updates"
        raise context.fail(message)
    columns = [column.name for column in context.definition.columns if column.expr is None]
    indexes = tuple(source.schema.names.index(name) for name in columns)
    key_indexes = tuple(columns.index(name) for name in keys)
    table = WholeTable(
        ".".join(context.name), source.source, source.schema, source.needs_conversion, indexes, key_indexes
    )
    return TableLookup(table, table.schema, read_reload_policy(context))
