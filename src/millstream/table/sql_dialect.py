"""SqlDialect: the dialects of SQL that Flink knows.

Promises: PyFlink's names. Statements are parsed in Flink's default dialect.
Does not know: parsing."""

from __future__ import annotations

from enum import Enum


class SqlDialect(Enum):
    """A dialect of SQL. Only `DEFAULT`, Flink's own, is supported.

    Example:
        >>> from millstream.table import TableConfig
        >>> TableConfig().get_sql_dialect()
        <SqlDialect.DEFAULT: 0>

    """

    DEFAULT = 0
    HIVE = 1
