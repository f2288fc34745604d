"""User-defined functions: open and close, concurrent calls, and all kinds of aggregation with them."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from remaining_rows import rows

from millstream.datastream import StreamExecutionEnvironment
from millstream.errors import UserError
from millstream.table import (
    AggregateFunction,
    DataTypes,
    ListView,
    MapView,
    ScalarFunction,
    Schema,
    StreamTableEnvironment,
    TableAggregateFunction,
    TableEnvironment,
    TableFunction,
)
from millstream.table.expressions import array, call, col, lit, row
from millstream.table.udf import AsyncScalarFunction, FunctionContext, udaf, udf, udtaf, udtf
from millstream.table.window import Session, Slide, Tumble
from millstream.types.factory import Types
from millstream.types.row import Row

LIFECYCLE: list[tuple[str, str]] = []
CALLS_IN_FLIGHT = [0, 0]  # calls in flight, and their maximum so far
TRIES: dict[int, int] = {}
ORDERS = [(1, "a", 10), (2, "b", 20), (3, "a", 30), (4, "a", 5), (5, "b", 20)]


class Recorded:
    """Records when it is opened and closed."""

    def open(self, function_context: FunctionContext) -> None:
        self.opened = function_context.get_job_parameter("word", "none")
        self.seen = function_context.get_metric_group().counter("seen")
        LIFECYCLE.append((type(self).__name__, "open"))

    def close(self) -> None:
        LIFECYCLE.append((type(self).__name__, "close"))


class Shout(Recorded, ScalarFunction):
    def eval(self, text: str) -> str:
        self.seen.inc()
        return f"{text} {self.opened}"


class Twice(Recorded, TableFunction):
    def eval(self, text: str) -> Iterator[str]:
        assert self.opened
        yield text
        yield text + text


class Total(Recorded, AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return [0]

    def accumulate(self, accumulator: list[int], value: int) -> None:
        assert self.opened
        accumulator[0] += value

    def retract(self, accumulator: list[int], value: int) -> None:
        accumulator[0] -= value

    def get_value(self, accumulator: list[int]) -> int:
        return accumulator[0]

    def get_result_type(self) -> Any:
        return DataTypes.BIGINT()


class Top2(Recorded, TableAggregateFunction):
    """The two greatest values with their ranks; all values are in the accumulator."""

    def create_accumulator(self) -> list[int]:
        return []

    def accumulate(self, accumulator: list[int], value: int) -> None:
        assert self.opened
        accumulator.append(value)

    def retract(self, accumulator: list[int], value: int) -> None:
        accumulator.remove(value)

    def emit_value(self, accumulator: list[int]) -> Iterator[Row]:
        for rank, value in enumerate(sorted(accumulator, reverse=True)[:2], 1):
            yield Row(value, rank)

    def get_result_type(self) -> Any:
        return DataTypes.ROW([DataTypes.FIELD("v", DataTypes.BIGINT()), DataTypes.FIELD("place", DataTypes.INT())])


class Spread(AggregateFunction):
    """The least and the greatest value, as a row."""

    def create_accumulator(self) -> Row:
        return Row(None, None)

    def accumulate(self, accumulator: Row, value: int) -> None:
        accumulator[0] = value if accumulator[0] is None else min(accumulator[0], value)
        accumulator[1] = value if accumulator[1] is None else max(accumulator[1], value)

    def get_value(self, accumulator: Row) -> Row:
        return Row(accumulator[0], accumulator[1])

    def get_result_type(self) -> Any:
        return DataTypes.ROW([DataTypes.FIELD("low", DataTypes.BIGINT()), DataTypes.FIELD("high", DataTypes.BIGINT())])


class Words(AggregateFunction):
    """Views in an accumulator: the count of each word, and the words in their order."""

    def create_accumulator(self) -> Row:
        return Row(MapView(), ListView())

    def accumulate(self, accumulator: Row, word: str) -> None:
        accumulator[0][word] = (accumulator[0].get(word) or 0) + 1
        accumulator[1].add(word)

    def get_value(self, accumulator: Row) -> str:
        counts = ",".join(f"{word}{count}" for word, count in sorted(accumulator[0].items()))
        return f"{counts} {''.join(accumulator[1])}"

    def get_result_type(self) -> Any:
        return DataTypes.STRING()


class Slow(AsyncScalarFunction):
    async def eval(self, value: int) -> int:
        CALLS_IN_FLIGHT[0] += 1
        CALLS_IN_FLIGHT[1] = max(CALLS_IN_FLIGHT)
        await asyncio.sleep(0.002 * (5 - value % 5))
        CALLS_IN_FLIGHT[0] -= 1
        return value * 10


async def fail_first(value: int) -> int:
    TRIES[value] = TRIES.get(value, 0) + 1
    if TRIES[value] < 3:
        raise ConnectionError(value)
    return value


async def never_return(_value: int) -> int:
    await asyncio.sleep(60)
    return 0


@pytest.fixture
def t_env(t_env: TableEnvironment) -> TableEnvironment:
    LIFECYCLE.clear()
    TRIES.clear()
    CALLS_IN_FLIGHT[:] = [0, 0]
    t_env.get_config().set("pipeline.global-job-parameters", "word:up")
    return t_env


# --------------------------------------------------------------------------------------------------------- lifecycle


def test_a_scalar_function_is_opened_once_and_closed_once(orders: Any) -> None:
    shout = udf(Shout(), result_type="STRING")
    assert rows(orders.filter(shout(col("k")) != "z").select(shout(col("k")), shout(lit("x"))))[0] == ("a up", "x up")
    assert LIFECYCLE == [("Shout", "open"), ("Shout", "close")]


@pytest.mark.parametrize("function_type", [Twice, Total, Top2])
def test_functions_of_every_kind_are_opened_and_closed(orders: Any, function_type: type) -> None:
    if function_type is Twice:
        result = orders.join_lateral(udtf(Twice(), result_types=["STRING"])(col("k")).alias("w")).select(col("w"))
    elif function_type is Total:
        result = orders.group_by(col("k")).select(udaf(Total())(col("v")))
    else:
        result = orders.group_by(col("k")).flat_aggregate(udtaf(Top2())(col("v"))).select(col("k"), col("v"))
    assert rows(result)
    assert [word for name, word in LIFECYCLE if name == function_type.__name__] == ["open", "close"]


def test_functions_of_a_pattern_are_opened_and_closed(t_env: TableEnvironment) -> None:
    t_env.create_temporary_function("shout", udf(Shout(), result_type="STRING"))
    t_env.create_temporary_view("letters", t_env.from_elements([("a",), ("b",), ("b",)], ["k"]))
    sql = """SELECT * FROM (SELECT k, PROCTIME() AS p FROM letters) MATCH_RECOGNIZE (
        ORDER BY p MEASURES SHOUT(B.k) AS said PATTERN (A B) DEFINE A AS SHOUT(A.k) = 'a up')"""
    assert rows(t_env.sql_query(sql)) == [("b up",)]
    assert LIFECYCLE == [("Shout", "open"), ("Shout", "close")]


def test_a_function_that_cannot_be_opened_is_named(orders: Any) -> None:
    class Locked(ScalarFunction):
        def open(self, function_context: FunctionContext) -> None:
            raise PermissionError("locked")

        def eval(self, value: int) -> int:
            return value

    with pytest.raises(UserError, match="locked"):
        rows(orders.select(udf(Locked(), result_type="BIGINT")(col("v"))))


def test_an_error_of_an_aggregate_function_has_the_row(orders: Any) -> None:
    class Picky(Total):
        def accumulate(self, accumulator: list[int], value: int) -> None:
            raise ValueError(value)

    with pytest.raises(UserError, match=r"record \(10,\)"):
        rows(orders.select(udaf(Picky())(col("v"))))


# ----------------------------------------------------------------------------------------------------- asynchronous


def test_asynchronous_calls_are_concurrent_and_results_keep_their_order(t_env: TableEnvironment) -> None:
    t_env.get_config().set("table.exec.async-scalar.max-concurrent-operations", "4")
    numbers = t_env.from_elements([(i,) for i in range(20)], ["n"])
    with numbers.select(udf(Slow(), result_type="BIGINT")(col("n"))).execute().collect() as results:
        assert [row[0] for row in results] == [i * 10 for i in range(20)]
    assert CALLS_IN_FLIGHT == [0, 4]


def test_a_failed_asynchronous_call_is_retried(t_env: TableEnvironment, orders: Any) -> None:
    t_env.get_config().set("table.exec.async-scalar.retry-delay", "1 ms")
    retried = udf(fail_first, result_type="BIGINT")
    assert rows(orders.select(retried(col("id")))) == [(1,), (2,), (3,), (4,), (5,)]
    assert set(TRIES.values()) == {3}


def test_a_failed_asynchronous_call_is_not_retried_without_a_strategy(t_env: TableEnvironment, orders: Any) -> None:
    t_env.get_config().set("table.exec.async-scalar.retry-strategy", "NO_RETRY")
    with pytest.raises(UserError, match="ConnectionError"):
        rows(orders.select(udf(fail_first, result_type="BIGINT")(col("id"))))


def test_an_asynchronous_call_has_a_deadline(t_env: TableEnvironment, orders: Any) -> None:
    t_env.get_config().set("table.exec.async-scalar.timeout", "20 ms")
    with pytest.raises(UserError, match="stuck"):
        rows(orders.select(udf(never_return, result_type="BIGINT", name="stuck")(col("id"))))


@pytest.mark.parametrize(
    ("key", "value"), [("max-concurrent-operations", "none"), ("retry-strategy", "FOREVER"), ("timeout", "soon")]
)
def test_a_wrong_option_is_refused_before_anything_runs(t_env: TableEnvironment, key: str, value: str) -> None:
    t_env.get_config().get_configuration().set_string(f"table.exec.async-scalar.{key}", value)
    with pytest.raises(UserError, match=value):
        t_env.execute_sql("SELECT 1")


# ------------------------------------------------------------------------------------------------------- vectorized


def test_arrow_and_pandas_functions_are_called_with_columns(orders: Any) -> None:
    @udf(result_type="BIGINT", func_type="arrow")
    def add(left: pa.Array, right: pa.Array) -> pa.Array:
        return pc.add(left, right)

    @udf(result_type="BIGINT", func_type="pandas")
    def subtract(left: pd.Series, right: pd.Series) -> pd.Series:
        assert isinstance(left, pd.Series)
        return left - right

    assert rows(orders.select(add(col("id"), col("v")), subtract(col("v"), col("id")))) == sorted(
        [(i + v, v - i) for i, _, v in ORDERS], key=repr
    )


@pytest.mark.parametrize("value", [5, pa.array([1])])
def test_a_vectorized_function_must_return_a_column_of_the_same_length(orders: Any, value: Any) -> None:
    invalid = udf(lambda _column: value, result_type="BIGINT", func_type="arrow", name="wrong")
    with pytest.raises(UserError, match="wrong"):
        rows(orders.select(invalid(col("v"))))


def test_vectorized_aggregates_in_groups_and_windows(t_env: TableEnvironment, orders: Any) -> None:
    @udaf(result_type="DOUBLE", func_type="pandas")
    def middle(values: pd.Series) -> float:
        return float(values.median())

    @udaf(result_type="BIGINT", func_type="arrow")
    def most(values: pa.Array) -> pa.Scalar:
        return pc.max(values)

    result = orders.group_by(col("k")).select(col("k"), middle(col("v")), most(col("v")))
    assert rows(result) == [("a", 10.0, 30), ("b", 20.0, 20)]
    t_env.create_temporary_function("middle", middle)
    t_env.create_temporary_view("orders", orders)
    sql = "SELECT MIDDLE(c) FROM (SELECT k, COUNT(*) AS c FROM orders GROUP BY k)"
    assert rows(t_env.sql_query(sql)) == [(2.5,)]


# ------------------------------------------------------------------------------------------------------- aggregates


def test_aggregate_functions_get_external_values(orders: Any) -> None:
    class Joined(AggregateFunction):
        def create_accumulator(self) -> list[Any]:
            return []

        def accumulate(self, accumulator: list[Any], value: Row, words: list[str]) -> None:
            accumulator.append((value.k, *words))

        def get_value(self, accumulator: list[Any]) -> dict[str, list[str]]:
            return {"rows": ["".join(text) for text in accumulator]}

    joined = udaf(Joined(), result_type="MAP<STRING, ARRAY<STRING>>")
    function_type = DataTypes.ROW([DataTypes.FIELD("k", DataTypes.STRING())])
    first = orders.filter(col("id") <= 2).select(row(col("k")).cast(function_type).alias("r"), col("k"))
    result = first.select(joined(col("r"), array(col("k"), "!")))
    assert rows(result) == [({"rows": ["aa!", "bb!"]},)]


def test_views_in_accumulators_survive_epochs(t_env: TableEnvironment, orders: Any) -> None:
    t_env.get_config().set("millstream.epoch.max-records", "1")
    t_env.get_config().set("state.backend.type", "rocksdb")
    assert rows(orders.select(udaf(Words())(col("k")))) == [("a3,b2 abaab",)]


def test_a_row_of_an_aggregate_function_is_several_columns(orders: Any) -> None:
    spread = udaf(Spread())
    result = orders.group_by(col("k").alias("key")).aggregate(spread(col("v")).alias("x", "y"))
    assert rows(result.select(col("key"), col("y") - col("x"))) == [("a", 25), ("b", 0)]
    assert rows(orders.aggregate(spread(col("v"))).select(col("low"), col("high"))) == [(5, 30)]
    with pytest.raises(UserError, match="has 2 results"):
        orders.aggregate(spread(col("v")).alias("x")).select(col("x"))


def test_a_table_aggregate_returns_several_rows_for_each_group(t_env: TableEnvironment, orders: Any) -> None:
    top = udtaf(Top2())
    result = (
        orders.group_by(col("k"))
        .flat_aggregate(top(col("v")).alias("value", "n"))
        .select(col("n"), col("value"), col("k"))
    )
    assert result.get_schema().get_field_names() == ["n", "value", "k"]
    expected = [(1, 20, "b"), (1, 30, "a"), (2, 10, "a"), (2, 20, "b")]
    assert rows(result) == expected
    t_env.get_config().set("table.exec.mini-batch.enabled", "true")
    assert rows(result) == expected
    assert rows(orders.flat_aggregate(top(col("v"))).select(col("v"), col("place"))) == [(20, 2), (30, 1)]
    t_env.create_temporary_function("top2", top)
    assert rows(orders.flat_aggregate(call("top2", col("v"))).select(col("v")))[0] == (20,)
    t_env.create_temporary_view("orders", orders)
    with pytest.raises(UserError, match="flat_aggregate"):
        t_env.sql_query("SELECT top2(v) FROM orders")


def test_a_table_aggregate_retracts_rows(orders: Any) -> None:
    counts = orders.group_by(col("k")).select(col("k"), col("v").count.alias("c"))
    assert rows(counts.flat_aggregate(udtaf(Top2())(col("c"))).select(col("v"))) == [(2,), (3,)]


def test_the_wrong_kind_of_function_is_refused(orders: Any) -> None:
    with pytest.raises(UserError, match="aggregate"):
        orders.flat_aggregate(udaf(Total())(col("v"))).select(col("v"))
    with pytest.raises(UserError, match="table aggregate"):
        orders.aggregate(udtaf(Top2())(col("v"))).select(col("v"))
    with pytest.raises(UserError, match="TableAggregateFunction"):
        udtaf(Total())
    with pytest.raises(UserError, match="scalar"):
        orders.aggregate(udf(lambda v: v, result_type="BIGINT", name="f")(col("v"))).select(col("v"))


@pytest.mark.parametrize("window", ["tumble", "slide", "session"])
def test_windows_are_aggregated_by_user_defined_functions(inline_engine: None, window: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    t_env = StreamTableEnvironment.create(env)
    start = datetime.datetime(2024, 1, 1)  # noqa: DTZ001
    events = [Row(start + datetime.timedelta(seconds=s), k, s) for s, k in ((1, "a"), (4, "a"), (11, "b"), (12, "a"))]
    function_type = Types.ROW_NAMED(["ts", "k", "n"], [Types.SQL_TIMESTAMP(), Types.STRING(), Types.INT()])
    schema = Schema.new_builder().column("ts", "TIMESTAMP(3)").column("k", "STRING").column("n", "INT")
    schema = schema.watermark("ts", "ts - INTERVAL '1' SECOND")
    table = t_env.from_data_stream(env.from_collection(events, function_type), schema.build())
    on = {
        "tumble": Tumble.over(lit(10).seconds),
        "slide": Slide.over(lit(10).seconds).every(lit(10).seconds),
        "session": Session.with_gap(lit(5).seconds),
    }[window]
    grouped = table.window(on.on(col("ts")).alias("w")).group_by(col("w"), col("k"))
    low_high = grouped.aggregate(udaf(Spread())(col("n")).alias("low", "high"))
    result = rows(low_high.select(col("k"), col("low"), col("high"), col("w").start, col("w").end.alias("e")))
    assert [row[:3] for row in result] == [("a", 1, 4), ("a", 12, 12), ("b", 11, 11)]
    first = start if window != "session" else start + datetime.timedelta(seconds=1)
    assert result[0][3] == first
    flat = grouped.flat_aggregate(udtaf(Top2())(col("n"))).select(col("w").start, col("k"), col("v"), col("place"))
    results = [(k, v, rank) for _, k, v, rank in rows(flat)]
    assert sorted(results) == [("a", 1, 2), ("a", 4, 1), ("a", 12, 1), ("b", 11, 1)]


class Growing(ScalarFunction):
    def __init__(self) -> None:
        self.seen: list[int] = []

    def eval(self, number: int) -> list[int]:
        self.seen.append(number)
        return self.seen


class Steps(TableFunction):
    def eval(self, number: int) -> Iterator[Row]:
        steps = Row(0)
        for step in range(2):
            steps[0] = number * 10 + step
            yield steps


def test_a_function_may_change_a_result_that_it_returned(t_env: TableEnvironment) -> None:
    numbers = t_env.from_elements([(1,), (2,)], ["n"])
    growing = udf(Growing(), result_type=DataTypes.ARRAY(DataTypes.BIGINT()))
    assert rows(numbers.select(growing(col("n")).alias("seen"))) == [([1, 2],), ([1],)]
    steps = udtf(Steps(), result_types=[DataTypes.BIGINT()])
    assert rows(numbers.join_lateral(steps(col("n")).alias("step")).select(col("step"))) == [(10,), (11,), (20,), (21,)]
