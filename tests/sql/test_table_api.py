"""The Table API has the semantics of SQL."""

import datetime
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
from remaining_rows import rows

from millstream.common import WatermarkStrategy
from millstream.common.watermark_strategy import TimestampAssigner
from millstream.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment
from millstream.sql.errors import SqlError, SqlValidationError
from millstream.table import (
    AggregateFunction,
    DataTypes,
    EnvironmentSettings,
    ScalarFunction,
    Schema,
    StreamTableEnvironment,
    TableDescriptor,
    TableEnvironment,
)
from millstream.table.expressions import call, col, lit, row_interval
from millstream.table.udf import udaf, udf, udtf
from millstream.table.window import Over, Session, Slide, Tumble
from millstream.types.factory import Types
from millstream.types.row import Row, RowKind

ORDERS = [(1, "a", 10.0), (2, "b", 20.0), (3, "a", 30.0)]


def test_select_filter_and_expressions(orders: Any) -> None:
    result = orders.filter((col("v") > 10) & (col("k") != "z")).select(
        col("id"), (col("v") * 2 + 1).alias("w"), col("k").upper_case.alias("u"), lit("x")
    )
    assert rows(result) == [(2, 41.0, "B", "x"), (3, 61.0, "A", "x")]
    assert result.get_schema().get_field_names() == ["id", "w", "u", "_c3"]


def test_columns_are_added_renamed_and_dropped(orders: Any) -> None:
    result = (
        orders.add_columns((col("id") + 1).alias("n")).rename_columns(col("v").alias("value")).drop_columns(col("k"))
    )
    assert rows(result)[0] == (1, 10.0, 2)
    assert result.get_schema().get_field_names() == ["id", "value", "n"]


def test_groups(orders: Any) -> None:
    result = orders.group_by(col("k")).select(col("k"), col("v").sum.alias("s"), col("id").count.alias("c"))
    assert rows(result) == [("a", 40.0, 2), ("b", 20.0, 1)]


def test_joins_and_sets(t_env: TableEnvironment, orders: Any) -> None:
    names = t_env.from_elements([("a", "Ann"), ("c", "Cid")], ["key", "name"])
    assert rows(orders.left_outer_join(names, col("k") == col("key")).select(col("id"), col("name"))) == [
        (1, "Ann"),
        (2, None),
        (3, "Ann"),
    ]
    keys = orders.select(col("k"))
    assert rows(keys.union(names.select(col("key")))) == [("a",), ("b",), ("c",)]
    assert rows(keys.minus(names.select(col("key")))) == [("b",)]
    assert rows(keys.intersect_all(names.select(col("key")))) == [("a",)]


def test_order_and_limit(orders: Any) -> None:
    assert rows(orders.order_by(col("v").desc).limit(2).select(col("id"))) == [(2,), (3,)]


def test_scalar_functions_of_all_kinds(t_env: TableEnvironment, orders: Any) -> None:
    @udf(result_type=DataTypes.BIGINT())
    def plus_one(value: int) -> int:
        return value + 1

    @udf(result_type="DOUBLE", func_type="pandas")
    def doubled(values: pd.Series) -> pd.Series:
        return values * 2

    class Shout(ScalarFunction):
        def eval(self, text: str) -> str:
            return text + "!"

    t_env.create_temporary_function("shout", udf(Shout(), result_type=DataTypes.STRING()))
    result = orders.select(plus_one(col("id")), doubled(col("v")), call("shout", col("k")))
    assert rows(result) == [(2, 20.0, "a!"), (3, 40.0, "b!"), (4, 60.0, "a!")]
    t_env.create_temporary_view("orders", orders)
    assert rows(t_env.sql_query("SELECT SHOUT(k) FROM orders WHERE id = 1")) == [("a!",)]


def test_an_error_of_a_function_names_the_function_first(t_env: TableEnvironment, orders: Any) -> None:
    @udf(result_type=DataTypes.BIGINT())
    def broken(value: int) -> int:
        raise ValueError(value)

    with pytest.raises(Exception, match="broken"):
        rows(orders.select(broken(col("id"))))


