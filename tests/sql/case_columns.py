"""The column declarations of a case. This module imports the standard library only, because recorders run with
Flink."""

from __future__ import annotations

from typing import Any


def declare_columns(table: dict[str, Any]) -> str:
    """Return the column declarations of CREATE TABLE."""
    columns = [f"`{column}` {data_type}" for column, data_type in table["columns"].items()]
    columns += [f"`{column}` AS {expr}" for column, expr in table.get("computed", {}).items()]
    if "watermark" in table:
        column, expr = next(iter(table["watermark"].items()))
        columns.append(f"WATERMARK FOR `{column}` AS {expr}")
    if "primary_key" in table:
        columns.append(f"PRIMARY KEY ({', '.join(table['primary_key'])}) NOT ENFORCED")
    return ", ".join(columns)
