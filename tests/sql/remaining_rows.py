"""The rows of a table that remain after all changes."""

from __future__ import annotations

from typing import Any

from millstream.types.row import RowKind


def rows(table: Any) -> list[tuple[Any, ...]]:
    """Return the rows that remain after all changes of a table."""
    remaining: list[tuple[Any, ...]] = []
    with table.execute().collect() as changes:
        for row in changes:
            if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER):
                remaining.append(tuple(row))
            else:
                remaining.remove(tuple(row))
    return sorted(remaining, key=repr)
