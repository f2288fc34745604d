"""Queries with users' functions in Python: the same program for millstream and PyFlink, whose names are the same.

Promises: imports neither; a scalar function is called for each row, a pandas one for each batch, an aggregate for each
row of each key.
Does not know: how rates are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import common, sql_input
from benchmarks.mini_batch_settings import mini_batches

KEYS = 1_000
_SINKS = {
    "scalar": "i BIGINT, v BIGINT",
    "pandas": "i BIGINT, v BIGINT",
    "aggregate": "k BIGINT, v BIGINT",
}
_QUERIES = {
    "scalar": "SELECT i, f(amount, k) AS v FROM payments",
    "pandas": "SELECT i, f(amount, k) AS v FROM payments",
    "aggregate": "SELECT k, f(amount) AS v FROM payments GROUP BY k",
}


def mixed(amount: Any, key: Any) -> Any:
    """A little arithmetic, on numbers or on Series."""
    return amount * 3 + key % 7


def functions(table: Any, udf_module: Any) -> dict[str, Any]:
    """The functions of an engine, from its modules `table` and `table.udf`."""
    types = table.DataTypes

    class Total(udf_module.AggregateFunction):  # type: ignore[misc]
        """The sum of amounts."""

        def create_accumulator(self) -> list[int]:
            return [0]

        def accumulate(self, accumulator: list[int], amount: int) -> None:
            accumulator[0] += amount

        def get_value(self, accumulator: list[int]) -> int:
            return accumulator[0]

        def get_accumulator_type(self) -> Any:
            return types.ARRAY(types.BIGINT())

        def get_result_type(self) -> Any:
            return types.BIGINT()

    return {
        "scalar": udf_module.udf(mixed, result_type=types.BIGINT()),
        "pandas": udf_module.udf(mixed, result_type=types.BIGINT(), func_type="pandas"),
        "aggregate": udf_module.udaf(Total(), result_type=types.BIGINT(), accumulator_type=types.ARRAY(types.BIGINT())),
    }


def check(env: Any, kind: str, function: Any) -> dict[str, int]:
    """The digest of a small run in a session that has the payments."""
    env.create_temporary_function("f", function)
    last: dict[int, int] = {}
    with env.execute_sql(_QUERIES[kind]).collect() as rows:
        for row in rows:
            if row.get_row_kind().value in (0, 2):
                last[row[0]] = max(row[1], last.get(row[0], 0))
    return common.digest(last.items())


def run(env: Any, kind: str, function: Any) -> None:
    """One measured run in a session that has the payments."""
    env.create_temporary_function("f", function)
    env.execute_sql(f"CREATE TABLE nowhere ({_SINKS[kind]}) WITH ('connector' = 'blackhole')")
    env.execute_sql(f"INSERT INTO nowhere {_QUERIES[kind]}").wait()


def measure(
    table: Any, udf_module: Any, offer: Callable[[int, str, dict[str, str]], Any], args: Any, settings: dict[str, str]
) -> None:
    """The whole program of a contestant; `offer(records, key, settings)` makes a session that has the payments."""
    function = functions(table, udf_module)[args.kind]
    wanted = {**mini_batches(args.mini_batch), **settings}
    small = (common.CHECK_RECORDS, sql_input.key_sql(sql_input.CHECK_KEYS), wanted)
    common.contest(
        args,
        lambda: check(offer(*small), args.kind, function),
        lambda: common.rate_of(lambda count: run(offer(count, str(KEYS), wanted), args.kind, function), args),
    )
