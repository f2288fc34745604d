"""TPC-H's queries have the same results in Catalyst and DuckDB."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent))

from tpch_cases import QUERIES, create_tables, golden, have_equal_rows, make_tables

from millstream.table import EnvironmentSettings, TableEnvironment

pytestmark = pytest.mark.spark
RESULTS = golden()


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory, spark_context: Any) -> TableEnvironment:
    folder = tmp_path_factory.mktemp("tpch")
    make_tables(folder)
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    create_tables(environment, folder)
    return environment


@pytest.mark.parametrize("name", QUERIES)
def test_results_are_those_of_duckdb(env: TableEnvironment, name: str) -> None:
    with env.execute_sql(QUERIES[name]).collect() as rows:
        actual = [tuple(row) for row in rows]
    assert have_equal_rows(actual, RESULTS[name]["rows"], RESULTS[name]["types"]), actual[:3]


@pytest.mark.parametrize("name", QUERIES)
def test_whole_queries_are_planned_by_catalyst(env: TableEnvironment, name: str) -> None:
    plan = env.explain_sql(QUERIES[name]).split("== Optimized Execution Plan ==")[1]
    assert [line for line in plan.splitlines() if line] == [plan.strip()]
    assert plan.strip().startswith("Catalyst(")