def test_table_functions(t_env: TableEnvironment, orders: Any) -> None:
    @udtf(result_types=[DataTypes.STRING(), DataTypes.INT()])
    def letters(text: str) -> Iterator[tuple[str, int]]:
        for i in range(2):
            yield text * (i + 1), i

    assert rows(
        orders.filter(col("id") == 1).join_lateral(letters(col("k")).alias("w", "n")).select(col("w"), col("n"))
    ) == [
        ("a", 0),
        ("aa", 1),
    ]


def test_aggregate_functions(t_env: TableEnvironment, orders: Any) -> None:
    class Weighted(AggregateFunction):
        def create_accumulator(self) -> list[float]:
            return [0.0, 0.0]

        def accumulate(self, accumulator: Any, value: float, weight: int) -> None:
            accumulator[0] += value * weight
            accumulator[1] += weight

        def get_value(self, accumulator: Any) -> float:
            return accumulator[0] / accumulator[1]

    weighted = udaf(Weighted(), result_type=DataTypes.DOUBLE(), accumulator_type=DataTypes.ARRAY(DataTypes.DOUBLE()))
    assert rows(orders.group_by(col("k")).select(col("k"), weighted(col("v"), col("id")))) == [("a", 25.0), ("b", 20.0)]

    @udaf(result_type=DataTypes.DOUBLE(), func_type="pandas")
    def middle(values: pd.Series) -> float:
        return float(values.median())

    assert rows(orders.select(middle(col("v")))) == [(20.0,)]


def test_maps_and_aggregates_of_whole_rows(orders: Any) -> None:
    row_type = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.BIGINT()), DataTypes.FIELD("b", DataTypes.STRING())])

    @udf(result_type=row_type)
    def swapped(row: Row) -> Row:
        return Row(row[0] * 10, row[1] + row[1])

    assert rows(orders.map(swapped)) == [(10, "aa"), (20, "bb"), (30, "aa")]


