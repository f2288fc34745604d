"""Rows that are already partitioned by the keys of an operator pass without an exchange, and no other rows."""

from __future__ import annotations

import ast
import datetime
from dataclasses import replace
from typing import Any

import pytest
from simulated_restarts import fail_after
from sql_cases import create_row_formatter, materialize

from millstream.cluster.rescale import rescale_graph
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.data_stream import DataStream
from millstream.datastream.program import Program
from millstream.graph.batch import to_batch
from millstream.graph.stream_graph import StreamGraph, stream_graph
from millstream.graph.transformations import Input
from millstream.job.job_status import JobStatus
from millstream.runtime.operators.reinterpret import ReinterpretSpec
from millstream.runtime.partitioners import ElidedHash, Hash
from millstream.sql.connectors.simple import register_values
from millstream.sql.physical.planning.placement import Placements
from millstream.table import StreamTableEnvironment, Table
from millstream.types.factory import Types
from millstream_chaos.simulation import Setup, World, run

BEGIN = datetime.datetime(2026, 1, 1)  # noqa: DTZ001
ROWS = [
    (i * i % 13 or None, f"k{i % 5}", i * 37 % 50, float(i % 4), BEGIN + datetime.timedelta(seconds=i))
    for i in range(60)
]
COLUMNS = "a INT, k STRING, v BIGINT, d DOUBLE, t TIMESTAMP(3), WATERMARK FOR t AS t - INTERVAL '1' HOUR"
FIRST = "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {} ORDER BY {}) AS r FROM {}) WHERE r = 1"
JOINED = "(SELECT one.a, one.k, one.v, other.a AS b, other.k AS l, other.v AS w FROM one {} JOIN other ON {})"
NEAR = "one.a = other.a AND one.t BETWEEN other.t - INTERVAL '9' SECOND AND other.t"
SUMS = "(SELECT a, k, SUM(v) AS s FROM one GROUP BY a, k)"
OTHERS = SUMS.replace("one", "other")
WINDOWS = (
    "SELECT a, COUNT(s) FROM (SELECT a, SUM(v) AS s FROM TABLE({}) GROUP BY window_start, a, window_end) GROUP BY a"
)
SUM_OVER = "SUM(v) OVER (PARTITION BY k ORDER BY v ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
EXCHANGES = {  # queries, with the number of remaining exchanges
    "first of a join": (FIRST.format("a", "w, v", JOINED.format("", "one.a = other.a")), 2),
    "by the other side": (FIRST.format("b", "w, v", JOINED.format("", "one.a = other.a")), 2),
    "by both": (FIRST.format("b, k", "w, v", JOINED.format("", "one.a = other.a AND one.k = other.k")), 2),
    "of a left join": (FIRST.format("a", "w, v", JOINED.format("LEFT", "one.a = other.a")), 2),
    "of a right join": (FIRST.format("b", "w, v", JOINED.format("RIGHT", "one.a = other.a")), 2),
    "of an interval join": (FIRST.format("a", "w, v", JOINED.format("LEFT", NEAR)), 2),
    "groups of groups": (f"SELECT a, k, COUNT(s) FROM {SUMS} WHERE s > 3 GROUP BY a, k", 1),
    "join of groups": (f"SELECT x.a, x.k, s, v FROM {SUMS} AS x JOIN other ON x.a = other.a AND x.k = other.k", 2),
    "join of both": (f"SELECT x.s, y.s FROM {SUMS} AS x JOIN {OTHERS} AS y ON x.a = y.a AND x.k = y.k", 2),
    "over the first": (f"SELECT k, v, {SUM_OVER} FROM ({FIRST.format('k', 'v', 'one')})", 1),
    "windows": (WINDOWS.format("TUMBLE(TABLE one, DESCRIPTOR(t), INTERVAL '9' SECOND)"), 1),
    "sessions": (WINDOWS.format("SESSION(TABLE one PARTITION BY a, DESCRIPTOR(t), INTERVAL '3' SECOND)"), 1),
}
ALTERED = "SELECT b, COUNT(*) FROM (SELECT {} AS b FROM (SELECT a, SUM(v) FROM one GROUP BY a)) GROUP BY b"
BOTH = "(SELECT a, SUM(v) AS s FROM one GROUP BY a UNION ALL SELECT a, v FROM other)"
SENT = {
    "by NULL of a left join": (FIRST.format("b", "w, v", JOINED.format("LEFT", "one.a = other.a")), 3),
    "by NULL of a full join": (FIRST.format("a", "w, v", JOINED.format("FULL", "one.a = other.a")), 3),
    "by more columns": (FIRST.format("a, k", "w, v", JOINED.format("", "one.a = other.a")), 3),
    "by fewer": (f"SELECT a, COUNT(s) FROM {SUMS} GROUP BY a", 2),
    "in another order": (f"SELECT k, a, COUNT(s) FROM {SUMS} GROUP BY k, a", 2),
    "by what is computed": (ALTERED.format("MOD(a, 3)"), 2),
    "as another type": (ALTERED.format("CAST(a AS BIGINT)"), 2),
    "by what has two zeros": ("SELECT d, COUNT(*) FROM (SELECT d, SUM(v) FROM one GROUP BY d) GROUP BY d", 2),
    "of several tables": (f"SELECT a, COUNT(*) FROM {BOTH} GROUP BY a", 2),
}
EXPECTED = {**EXCHANGES, **SENT}
ITSELF = f"SELECT x.s, y.s FROM {SUMS} AS x JOIN {SUMS} AS y ON x.a = y.a AND x.k = y.k"


