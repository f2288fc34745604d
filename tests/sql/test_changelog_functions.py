"""TO_CHANGELOG and FROM_CHANGELOG convert changes to rows and rows to changes, as in Flink."""

from typing import Any

import pytest

from millstream.errors import MillstreamError
from millstream.sql.errors import SqlError
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.table.expressions import descriptor, map_

# Recorded from Flink 2.3; columns, then rows with their kinds.
RECORDED = [
    (
        "TO_CHANGELOG(input => TABLE sums)",
        ["op", "k", "s"],
        ["+I INSERT a 1", "+I INSERT b 2", "+I UPDATE_BEFORE a 1", "+I UPDATE_AFTER a 4"],
    ),
    (
        "TO_CHANGELOG(TABLE sums, DESCRIPTOR(code), MAP['INSERT', 'I', 'UPDATE_AFTER', 'U'])",
        ["code", "k", "s"],
        ["+I I a 1", "+I I b 2", "+I U a 4"],
    ),
    (
        "TO_CHANGELOG(input => TABLE sums, op_mapping => MAP['INSERT, UPDATE_AFTER', 'false', 'DELETE', 'true'])",
        ["op", "k", "s"],
        ["+I false a 1", "+I false b 2", "+I false a 4"],
    ),
    (
        "FROM_CHANGELOG(input => TABLE log)",
        ["id", "name"],
        ["+I 1 x", "+I 2 y", "-U 1 x", "+U 1 z", "-D 2 y"],
    ),
    (
        "FROM_CHANGELOG(input => TABLE log, op_mapping => "
        "MAP['INSERT, UPDATE_AFTER', 'INSERT', 'DELETE, UPDATE_BEFORE', 'DELETE'])",
        ["id", "name"],
        ["+I 1 x", "+I 2 y", "-D 1 x", "+I 1 z", "-D 2 y"],
    ),
    (
        "FROM_CHANGELOG(input => TABLE renamed, op => DESCRIPTOR(what), op_mapping => MAP['INSERT', 'INSERT'])",
        ["id"],
        ["+I 7"],
    ),
]
REFUSED = [
    ("TO_CHANGELOG(input => TABLE sums, op_mapping => MAP['nope', 'x'])", "'nope', which is not a row kind"),
    ("TO_CHANGELOG(input => TABLE sums, op => DESCRIPTOR(k))", "the table has one already"),
    ("TO_CHANGELOG(input => TABLE sums, op => DESCRIPTOR(a, b))", "must name one column"),
    ("TO_CHANGELOG(input => TABLE sums, mode => 'x')", "has no parameter 'mode'"),
    ("TO_CHANGELOG(1)", "must be a table"),
    ("FROM_CHANGELOG(input => TABLE log, op => DESCRIPTOR(id))", "reads the change from a STRING"),
    ("FROM_CHANGELOG(input => TABLE log, op => DESCRIPTOR(ops))", "which the table does not have"),
    ("FROM_CHANGELOG(input => TABLE log, op_mapping => MAP['i', 'INSERT', 'u', 'UPDATE_AFTER'])", "no UPDATE_BEFORE"),
    ("FROM_CHANGELOG(input => TABLE log, op_mapping => MAP['i', 'INSERT', 'c', 'INSERT'])", "INSERT twice"),
    ("FROM_CHANGELOG(input => TABLE sums, op => DESCRIPTOR(k))", "must be insert-only"),
]


def create_environment(settings: EnvironmentSettings) -> TableEnvironment:
    env = TableEnvironment.create(settings)
    env.get_config().set("parallelism.default", "1")
    env.execute_sql(
        "CREATE TEMPORARY VIEW sums AS SELECT k, SUM(v) AS s FROM (VALUES ('a', 1), ('b', 2), ('a', 3)) AS x (k, v) "
        "GROUP BY k"
    )
    env.execute_sql(
        "CREATE TEMPORARY VIEW log AS SELECT * FROM (VALUES ('INSERT', 1, 'x'), ('INSERT', 2, 'y'), "
        "('UPDATE_BEFORE', 1, 'x'), ('UPDATE_AFTER', 1, 'z'), ('DELETE', 2, 'y')) AS x (op, id, name)"
    )
    env.execute_sql("CREATE TEMPORARY VIEW renamed AS SELECT * FROM (VALUES ('INSERT', 7)) AS x (what, id)")
    return env


