"""Targets of a JDBC sink: a statement for each record, or a table to which rows are added or merged.

Promises: a target sends records on a connection that is inside a transaction, in order, and ends no transaction.
Does not know: epochs, commits, retries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connectors.jdbc.options import InvalidJdbcOption
from millstream.connectors.jdbc.statements import (
    Statement,
    merge_statements,
    quote_names,
    quote_table,
    statement,
    table_name,
)
from millstream.connectors.jdbc.values import check_insert_only, deletions, parameters

_BATCH = "ms_batch"


class Target(ABC):
    """Sends records to the database."""

    @abstractmethod
    def send(self, connection: Any, records: Sequence[Any]) -> None:
        """Send the records."""

    def check(self, connection: Any) -> None:
        """Raise `InvalidJdbcOption` if the target cannot work."""


@dataclass(frozen=True)
class StatementTarget(Target):
    """A statement with one placeholder for each field. A plain INSERT is sent as COPY, which is faster."""

    sql: str
    width: int | None = None

    def __post_init__(self) -> None:
        placeholders = statement(self.sql).placeholders
        if self.width is not None and placeholders != self.width:
            message = f"the statement has {placeholders} placeholders, the type has {self.width} fields: {self.sql}"
            raise InvalidJdbcOption(message, hint="write one question mark for each field of the type")

    def send(self, connection: Any, records: Sequence[Any]) -> None:
        """Send the records."""
        parsed: Statement = statement(self.sql)
        rows = parameters(records, parsed.placeholders)
        with connection.cursor() as cursor:
            if parsed.copy is None:
                cursor.executemany(parsed.sql, rows)
            else:
                copy_rows(cursor, parsed.copy, rows)


@dataclass(frozen=True)
class TableTarget(Target):
    """A table. With keys, the last row of a key replaces the row in the table, or deletes it."""

    table: str
    columns: tuple[str, ...]
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        table_name(self.table)
        missing = [key for key in self.keys if key not in self.columns]
        if not self.columns or missing:
            message = f"the key fields {missing} are not among the columns {list(self.columns)} of {self.table}"
            raise InvalidJdbcOption(message)

    @property
    def quoted_name(self) -> str:
        """Return the quoted name of the table."""
        return quote_table(self.table)

    def send(self, connection: Any, records: Sequence[Any]) -> None:
        """Send the records."""
        rows = parameters(records, len(self.columns))
        with connection.cursor() as cursor:
            if not self.keys:
                check_insert_only(records)
                copy_rows(cursor, f"COPY {self.quoted_name} ({quote_names(self.columns)}) FROM STDIN", rows)
                return
            cursor.execute(f"CREATE TEMPORARY TABLE {_BATCH} ON COMMIT DROP AS {self.staged_columns()}")
            self.copy_staged(cursor, _BATCH, records, (0, 0), ())
            for sql in merge_statements(self.quoted_name, _BATCH, self.columns, self.keys, "true"):
                cursor.execute(sql)
            cursor.execute(f"DROP TABLE {_BATCH}")

    def staged_columns(self) -> str:
        """Return an empty query with the columns of a staged row, which has no constraints."""
        return (
            "SELECT ''::text AS ms_gid, 0::bigint AS ms_epoch, 0::int AS ms_subtask, 0::bigint AS ms_seq, "
            f"false AS ms_deleted, {quote_names(self.columns)} FROM {self.quoted_name} LIMIT 0"
        )

    def copy_staged(
        self,
        cursor: Any,
        staged: str,
        records: Sequence[Any],
        epoch_and_subtask: tuple[int, int],
        gid: tuple[str, ...],
        first: int = 0,
    ) -> None:
        """Copy records into a staging table, in order."""
        if not self.keys:
            check_insert_only(records)
        is_deletion = deletions(records)
        prefix = (gid[0] if gid else "", *epoch_and_subtask)
        rows = [
            (*prefix, first + number, deleted, *values)
            for number, (deleted, values) in enumerate(
                zip(is_deletion, parameters(records, len(self.columns)), strict=True)
            )
        ]
        columns = quote_names(("ms_gid", "ms_epoch", "ms_subtask", "ms_seq", "ms_deleted", *self.columns))
        copy_rows(cursor, f"COPY {staged} ({columns}) FROM STDIN", rows)

    def check(self, connection: Any) -> None:
        """Check that the columns exist and the keys have a unique index, which ON CONFLICT needs."""
        connection.execute(f"SELECT {quote_names(self.columns)} FROM {self.quoted_name} LIMIT 0")
        if not self.keys:
            return
        unique_indexes = connection.execute(
            "SELECT array_agg(a.attname::text) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid "
            "AND a.attnum = ANY(i.indkey) WHERE i.indrelid = %s::regclass AND i.indisunique AND i.indpred IS NULL "
            "GROUP BY i.indexrelid",
            (self.quoted_name,),
        ).fetchall()
        if not any(set(names) == set(self.keys) for (names,) in unique_indexes):
            message = f"the table {self.table} has no unique index on {', '.join(self.keys)}"
            raise InvalidJdbcOption(message, hint="make them its primary key, or use its primary key as key fields")


def copy_rows(cursor: Any, copy: str, rows: Sequence[Sequence[Any]]) -> None:
    """Send rows by COPY."""
    with cursor.copy(copy) as stream:
        for row in rows:
            stream.write_row(row)
