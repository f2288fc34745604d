"""Changes as records: rows with their row kind, or Debezium's JSON.

Promises: an update is a row before and a row after where the database says what was before (REPLICA IDENTITY FULL),
else only the row after; a deletion has at least the key. Columns are found by name, whatever their order.
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

    hint = "start the job again, so that it sees the new columns; its rows have another type then"

    def __init__(self, table: str, what: str) -> None:
        self.table = table
        super().__init__(f"the table {table} has changed: {what}")


class ValueNotSent(UserError):
    """An update did not touch a large value, so the database did not send it."""

    def __init__(self, table: str, column: str) -> None:
        self.table, self.column = table, column
        super().__init__(
            f"an update of {table} did not change the large value in {column}, so the database did not send it",
            hint=f"ALTER TABLE {table} REPLICA IDENTITY FULL",
        )


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one row. `op` is r(ead by the snapshot), c(reated), u(pdated) or d(eleted); values are Python's,
    in the order of the table's columns; `before` is None where it is not known."""

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
    """Rows with their kind. Of several tables each row is inside another with the fields `table` and `row`."""

    nested: bool = False

    def type_info(self, tables: Sequence[Table]) -> TypeInformation:
        """The row type of the table; rows of several tables have no type in common."""
        return Types.PICKLED_BYTE_ARRAY() if self.nested else tables[0].row_type()

    def deserialize(self, change: Change) -> Iterable[Any]:
        """One row, or two for an update whose old row is known."""
        names = [name for name, _ in change.table.columns]
        rows = [Row._from(names, values, kind) for kind, values in _kinds(change)]
        if not self.nested:
            return rows
        table = change.table.id
        return [Row._from(["table", "row"], [table, row], row.get_row_kind()) for row in rows]


def _kinds(change: Change) -> list[tuple[RowKind, list[Any]]]:
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
        """Text."""
        return Types.STRING()

    def deserialize(self, change: Change) -> Iterable[Any]:
        """One text."""
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


class Reading:
    """How the stream's rows of one table become values, for as long as its columns stay."""

    def __init__(self, table: Table, relation: Relation) -> None:
        self.table = table
        self.relation = relation
        places = {column.name: place for place, column in enumerate(relation.columns)}
        self._reads: list[tuple[int, Callable[[str], Any]]] = []
        self._types: list[PgType] = []
        for name, kind in table.columns:
            if name not in places:
                raise SchemaChanged(table.id, f"there is no column {name} any more")
            found = relation.columns[places[name]].kind
            if found != kind:
                was, now = pg_type(kind).name, pg_type(found).name
                raise SchemaChanged(table.id, f"the type of {name} was {was} ({kind}) and is {now} ({found})")
            self._types.append(pg_type(kind))
            self._reads.append((places[name], self._types[-1].read))
        more = sorted(places.keys() - {name for name, _ in table.columns})
        if more:
            _log.warning("new columns of %s are ignored until the job is started again: %s", table.id, ", ".join(more))
        self._key = [places[column.name] for column in table.key]

    def key(self, values: Values) -> tuple[str | None, ...]:
        """The key of a row, as text."""
        return tuple(values[place] for place in self._key)

    def change(self, op: str, event: Event) -> Change:
        """Convert an event to a change."""
        after = None if event.new is None else self._filled(event.new, event.old if event.full else None)
        before = None if event.old is None else self._values(event.old)
        at = event.transaction
        return Change(self.table, op, before, after, event.full, at.at, at.commit)

    def _filled(self, new: Values, old: Values | None) -> list[Any]:
        if UNCHANGED not in new:
            return self._values(new)
        whole = [old[place] if value == UNCHANGED and old else value for place, value in enumerate(new)]
        return self._values(whole)

    def _values(self, values: Values) -> list[Any]:
        if UNCHANGED in values:
            for place, _ in self._reads:  # those of ignored columns do not matter
                if values[place] == UNCHANGED:
                    raise ValueNotSent(self.table.id, self.relation.columns[place].name)
        try:
            return [None if (text := values[place]) is None else read(text) for place, read in self._reads]
        except (ValueError, ArithmeticError):
            # once more, to name the value
            return [kind.value(values[place]) for (place, _), kind in zip(self._reads, self._types, strict=True)]


def snapshot_changes(table: Table, rows: Iterable[Sequence[str | None]], at: int, commit: int) -> list[Change]:
    """Rows that a snapshot has read, given as texts in the order of the table's columns."""
    kinds = [pg_type(kind) for _, kind in table.columns]
    return [
        Change(table, "r", None, [kind.value(text) for kind, text in zip(kinds, row, strict=True)], False, at, commit)
        for row in rows
    ]
