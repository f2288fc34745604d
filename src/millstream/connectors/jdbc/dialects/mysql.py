"""MySQL and MariaDB as a database of the JDBC connector.

Promises: values have the types of the CDC source; TIMESTAMP is a local time in UTC. Batches of insertions are one
statement.
Does not know: the binary log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from millstream.connectors.jdbc.dialects.dialect import Column, Dialect
from millstream.connectors.jdbc.mysql.driver import MysqlSession, fetch, parse_url, pymysql
from millstream.connectors.jdbc.mysql.tables import ReadOptions, describe_columns
from millstream.connectors.jdbc.mysql.types import MysqlColumn, mysql_type, quote, to_text
from millstream.connectors.jdbc.options import InvalidJdbcOption
from millstream.connectors.jdbc.statements import statement

_UNIQUE = """
SELECT group_concat(column_name SEPARATOR ',') FROM information_schema.statistics
WHERE table_schema = %s AND table_name = %s AND non_unique = 0 GROUP BY index_name
"""
_ENGINE = "SELECT engine FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"


class MysqlDialect(Dialect):
    """SQL of MySQL and MariaDB."""

    placeholder = "%s"
    locks_rows = True
    text_type = "VARCHAR(255)"

    def session(self) -> MysqlSession:
        """Return a session."""
        return MysqlSession(self.address)

    def quote(self, name: str) -> str:
        """Return a name between backticks."""
        return quote(name)

    def _path(self, table: str) -> tuple[str, str]:
        parts = [part.strip('"`') for part in table.split(".")]
        database = parts[0] if len(parts) == 2 else parse_url(self.address).get("database", "")
        return database, parts[-1]

    def columns(self, connection: Any, table: str) -> list[Column]:
        """Return the columns of a table, from information_schema; TINYINT(1) is a number."""
        schema, name = self._path(table)
        columns = describe_columns(
            lambda _, sql, parameters: fetch(connection, sql, parameters), schema, name, ReadOptions()
        )
        if not columns:
            message = f"the database {schema} has no table {name}"
            raise InvalidJdbcOption(message, hint="check the URL and 'table-name'")
        return [_column(replace(column, boolean=False)) for column in columns]

    def check(self, connection: Any, table: str, keys: Sequence[str]) -> None:
        """Check that the keys are those of a unique index, and that the table has transactions."""
        path = self._path(table)
        self.columns(connection, table)
        engines = [row[0] for row in fetch(connection, _ENGINE, path)]
        if engines and engines[0] in ("MyISAM", "Aria", "MEMORY"):
            message = f"the table {table} has the engine {engines[0]}, which has no transactions"
            raise InvalidJdbcOption(message, hint=f"ALTER TABLE {table} ENGINE = InnoDB")
        indexes = [set(row[0].split(",")) for row in fetch(connection, _UNIQUE, path)]
        if keys and set(keys) not in indexes:
            message = f"the table {table} has no unique index on {', '.join(keys)}"
            raise InvalidJdbcOption(
                message, hint="make them the primary key of the table, or use its primary key as key fields"
            )

    def rows(self, connection: Any, sql: str, parameters: Sequence[Any] = ()) -> Iterator[Sequence[Any]]:
        """Run a query and yield its rows: text and bytes."""
        with connection.cursor(pymysql().cursors.SSCursor) as cursor:
            cursor.execute(sql, parameters or None)
            yield from cursor

    def execute(self, connection: Any, sql: str, rows: Sequence[Sequence[Any]] = ((),)) -> None:
        """Run a statement for each row of parameters."""
        with connection.cursor() as cursor:
            if len(rows) == 1:
                cursor.execute(sql, rows[0] or None)
            else:
                cursor.executemany(sql, rows)

    def statement(self, sql: str) -> str:
        """Return the statement with the placeholders of PyMySQL."""
        return statement(sql).sql

    def truncate(self, table: str) -> str:
        """Return TRUNCATE."""
        return f"TRUNCATE TABLE {self.quote_table(table)}"

    def on_conflict(self, columns: Sequence[str], keys: Sequence[str]) -> str:
        """Return ON DUPLICATE KEY UPDATE."""
        changed = [column for column in columns if column not in keys] or [columns[0]]
        values = ", ".join(f"{quote(column)} = VALUES({quote(column)})" for column in changed)
        return f"ON DUPLICATE KEY UPDATE {values}"

    def parameter(self, value: Any) -> Any:
        """Convert a value; a list becomes the text of a SET."""
        return ",".join(map(str, value)) if isinstance(value, list | tuple) else value


def _column(column: MysqlColumn) -> Column:
    column_type = mysql_type(column)
    return Column(column.name, column.selected, column_type.type_info, lambda value: column_type.value(to_text(value)))
