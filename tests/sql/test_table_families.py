"""Methods of tables, environments and catalogs that no other test calls."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from remaining_rows import rows

from millstream.common import Configuration
from millstream.datastream import StreamExecutionEnvironment
from millstream.errors import UserError
from millstream.table import (
    DataTypes,
    EnvironmentSettings,
    ExplainDetail,
    FormatDescriptor,
    PlanReference,
    ResultKind,
    Schema,
    SqlDialect,
    StreamTableEnvironment,
    TableDescriptor,
    TableEnvironment,
)
from millstream.table.catalog import (
    CatalogBaseTable,
    CatalogDatabase,
    CatalogDescriptor,
    CatalogFunction,
    Column,
    ObjectIdentifier,
    ObjectPath,
    ResolvedSchema,
    UniqueConstraint,
)
from millstream.table.expressions import (
    CURRENT_ROW,
    UNBOUNDED_ROW,
    col,
    current_watermark,
    lag,
    lit,
    range_,
    with_all_columns,
    with_columns,
    without_columns,
)
from millstream.table.table_schema import TableSchema
from millstream.table.udf import udf, udtf
from millstream.table.window import Over
from millstream.times import Duration
from millstream.types.factory import Types
from millstream.types.row import Row

INCREMENT = udf(lambda n: n + 1, result_type="BIGINT", name="increment")
ORDERS = [(1, "a", 10), (2, "b", 20), (3, "a", 30)]


# ----------------------------------------------------------------------------------------------------------- tables


def test_columns_are_chosen_by_name_number_and_range(orders: Any) -> None:
    names = {
        "range": orders.select(with_columns(range_("k", "v"))),
        "numbers": orders.select(with_columns(range_(2, 3))),
        "without": orders.select(without_columns(col("id"))),
        "all": orders.select(with_all_columns()).drop_columns(col("id")),
    }
    field_names = {name: item.get_schema().get_field_names() for name, item in names.items()}
    assert field_names == {name: ["k", "v"] for name in names}


def test_columns_are_replaced_renamed_and_made_distinct(orders: Any) -> None:
    result = orders.add_or_replace_columns((col("v") + 1).alias("v"), lit("x").alias("w"))
    assert rows(result.where(col("id") == 1)) == [(1, "a", 11, "x")]
    assert rows(orders.select(col("k")).distinct()) == [("a",), ("b",)]
    assert orders.alias("one", "two").get_schema().get_field_names() == ["one", "two", "v"]
    assert rows(orders.select(orders.k).distinct()) == [("a",), ("b",)]


def test_rows_are_skipped_and_fetched(orders: Any) -> None:
    ordered = orders.order_by(col("v").asc)
    assert rows(ordered.fetch(1)) == [(1, "a", 10)]
    assert rows(ordered.offset(1).fetch(1)) == [(2, "b", 20)]
    assert rows(ordered.fetch(2).offset(1)) == [(2, "b", 20)]
    assert rows(ordered.fetch(1).fetch(2)) == rows(ordered.fetch(1))
    assert rows(ordered.limit(5, 2)) == [(3, "a", 30)]


def test_all_types_of_joins_and_set_operations(t_env: TableEnvironment, orders: Any) -> None:
    names = t_env.from_elements([("a", "Ann"), ("c", "Cid")], ["key", "name"])
    on = col("k") == col("key")
    pick = [col("id"), col("name")]
    assert rows(orders.join(names, on).select(*pick)) == [(1, "Ann"), (3, "Ann")]
    assert rows(orders.join(names).where(on).select(*pick)) == [(1, "Ann"), (3, "Ann")]
    assert rows(orders.right_outer_join(names, on).select(*pick)) == [(1, "Ann"), (3, "Ann"), (None, "Cid")]
    assert len(rows(orders.full_outer_join(names, on).select(*pick))) == 4
    keys, others = orders.select(col("k")), names.select(col("key"))
    assert rows(keys.union_all(others)) == [("a",), ("a",), ("a",), ("b",), ("c",)]
    assert rows(keys.intersect(others)) == [("a",)]
    assert rows(keys.minus_all(others)) == [("a",), ("b",)]
    assert rows(orders.where(col("k").in_(others)).select(col("id"))) == [(1,), (3,)]


def test_functions_are_applied_to_rows(orders: Any) -> None:
    @udtf(result_types=["STRING", "BIGINT"])
    def doubled(row: Row) -> Iterator[tuple[str, int]]:
        if row.id != 2:
            yield row.k, row.v
            yield row.k, row.v * 2

    assert rows(orders.flat_map(doubled)) == [("a", 10), ("a", 20), ("a", 30), ("a", 60)]

    @udtf(result_types=["STRING"])
    def letters(text: str) -> Iterator[str]:
        if text == "a":
            yield text.upper()

    joined = orders.left_outer_join_lateral(letters(col("k")).alias("w")).select(col("id"), col("w"))
    assert rows(joined) == [(1, "A"), (2, None), (3, "A")]


def test_a_row_is_flattened(t_env: TableEnvironment) -> None:
    data_type = DataTypes.ROW(
        [
            DataTypes.FIELD(
                "r",
                DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT()), DataTypes.FIELD("y", DataTypes.STRING())]),
            )
        ]
    )
    table = t_env.from_elements([((1, "a"),)], data_type)
    flat = table.select(col("r").flatten)
    assert rows(flat) == [(1, "a")]
    assert flat.get_schema().get_field_names() == ["r$x", "r$y"]


def test_frames_contain_earlier_rows(inline_engine: None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    t_env = StreamTableEnvironment.create(env)
    start = datetime.datetime(2024, 1, 1)  # noqa: DTZ001
    events = [Row(start + datetime.timedelta(seconds=s), s) for s in (1, 2, 3)]
    stream = env.from_collection(events, Types.ROW_NAMED(["ts", "n"], [Types.SQL_TIMESTAMP(), Types.INT()]))
    schema = Schema.new_builder().column("ts", "TIMESTAMP(3)").column("n", "INT").watermark("ts", "ts").build()
    table = t_env.from_data_stream(stream, schema)
    frame = Over.order_by(col("ts")).preceding(UNBOUNDED_ROW).following(CURRENT_ROW).alias("w")
    result = table.over_window(frame).select(col("n"), col("n").sum.over(col("w")), lag(col("n"), 1).over(col("w")))
    assert rows(result) == [(1, 1, None), (2, 3, 1), (3, 6, 2)]
    assert len(rows(table.select(current_watermark(col("ts"))))) == 3


def test_tables_are_shown_and_written(t_env: TableEnvironment, orders: Any, capsys: Any) -> None:
    orders.print_schema()
    orders.print_explain(ExplainDetail.CHANGELOG_MODE)
    assert "`k` STRING" in capsys.readouterr().out
    schema = Schema.new_builder().column("id", "BIGINT").column("k", "STRING").column("v", "BIGINT").build()
    t_env.create_table("p", TableDescriptor.for_connector("print").schema(schema).build())
    orders.execute_insert("p").wait()
    pipeline = orders.insert_into("p")
    assert pipeline.get_sink_identifier().get_object_name() == "p"
    assert "Sink" in pipeline.explain()
    pipeline.execute().wait()
    assert capsys.readouterr().out.count("+I[1, a, 10]") == 2
    assert orders.to_pandas().shape == (3, 3)
    result = orders.execute()
    assert result.get_result_kind() is ResultKind.SUCCESS_WITH_CONTENT
    assert result.get_resolved_schema().get_column_names() == ["id", "k", "v"]
    assert result.get_table_schema().get_field_names() == ["id", "k", "v"]
    assert result.get_job_client() is not None
    result.print()
    assert "3 rows in set" in capsys.readouterr().out


def test_statement_sets_and_plans(t_env: TableEnvironment, tmp_path: Path, capsys: Any) -> None:
    t_env.execute_sql("CREATE TABLE p (n INT) WITH ('connector' = 'print')")
    statements = t_env.create_statement_set()
    statements.add(t_env.sql_query("SELECT 1").insert_into("p"))
    statements.add_insert("p", t_env.sql_query("SELECT 2"))
    statements.print_explain()
    assert capsys.readouterr().out.count("Sink(") >= 2
    statements.execute().wait()
    assert sorted(capsys.readouterr().out.split()) == ["+I[1]", "+I[2]"]
    plan = t_env.compile_plan_sql("INSERT INTO p SELECT 3")
    plan.write_to_file(str(tmp_path / "plan"))
    plan.print_json_string()
    plan.print_explain()
    assert plan.get_flink_version()
    capsys.readouterr()
    t_env.execute_plan(PlanReference.from_smile_bytes(plan.as_smile_bytes())).wait()
    t_env.load_plan(PlanReference.from_file(str(tmp_path / "plan"))).execute().wait()
    assert capsys.readouterr().out.split() == ["+I[3]", "+I[3]"]


# ----------------------------------------------------------------------------------------------------- environments


def test_tables_and_views_are_registered_and_dropped(t_env: TableEnvironment, orders: Any) -> None:
    schema = Schema.new_builder().column("n", "INT").build()
    blackhole = TableDescriptor.for_connector("blackhole").schema(schema).build()
    assert t_env.create_table("t", blackhole)
    assert not t_env.create_table("t", blackhole, True)
    t_env.create_temporary_table("tt", blackhole)
    t_env.create_view("w", orders)
    t_env.create_temporary_view("tw", orders)
    assert t_env.list_tables() == ["t", "tt", "tw", "w"]
    assert (t_env.list_views(), t_env.list_temporary_views()) == (["tw", "w"], ["tw"])
    assert t_env.list_temporary_tables() == ["tt", "tw"]
    assert rows(t_env.from_path("w").select(col("id"))) == [(1,), (2,), (3,)]
    assert t_env.drop_temporary_table("tt")
    assert t_env.drop_temporary_view("tw")
    assert t_env.drop_view("w")
    assert t_env.drop_table("t")
    assert not t_env.drop_table("t")
    assert t_env.list_tables() == []


def test_functions_are_registered_and_dropped(t_env: TableEnvironment) -> None:
    return_one = udf(lambda: 1, result_type="INT", name="one")
    t_env.create_temporary_function("f", return_one)
    t_env.create_temporary_system_function("g", return_one)
    assert t_env.list_user_defined_functions() == ["f", "g"]
    assert "upper" in t_env.list_functions()
    assert rows(t_env.sql_query("SELECT f() + g()")) == [(2,)]
    assert t_env.drop_temporary_function("f")
    assert t_env.drop_temporary_system_function("g")
    assert not t_env.drop_function("f")
    assert t_env.list_user_defined_functions() == []


def test_catalogs_databases_and_modules(t_env: TableEnvironment) -> None:
    configuration = Configuration()
    configuration.set_string("type", "generic_in_memory")
    t_env.create_catalog("c", CatalogDescriptor.of("c", configuration))
    assert t_env.list_catalogs() == ["c", "default_catalog"]
    catalog = t_env.get_catalog("c")
    assert catalog is not None
    catalog.create_database("d", CatalogDatabase.create_instance({"x": "y"}, "said"), False)
    assert catalog.get_database("d").get_comment() == "said"
    catalog.alter_database("d", CatalogDatabase.create_instance({"x": "z"}, "said"), False)
    assert catalog.get_database("d").get_properties() == {"x": "z"}
    t_env.use_catalog("c")
    t_env.use_database("d")
    assert (t_env.get_current_catalog(), t_env.get_current_database()) == ("c", "d")
    table = CatalogBaseTable.create_table(
        Schema.new_builder().column("n", "INT").build(), [], {"connector": "blackhole"}, "of numbers"
    )
    path = ObjectPath("d", "t")
    catalog.create_table(path, table, False)
    assert catalog.table_exists(path)
    assert catalog.get_table(path).get_options() == {"connector": "blackhole"}
    catalog.rename_table(path, "u", False)
    assert catalog.list_tables("d") == ["u"]
    catalog.drop_table(ObjectPath("d", "u"), False)
    function = CatalogFunction.create_instance(f"{__name__}.INCREMENT", "Python")
    catalog.create_function(ObjectPath("d", "f"), function, False)
    assert catalog.function_exists(ObjectPath("d", "f"))
    assert catalog.list_functions("d") == ["f"]
    catalog.drop_function(ObjectPath("d", "f"), False)
    t_env.use_catalog("default_catalog")
    catalog.drop_database("d", False)
    assert not catalog.database_exists("d")
    assert t_env.list_modules() == ["core"]
    assert [item.used() for item in t_env.list_full_modules()] == [True]
    with pytest.raises(UserError):
        catalog.get_table(path)


def test_options_are_read_and_set() -> None:
    config = TableEnvironment.create(EnvironmentSettings.in_streaming_mode()).get_config()
    config.set_local_timezone("Europe/Berlin")
    config.set_idle_state_retention(Duration.of_hours(1))
    config.set_idle_state_retention(datetime.timedelta(hours=2))
    config.set_max_generated_code_length(5000)
    config.set_sql_dialect(SqlDialect.DEFAULT)
    config.set_python_executable("python3")
    assert config.get_local_timezone() == "Europe/Berlin"
    assert config.get_idle_state_retention() == datetime.timedelta(hours=2)
    assert config.get_max_generated_code_length() == 5000
    assert config.get_sql_dialect() is SqlDialect.DEFAULT
    assert config.get_python_executable() == "python3"
    assert config.get("no.such", "thing") == "thing"
    assert config.to_map()["table.exec.state.ttl"] == "7200000 ms"


def test_streams_of_values(inline_engine: None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    t_env = StreamTableEnvironment.create(env)
    table = t_env.from_elements([(1, "a"), (2, "a")], ["n", "k"])
    data_type = Types.TUPLE([Types.LONG(), Types.STRING()])
    assert list(t_env.to_append_stream(table, data_type).execute_and_collect()) == [(1, "a"), (2, "a")]
    counts = table.group_by(col("k")).select(col("n").count, col("k"))
    changes = list(t_env.to_retract_stream(counts, data_type).execute_and_collect())
    assert changes == [(True, (1, "a")), (False, (1, "a")), (True, (2, "a"))]


# ------------------------------------------------------------------------------------------------------ descriptions


def test_schemas_are_values() -> None:
    result = (
        Schema.new_builder()
        .from_fields(["a", "b"], [DataTypes.INT(), DataTypes.STRING()])
        .column_by_expression("c", "a + 1")
        .column_by_metadata("d", DataTypes.STRING(), "key", True)
        .watermark("ts", "ts")
        .primary_key_named("pk", "a")
        .build()
    )
    assert Schema.new_builder().from_schema(result).build() == result
    row = DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT())])
    assert (
        Schema.new_builder().from_row_data_type(row).build() == Schema.new_builder().column("x", row.types[0]).build()
    )
    old = TableSchema.builder().field("x", DataTypes.INT()).build()
    assert (old.get_field_count(), old.get_field_name(0), old.get_field_data_type("x")) == (1, "x", DataTypes.INT())
    assert old.copy() == old
    assert old.to_row_data_type().names == ["x"]


def test_resolved_schemas_have_columns() -> None:
    columns = [Column.physical("a`b", DataTypes.INT()), Column.metadata("m", DataTypes.STRING(), "key", True)]
    schema = ResolvedSchema.of(columns)
    assert schema.get_column_names() == ["a`b", "m"]
    assert schema.get_column(0).as_summary_string() == "`a``b` INT"
    assert schema.get_column("m").is_persisted() is False
    assert schema.to_physical_row_data_type().names == ["a`b"]
    assert schema.get_column("a`b").rename("c").get_name() == "c"
    assert schema.get_column("a`b").with_comment("said").get_comment() == "said"
    key = UniqueConstraint.primary_key("k`", ["a`b"])
    assert key.as_summary_string() == "CONSTRAINT `k``` PRIMARY KEY (`a``b`) NOT ENFORCED"
    assert ResolvedSchema.physical(["a"], [DataTypes.INT()]).get_column_count() == 1


def test_descriptors_and_identifiers() -> None:
    format_descriptor = FormatDescriptor.for_format("json").option("ignore-parse-errors", "true").build()
    result = (
        TableDescriptor.for_connector("filesystem")
        .option("path", "/x")
        .format(format_descriptor)
        .partitioned_by("p")
        .comment("said")
        .schema(Schema.new_builder().column("p", "STRING").build())
        .build()
    )
    assert result.get_options()["json.ignore-parse-errors"] == "true"
    assert (result.get_partition_keys(), result.get_comment()) == (["p"], "said")
    name = ObjectIdentifier.of("c", "d", "o`x")
    assert name.as_serializable_string() == "`c`.`d`.`o``x`"
    assert name.to_object_path() == ObjectPath("d", "o`x")
    assert ObjectPath.from_string("d.o").get_full_name() == "d.o"
