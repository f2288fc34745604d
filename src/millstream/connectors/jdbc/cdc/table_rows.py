"""Changes of captured tables as rows of a SQL table.

Promises: a row has the chosen columns, by name, then metadata of its change. The changelog is complete (`all`), by key
(`upsert`), or a list of changes in which every row is an insertion (`append-only`).
Does not know: SQL; where changes come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connectors.jdbc.cdc.captured import CannotCapture, CapturedTable
from millstream.connectors.jdbc.cdc.changes import Change, ChangeDeserializer
from millstream.times import Instant
from millstream.types.factory import RowTypeInfo, TypeInformation, Types
from millstream.types.row import Row, RowKind

_KIND_TEXTS = {
    RowKind.INSERT: "+I",
    RowKind.UPDATE_BEFORE: "-U",
    RowKind.UPDATE_AFTER: "+U",
    RowKind.DELETE: "-D",
}
METADATA = ("table_name", "schema_name", "database_name", "op_ts", "row_kind")


@dataclass(frozen=True)
class TableRowDeserializer(ChangeDeserializer):
    """Converts changes to rows. `metadata` are pairs of a column and one of `METADATA`; `key` are the columns by which
    `upsert` identifies rows; without a `database`, the schema of a table is its database."""

    columns: tuple[str, ...]
    metadata: tuple[tuple[str, str], ...]
    database: str
    mode: str
    key: tuple[str, ...]

    def type_info(self, tables: Sequence[CapturedTable]) -> TypeInformation:
        """Return the row type; the tables must have the columns, with the same types."""
        types = [dict(table.columns) for table in tables]
        for table, column_types in zip(tables, types, strict=True):
            for column in self.columns:
                if column not in column_types:
                    message = f"the table {table.id} has no column {column}"
                    raise CannotCapture(message, hint=f"it has {', '.join(column_types)}")
                if column_types[column] != types[0][column]:
                    message = f"the column {column} has different types in {tables[0].id} and {table.id}"
                    raise CannotCapture(message, hint="declare one table for each")
        row_type = tables[0].row_type()
        type_infos = dict(zip(row_type.get_field_names(), row_type.get_field_types(), strict=True))
        fields = [type_infos[column] for column in self.columns]
        fields += [Types.INSTANT() if key == "op_ts" else Types.STRING() for _, key in self.metadata]
        return RowTypeInfo(fields, [*self.columns, *(name for name, _ in self.metadata)])

    def deserialize(self, change: Change) -> Iterable[Any]:
        """Return the rows of one change."""
        names = [name for name, _ in change.table.columns]
        indexes = [names.index(column) for column in self.columns]
        return [self._row(kind, [values[index] for index in indexes], change) for kind, values in self._kinds(change)]

    def _kinds(self, change: Change) -> list[tuple[RowKind, list[Any]]]:
        before, after = change.before, change.after
        if after is None:
            return [] if before is None else [(RowKind.DELETE, before)]
        if before is None:
            return [(RowKind.UPDATE_AFTER if change.op == "u" else RowKind.INSERT, after)]
        if self.mode == "upsert":
            names = [name for name, _ in change.table.columns]
            if change.before_is_full and all(before[i] == after[i] for i in map(names.index, self.key)):
                return [(RowKind.UPDATE_AFTER, after)]
            return [(RowKind.DELETE, before), (RowKind.INSERT, after)]
        return [(RowKind.UPDATE_BEFORE, before), (RowKind.UPDATE_AFTER, after)]

    def _row(self, kind: RowKind, values: list[Any], change: Change) -> Row:
        metadata = {
            "table_name": change.table.name,
            "schema_name": change.table.schema,
            "database_name": self.database or change.table.schema,
            # a row of the snapshot has no time of change, as in Flink CDC
            "op_ts": Instant.of_epoch_milli(0 if change.op == "r" else change.at),
            "row_kind": _KIND_TEXTS[kind],
        }
        names = [*self.columns, *(name for name, _ in self.metadata)]
        row_kind = RowKind.INSERT if self.mode == "append-only" else kind
        return Row._from(names, [*values, *(metadata[key] for _, key in self.metadata)], row_kind)
