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
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from millstream.connectors.jdbc.cdc.captured import CapturedTable
from millstream.connectors.jdbc.cdc.pgoutput import UNCHANGED, Event, Relation, Values
from millstream.connectors.jdbc.cdc.tables import Table
from millstream.connectors.jdbc.cdc.widening import widening
from millstream.connectors.jdbc.types import PgType, pg_type
from millstream.errors import UserError
from millstream.times import Instant
from millstream.types.factory import TypeInformation, Types
from millstream.types.row import Row, RowKind

_log = logging.getLogger("millstream.cdc")


class SchemaChanged(UserError):
    """The columns of a captured table have changed since the job was built."""

    hint = "start the job again to read the new columns; the type of its rows changes"

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
    """One change of one row. `op` is r(ead by the snapshot), c(reated), u(pdated) or d(eleted). `before` and `after`
    have Python values in the order of the table's columns; `before` is None if it is unknown.

    Example:
        >>> orders = Table("public", "orders", columns=(("id", 20),), key=(), identity="d")
        >>> change = Change(orders, "c", None, [1], before_is_full=False, at=1_700_000_000_000, commit=16)
        >>> RowDeserializer().deserialize(change)
        [Row(id=1)]

    """

    table: CapturedTable
    op: str
    before: list[Any] | None
    after: list[Any] | None
    before_is_full: bool
    at: int
    commit: int


class ChangeDeserializer(ABC):
    """Converts changes to records. Must be picklable.

    Example:
        >>> class OnlyDeleted(ChangeDeserializer):
        ...     def type_info(self, tables):
        ...         return Types.STRING()
        ...
        ...     def deserialize(self, change):
        ...         return [change.table.id] if change.op == "d" else []

    """

    @abstractmethod
    def type_info(self, tables: Sequence[CapturedTable]) -> TypeInformation:
        """Return the type of the records.

        Args:
            tables: The captured tables with their columns.

        """

    @abstractmethod
    def deserialize(self, change: Change) -> Iterable[Any]:
        """Return the records of one change.

        Args:
            change: The change.

        """


@dataclass(frozen=True)
class RowDeserializer(ChangeDeserializer):
    """Rows with their row kind. With several tables, each row is nested in a row with the fields `table` and `row`.

    Example:
        >>> from millstream.datastream.connectors.postgres_cdc import PostgresSource
        >>> builder = PostgresSource.builder().table_list("public.orders", "public.returns")
        >>> builder = builder.deserializer(RowDeserializer(nested=True))

    """

    nested: bool = False

    def type_info(self, tables: Sequence[CapturedTable]) -> TypeInformation:
        """Return the row type of the table; untyped for rows of several tables."""
        return Types.PICKLED_BYTE_ARRAY() if self.nested else tables[0].row_type()

    def deserialize(self, change: Change) -> Iterable[Any]:
        """Return one row, or two for an update whose old row is known."""
        names = [name for name, _ in change.table.columns]
        rows = [Row._from(names, values, kind) for kind, values in rows_with_kinds(change)]
        if not self.nested:
            return rows
        table = change.table.id
        return [Row._from(["table", "row"], [table, row], row.get_row_kind()) for row in rows]


def rows_with_kinds(change: Change) -> list[tuple[RowKind, list[Any]]]:
    """Return the rows that a change consists of, with their kinds."""
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
    """Debezium's envelope as JSON text: `before`, `after`, `source`, `op`, `ts_ms`.

    Example:
        >>> from millstream.datastream.connectors.postgres_cdc import PostgresSource
        >>> builder = PostgresSource.builder().database("shop").deserializer(JsonDebeziumDeserializationSchema("shop"))

    """

    database: str = ""

    def type_info(self, tables: Sequence[CapturedTable]) -> TypeInformation:
        """Return the type of strings."""
        return Types.STRING()

    def deserialize(self, change: Change) -> Iterable[Any]:
        """Return the JSON text of the change."""
        names = [name for name, _ in change.table.columns]
        source = {"db": self.database, **change.table.source_fields(change.commit)}
        envelope = {
            "before": None if change.before is None else dict(zip(names, change.before, strict=True)),
            "after": None if change.after is None else dict(zip(names, change.after, strict=True)),
            "source": {**source, "ts_ms": change.at},
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


def _null(_: str) -> None:
    return None


def _converting(read: Callable[[str], Any], convert: Callable[[Any], Any]) -> Callable[[str], Any]:
    return lambda text: convert(read(text))


class RowConverter:
    """Converts rows of one table in the stream to values, as long as its columns do not change."""

    def __init__(self, table: Table, relation: Relation, *, lenient: bool = False) -> None:
        """`lenient`: a column that a row does not have is null, and a value of a narrower type is widened."""
        self.table = table
        self.relation = relation
        column_indexes = {column.name: column_index for column_index, column in enumerate(relation.columns)}
        self._reads: list[tuple[int, Callable[[str], Any]]] = []
        self._types: list[PgType] = []
        for name, type_oid in table.columns:
            if name not in column_indexes and lenient:
                self._types.append(replace(pg_type(type_oid), read=_null))
                self._reads.append((0, _null))
                continue
            if name not in column_indexes:
                raise SchemaChanged(table.id, f"the column {name} was dropped")
            stream_oid = relation.columns[column_indexes[name]].type_oid
            was, now = pg_type(type_oid), pg_type(stream_oid)
            convert = widening(now.type_info, was.type_info) if lenient and stream_oid != type_oid else None
            if stream_oid != type_oid and convert is None:
                message = f"the type of {name} was {was.name} ({type_oid}) and is {now.name} ({stream_oid})"
                raise SchemaChanged(table.id, message)
            read = was.read if convert is None else _converting(now.read, convert)
            self._types.append(replace(was, read=read))
            self._reads.append((column_indexes[name], read))
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


def snapshot_changes(table: CapturedTable, rows: Iterable[Sequence[str | None]], at: int, commit: int) -> list[Change]:
    """Convert rows of a snapshot, which are texts in the order of the table's columns, to changes."""
    return [Change(table, "r", None, table.read_texts(row), False, at, commit) for row in rows]