def table(env: StreamExecutionEnvironment, sql: str) -> tuple[StreamTableEnvironment, Table]:
    tables = StreamTableEnvironment.create(env)
    for name, rows in (("one", ROWS), ("other", ROWS[::-1][:40])):
        register_values(name, rows)
        tables.execute_sql(
            f"CREATE TEMPORARY TABLE {name} ({COLUMNS}) WITH ('connector' = 'values', 'data-id' = '{name}')"
        )
    return tables, tables.sql_query(sql)


def program(sql: str) -> Any:
    def define(env: StreamExecutionEnvironment) -> DataStream:
        tables, result_table = table(env, sql)
        return tables.to_changelog_stream(result_table).map(
            create_row_formatter(result_table._plan.schema), Types.PICKLED_BYTE_ARRAY()
        )

    return define


def graph_of(sql: str) -> StreamGraph:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(3)
    program(sql)(env)
    return env._graph()


def count_hash_exchanges(graph: StreamGraph) -> int:
    return sum(isinstance(each.partitioner, Hash) for each in graph.edges)


def check_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the job if a row passes without an exchange, but its key group belongs to another subtask."""
    add = Program.add

    def check_input(self: Program, input_stream: Input) -> Input:
        if not isinstance(input_stream.partitioner, ElidedHash):
            return input_stream
        spec, before = ReinterpretSpec(input_stream.partitioner.key), replace(input_stream, side=0, partitioner=None)
        return replace(
            input_stream, upstream=add(self, "Check", spec, self.type_of(input_stream), (before,), follows_input=True)
        )

    def add_checked(self: Program, name: str, spec: Any, kind: Any, inputs: tuple[Input, ...] = (), **more: Any) -> int:
        return add(self, name, spec, kind, tuple(check_input(self, each) for each in inputs), **more)

    monkeypatch.setattr(Program, "add", add_checked)


def run_query(sql: str, *parallelism: int, monkeypatch: pytest.MonkeyPatch | None = None) -> Any:
    """Return the final rows of a query that fails and restarts with another parallelism.

    With `monkeypatch`, the first run has all exchanges."""
    setup = Setup(program(sql), epoch_records=11, checkpoint_every=1)
    with World() as world:
        if monkeypatch is not None:
            with monkeypatch.context() as everywhere:
                everywhere.setattr(Placements, "in_place", lambda *_: False)
                assert run(replace(setup, parallelism=2), world, listen=fail_after(2)).crashed
        for each in parallelism[:-1]:
            assert run(replace(setup, parallelism=each), world, listen=fail_after(2)).crashed
        result = run(replace(setup, parallelism=parallelism[-1]), world)
        assert result.status is JobStatus.FINISHED, result.failure
        return materialize(list(map(ast.literal_eval, world.visible())))


@pytest.mark.parametrize("name", EXPECTED)
def test_there_is_an_exchange_if_rows_are_not_in_place(name: str) -> None:
    sql, exchanges = EXPECTED[name]
    tables, _ = table(StreamExecutionEnvironment.get_execution_environment(), sql)
    assert tables.explain_sql(sql).count("Exchange(distribution=[hash[") == exchanges
    assert count_hash_exchanges(graph_of(sql)) == exchanges


@pytest.mark.parametrize("sql", [*(sql for sql, _ in EXCHANGES.values()), ITSELF], ids=[*EXCHANGES, "join with itself"])
def test_each_row_is_in_the_subtask_to_which_an_exchange_would_send_it(
    sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as everywhere:
        everywhere.setattr(Placements, "in_place", lambda *_: False)
        expected = run_query(sql, 1)
    check_placement(monkeypatch)
    assert run_query(sql, 2, 3) == expected


@pytest.mark.parametrize("name", ["first of a join", "of an interval join", "windows"])
def test_state_is_restored_after_an_exchange_was_removed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sql, _ = EXCHANGES[name]
    assert run_query(sql, 3, monkeypatch=monkeypatch) == run_query(sql, 1)


def test_other_key_groups_need_an_exchange() -> None:
    graph = graph_of(EXCHANGES["first of a join"][0])
    (rank,) = (node for node in graph.nodes if node.name.startswith("Rank"))
    assert count_hash_exchanges(rescale_graph(graph, 2)) == count_hash_exchanges(graph) == 2
    assert count_hash_exchanges(rescale_graph(graph, {str(rank.uid): 2})) == 3
    steps = [replace(each, max_parallelism=64) if each.id == rank.id else each for each in graph.program]
    assert count_hash_exchanges(stream_graph(steps, parallelism=3)) == 3


def test_a_batch_job_has_all_exchanges() -> None:
    graph = graph_of(EXCHANGES["first of a join"][0])
    assert count_hash_exchanges(to_batch(graph)) == count_hash_exchanges(graph) + 1
