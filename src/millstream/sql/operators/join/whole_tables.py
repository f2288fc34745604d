"""A bounded table read by one task, from its first row to its last: 'lookup.cache' = 'FULL'.

Promises: all rows that are there now, each once, as columns.
Does not know: when they are wanted, and where they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from millstream.connector.lookup_cache import Key
from millstream.connector.source import Boundedness, Budget, ReaderContext, Source
from millstream.errors import ExternalError
from millstream.runtime.batch import Batch
from millstream.sql.columns import struct_of, tuples_of
from millstream.sql.connector.lookup import Found, Lookup, TableLookup
from millstream.sql.connector.lookup_reload import reload_policy
from millstream.sql.connector.table_connector import TableContext, TableSource
from millstream.sql.operators.enter import EnterSpec, Entrance
from millstream.sql.types import data_types as t

_ALL = 1 << 62
_TOGETHER = 8192


class TableStopped(ExternalError):
    """A table has neither rows nor an end."""

    def __init__(self, table: str) -> None:
        super().__init__(f"table '{table}' could not be read to its end")


@dataclass(frozen=True)
class WholeTable(Lookup):
    """The rows of `source`, which have `given` columns, of which those at `places` are wanted, and are looked up by
    those at `keys` among these."""

    name: str
    source: Source
    given: t.RowType
    foreign: bool
    places: tuple[int, ...]
    keys: tuple[int, ...]

    def find(self, keys: Sequence[Key]) -> Mapping[Key, Found]:
        """As Lookup promises, by reading all."""
        found: dict[Key, list[tuple[object, ...]]] = {key: [] for key in keys}
        for array in self.read(0):
            for row in tuples_of(array, self.schema):
                rows = found.get(tuple(row[i] for i in self.keys))
                if rows is not None:
                    rows.append(row)
        return found

    def narrowed(self, columns: tuple[int, ...]) -> Lookup | None:
        """As Lookup promises."""
        if not set(self.keys) <= set(columns):
            return None
        keys = tuple(columns.index(i) for i in self.keys)
        return replace(self, places=tuple(self.places[i] for i in columns), keys=keys)

    @property
    def schema(self) -> t.RowType:
        """The columns that are wanted."""
        names, kinds = self.given.names, self.given.types
        return t.row_of([names[i] for i in self.places], [kinds[i] for i in self.places], null=False)

    def read(self, now: int) -> Iterator[pa.Array]:
        """The rows, piece by piece."""
        entrance, width, schema = Entrance(EnterSpec(self.given)), len(self.given), self.schema
        for batch in self._batches(now):
            array = entrance.array(batch) if self.foreign else batch.array()
            columns = [array.field(i) for i in self.places]
            yield struct_of(columns, array.field(width), schema, len(array))

    def _batches(self, now: int) -> Iterator[Batch]:
        kind = self.source.type_info()
        enumerator = self.source.create_enumerator(1)
        reader = self.source.create_reader(ReaderContext(0, 1, _TOGETHER))
        try:
            while not enumerator.finished():
                parts = enumerator.plan(Budget(_ALL, _ALL, now))
                if not parts and not enumerator.finished():
                    raise TableStopped(self.name)
                for part in parts:
                    for records in reader.read(part):
                        values = records.values
                        columnar = isinstance(values, pa.Array)
                        yield Batch(kind, array=values) if columnar else Batch(kind, rows=list(values))
        finally:
            reader.close()
            enumerator.close()


def whole_table(context: TableContext, found: TableSource, keys: Sequence[str]) -> TableLookup:
    """A table that is kept as a whole and read again as its options say."""
    if found.source.boundedness() is not Boundedness.BOUNDED or not found.mode.insert_only:
        message = "a table that changes while it is read cannot be kept as a whole, as 'lookup.cache' = 'FULL' asks"
        raise context.fail(message)
    columns = [each.name for each in context.definition.columns if each.expr is None]
    places = tuple(found.schema.names.index(name) for name in columns)
    compared = tuple(columns.index(name) for name in keys)
    table = WholeTable(".".join(context.name), found.source, found.schema, found.foreign, places, compared)
    return TableLookup(table, table.schema, reload_policy(context))
