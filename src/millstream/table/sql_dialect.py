"""SQL dialects.

Promises: PyFlink's names; Flink's own dialect is the one that is spoken.
Does not know: parsing."""

from __future__ import annotations

from enum import Enum


class SqlDialect(Enum):
    """A dialect of SQL."""

    DEFAULT = 0
    HIVE = 1
