"""Operators store rows as columns in memory and by key on disk: state is converted in both directions."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from simulated_restarts import fail_after
from sql_cases import create_row_formatter, materialize

from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.data_stream import DataStream
from millstream.job.job_status import JobStatus
from millstream.sql.connectors.simple import register_values
from millstream.sql.operators.row_runs import KeyColumns
from millstream.table import StreamTableEnvironment
from millstream.types.factory import Types
from millstream_chaos.simulation import Setup, World, run

ROWS = [(f"k{i * i % 7}", None if i % 11 == 0 else i % 5, i * 37 % 50) for i in range(60)]
COLUMNS = "k STRING, n INT, v BIGINT, p AS PROCTIME()"
NUMBERED = "SELECT *, ROW_NUMBER() OVER (PARTITION BY {}) AS r FROM one"
QUERIES = {
    "join": "SELECT one.k, one.v, other.v FROM one JOIN other ON one.k = other.k AND one.n = other.n",
    "join by condition": "SELECT one.v, other.v FROM one JOIN other ON one.n = other.n WHERE one.v < other.v",
    "join of all": "SELECT one.v, other.v FROM one CROSS JOIN other WHERE one.v = other.v",
    "first of several": f"SELECT k, n, v FROM ({NUMBERED.format('k, n ORDER BY v DESC')}) WHERE r <= 2",
    "numbered": f"SELECT k, v, r FROM ({NUMBERED.format('k ORDER BY n, v')}) WHERE r BETWEEN 2 AND 4",
    "first of a number": f"SELECT k, n, v FROM ({NUMBERED.format('n ORDER BY v')}) WHERE r <= 2",
    "groups": "SELECT k, n, COUNT(*), SUM(v), MIN(v), AVG(v) FROM one GROUP BY k, n",
    "groups of a number": "SELECT n, COUNT(*), MAX(k) FROM one GROUP BY n",
    "distinct": "SELECT k, COUNT(DISTINCT v), SUM(v) FROM one GROUP BY k",
    "distinct by filters": """SELECT k, n, COUNT(DISTINCT v), COUNT(DISTINCT v) FILTER (WHERE v > 20), MAX(v),
        COUNT(DISTINCT n), COUNT(DISTINCT n) FILTER (WHERE v > 20),
        COUNT(DISTINCT CAST(v AS STRING)) FILTER (WHERE v < 9) FROM one GROUP BY k, n""",
    "distinct of one": "SELECT n, COUNT(DISTINCT k), COUNT(*) FROM one GROUP BY n",
    "last": f"SELECT k, n, v FROM ({NUMBERED.format('k, n ORDER BY p DESC')}) WHERE r = 1",
}


def program(sql: str) -> Any:
    def define(env: StreamExecutionEnvironment) -> DataStream:
        tables = StreamTableEnvironment.create(env)
        tables.get_config().set("table.exec.mini-batch.enabled", "true")
        for name, rows in (("one", ROWS), ("other", ROWS[::-1][:40])):
            register_values(name, rows)
            tables.execute_sql(
                f"CREATE TEMPORARY TABLE {name} ({COLUMNS}) WITH ('connector' = 'values', 'data-id' = '{name}')"
            )
        table = tables.sql_query(sql)
        return tables.to_changelog_stream(table).map(
            create_row_formatter(table._plan.schema), Types.PICKLED_BYTE_ARRAY()
        )

    return define


def run_query(sql: str, backends: tuple[str, ...]) -> Any:
    """Return the final rows of a query that fails and restarts with each of the state backends."""
    setup = Setup(program(sql), epoch_records=7, checkpoint_every=1)
    with World() as world:
        for parallelism, backend in enumerate(backends[:-1], 1):
            result = run(replace(setup, backend=backend, parallelism=parallelism), world, listen=fail_after(2))
            assert result.crashed
        result = run(replace(setup, backend=backends[-1]), world)
        assert result.status is JobStatus.FINISHED, result.failure
        return materialize(list(map(ast.literal_eval, world.visible())))


@pytest.mark.parametrize("name", QUERIES)
def test_state_is_converted_between_memory_and_disk(name: str) -> None:
    sql = QUERIES[name]
    assert run_query(sql, ("hashmap", "lmdb", "hashmap")) == run_query(sql, ("lmdb",))


@pytest.mark.parametrize("name", ["join", "first of several", "distinct by filters", "last", "groups"])
def test_keys_with_equal_hashes_are_distinguished(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run_query(QUERIES[name], ("lmdb",))
    monkeypatch.setattr(KeyColumns, "hashes", lambda _self, _columns, count: np.zeros(count, dtype=np.int64))
    assert run_query(QUERIES[name], ("hashmap", "hashmap")) == expected
    assert run_query(QUERIES[name], ("hashmap", "lmdb")) == expected  # runs were merged
