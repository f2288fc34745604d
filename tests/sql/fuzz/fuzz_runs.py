"""Runs random queries as a stream, as a batch and in DuckDB; reduces and saves cases that fail."""

from __future__ import annotations

import datetime
import hashlib
import json
import pathlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from fuzz_queries import KINDS, Case, Table

from millstream.common import Row, RowKind
from millstream.sql.connectors.simple import register_values
from millstream.table import EnvironmentSettings, TableEnvironment

CASES = pathlib.Path(__file__).parent / "cases"
RECORDED = pathlib.Path(__file__).parents[2] / "golden" / "random_queries" / "answers.json"
Result = Counter[tuple[str, ...]]


def to_python_value(value: str | None, kind: str) -> Any:
    if value is None:
        return None
    makers: dict[str, Callable[[str], Any]] = {
        "int": int, "long": int, "text": str, "bool": lambda v: v == "true", "date": datetime.date.fromisoformat,
        "dec": Decimal,
    }  # fmt: skip
    return makers[kind](value)


def format_value(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | Decimal):
        return f"{Decimal(value).normalize():f}" if value else "0"
    return str(value)


def run_millstream(case: Case, *, batch: bool = False, options: dict[str, str] | None = None) -> Result:
    """Return the rows that remain when the job has ended."""
    counts: Result = Counter()
    with environment(case, batch=batch, options=options).execute_sql(case.sql).collect() as rows:
        for row in rows:
            sign = 1 if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER) else -1
            counts[tuple(map(format_value, row))] += sign
    return Counter({row: count for row, count in counts.items() if count})


def environment(case: Case, *, batch: bool, options: dict[str, str] | None = None) -> TableEnvironment:
    """Return an environment with the tables of a case."""
    settings = EnvironmentSettings.in_batch_mode() if batch else EnvironmentSettings.in_streaming_mode()
    env = TableEnvironment.create(settings)
    env.get_config().set("parallelism.default", "1")
    for key, value in (options or {}).items():
        env.get_config().set(key, value)
    for name, table in case.tables.items():
        register_values(name, [_row(table, sign, row) for sign, row in table.changes])
        columns = ", ".join(f"{column} {KINDS[kind]}" for column, kind in table.columns)
        mode = "I" if table.appends else "I,UB,UA,D"
        env.execute_sql(
            f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'values', 'data-id' = '{name}', "
            f"'changelog-mode' = '{mode}')"
        )
    return env


def _row(table: Table, sign: int, row: tuple[str | None, ...]) -> Row:
    result_row = Row(*(to_python_value(value, kind) for value, (_, kind) in zip(row, table.columns, strict=True)))
    result_row.set_row_kind(RowKind.INSERT if sign > 0 else RowKind.DELETE)
    return result_row


def run_duckdb(case: Case, connection: Any) -> Result:
    for name, table in case.tables.items():
        columns = ", ".join(f"{column} {KINDS[kind]}" for column, kind in table.columns)
        connection.execute(f"CREATE OR REPLACE TABLE {name} ({columns})")
        rows = [
            [to_python_value(value, kind) for value, (_, kind) in zip(row, table.columns, strict=True)]
            for row in table.rows()
        ]
        if rows:
            connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(table.columns))})", rows)
    return Counter(tuple(map(format_value, row)) for row in connection.execute(case.sql).fetchall())


def compute_digest(result: Result) -> str:
    """Return a short digest of a result."""
    return hashlib.blake2b(repr(sorted(result.items())).encode(), digest_size=6).hexdigest()


def read_recorded() -> dict[str, list[str]]:
    """Return the digests of DuckDB's results for the first seeds."""
    found: dict[str, list[str]] = json.loads(RECORDED.read_text())
    return found


def remove_retractions(case: Case) -> Case:
    """Return the case with tables of the final rows only."""
    tables = {name: Table(t.columns, tuple((1, row) for row in t.rows())) for name, t in case.tables.items()}
    return replace(case, tables=tables)


def reduce_case(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Return the case with as few rows as possible that still fails."""
    for name in list(case.tables):
        table = case.tables[name]
        for start in range(len(table.changes) - 1, -1, -1):
            changes = (*table.changes[:start], *table.changes[start + 1 :])
            reduced_table = Table(table.columns, changes)
            try:
                reduced_table.rows()
            except ValueError:
                continue
            candidate = replace(case, tables={**case.tables, name: reduced_table})
            if fails(candidate):
                case, table = candidate, reduced_table
    return case


def save_case(case: Case, name: str) -> None:
    CASES.mkdir(exist_ok=True)
    tables = {n: {"columns": t.columns, "changes": t.changes} for n, t in case.tables.items()}
    (CASES / f"{name}.json").write_text(json.dumps({"sql": case.sql, "tables": tables}, indent=1) + "\n")


def load_saved_cases() -> dict[str, Case]:
    found = {}
    for path in sorted(CASES.glob("*.json")):
        data = json.loads(path.read_text())
        tables = {
            name: Table(
                tuple(map(tuple, table["columns"])), tuple((sign, tuple(row)) for sign, row in table["changes"])
            )
            for name, table in data["tables"].items()
        }
        found[path.stem] = Case(tables, data["sql"])
    return found
