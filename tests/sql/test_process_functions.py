"""Process table functions: row and set semantics, state, timers, several tables, columns passed through, updates."""

from __future__ import annotations

import ast
import datetime
from dataclasses import dataclass, replace
from typing import Annotated

import pytest
from simulated_restarts import fail_after

from millstream.common import Row, RowKind
from millstream.datastream import DataStream, StreamExecutionEnvironment
from millstream.errors import InvalidArgument
from millstream.job.job_status import JobStatus
from millstream.sql.errors import SqlError, SqlNotSupported
from millstream.table import DataTypes, EnvironmentSettings, Schema, StreamTableEnvironment, TableEnvironment
from millstream.table.expressions import col, lit
from millstream.table.udf import ArgumentTrait, ListState, MapState, ProcessTableFunction, StateHint, ptf
from millstream.types.factory import Types
from millstream_chaos.simulation import Faults, Setup, World, run

RowTable = Annotated[Row, ArgumentTrait.ROW_SEMANTIC_TABLE]
SetTable = Annotated[Row, ArgumentTrait.SET_SEMANTIC_TABLE]


@dataclass
class Count:
    counter: int = 0


@dataclass
class Seen:
    first: str | None = None


@ptf(result_type=DataTypes.STRING())
class Greeting(ProcessTableFunction):
    def eval(self, input: RowTable, mark: str = "!"):
        return f"hello {input.name}{mark}"


@ptf(result_type=DataTypes.STRING())
class GreetingWithMemory(ProcessTableFunction):
    def eval(self, memory: Count, input: SetTable):
        memory.counter += 1
        yield f"hello {input['name']}, visit {memory.counter}"


@ptf(result_type=DataTypes.ROW([DataTypes.FIELD("what", DataTypes.STRING()), DataTypes.FIELD("n", DataTypes.INT())]))
class Timeout(ProcessTableFunction):
    """Waits for a second row; a named timer reports that it did not arrive."""

    def eval(
        self,
        ctx,
        memory: Seen,
        count: Count,
        input: Annotated[Row, ArgumentTrait.SET_SEMANTIC_TABLE, ArgumentTrait.REQUIRE_ON_TIME],
    ):
        time = ctx.time_context()
        count.counter += 1
        if memory.first is None:
            memory.first = input.item
            time.register_on_time("timeout", time.time() + datetime.timedelta(seconds=10))
        else:
            yield f"second after {memory.first}", count.counter
            ctx.clear_all()

    def on_timer(self, ctx, memory, count):
        assert ctx.time_context().current_watermark() >= ctx.time_context().time()
        yield f"{ctx.current_timer()} of {memory.first}", count.counter


@ptf(result_type=DataTypes.STRING())
class LastPurchase(ProcessTableFunction):
    def eval(self, memory: Seen, visit: SetTable, purchase: SetTable):
        if purchase is not None:
            memory.first = purchase.item
        else:
            yield f"{visit.name} bought {memory.first}"


@pytest.fixture
def t_env(inline_engine: None) -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "2")
    env.execute_sql(
        "CREATE TEMPORARY VIEW names AS SELECT * FROM (VALUES ('Bob', 1), ('Alice', 2), ('Bob', 3)) AS v(name, n)"
    )
    env.create_temporary_function("greeting", Greeting)
    env.create_temporary_function("memory", GreetingWithMemory)
    env.create_temporary_function("timeout", Timeout)
    env.create_temporary_function("last_purchase", LastPurchase)
    return env


def rows(t_env: TableEnvironment, query: str) -> list[tuple]:
    with t_env.sql_query(query).execute().collect() as collected:
        return sorted(tuple(row) for row in collected)


def test_row_semantics(t_env: TableEnvironment) -> None:
    expected = [("hello Alice!",), ("hello Bob!",), ("hello Bob!",)]
    assert rows(t_env, "SELECT * FROM greeting(TABLE names)") == expected
    assert rows(t_env, "SELECT * FROM greeting(input => TABLE names, mark => '?', uid => 'g')")[0] == ("hello Alice?",)
    assert rows(t_env, "SELECT * FROM greeting(TABLE names, DEFAULT, DEFAULT, 'x')") == expected
    table = t_env.from_path("names").process(Greeting, lit(".").as_argument("mark"))
    with table.execute().collect() as collected:
        assert sorted(row[0] for row in collected) == ["hello Alice.", "hello Bob.", "hello Bob."]


