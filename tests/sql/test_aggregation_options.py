"""Options of state TTL and of aggregation: what they change, and the results that they must not change."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

import pytest
from sql_cases import GOLDEN, changelog, content, environment, materialize
from test_restart import program

from millstream.client import local
from millstream.cluster.settings import job_settings
from millstream.errors import UserError
from millstream.job.job_status import JobStatus
from millstream.runtime.memory import OperatorMemory
from millstream.sql.operators.expiry import Expiry
from millstream.state.backend import OperatorState
from millstream.state.key_groups import KeyGrouper, KeyGroupRange
from millstream_chaos.simulation import EPOCH_MILLIS, Setup, World, run

SPLIT = {"table.optimizer.distinct-agg.split.enabled": "true", "table.optimizer.distinct-agg.split.bucket-num": "3"}
MINI_BATCH = {"table.exec.mini-batch.enabled": "true"}
TTL = {"table.exec.state.ttl": f"{3 * EPOCH_MILLIS} ms"}
ROWS = [["a", 1], ["a", 2], ["b", 3], ["b", 4], ["b", 5], ["a", 6], ["b", 7]]  # one in each epoch
TABLE = {"t": {"columns": {"k": "STRING", "v": "INT"}, "rows": ROWS}}
EXPIRED_CHANGES = {  # changes of the last `a`, which comes four epochs after the one before it, and of the last `b`
    "SELECT k, COUNT(*) AS c FROM t GROUP BY k": [["+I", "a", "1"], ["-U", "b", "3"], ["+U", "b", "4"]],
    "SELECT /*+ STATE_TTL('t' = '1 d') */ k, COUNT(*) AS c FROM t GROUP BY k": [
        ["-U", "a", "2"],
        ["+U", "a", "3"],
        ["-U", "b", "3"],
        ["+U", "b", "4"],
    ],
    "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM t) WHERE n = 1": [
        ["+I", "a", "6"],
        ["-U", "b", "5"],
        ["+U", "b", "7"],
    ],
    "SELECT DISTINCT k FROM t": [["+I", "a"]],
    "SELECT l.v, r.v FROM t l JOIN t r ON l.k = r.k WHERE l.v < r.v": [["+I", "5", "7"]],
    "SELECT /*+ STATE_TTL('l' = '1 d', 'r' = '1 d') */ l.v, r.v FROM t l JOIN t r ON l.k = r.k WHERE l.v < r.v": [
        *([["+I", v, "6"] for v in ("1", "2")]),
        *([["+I", v, "7"] for v in ("3", "4", "5")]),
    ],
}


def changes(sql: str, options: dict[str, str], rows: int) -> list[list[str]]:
    table = {"t": {**TABLE["t"], "rows": ROWS[:rows]}}
    setup = Setup(program({"tables": table}, sql, options), epoch_records=1, checkpoint_every=2)
    with World() as world:
        life = run(setup, world)
        assert life.status is JobStatus.FINISHED, life.failure
        return list(map(ast.literal_eval, world.visible()))


@pytest.mark.parametrize("sql", EXPIRED_CHANGES)
def test_expired_state_is_not_used(sql: str) -> None:
    actual, before = changes(sql, TTL, 7), changes(sql, TTL, 5)
    for each in before:
        actual.remove(each)
    assert sorted(actual) == sorted(EXPIRED_CHANGES[sql])


def test_expired_state_is_deleted() -> None:
    context: Any = SimpleNamespace(
        state=OperatorState(KeyGroupRange(0, 127), 0, 1, KeyGrouper(128)), memory=OperatorMemory(), now=1000
    )
    expiry = Expiry(context, "x", 80)
    for moment, key in ((1000, "a"), (1030, "b"), (1060, "a"), (1061, "a")):
        context.now = moment
        expiry.touch(key)
    context.now = 1109
    assert expiry.is_alive("b")
    assert list(expiry.take_expired()) == []
    context.now = 1120
    assert not expiry.is_alive("b")
    assert list(expiry.take_expired()) == ["b"]
    assert expiry.is_alive("a")
    context.memory = OperatorMemory()  # as after a change of parallelism
    context.now = 1160
    assert list(expiry.take_expired()) == ["a"]
    assert list(expiry.take_expired()) == []
    assert [each for table in context.state.tables.values() for each in table.namespaces()] == []


DISTINCT = [
    pytest.param(path.stem, query, id=f"{path.stem}-{query['name']}")
    for path in sorted(GOLDEN.glob("*.yaml"))
    for query in content(path.stem).get("queries", [])
    if "changelog" in query and "(DISTINCT" in query["sql"].upper()
]


@pytest.mark.parametrize(("topic", "query"), DISTINCT)
def test_a_split_distinct_aggregate_has_the_same_final_table(
    topic: str, query: dict[str, Any], inline_engine: None
) -> None:
    for more in ({}, MINI_BATCH):
        options = {**SPLIT, **more, "parallelism.default": "2"}
        _, _, rows = changelog(environment(content(topic), options), query["sql"])
        assert materialize(rows) == materialize(query["changelog"])


def test_plans_show_the_phases_of_aggregates(inline_engine: None) -> None:
    sql = "SELECT k, COUNT(DISTINCT v), MAX(v) FROM t GROUP BY k"
    plain = "SELECT k, COUNT(v), MAX(v) FROM t GROUP BY k"
    assert environment({"tables": TABLE}).explain_sql(sql).count("GroupAggregate(") == 1
    assert environment({"tables": TABLE}, SPLIT).explain_sql(sql).count("GroupAggregate(") == 2
    assert "LocalGroupAggregate(" in environment({"tables": TABLE}, MINI_BATCH).explain_sql(plain)
    one_phase = {**MINI_BATCH, "table.optimizer.agg-phase-strategy": "ONE_PHASE"}
    assert "LocalGroupAggregate(" not in environment({"tables": TABLE}, one_phase).explain_sql(plain)


@pytest.mark.parametrize("size", ["1", "2", "100"])
def test_the_size_of_a_mini_batch_does_not_change_the_final_table(size: str, inline_engine: None) -> None:
    sql = "SELECT k, COUNT(*), LISTAGG(CAST(v AS STRING)) FROM t GROUP BY k"
    options = {**MINI_BATCH, "table.exec.mini-batch.size": size}
    _, _, rows = changelog(environment({"tables": TABLE}, options), sql)
    assert materialize(rows) == {("a", "3", "1,2,6"): 1, ("b", "4", "3,4,5,7"): 1}


LAST = "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM t) WHERE n = 1"
IN_MINI_BATCHES = {
    "on columns": ("SELECT k, COUNT(*) AS c FROM t GROUP BY k", "hashmap"),
    "on columns, distinct": ("SELECT k, COUNT(DISTINCT v) AS c FROM t GROUP BY k", "hashmap"),
    "row by row": ("SELECT k, LISTAGG(CAST(v AS STRING)) AS c FROM t GROUP BY k", "hashmap"),
    "ranks on columns": (LAST, "hashmap"),
    "ranks on disk": (LAST, "rocksdb"),
}


@pytest.mark.parametrize(("sql", "backend"), IN_MINI_BATCHES.values(), ids=IN_MINI_BATCHES)
def test_a_mini_batch_ends_after_its_number_of_rows(sql: str, backend: str, inline_engine: None) -> None:
    def emitted(options: dict[str, str]) -> int:
        _, _, rows = changelog(environment({"tables": TABLE}, {"state.backend.type": backend, **options}), sql)
        return len(rows)

    each_row = emitted({})
    assert emitted(MINI_BATCH) == 2  # one mini-batch, and a change for each key
    assert emitted({**MINI_BATCH, "table.exec.mini-batch.size": "1"}) == each_row == 12
    assert 2 < emitted({**MINI_BATCH, "table.exec.mini-batch.size": "3"}) < each_row


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 1000),
        ({"table.exec.mini-batch.allow-latency": "200 ms"}, 200),
        ({"table.exec.mini-batch.allow-latency": "5 s"}, 1000),
        ({"table.exec.mini-batch.allow-latency": "200 ms", "millstream.epoch.target-duration": "700 ms"}, 700),
        ({"table.exec.mini-batch.allow-latency": "200 ms", "table.exec.mini-batch.enabled": "false"}, 1000),
    ],
)
def test_an_epoch_is_no_longer_than_the_latency_of_mini_batches(
    options: dict[str, str], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = environment({"tables": TABLE}, {**MINI_BATCH, **options})
    env.execute_sql("CREATE TABLE gone (c BIGINT) WITH ('connector'='blackhole')")
    before = env.get_config().to_map()
    epoch_targets: list[int] = []
    monkeypatch.setattr(
        local,
        "_intercept",
        [lambda _g, configuration, _n: epoch_targets.append(job_settings(configuration).epoch_target)],
    )
    for sql in ("SELECT COUNT(*) FROM t", "INSERT INTO gone SELECT COUNT(*) FROM t"):
        with pytest.raises(local.PlanOnly):
            env.execute_sql(sql)
    assert epoch_targets == [expected] * 2
    assert env.get_config().to_map() == before


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("table.optimizer.agg-phase-strategy", "THREE_PHASE"),
        ("table.optimizer.distinct-agg.split.bucket-num", "0"),
        ("table.optimizer.distinct-agg.split.enabled", "perhaps"),
        ("table.exec.state.ttl", "a while"),
    ],
)
def test_an_invalid_value_is_refused(key: str, value: str, inline_engine: None) -> None:
    with pytest.raises(UserError, match=value):
        environment({"tables": TABLE}, {key: value}).explain_sql("SELECT k FROM t")


@pytest.mark.parametrize(
    "more", ["", ", COUNT(DISTINCT v), COUNT(DISTINCT v) FILTER (WHERE v > 50), COUNT(DISTINCT w)"]
)
@pytest.mark.parametrize("keys", [3, 5000])
def test_rows_with_distinct_keys_pass_without_local_aggregation(keys: int, more: str, inline_engine: None) -> None:
    rows = [[str(i % keys), None if i % 7 == 0 else i % 100, f"w{i % 13}"] for i in range(9000)]
    case = {"tables": {"t": {"columns": {"k": "STRING", "v": "INT", "w": "STRING"}, "rows": rows}}}
    sql = f"""SELECT k, COUNT(*), COUNT(v), SUM(v), AVG(v), MIN(v), MAX(v), COUNT(*) FILTER (WHERE v > 50),
        SUM(v) FILTER (WHERE v > 50){more} FROM t GROUP BY k"""
    options = {"millstream.epoch.max-records": "4500", "parallelism.default": "2"}
    one_phase = {**options, "table.optimizer.agg-phase-strategy": "ONE_PHASE"}
    _, _, actual = changelog(environment(case, {**MINI_BATCH, **options}), sql)
    _, _, expected = changelog(environment(case, one_phase), sql)
    assert materialize(actual) == materialize(expected)