@pytest.fixture
def env(inline_engine: None) -> TableEnvironment:
    return create_environment(EnvironmentSettings.in_streaming_mode())


def collect_changes(result: Any) -> list[str]:
    with result.collect() as rows:
        return [" ".join(map(str, (row.get_row_kind(), *row))) for row in rows]


@pytest.mark.parametrize(("call", "columns", "rows"), RECORDED, ids=[call for call, *_ in RECORDED])
def test_rows_and_changes_are_those_of_flink(
    env: TableEnvironment, call: str, columns: list[str], rows: list[str]
) -> None:
    result = env.execute_sql(f"SELECT * FROM {call}")
    assert result.get_table_schema().get_field_names() == columns
    assert collect_changes(result) == rows


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[call for call, _ in REFUSED])
def test_an_invalid_call_is_refused(env: TableEnvironment, call: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        env.execute_sql(f"SELECT * FROM {call}")


def test_an_unknown_code_fails_the_job(env: TableEnvironment) -> None:
    env.get_config().set("restart-strategy.type", "none")
    with pytest.raises(MillstreamError, match="column 'op' has 'UPDATE_BEFORE', which is not the code of a row kind"):
        collect_changes(
            env.execute_sql("SELECT * FROM FROM_CHANGELOG(TABLE log, DESCRIPTOR(op), MAP['INSERT', 'INSERT'])")
        )


def test_from_changelog_is_the_inverse_of_to_changelog(env: TableEnvironment) -> None:
    table = env.from_path("sums")
    restored = table.to_changelog().from_changelog()
    assert collect_changes(restored.execute()) == collect_changes(table.execute())
    code = map_("INSERT", "I", "UPDATE_AFTER", "U").as_argument("op_mapping")
    renamed = table.to_changelog(descriptor("code").as_argument("op"), code)
    assert collect_changes(renamed.execute()) == ["+I I a 1", "+I I b 2", "+I U a 4"]


def test_changes_are_partitioned_and_the_partition_columns_are_first(env: TableEnvironment) -> None:
    env.get_config().set("parallelism.default", "3")
    query = "SELECT * FROM TO_CHANGELOG(input => TABLE sums PARTITION BY k)"
    assert "Exchange(distribution=[hash[k]])" in env.explain_sql(query)
    rows = collect_changes(env.execute_sql(query))
    assert [row for row in rows if " a " in row] == ["+I a INSERT 1", "+I a UPDATE_BEFORE 1", "+I a UPDATE_AFTER 4"]


def test_the_time_attribute_is_kept(env: TableEnvironment) -> None:
    env.execute_sql(
        "CREATE TABLE timed (ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen', "
        "'number-of-rows' = '3')"
    )
    view = "SELECT * FROM TO_CHANGELOG(input => TABLE timed)"
    env.execute_sql(f"CREATE VIEW told AS {view}")
    with env.execute_sql("DESCRIBE told").collect() as rows:
        assert [tuple(row)[:3] for row in rows] == [("op", "STRING", True), ("ts", "TIMESTAMP(3) *ROWTIME*", True)]


@pytest.mark.usefixtures("inline_engine")
def test_batch_mode_is_refused() -> None:
    env = create_environment(EnvironmentSettings.in_batch_mode())
    with pytest.raises(SqlError, match="TO_CHANGELOG needs streaming mode"):
        env.execute_sql("SELECT * FROM TO_CHANGELOG(input => TABLE sums)")


def test_they_can_be_compiled_to_a_plan(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE s (op STRING, k STRING, s INT) WITH ('connector' = 'blackhole')")
    plan = env.compile_plan_sql("INSERT INTO s SELECT op, k, s FROM TO_CHANGELOG(TABLE sums)")
    assert "ToChangelogSpec" in plan.as_json_string()
    plan.execute().wait()
