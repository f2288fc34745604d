"""Asynchronous table functions: several calls in flight, results in the order of the input rows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from sql_cases import changelog

from millstream.errors import UserError
from millstream.sql.connectors.simple import register_values
from millstream.table import AsyncTableFunction, DataTypes, EnvironmentSettings, FunctionContext, TableEnvironment
from millstream.table.expressions import col
from millstream.table.udf import udtf

pytestmark = pytest.mark.usefixtures("inline_engine")

RUNNING = [0, 0]
LIFECYCLE: list[str] = []
TRIES: dict[int, int] = {}


class Repeated(AsyncTableFunction):
    def open(self, function_context: FunctionContext) -> None:
        LIFECYCLE.append("open")

    def close(self) -> None:
        LIFECYCLE.append("close")

    async def eval(self, n: int, word: str) -> list[tuple[str, int]]:
        RUNNING[0] += 1
        RUNNING[1] = max(RUNNING)
        await asyncio.sleep(0.002 * (5 - n % 5))
        RUNNING[0] -= 1
        return [(word, i) for i in range(n % 3)]


async def counted(n: int, word: str) -> AsyncIterator[tuple[str, int]]:
    for i in range(n % 3):
        await asyncio.sleep(0)
        yield word, i


def plain(n: int, word: str) -> Iterator[tuple[str, int]]:
    yield from ((word, i) for i in range(n % 3))


async def fail_first(n: int, word: str) -> list[tuple[str, int]]:
    TRIES[n] = TRIES.get(n, 0) + 1
    if TRIES[n] < 3:
        raise ConnectionError(n)
    return [(word, n)]


ROW = DataTypes.ROW([DataTypes.FIELD("w", DataTypes.STRING()), DataTypes.FIELD("i", DataTypes.INT())])
JOIN = "SELECT n, w, i FROM t {} LATERAL TABLE({}(n, s)) AS f(w, i){}"


@pytest.fixture
def env() -> TableEnvironment:
    RUNNING[:] = [0, 0]
    LIFECYCLE.clear()
    TRIES.clear()
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    register_values("numbers", [(i, f"s{i}") for i in range(20)])
    env.execute_sql("CREATE TABLE t (n INT, s STRING) WITH ('connector'='values', 'data-id'='numbers')")
    for name, function in (("plain", plain), ("counted", counted), ("repeated", Repeated()), ("wavering", fail_first)):
        env.create_temporary_function(name, udtf(function, result_types=ROW))
    return env


def collect_rows(env: TableEnvironment, sql: str) -> list[Any]:
    return changelog(env, sql)[2]


@pytest.mark.parametrize("name", ["counted", "repeated"])
@pytest.mark.parametrize(("word", "tail"), [(",", ""), ("LEFT JOIN", " ON TRUE")])
def test_an_asynchronous_function_has_the_results_of_a_synchronous_one(
    env: TableEnvironment, name: str, word: str, tail: str
) -> None:
    assert collect_rows(env, JOIN.format(word, name, tail)) == collect_rows(env, JOIN.format(word, "plain", tail))


def test_the_capacity_limits_the_concurrent_calls(env: TableEnvironment) -> None:
    env.get_config().set("table.exec.async-table.max-concurrent-operations", "4")
    table = env.from_path("t").join_lateral(udtf(Repeated(), result_types=ROW)(col("n"), col("s")).alias("w", "i"))
    with table.select(col("n"), col("w"), col("i")).execute().collect() as rows:
        assert len(list(rows)) == sum(i % 3 for i in range(20))
    assert RUNNING == [0, 4]
    assert LIFECYCLE == ["open", "close"]


def test_a_failed_call_is_retried_as_configured(env: TableEnvironment) -> None:
    env.get_config().set("table.exec.async-table.retry-delay", "1 ms")
    assert len(collect_rows(env, JOIN.format(",", "wavering", ""))) == 20
    assert set(TRIES.values()) == {3}
    TRIES.clear()
    env.get_config().set("table.exec.async-table.retry-strategy", "NO_RETRY")
    with pytest.raises(UserError, match="ConnectionError"):
        collect_rows(env, JOIN.format(",", "wavering", ""))