def test_windows_in_python(inline_engine: None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    t_env = StreamTableEnvironment.create(env)
    start = datetime.datetime(2024, 1, 1)  # noqa: DTZ001
    events = [Row(start + datetime.timedelta(seconds=s), k, s) for s, k in ((1, "a"), (4, "a"), (11, "b"), (12, "a"))]
    stream = env.from_collection(
        events, Types.ROW_NAMED(["ts", "k", "n"], [Types.SQL_TIMESTAMP(), Types.STRING(), Types.INT()])
    )
    schema = Schema.new_builder().column("ts", "TIMESTAMP(3)").column("k", "STRING").column("n", "INT")
    table = t_env.from_data_stream(stream, schema.watermark("ts", "ts - INTERVAL '1' SECOND").build())
    tumbled = table.window(Tumble.over(lit(10).seconds).on(col("ts")).alias("w")).group_by(col("w"), col("k"))
    ten = start + datetime.timedelta(seconds=10)
    assert rows(tumbled.select(col("k"), col("w").start, col("n").sum)) == [
        ("a", start, 5),
        ("a", ten, 12),
        ("b", ten, 11),
    ]
    slid = table.window(Slide.over(lit(10).seconds).every(lit(5).seconds).on(col("ts")).alias("w")).group_by(col("w"))
    assert sum(row[0] for row in rows(slid.select(col("n").count))) == 8
    sessions = table.window(Session.with_gap(lit(5).seconds).on(col("ts")).alias("w")).group_by(col("w"))
    assert rows(sessions.select(col("n").count, col("w").end))[0][0] == 2
    over = Over.partition_by(col("k")).order_by(col("ts")).preceding(row_interval(1)).alias("w")
    assert rows(table.over_window(over).select(col("n"), col("n").sum.over(col("w")))) == [
        (1, 1),
        (11, 11),
        (12, 16),
        (4, 5),
    ]


def test_streams_are_converted_to_tables_and_tables_to_streams(inline_engine: None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    t_env = StreamTableEnvironment.create(env)
    stream = env.from_collection([(1, "a"), (2, "b"), (3, "a")], Types.TUPLE([Types.LONG(), Types.STRING()]))
    table = t_env.from_data_stream(stream).alias("id", "k")
    counts = table.group_by(col("k")).select(col("k"), col("id").count.alias("c"))
    with pytest.raises(SqlError, match="to_changelog_stream"):
        t_env.to_data_stream(counts)
    changes = list(t_env.to_changelog_stream(counts).execute_and_collect())
    assert [(str(row.get_row_kind()), *row) for row in changes] == [
        ("+I", "a", 1),
        ("+I", "b", 1),
        ("-U", "a", 1),
        ("+U", "a", 2),
    ]


def test_a_changelog_stream_is_converted_to_a_table(inline_engine: None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    t_env = StreamTableEnvironment.create(env)
    changes = [
        Row.of_kind(RowKind.INSERT, "a", 1),
        Row.of_kind(RowKind.UPDATE_BEFORE, "a", 1),
        Row.of_kind(RowKind.UPDATE_AFTER, "a", 5),
        Row.of_kind(RowKind.INSERT, "b", 2),
        Row.of_kind(RowKind.DELETE, "b", 2),
    ]
    stream = env.from_collection(changes, Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.INT()]))
    table = t_env.from_changelog_stream(stream)
    assert rows(table.select(col("v").sum, col("v").count)) == [(5, 1)]


def test_side_outputs_are_converted_to_tables(inline_engine: None, capsys: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    t_env = StreamTableEnvironment.create(env)
    tags = [OutputTag(name, Types.ROW_NAMED(["n"], [Types.INT()])) for name in ("even", "odd")]

    class Separate(ProcessFunction):
        def process_element(self, value: int, ctx: Any) -> Any:
            yield tags[value % 2], Row(value)

    separated = env.from_collection([1, 2, 3], Types.INT()).process(Separate())
    statements = t_env.create_statement_set()
    for tag in tags:
        table = t_env.from_data_stream(separated.get_side_output(tag))  # before the next side output is read
        t_env.create_temporary_view(tag.tag_id, table)
        t_env.execute_sql(f"CREATE TABLE print_{tag.tag_id} (n INT) WITH ('connector' = 'print')")
        statements.add_insert_sql(f"INSERT INTO print_{tag.tag_id} SELECT n FROM {tag.tag_id}")
    statements.execute().wait()
    assert sorted(capsys.readouterr().out.split("\n")) == ["", "+I[1]", "+I[2]", "+I[3]"]


def test_pandas_frames_are_converted_to_tables_and_back(t_env: TableEnvironment) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "x"]})
    result = t_env.from_pandas(frame).group_by(col("b")).select(col("b"), col("a").sum.alias("s")).to_pandas()
    assert sorted(result.itertuples(index=False, name=None)) == [("x", 4), ("y", 2)]


def test_descriptors_and_statement_sets(t_env: TableEnvironment, capsys: Any) -> None:
    schema = Schema.new_builder().column("n", DataTypes.BIGINT()).build()
    generated = TableDescriptor.for_connector("datagen").schema(schema).option("number-of-rows", 2)
    generated.option("fields.n.kind", "sequence").option("fields.n.start", 1).option("fields.n.end", 2)
    t_env.create_temporary_table("numbers", generated.build())
    for name in ("one", "two"):
        t_env.create_temporary_table(
            name, TableDescriptor.for_connector("print").schema(schema).option("print-identifier", name).build()
        )
    statements = t_env.create_statement_set()
    statements.add_insert("one", t_env.from_path("numbers"))
    statements.add_insert_sql("INSERT INTO two SELECT n * 10 FROM numbers")
    statements.execute().wait()
    assert sorted(capsys.readouterr().out.split("\n"))[1:] == ["one> +I[1]", "one> +I[2]", "two> +I[10]", "two> +I[20]"]


