"""SQLite as a database of the JDBC connector: a file that all workers can open.

Promises: a column has the type with which it is declared; decimals, dates and times are stored as texts. While another
process has locked the database, calls wait.
Does not know: MySQL."""

from __future__ import annotations

import contextlib
import datetime as dt
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from millstream.connectors.jdbc.dialects.dialect import Column, Dialect
from millstream.connectors.jdbc.driver import DatabaseFailure, DatabaseRefused
from millstream.connectors.jdbc.options import InvalidJdbcOption
from millstream.types.factory import LocalTimeTypeInfo, TypeInformation, Types

_BUSY_SECONDS = 60
_TIMES = LocalTimeTypeInfo.TimeType
# by the prefix of the declared type; the first match counts, as for SQLite's column affinity
_TYPES: tuple[tuple[str, Callable[[], TypeInformation], Callable[[Any], Any]], ...] = (
    ("BOOL", Types.BOOLEAN, lambda value: value in (1, "1", "true", "TRUE", "t")),
    ("TINYINT", Types.BYTE, int),
    ("SMALLINT", Types.SHORT, int),
    ("INTEGER", Types.LONG, int),
    ("INT", Types.INT, int),
    ("BIGINT", Types.LONG, int),
    ("FLOAT", Types.FLOAT, float),
    ("REAL", Types.DOUBLE, float),
    ("DOUBLE", Types.DOUBLE, float),
    ("DEC", Types.BIG_DEC, lambda value: Decimal(str(value))),
    ("NUMERIC", Types.BIG_DEC, lambda value: Decimal(str(value))),
    ("DATETIME", lambda: LocalTimeTypeInfo(_TIMES.LOCAL_DATE_TIME), lambda value: dt.datetime.fromisoformat(value)),
    ("DATE", Types.SQL_DATE, lambda value: dt.date.fromisoformat(value)),
    ("TIMESTAMP", lambda: LocalTimeTypeInfo(_TIMES.LOCAL_DATE_TIME), lambda value: dt.datetime.fromisoformat(value)),
    ("TIME", lambda: LocalTimeTypeInfo(_TIMES.LOCAL_TIME), lambda value: dt.time.fromisoformat(value)),
    ("BLOB", lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()), bytes),
    ("VARBINARY", lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()), bytes),
    ("BINARY", lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()), bytes),
)


@contextlib.contextmanager
def translate_errors(action: str) -> Iterator[None]:
    """Raise errors of SQLite as millstream errors whose text begins with `action`."""
    try:
        yield
    except sqlite3.OperationalError as problem:
        if "locked" in str(problem) or "disk I/O" in str(problem):
            raise DatabaseFailure(action, problem) from problem
        raise DatabaseRefused(action, problem) from problem
    except sqlite3.Error as problem:
        raise DatabaseRefused(action, problem) from problem


class SqliteSession:
    """One connection to a file, opened on first use."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def run(self, action: str, work: Callable[[Any], Any]) -> Any:
        """Call `work` with the connection."""
        with translate_errors(action):
            if self._connection is None:
                self._connection = sqlite3.connect(
                    f"file:{self._path}?mode=rw",
                    timeout=_BUSY_SECONDS,
                    isolation_level=None,
                    check_same_thread=False,
                    uri=True,
                )
            return work(self._connection)

    def drop(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    close = drop


class SqliteDialect(Dialect):
    """SQL of SQLite."""

    def session(self) -> SqliteSession:
        """Return a session; the file must exist."""
        return SqliteSession(self.address)

    def quote(self, name: str) -> str:
        """Return a name between double quotes."""
        return '"' + name.replace('"', '""') + '"'

    def columns(self, connection: Any, table: str) -> list[Column]:
        """Return the columns of a table, with their declared types."""
        name = table.rpartition(".")[2].strip('"`')
        declared = list(connection.execute(f"PRAGMA table_info({self.quote(name)})"))
        if not declared:
            message = f"the database {self.address} has no table {table}"
            raise InvalidJdbcOption(message, hint="check the URL and 'table-name'")
        return [self._column(column, kind) for _, column, kind, *_ in declared]

    def _column(self, name: str, declared: str) -> Column:
        for word, type_info, read in _TYPES:
            if declared.upper().startswith(word):
                return Column(name, self.quote(name), type_info(), _nullable(read))
        return Column(name, self.quote(name), Types.STRING(), _nullable(str))

    def check(self, connection: Any, table: str, keys: Sequence[str]) -> None:
        """Check that the keys are the primary key or have a unique index."""
        self.columns(connection, table)
        name = self.quote(table.rpartition(".")[2].strip('"`'))
        primary = {row[1] for row in connection.execute(f"PRAGMA table_info({name})") if row[5]}
        indexes = [row[1] for row in connection.execute(f"PRAGMA index_list({name})") if row[2]]
        unique = [{row[2] for row in connection.execute(f"PRAGMA index_info({self.quote(i)})")} for i in indexes]
        if keys and set(keys) not in [primary, *unique]:
            message = f"the table {table} has no unique index on {', '.join(keys)}"
            raise InvalidJdbcOption(
                message, hint="make them the primary key of the table, or use its primary key as key fields"
            )

    def rows(self, connection: Any, sql: str, parameters: Sequence[Any] = ()) -> Iterator[Sequence[Any]]:
        """Run a query and yield its rows."""
        yield from connection.execute(sql, parameters)

    def execute(self, connection: Any, sql: str, rows: Sequence[Sequence[Any]] = ((),)) -> None:
        """Run a statement for each row of parameters."""
        if len(rows) == 1:
            # a transaction that begins with a read would fail, not wait, if another process writes
            connection.execute("BEGIN IMMEDIATE" if sql == "BEGIN" else sql, rows[0])
        else:
            connection.executemany(sql, rows)

    def statement(self, sql: str) -> str:
        """Return the statement: SQLite has the placeholders of JDBC."""
        return sql

    def truncate(self, table: str) -> str:
        """Return DELETE: SQLite has no TRUNCATE."""
        return f"DELETE FROM {self.quote_table(table)}"

    def on_conflict(self, columns: Sequence[str], keys: Sequence[str]) -> str:
        """Return ON CONFLICT."""
        values = ", ".join(f"{self.quote(c)} = excluded.{self.quote(c)}" for c in columns if c not in keys)
        return f"ON CONFLICT ({self.names(keys)}) " + (f"DO UPDATE SET {values}" if values else "DO NOTHING")

    def parameter(self, value: Any) -> Any:
        """Return a value that SQLite stores: decimals, dates and times are texts."""
        if isinstance(value, dt.datetime):
            return value.replace(tzinfo=None).isoformat(" ")
        if isinstance(value, Decimal | dt.date | dt.time):
            return str(value)
        return str(value) if isinstance(value, list | tuple) else value


def _nullable(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)