def test_state_belongs_to_the_partition(t_env: TableEnvironment) -> None:
    expected = [("Alice", "hello Alice, visit 1"), ("Bob", "hello Bob, visit 1"), ("Bob", "hello Bob, visit 2")]
    assert rows(t_env, "SELECT * FROM memory(TABLE names PARTITION BY name)") == expected
    table = t_env.from_path("names").partition_by(col("name")).process("memory")
    assert table.get_schema().get_field_names() == ["name", "EXPR$0"]
    with table.execute().collect() as collected:
        assert sorted(map(tuple, collected)) == expected
    restored = t_env.from_call("memory", t_env.from_path("names").partition_by(col("name")).as_argument("input"))
    with restored.execute().collect() as collected:
        assert sorted(map(tuple, collected)) == expected


def test_two_tables_share_state(t_env: TableEnvironment) -> None:
    t_env.execute_sql(
        "CREATE TEMPORARY VIEW purchases AS SELECT * FROM (VALUES ('Alice', 'milk')) AS v(customer, item)"
    )
    results = rows(
        t_env,
        "SELECT * FROM last_purchase(TABLE names PARTITION BY name, TABLE purchases PARTITION BY customer)",
    )
    assert [row[:2] for row in results] == [("Alice", "Alice"), ("Bob", "Bob"), ("Bob", "Bob")]
    assert results[1][2] == "Bob bought None"
    assert results[0][2] in (
        "Alice bought None",
        "Alice bought milk",
    )  # the order of the rows of two tables is not defined


def test_unknown_and_wrong_arguments_are_refused(t_env: TableEnvironment) -> None:
    for query, words in {
        "SELECT * FROM memory(TABLE names)": "needs PARTITION BY",
        "SELECT * FROM greeting(TABLE names PARTITION BY name)": "takes no PARTITION BY",
        "SELECT * FROM greeting(TABLE names, marks => 'x')": "no parameter 'marks'",
        "SELECT * FROM greeting(input => TABLE names, mark => TRUE IS NULL, uid => 3)": "must be a string",
        "SELECT * FROM timeout(TABLE names PARTITION BY name)": "needs the argument 'on_time'",
        "SELECT * FROM memory(input => TABLE names PARTITION BY name, on_time => DESCRIPTOR(n))": "not an event-time",
        "SELECT * FROM last_purchase(TABLE names PARTITION BY name, TABLE names PARTITION BY n)": "by equal types",
    }.items():
        with pytest.raises(SqlError, match=words):
            t_env.sql_query(query)


def test_updates_need_a_function_that_supports_them(t_env: TableEnvironment) -> None:
    counts = "(SELECT name, COUNT(*) AS n FROM names GROUP BY name)"
    with pytest.raises(SqlNotSupported, match="has updates"):
        rows(t_env, f"SELECT * FROM memory(TABLE {counts} PARTITION BY name)")

    @ptf(result_type=DataTypes.STRING())
    class Kinds(ProcessTableFunction):
        def eval(self, input: Annotated[Row, ArgumentTrait.SET_SEMANTIC_TABLE, ArgumentTrait.SUPPORT_UPDATES]):
            yield f"{input.get_row_kind().name} {input.n}"

    t_env.create_temporary_function("kinds", Kinds)
    results = rows(t_env, f"SELECT * FROM kinds(TABLE {counts} PARTITION BY name)")
    assert results[-1] == ("Bob", "UPDATE_BEFORE 1") or ("Bob", "INSERT 2") in results


def test_results_can_be_updates(t_env: TableEnvironment) -> None:
    @ptf(result_type=DataTypes.ROW([DataTypes.FIELD("total", DataTypes.BIGINT())]))
    class Total(ProcessTableFunction):
        def eval(self, total: Count, input: SetTable):
            if total.counter:
                yield Row.of_kind(RowKind.UPDATE_BEFORE, total.counter)
            row_kind = RowKind.UPDATE_AFTER if total.counter else RowKind.INSERT
            total.counter += input.n
            yield Row.of_kind(row_kind, total.counter)

        def emits_updates(self):
            return True

    table = t_env.from_path("names").partition_by(col("name")).process(Total)
    with table.execute().collect() as collected:
        changes = sorted(f"{row.get_row_kind()} {row[0]} {row[1]}" for row in collected)
    assert changes == ["+I Alice 2", "+I Bob 1", "+U Bob 4", "-U Bob 1"]


