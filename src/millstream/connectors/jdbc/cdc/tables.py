"""Captured tables and their description in the database.

Promises: a description is a frozen value with all that a reader needs; a table that cannot be captured is refused.
Does not know: positions, rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connectors.jdbc.cdc.captured import CannotCapture
from millstream.connectors.jdbc.driver import Session
from millstream.connectors.jdbc.statements import quote_name, quote_table
from millstream.connectors.jdbc.types import pg_type
from millstream.types.factory import RowTypeInfo


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of a table's key, and how the database compares it."""

    name: str
    type_name: str
    collation: str

    def cast(self, text: str) -> str:
        """Return an SQL expression that compares a text as a value of the column."""
        return f"{text}::{self.type_name}" + (f" COLLATE {self.collation}" if self.collation else "")


@dataclass(frozen=True, slots=True)
class Table:
    """A captured table: its columns with the OIDs of their types, and the key that identifies rows in changes."""

    schema: str
    name: str
    columns: tuple[tuple[str, int], ...]
    key: tuple[KeyColumn, ...]
    identity: str

    @property
    def id(self) -> str:
        """The schema and the name."""
        return f"{self.schema}.{self.name}"

    @property
    def quoted_name(self) -> str:
        """Return the quoted name of the table."""
        return f"{quote_name(self.schema)}.{quote_name(self.name)}"

    def row_type(self) -> RowTypeInfo:
        """Return the type of its rows."""
        return RowTypeInfo(
            [pg_type(type_oid).type_info for _, type_oid in self.columns], [name for name, _ in self.columns]
        )

    def read_texts(self, texts: Sequence[str | None]) -> list[Any]:
        """Return the values of a row of the snapshot."""
        types = (pg_type(type_oid) for _, type_oid in self.columns)
        return [column_type.value(text) for column_type, text in zip(types, texts, strict=True)]

    def source_fields(self, commit: int) -> dict[str, Any]:
        """Return the fields of Debezium's `source` that locate a change."""
        return {"connector": "postgresql", "schema": self.schema, "table": self.name, "lsn": commit}

    def key_list(self, prefix: str = "") -> str:
        """Return the columns of the key, separated by commas."""
        return ", ".join(prefix + quote_name(column.name) for column in self.key)

    def bound(self, parameters: Sequence[str]) -> str:
        """Return an SQL expression of a key, from SQL expressions of its parts as text."""
        return f"({', '.join(column.cast(parameter) for column, parameter in zip(self.key, parameters, strict=True))})"


_TABLE = """
SELECT c.oid, n.nspname, c.relname, c.relkind, c.relreplident, c.relpersistence
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)
"""
_COLUMNS = """
SELECT a.attname, a.atttypid FROM pg_attribute a
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum
"""
_KEY = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod),
       CASE WHEN a.attcollation <> 0 THEN quote_ident(n.nspname) || '.' || quote_ident(l.collname) ELSE '' END
FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (number, place)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
LEFT JOIN pg_collation l ON l.oid = a.attcollation LEFT JOIN pg_namespace n ON n.oid = l.collnamespace
WHERE i.indrelid = %s AND k.place <= i.indnkeyatts AND CASE WHEN %s = 'i' THEN i.indisreplident ELSE i.indisprimary END
ORDER BY k.place
"""


def describe_table(session: Session, table: str) -> Table:
    """Read the description of a table from the database."""
    action = "cannot read the description of the table"
    tables = session.query(action, _TABLE, (quote_table(table),))
    if not tables:
        message = f"there is no table {table}"
        raise CannotCapture(message, hint="write schema.table; quote names with capital letters")
    oid, schema, name, relation_kind, identity, persistence = tables[0]
    if relation_kind != "r" or persistence != "p":
        reason = {"p": "partitioned", "v": "a view", "m": "a materialized view", "f": "foreign"}.get(
            relation_kind, "not logged"
        )
        message = f"changes of {table} cannot be captured: it is {reason}"
        raise CannotCapture(message, hint="use plain tables; for a partitioned table, its partitions")
    columns = session.query(action, _COLUMNS, (oid,))
    key = session.query(action, _KEY, (oid, identity))
    return Table(schema, name, tuple((n, k) for n, k in columns), tuple(KeyColumn(*column) for column in key), identity)


def list_tables(session: Session) -> list[tuple[str, str]]:
    """Return the schemas and names of all tables whose changes can be captured, sorted."""
    rows = session.query(
        "cannot list the tables",
        "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND n.nspname NOT IN ('pg_catalog', 'information_schema') "
        "ORDER BY 1, 2",
    )
    return [(schema, name) for schema, name in rows]


def check_server(session: Session) -> None:
    """Check that logical replication is enabled, and that the user may use it."""
    level, version, allowed = session.query(
        "the source cannot read from the database",
        "SELECT current_setting('wal_level'), current_setting('server_version_num')::int, "
        "(SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user)",
    )[0]
    if level != "logical":
        message = f"changes can only be captured with wal_level = logical, the server has {level}"
        raise CannotCapture(message, hint="set wal_level = logical in postgresql.conf and restart the server")
    if version < 140_000:
        message = f"changes can be captured from PostgreSQL 14 on, the server is {version // 10_000}"
        raise CannotCapture(message)
    if not allowed:
        message = "the user of the source may not use replication"
        raise CannotCapture(message, hint="ALTER ROLE ... REPLICATION")
