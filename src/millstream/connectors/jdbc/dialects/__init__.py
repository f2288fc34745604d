"""Scans, lookups and output for tables of MySQL, MariaDB and SQLite."""

from __future__ import annotations

from millstream.connectors.jdbc.dialects.dialect import Dialect
from millstream.connectors.jdbc.dialects.mysql import MysqlDialect
from millstream.connectors.jdbc.dialects.sqlite import SqliteDialect
from millstream.connectors.jdbc.options import JdbcConnectionOptions


def find_dialect(options: JdbcConnectionOptions) -> Dialect | None:
    """Return the dialect of a database; None for PostgreSQL, which is read and written by COPY."""
    kind = options.database()
    if kind == "postgresql":
        return None
    url = options.database_url()
    return MysqlDialect(url) if kind == "mysql" else SqliteDialect(url)


__all__ = ["Dialect", "find_dialect"]
