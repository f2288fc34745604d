"""The columns of a case as a statement declares them; standard library only, because recorders run beside Flink."""

from __future__ import annotations

from typing import Any


def declared_columns(table: dict[str, Any]) -> str:
    """What stands between the brackets of CREATE TABLE."""
    columns = [f"`{column}` {kind}" for column, kind in table["columns"].items()]
    columns += [f"`{column}` AS {expr}" for column, expr in table.get("computed", {}).items()]
    if "watermark" in table:
        column, expr = next(iter(table["watermark"].items()))
        columns.append(f"WATERMARK FOR `{column}` AS {expr}")
    if "primary_key" in table:
        columns.append(f"PRIMARY KEY ({', '.join(table['primary_key'])}) NOT ENFORCED")
    return ", ".join(columns)