def test_columns_pass_through(t_env: TableEnvironment) -> None:
    @ptf(result_type=DataTypes.INT())
    class Length(ProcessTableFunction):
        def eval(self, input: Annotated[Row, ArgumentTrait.ROW_SEMANTIC_TABLE, ArgumentTrait.PASS_COLUMNS_THROUGH]):
            return len(input.name)

    table = t_env.from_path("names").process(Length)
    assert table.get_schema().get_field_names() == ["name", "n", "EXPR$0"]
    with table.execute().collect() as collected:
        assert sorted(map(tuple, collected)) == [("Alice", 2, 5), ("Bob", 1, 3), ("Bob", 3, 3)]


def test_lists_and_maps_are_state(t_env: TableEnvironment) -> None:
    @ptf(result_type=DataTypes.STRING())
    class History(ProcessTableFunction):
        def eval(
            self,
            history: Annotated[ListState, StateHint(ttl="1 day")],
            counts: MapState,
            input: Annotated[Row, ArgumentTrait.SET_SEMANTIC_TABLE, ArgumentTrait.OPTIONAL_PARTITION_BY],
        ):
            history.add(input.n)
            counts.put(input.name, (counts.get(input.name) or 0) + 1)
            yield f"{list(history.get())} {sorted(counts.items())}"

    with t_env.from_path("names").process(History).execute().collect() as collected:
        assert [row[0] for row in collected][-1] == "[1, 2, 3] [('Alice', 1), ('Bob', 2)]"


def test_signatures_are_checked() -> None:
    class NoHint(ProcessTableFunction):
        def eval(self, input): ...

    class StateOfRows(ProcessTableFunction):
        def eval(self, memory: Count, input: RowTable): ...

    class OtherTimer(ProcessTableFunction):
        def eval(self, memory: Count, input: SetTable): ...

        def on_timer(self, ctx): ...

    for function, words in {NoHint: "no type hint", StateOfRows: "set semantics", OtherTimer: "state entries"}.items():
        with pytest.raises(InvalidArgument, match=words):
            ptf(function(), result_type=DataTypes.STRING())


def test_batch_mode_is_refused(inline_engine: None) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    with pytest.raises(SqlNotSupported, match="streaming mode"):
        env.from_elements([("a",)], ["name"]).process(Greeting).execute()


EVENTS = [
    ("a", "x", 1000),
    ("b", "y", 2000),
    ("a", "z", 5000),
    ("c", "w", 6000),
    ("e", "t", 20_000),
    ("b", "v", 30_000),
    ("d", "u", 31_000),
]
EXPECTED = [
    ("a", "second after x", 2, 5000),
    ("b", "second after y", 2, 30_000),
    ("b", "timeout of y", 1, 12_000),
    ("c", "timeout of w", 1, 16_000),
    ("d", "timeout of u", 1, 41_000),
    ("e", "timeout of t", 1, 30_000),
]


def timeouts(env: StreamExecutionEnvironment) -> DataStream:
    """Call the function with timers on EVENTS, with a watermark after each row."""
    t_env = StreamTableEnvironment.create(env)
    events = env.from_collection(
        EVENTS, Types.ROW_NAMED(["name", "item", "at"], [Types.STRING(), Types.STRING(), Types.LONG()])
    )
    schema = (
        Schema.new_builder()
        .column_by_expression("ts", "TO_TIMESTAMP_LTZ(`at`, 3)")
        .watermark("ts", "ts - INTERVAL '0.001' SECOND")
        .build()
    )
    t_env.create_temporary_view("events", t_env.from_data_stream(events, schema))
    t_env.create_temporary_function("timeout", Timeout)
    table = t_env.sql_query(
        "SELECT name, what, n, rowtime FROM timeout(input => TABLE events PARTITION BY name, "
        "on_time => DESCRIPTOR(ts), uid => 'waiting')"
    )
    return t_env.to_data_stream(table).map(
        lambda row: (row[0], row[1], row[2], int(row[3].timestamp() * 1000)), Types.PICKLED_BYTE_ARRAY()
    )


@pytest.mark.parametrize("parallelisms", [(1,), (2, 3), (3, 1)])
def test_timers_and_state_survive_crashes_and_rescaling(parallelisms: tuple[int, ...]) -> None:
    setup = Setup(timeouts, epoch_records=1, checkpoint_every=1)
    with World() as world:
        for parallelism in parallelisms[:-1]:
            result = run(replace(setup, parallelism=parallelism), world, Faults(), listen=fail_after(3))
            assert result.crashed
        result = run(replace(setup, parallelism=parallelisms[-1]), world, Faults())
        assert result.status is JobStatus.FINISHED, result.failure
        results = sorted(map(ast.literal_eval, world.visible()))
    assert results == EXPECTED
