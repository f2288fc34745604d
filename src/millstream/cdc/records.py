"""Changes of many tables as records of one stream, and their separation into one stream for each table.

Promises: a record is the number of a table and a row of the columns that the pipeline has for it; a column that the
table no longer has is null.
Does not know: databases, SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connectors.jdbc.cdc.captured import CapturedTable
from millstream.connectors.jdbc.cdc.changes import Change, ChangeDeserializer, rows_with_kinds
from millstream.datastream import KeySelector, OutputTag, ProcessFunction
from millstream.types.factory import TypeInformation, Types
from millstream.types.row import Row, RowKind

_KIND_TEXTS = {
    RowKind.INSERT: "+I",
    RowKind.UPDATE_BEFORE: "-U",
    RowKind.UPDATE_AFTER: "+U",
    RowKind.DELETE: "-D",
}


@dataclass(frozen=True)
class TableRows(ChangeDeserializer):
    """Converts changes to pairs of a table's number and a row. `columns` has the number and the columns of each table.
    `with_kind`: the last field of a row is the text of its row kind."""

    columns: Mapping[str, tuple[int, tuple[str, ...]]]
    with_kind: bool = False

    def type_info(self, tables: Sequence[CapturedTable]) -> TypeInformation:
        """Return the type of untyped records."""
        return Types.PICKLED_BYTE_ARRAY()

    def deserialize(self, change: Change) -> Iterable[Any]:
        """Return the records of one change."""
        number, names = self.columns[change.table.id]
        known = {name: index for index, (name, _) in enumerate(change.table.columns)}
        indexes = [known.get(name) for name in names]
        records = []
        for kind, values in rows_with_kinds(change):
            row = [None if index is None else values[index] for index in indexes]
            if self.with_kind:
                row.append(_KIND_TEXTS[kind])
            records.append((number, _row(row, kind)))
        return records


def _row(values: list[Any], kind: RowKind) -> Row:
    row = Row(*values)
    row.set_row_kind(kind)
    return row


class SeparateTables(ProcessFunction):
    """Emits the rows of each table to the side output of its number."""

    def __init__(self, tags: Sequence[OutputTag]) -> None:
        self._tags = tags

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        """Emit one row."""
        number, row = value
        yield self._tags[number], row


class KeyOfRow(KeySelector):
    """Returns the values of the primary key of a row, as text: databases have types that cannot be keys."""

    def __init__(self, indexes: tuple[int, ...]) -> None:
        self._indexes = indexes

    def get_key(self, value: Any) -> str:
        """Return the key."""
        return repr([value[index] for index in self._indexes])


def unchanged(value: Any) -> Any:
    """Return the value."""
    return value
