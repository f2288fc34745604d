"""Scalar subqueries whose result differs from that of a join."""

from collections import Counter
from typing import Any

import pytest

from millstream.errors import MillstreamError
from millstream.sql.connectors.simple import register_values
from millstream.table import EnvironmentSettings, TableEnvironment


@pytest.fixture
def env(inline_engine: None) -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    register_values("a", [(1, 10), (2, 20), (3, 30), (3, 5)])
    register_values("b", [(1, 1), (1, 2), (2, 7)])
    for name in ("a", "b"):
        environment.execute_sql(
            f"CREATE TABLE {name} (k INT, v INT) WITH ('connector' = 'values', 'data-id' = '{name}')"
        )
    return environment


def final(env: TableEnvironment, sql: str) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    with env.execute_sql(sql).collect() as rows:
        for row in rows:
            counts[tuple(row)] += 1 if str(row.get_row_kind()) in ("+I", "+U") else -1
    return Counter({row: count for row, count in counts.items() if count})


def test_a_group_is_compared_with_an_uncorrelated_query(env: TableEnvironment) -> None:
    sql = "SELECT k, SUM(v) FROM a GROUP BY k HAVING SUM(v) > (SELECT AVG(v) FROM a)"
    assert final(env, sql) == Counter({(2, 20): 1, (3, 35): 1})


def test_a_group_is_compared_with_a_query_correlated_by_its_key(env: TableEnvironment) -> None:
    sql = "SELECT k, (SELECT MAX(v) FROM b WHERE b.k = a.k), COUNT(*) FROM a GROUP BY k"
    assert final(env, sql) == Counter({(1, 2, 1): 1, (2, 7, 1): 1, (3, None, 2): 1})


def test_an_aggregate_over_no_rows_has_its_default_value(env: TableEnvironment) -> None:
    tied = "FROM b WHERE b.k = a.k"
    sql = f"SELECT k, (SELECT COUNT(*) + 1 {tied}), (SELECT COALESCE(MAX(v), -1) {tied}) FROM a"
    assert final(env, sql) == Counter({(1, 3, 2): 1, (2, 2, 7): 1, (3, 1, -1): 2})


def test_a_scalar_subquery_with_two_rows_is_an_error(env: TableEnvironment) -> None:
    with pytest.raises(MillstreamError, match="more than one row"):
        final(env, "SELECT k, (SELECT v FROM b WHERE b.k = a.k) FROM a")


def test_an_equality_of_all_branches_of_an_or_is_a_join_key(env: TableEnvironment) -> None:
    sql = "SELECT a.v, b.v FROM a, b WHERE (a.k = b.k AND b.v > 5) OR (a.k = b.k AND b.v < 2)"
    assert "where=[k = k]" in env.explain_sql(sql)
    assert final(env, sql) == Counter({(10, 1): 1, (20, 7): 1})
