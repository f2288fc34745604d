"""The final result of a query on a changelog equals its result on the rows that remain of the changelog."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sql_cases import changelog, materialize

from millstream.sql.connectors.simple import register_values
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.types.row import Row, RowKind

QUERIES = [
    "SELECT k, COUNT(*), SUM(v), MIN(v), MAX(v), COUNT(DISTINCT v) FROM a GROUP BY k",
    "SELECT c, COUNT(*) FROM (SELECT k, COUNT(*) AS c FROM a GROUP BY k) GROUP BY c",
    "SELECT a.k, a.v, b.v FROM a JOIN b ON a.k = b.k",
    "SELECT a.k, a.v, b.v FROM a LEFT JOIN b ON a.k = b.k",
    "SELECT a.k, a.v, b.v FROM a FULL JOIN b ON a.k = b.k AND a.v < b.v",
    "SELECT * FROM a WHERE k IN (SELECT k FROM b)",
    "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM a) WHERE n <= 2",
    "SELECT k, v, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS n FROM a) WHERE n BETWEEN 2 AND 3",
    "SELECT * FROM a INTERSECT ALL SELECT * FROM b",
    "SELECT * FROM a EXCEPT SELECT * FROM b",
    "SELECT DISTINCT k FROM a",
    "SELECT k, v + (SELECT MAX(v) FROM b) FROM a",
]
ALL = "'changelog-mode' = 'all'"
CELLS = st.tuples(st.sampled_from(["x", "y", None]), st.integers(0, 3))


@st.composite
def changes(draw: Any) -> list[tuple[RowKind, tuple[Any, Any]]]:
    """Draw a changelog that adds rows and retracts some of them."""
    changelog_rows: list[tuple[RowKind, tuple[Any, Any]]] = []
    existing: list[tuple[Any, Any]] = []
    for _ in range(draw(st.integers(0, 8))):
        if existing and draw(st.booleans()):
            changelog_rows.append((RowKind.DELETE, existing.pop(draw(st.integers(0, len(existing) - 1)))))
        else:
            existing.append(draw(CELLS))
            changelog_rows.append((RowKind.INSERT, existing[-1]))
    return changelog_rows


def final(sql: str, tables: dict[str, list[tuple[RowKind, tuple[Any, Any]]]]) -> Counter[tuple[str, ...]]:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "2")
    for name, rows in tables.items():
        register_values(name, [Row.of_kind(row_kind, *cells) for row_kind, cells in rows])
        env.execute_sql(f"CREATE TABLE {name} (k STRING, v INT) WITH ('connector'='values', 'data-id'='{name}', {ALL})")
    return materialize(changelog(env, sql)[2])


def remove_retracted(rows: list[tuple[RowKind, tuple[Any, Any]]]) -> list[tuple[RowKind, tuple[Any, Any]]]:
    counts: Counter[tuple[Any, Any]] = Counter()
    for row_kind, cells in rows:
        counts[cells] += 1 if row_kind is RowKind.INSERT else -1
    return [(RowKind.INSERT, cells) for cells in counts.elements()]


@pytest.mark.parametrize("sql", QUERIES)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(a=changes(), b=changes())
def test_retracted_rows_do_not_change_the_result(sql: str, a: Any, b: Any, inline_engine: None) -> None:
    assert final(sql, {"a": a, "b": b}) == final(sql, {"a": remove_retracted(a), "b": remove_retracted(b)})