def test_a_compiled_plan_is_stored_and_executed_later(t_env: TableEnvironment, tmp_path: Any, capsys: Any) -> None:
    t_env.execute_sql("CREATE TABLE p (n INT) WITH ('connector' = 'print')")
    path = tmp_path / "plan.json"
    t_env.execute_sql(f"COMPILE PLAN '{path}' FOR INSERT INTO p SELECT 7")
    t_env.execute_sql(f"EXECUTE PLAN '{path}'").wait()
    assert "+I[7]" in capsys.readouterr().out


def test_batch_mode_emits_final_rows_only(inline_engine: None) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    table = env.from_elements(ORDERS, ["id", "k", "v"])
    result = table.group_by(col("k")).select(col("k"), col("v").sum).order_by(col("k").desc)
    with result.execute().collect() as results:
        assert [(str(row.get_row_kind()), *row) for row in results] == [("+I", "b", 20.0), ("+I", "a", 40.0)]


def test_columns_that_do_not_exist_cannot_be_renamed(orders: Any) -> None:
    with pytest.raises(SqlValidationError, match="there is no column 'no'"):
        orders.rename_columns(col("no").alias("x"))
    with pytest.raises(SqlValidationError, match="alias has 9 names"):
        orders.alias(*"abcdefghi")


def test_the_text_of_an_expression_is_sql() -> None:
    texts = [str(expr) for expr in (lit(None), lit(True), lit("it's"), col("a") + 1)]
    assert texts == ["null", "true", "'it''s'", "(a + 1)"]


def test_star_after_an_aggregate_function_is_its_result(orders: Any) -> None:
    count = udaf(lambda values: len(values), result_type=DataTypes.BIGINT(), func_type="pandas")
    counted = orders.group_by(col("k")).aggregate(count(col("v")).alias("n")).select(col("*"))
    assert counted.get_schema().get_field_names() == ["k", "n"]


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value[0] * 1000


def test_columns_of_a_stream_are_chosen_by_name_with_time_attributes(inline_engine: None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    t_env = StreamTableEnvironment.create(env)
    t_env.get_config().set_local_timezone("Asia/Shanghai")  # timestamps of records are in UTC all the same
    stream = env.from_collection([(1, "a"), (2, "b")], Types.ROW_NAMED(["x", "y"], [Types.LONG(), Types.STRING()]))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Seconds())
    table = t_env.from_data_stream(
        stream.assign_timestamps_and_watermarks(strategy), col("y"), col("x"), col("r").rowtime, col("p").proctime
    )
    assert rows(table.select(table.y, table.x, table.r.cast(DataTypes.STRING()), table.p.is_null)) == [
        ("a", 1, "1970-01-01 00:00:01.000", False),
        ("b", 2, "1970-01-01 00:00:02.000", False),
    ]
    window = Tumble.over(lit(10).seconds).on(table.r).alias("w")
    assert rows(table.window(window).group_by(col("w")).select(table.x.sum)) == [(3,)]


def test_values_of_a_column_of_doubles_are_floats(t_env: TableEnvironment) -> None:
    values = [row[0] for row in rows(t_env.from_elements([(1,), (2.5,)], ["a"]))]
    assert [(value, type(value)) for value in values] == [(1.0, float), (2.5, float)]


def test_a_builtin_function_comes_before_a_function_of_a_catalog(t_env: TableEnvironment) -> None:
    mine = udf(lambda text: "mine", result_type=DataTypes.STRING())
    t_env.create_temporary_function("upper", mine)
    t_env.create_temporary_system_function("lower", mine)
    assert rows(t_env.sql_query("SELECT UPPER('a'), LOWER('A')")) == [("A", "mine")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.alias("a", "a"), "several columns 'a'"),
        (lambda table: table.rename_columns(col("id").alias("k")), "several columns 'k'"),
        (lambda table: table.fetch(-1), "fetch is -1"),
        (lambda table: table.limit(1, -2), "offset is -2"),
    ],
)
def test_columns_of_one_name_and_negative_limits_are_refused(orders: Any, change: Any, message: str) -> None:
    with pytest.raises(SqlValidationError, match=message):
        change(orders)
