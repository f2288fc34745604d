"""What is left of a table when its changes are played to the end."""

from __future__ import annotations

from typing import Any

from millstream.types.row import RowKind


def rows(table: Any) -> list[tuple[Any, ...]]:
    """What is left in the end."""
    left: list[tuple[Any, ...]] = []
    with table.execute().collect() as found:
        for row in found:
            if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER):
                left.append(tuple(row))
            else:
                left.remove(tuple(row))
    return sorted(left, key=repr)
