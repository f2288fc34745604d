"""Changes as records: rows with their row kind, or Debezium's JSON.

Promises: an update is a row before and a row after if the database sends the row before (REPLICA IDENTITY FULL),
else only the row after; a deletion has at least the key. Columns are matched by name, in any order.
Does not know: positions, snapshots."""

from __future__ import annotations

import base64
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from millstream.connectors.jdbc.cdc.pgoutput import UNCHANGED, Event, Relation, Values
from millstream.connectors.jdbc.cdc.tables import Table
from millstream.connectors.jdbc.types import PgType, pg_type
from millstream.errors import UserError
from millstream.times import Instant
from millstream.types.factory import TypeInformation, Types
from millstream.types.row import Row, RowKind

_log = logging.getLogger("millstream.cdc")


class SchemaChanged(UserError):
    """A captured table no longer has the columns it had when the job was built."""

    hint = "start the job again, so that it reads the new columns; its rows then have another type"

    def __init__(self, table: str, difference: str) -> None:
        self.table = table
        super().__init__(f"the table {table} has changed: {difference}")


class ValueNotSent(UserError):
    """An update did not change a large value, so the database did not send it."""

    def __init__(self, table: str, column: str) -> None:
        self.table, self.column = table, column
        super().__init__(
            f"an update of {table} did not change the large value in {column}, so the database did not send it",
            hint=f"ALTER TABLE {table} REPLICA IDENTITY FULL",
        )


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one row. `op` is r(ead by the snapshot), c(reated), u(pdated) or d(eleted); values are Python's,
    in the order of the table's columns; `before` is None if it is unknown."""

    table: Table
    op: str
    before: list[Any] | None
    after: list[Any] | None
    before_is_full: bool
    at: int
    commit: int


class ChangeDeserializer(ABC):
    """Converts changes to records. Must be picklable."""

    @abstractmethod
    def type_info(self, tables: Sequence[Table]) -> TypeInformation:
        """Return the type of the records."""

    @abstractmethod
    def deserialize(self, change: Change) -> Iterable[Any]:
        """Return the records of one change."""


@dataclass(frozen=True)
class RowDeserializer(ChangeDeserializer):
    """Rows with their row kind. With several tables, each row is nested in a row with the fields `table` and `row`."""

    nested: bool = False

    def type_info(self, tables: Sequence[Table]) -> TypeInformation:
        """Return the row type of the table; untyped for rows of several tables."""
        return Types.PICKLED_BYTE_ARRAY() if self.nested else tables[0].row_type()

    def deserialize(self, change: Change) -> Iterable[Any]:
        """Return one row, or two for an update whose old row is known."""
        names = [name for name, _ in change.table.columns]
        rows = [Row._from(names, values, kind) for kind, values in _rows_with_kinds(change)]
        if not self.nested:
            return rows
        table = change.table.id
        return [Row._from(["table", "row"], [table, row], row.get_row_kind()) for row in rows]


def _rows_with_kinds(change: Change) -> list[tuple[RowKind, list[Any]]]:
    before, after = change.before, change.after
    if after is None:
        return [(RowKind.DELETE, before or [])]
    if before is None:
        return [(RowKind.UPDATE_AFTER if change.op == "u" else RowKind.INSERT, after)]
    if change.before_is_full:
        return [(RowKind.UPDATE_BEFORE, before), (RowKind.UPDATE_AFTER, after)]
    return [(RowKind.DELETE, before), (RowKind.INSERT, after)]  # the key has changed


