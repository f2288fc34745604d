"""Queries of tests/golden/sql/*.yaml run here: their tables made, their changelogs read, in Flink's text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml
from case_columns import declared_columns

from millstream.sql.columns import create_internal_converter
from millstream.sql.connectors.simple import register_values
from millstream.sql.functions import text
from millstream.sql.syntax import parse_type
from millstream.sql.types import data_types as t
from millstream.table import EnvironmentSettings, TableEnvironment

GOLDEN = Path(__file__).parents[1] / "golden" / "sql"
KINDS = ("+I", "-U", "+U", "-D")


def content(topic: str) -> dict[str, Any]:
    return yaml.load((GOLDEN / f"{topic}.yaml").read_text(), yaml.CSafeLoader)


def environment(case: dict[str, Any], options: dict[str, str] | None = None) -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    return furnished(env, case, {"parallelism.default": "1", **(options or {})})


def furnished(env: TableEnvironment, case: dict[str, Any], options: dict[str, str]) -> TableEnvironment:
    """An environment with the options, tables and views of a case."""
    env.get_config().set("table.local-time-zone", "UTC")
    for key, value in {**case.get("options", {}), **options}.items():
        env.get_config().set(key, value)
    for name, table in case.get("tables", {}).items():
        create_table(env, name, table)
    for statement in case.get("statements", []):
        env.execute_sql(statement)
    return env


def create_table(env: TableEnvironment, name: str, table: dict[str, Any]) -> None:
    kinds = [parse_type(kind) for kind in table["columns"].values()]
    rows = [tuple(value(cell, kind) for cell, kind in zip(row, kinds, strict=True)) for row in table["rows"]]
    register_values(name, rows)
    env.execute_sql(
        f"CREATE TEMPORARY TABLE `{name}` ({declared_columns(table)}) WITH ('connector'='values', 'data-id'='{name}')"
    )


def value(cell: Any, kind: t.DataType) -> Any:
    if cell is None:
        return None
    if t.is_timestamp(kind):
        return text.parse_timestamp(str(cell))
    if isinstance(kind, t.DecimalType):
        return Decimal(str(cell))
    if t.is_text(kind):
        return str(cell)
    return text.parse_date(str(cell)) if isinstance(kind, t.DateType) else cell


def changelog(env: TableEnvironment, sql: str) -> tuple[list[str], list[str], list[list[str]]]:
    result = env.execute_sql(sql)
    row = result._get_row_type()
    with result.collect() as found:
        rows = list(map(as_text(row), found))
    return row.names, [type_text(kind) for kind in row.types], rows


def as_text(row: t.RowType) -> Callable[[Any], list[str]]:
    """A change of a table in Flink's text: its kind, then its cells."""
    makers = [create_internal_converter(kind) for kind in row.types]

    def shown(each: Any) -> list[str]:
        cells = [
            "<NULL>" if v is None else text.to_text(make(v), kind)
            for v, make, kind in zip(each, makers, row.types, strict=True)
        ]
        return [KINDS[each.get_row_kind().value], *cells]

    return shown


def type_text(kind: t.DataType) -> str:
    return str(kind)


def materialised(rows: list[list[str]]) -> Counter[tuple[str, ...]]:
    counts: Counter[tuple[str, ...]] = Counter()
    for kind, *cells in rows:
        counts[tuple(cells)] += 1 if kind in ("+I", "+U") else -1
    return Counter({row: count for row, count in counts.items() if count})
