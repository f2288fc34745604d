"""The contract of a dialect: the parts of the JDBC connector that differ between databases.

Promises: a dialect is a picklable value with the address of one database; it opens connections and creates SQL.
Does not know: epochs, splits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from millstream.types.factory import TypeInformation

Session = Any  # has run(action, work), query(action, sql, parameters), drop() and close()


@dataclass(frozen=True)
class Column:
    """A column of a table: the expression that a query selects, the type, and how a value of a query is read."""

    name: str
    selected: str
    type_info: TypeInformation
    read: Callable[[Any], Any]


@dataclass(frozen=True)
class Dialect(ABC):
    """One database and its SQL. `placeholder` stands for a parameter; `locks_rows`: a query can lock what it reads."""

    address: str
    placeholder = "?"
    locks_rows = False

    @abstractmethod
    def session(self) -> Session:
        """Return a session, whose connection is opened on first use, and again after it broke."""

    @abstractmethod
    def quote(self, name: str) -> str:
        """Return a quoted name."""

    @abstractmethod
    def columns(self, connection: Any, table: str) -> list[Column]:
        """Return the columns of a table; raise `InvalidJdbcOption` if there is no such table."""

    @abstractmethod
    def check(self, connection: Any, table: str, keys: Sequence[str]) -> None:
        """Raise `InvalidJdbcOption` if the keys do not identify rows of the table."""

    @abstractmethod
    def rows(self, connection: Any, sql: str, parameters: Sequence[Any] = ()) -> Iterator[Sequence[Any]]:
        """Run a query and yield its rows, without keeping them in memory."""

    @abstractmethod
    def execute(self, connection: Any, sql: str, rows: Sequence[Sequence[Any]] = ((),)) -> None:
        """Run a statement for each row of parameters."""

    @abstractmethod
    def statement(self, sql: str) -> str:
        """Convert a statement with JDBC's placeholders to the placeholders of the client."""

    @abstractmethod
    def truncate(self, table: str) -> str:
        """Return the statement that empties a table."""

    @abstractmethod
    def on_conflict(self, columns: Sequence[str], keys: Sequence[str]) -> str:
        """Return the clause that makes an INSERT update an existing row."""

    #: The column types of staging tables.
    text_type = "TEXT"

    def quote_table(self, table: str) -> str:
        """Return the quoted name of a table, which may have the database before it."""
        return ".".join(self.quote(part.strip('"`')) for part in table.split("."))

    def names(self, columns: Sequence[str], prefix: str = "") -> str:
        """Return quoted names, separated by commas."""
        return ", ".join(prefix + self.quote(column) for column in columns)

    def insert(self, table: str, columns: Sequence[str]) -> str:
        """Return the statement that inserts a row."""
        values = ", ".join([self.placeholder] * len(columns))
        return f"INSERT INTO {self.quote_table(table)} ({self.names(columns)}) VALUES ({values})"

    def upsert(self, table: str, columns: Sequence[str], keys: Sequence[str]) -> str:
        """Return the statement that inserts a row or updates that of its key."""
        return f"{self.insert(table, columns)} {self.on_conflict(columns, keys)}"

    def delete(self, table: str, keys: Sequence[str]) -> str:
        """Return the statement that deletes the row of a key."""
        return f"DELETE FROM {self.quote_table(table)} WHERE {self.equal(keys)}"

    def equal(self, keys: Sequence[str]) -> str:
        """Return the condition that columns have the values of parameters."""
        return " AND ".join(f"{self.quote(key)} = {self.placeholder}" for key in keys)

    def parameter(self, value: Any) -> Any:
        """Convert a value to a parameter of the client."""
        return value

    @contextmanager
    def transaction(self, connection: Any) -> Iterator[None]:
        """Run statements in one transaction."""
        self.execute(connection, "BEGIN")
        try:
            yield
        except BaseException:
            self.execute(connection, "ROLLBACK")
            raise
        self.execute(connection, "COMMIT")