@dataclass(frozen=True)
class JsonDebeziumDeserializationSchema(ChangeDeserializer):
    """Debezium's envelope as JSON text: `before`, `after`, `source`, `op`, `ts_ms`."""

    database: str = ""

    def type_info(self, tables: Sequence[Table]) -> TypeInformation:
        """Return the type of strings."""
        return Types.STRING()

    def deserialize(self, change: Change) -> Iterable[Any]:
        """Return the JSON text of the change."""
        names = [name for name, _ in change.table.columns]
        source = {"db": self.database, "schema": change.table.schema, "table": change.table.name, "lsn": change.commit}
        envelope = {
            "before": None if change.before is None else dict(zip(names, change.before, strict=True)),
            "after": None if change.after is None else dict(zip(names, change.after, strict=True)),
            "source": {**source, "ts_ms": change.at, "connector": "postgresql"},
            "op": change.op,
            "ts_ms": change.at,
        }
        return (json.dumps(envelope, default=_plain, ensure_ascii=False),)


def _plain(value: Any) -> Any:
    if isinstance(value, Instant):
        return value.to_epoch_milli()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal | date | datetime | time):
        return str(value)
    raise TypeError(value)


class RowConverter:
    """Converts rows of one table in the stream to values, as long as its columns do not change."""

    def __init__(self, table: Table, relation: Relation) -> None:
        self.table = table
        self.relation = relation
        column_indexes = {column.name: column_index for column_index, column in enumerate(relation.columns)}
        self._reads: list[tuple[int, Callable[[str], Any]]] = []
        self._types: list[PgType] = []
        for name, type_oid in table.columns:
            if name not in column_indexes:
                raise SchemaChanged(table.id, f"the column {name} was dropped")
            stream_oid = relation.columns[column_indexes[name]].type_oid
            if stream_oid != type_oid:
                was, now = pg_type(type_oid).name, pg_type(stream_oid).name
                raise SchemaChanged(table.id, f"the type of {name} was {was} ({type_oid}) and is {now} ({stream_oid})")
            self._types.append(pg_type(type_oid))
            self._reads.append((column_indexes[name], self._types[-1].read))
        new_columns = sorted(column_indexes.keys() - {name for name, _ in table.columns})
        if new_columns:
            _log.warning(
                "new columns of %s are ignored until the job is started again: %s", table.id, ", ".join(new_columns)
            )
        self._key = [column_indexes[column.name] for column in table.key]

    def key(self, values: Values) -> tuple[str | None, ...]:
        """Return the key of a row, as text."""
        return tuple(values[column_index] for column_index in self._key)

    def change(self, op: str, event: Event) -> Change:
        """Convert an event to a change."""
        after = None if event.new is None else self._fill_unchanged(event.new, event.old if event.full else None)
        before = None if event.old is None else self._values(event.old)
        transaction = event.transaction
        return Change(self.table, op, before, after, event.full, transaction.at, transaction.commit)

    def _fill_unchanged(self, new: Values, old: Values | None) -> list[Any]:
        if UNCHANGED not in new:
            return self._values(new)
        complete = [
            old[column_index] if value == UNCHANGED and old else value for column_index, value in enumerate(new)
        ]
        return self._values(complete)

    def _values(self, values: Values) -> list[Any]:
        if UNCHANGED in values:
            for column_index, _ in self._reads:  # values of ignored columns are not needed
                if values[column_index] == UNCHANGED:
                    raise ValueNotSent(self.table.id, self.relation.columns[column_index].name)
        try:
            return [
                None if (text := values[column_index]) is None else read(text) for column_index, read in self._reads
            ]
        except (ValueError, ArithmeticError):
            # convert again with errors that name the value
            return [
                pg_type_of_column.value(values[column_index])
                for (column_index, _), pg_type_of_column in zip(self._reads, self._types, strict=True)
            ]


def snapshot_changes(table: Table, rows: Iterable[Sequence[str | None]], at: int, commit: int) -> list[Change]:
    """Convert rows of a snapshot, which are texts in the order of the table's columns, to changes."""
    column_types = [pg_type(type_oid) for _, type_oid in table.columns]
    return [
        Change(
            table,
            "r",
            None,
            [column_type.value(text) for column_type, text in zip(column_types, row, strict=True)],
            False,
            at,
            commit,
        )
        for row in rows
    ]
