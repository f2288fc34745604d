"""Runs the queries of tests/golden/sql/*.yaml: creates their tables, and reads their changelogs as Flink's text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml
from case_columns import declare_columns

from millstream.sql.columns import create_internal_converter
from millstream.sql.connectors.simple import register_values
from millstream.sql.functions import text
from millstream.sql.syntax import parse_type
from millstream.sql.types import data_types as t
from millstream.table import EnvironmentSettings, TableEnvironment

GOLDEN = Path(__file__).parents[1] / "golden" / "sql"
ROW_KINDS = ("+I", "-U", "+U", "-D")


def content(topic: str) -> dict[str, Any]:
    return yaml.load((GOLDEN / f"{topic}.yaml").read_text(), yaml.CSafeLoader)


def environment(case: dict[str, Any], options: dict[str, str] | None = None) -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    return add_tables(env, case, {"parallelism.default": "1", **(options or {})})


def add_tables(env: TableEnvironment, case: dict[str, Any], options: dict[str, str]) -> TableEnvironment:
    """Add the options, tables and views of a case to an environment, and return it."""
    env.get_config().set("table.local-time-zone", "UTC")
    for key, value in {**case.get("options", {}), **options}.items():
        env.get_config().set(key, value)
    for name, table in case.get("tables", {}).items():
        create_table(env, name, table)
    for statement in case.get("statements", []):
        env.execute_sql(statement)
    return env


def create_table(env: TableEnvironment, name: str, table: dict[str, Any]) -> None:
    data_types = [parse_type(data_type) for data_type in table["columns"].values()]
    rows = [
        tuple(value(cell, data_type) for cell, data_type in zip(row, data_types, strict=True)) for row in table["rows"]
    ]
    register_values(name, rows)
    env.execute_sql(
        f"CREATE TEMPORARY TABLE `{name}` ({declare_columns(table)}) WITH ('connector'='values', 'data-id'='{name}')"
    )


def value(cell: Any, data_type: t.DataType) -> Any:
    if cell is None:
        return None
    if t.is_timestamp(data_type):
        return text.parse_timestamp(str(cell))
    if isinstance(data_type, t.DecimalType):
        return Decimal(str(cell))
    if t.is_text(data_type):
        return str(cell)
    return text.parse_date(str(cell)) if isinstance(data_type, t.DateType) else cell


def changelog(env: TableEnvironment, sql: str) -> tuple[list[str], list[str], list[list[str]]]:
    result = env.execute_sql(sql)
    row = result._get_row_type()
    with result.collect() as rows_of_job:
        rows = list(map(create_row_formatter(row), rows_of_job))
    return row.names, [format_data_type(data_type) for data_type in row.types], rows


def create_row_formatter(row: t.RowType) -> Callable[[Any], list[str]]:
    """Return a function that formats a change as Flink does: its row kind, then its cells."""
    converters = [create_internal_converter(data_type) for data_type in row.types]

    def format_row(row_of_values: Any) -> list[str]:
        cells = [
            "<NULL>" if v is None else text.to_text(convert(v), data_type)
            for v, convert, data_type in zip(row_of_values, converters, row.types, strict=True)
        ]
        return [ROW_KINDS[row_of_values.get_row_kind().value], *cells]

    return format_row


def format_data_type(data_type: t.DataType) -> str:
    return str(data_type)


def materialize(rows: list[list[str]]) -> Counter[tuple[str, ...]]:
    counts: Counter[tuple[str, ...]] = Counter()
    for data_type, *cells in rows:
        counts[tuple(cells)] += 1 if data_type in ("+I", "+U") else -1
    return Counter({row: count for row, count in counts.items() if count})
