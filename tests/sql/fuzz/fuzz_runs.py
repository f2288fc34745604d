"""Random queries run: as a stream, as a batch, and by DuckDB; what fails is made small and kept."""

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
ANSWERS = pathlib.Path(__file__).parents[2] / "golden" / "random_queries" / "answers.json"
Answer = Counter[tuple[str, ...]]


def typed(value: str | None, kind: str) -> Any:
    if value is None:
        return None
    makers: dict[str, Callable[[str], Any]] = {
        "int": int, "long": int, "text": str, "bool": lambda v: v == "true", "date": datetime.date.fromisoformat,
        "dec": Decimal,
    }  # fmt: skip
    return makers[kind](value)


def shown(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | Decimal):
        return f"{Decimal(value).normalize():f}" if value else "0"
    return str(value)


def by_millstream(case: Case, *, batch: bool = False, options: dict[str, str] | None = None) -> Answer:
    """The rows that are left when a whole job has ended."""
    counts: Answer = Counter()
    with environment(case, batch=batch, options=options).execute_sql(case.sql).collect() as rows:
        for row in rows:
            sign = 1 if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER) else -1
            counts[tuple(map(shown, row))] += sign
    return Counter({row: count for row, count in counts.items() if count})


def environment(case: Case, *, batch: bool, options: dict[str, str] | None = None) -> TableEnvironment:
    """An environment that has the tables."""
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
    made = Row(*(typed(value, kind) for value, (_, kind) in zip(row, table.columns, strict=True)))
    made.set_row_kind(RowKind.INSERT if sign > 0 else RowKind.DELETE)
    return made


def by_duckdb(case: Case, connection: Any) -> Answer:
    for name, table in case.tables.items():
        columns = ", ".join(f"{column} {KINDS[kind]}" for column, kind in table.columns)
        connection.execute(f"CREATE OR REPLACE TABLE {name} ({columns})")
        rows = [
            [typed(value, kind) for value, (_, kind) in zip(row, table.columns, strict=True)] for row in table.rows()
        ]
        if rows:
            connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(table.columns))})", rows)
    return Counter(tuple(map(shown, row)) for row in connection.execute(case.sql).fetchall())


def digest(answer: Answer) -> str:
    """An answer in a few characters."""
    return hashlib.blake2b(repr(sorted(answer.items())).encode(), digest_size=6).hexdigest()


def recorded() -> dict[str, list[str]]:
    """The digests of DuckDB's answers to the first seeds."""
    found: dict[str, list[str]] = json.loads(ANSWERS.read_text())
    return found


def settled(case: Case) -> Case:
    """The case with only what is left of its tables."""
    tables = {name: Table(t.columns, tuple((1, row) for row in t.rows())) for name, t in case.tables.items()}
    return replace(case, tables=tables)


def smaller(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The case with as few rows as still fail."""
    for name in list(case.tables):
        table = case.tables[name]
        for start in range(len(table.changes) - 1, -1, -1):
            changes = (*table.changes[:start], *table.changes[start + 1 :])
            tried = Table(table.columns, changes)
            try:
                tried.rows()
            except ValueError:
                continue
            candidate = replace(case, tables={**case.tables, name: tried})
            if fails(candidate):
                case, table = candidate, tried
    return case


def keep(case: Case, name: str) -> None:
    CASES.mkdir(exist_ok=True)
    tables = {n: {"columns": t.columns, "changes": t.changes} for n, t in case.tables.items()}
    (CASES / f"{name}.json").write_text(json.dumps({"sql": case.sql, "tables": tables}, indent=1) + "\n")


def kept() -> dict[str, Case]:
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
