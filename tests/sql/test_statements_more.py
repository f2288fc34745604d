"""Statements about modules, partitions, plans and jobs; the result of SHOW CREATE can be executed again."""

import json
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.errors import MillstreamError
from millstream.sql.catalog import modules
from millstream.sql.errors import SqlError
from millstream.table import DataTypes, EnvironmentSettings, Module, TableEnvironment
from millstream.table.udf import udf


@pytest.fixture
def env(inline_engine: None) -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.execute_sql(
        "CREATE TABLE t (id INT, name STRING, ts TIMESTAMP(3)) WITH ('connector' = 'datagen', 'number-of-rows' = '8')"
    )
    environment.execute_sql("CREATE TABLE sink (id INT) WITH ('connector' = 'blackhole')")
    return environment


def run(env: TableEnvironment, sql: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(sql).collect() as rows:
        return [tuple(row) for row in rows]


# ---------------------------------------------------------------------------------------------------------- modules


@udf(result_type=DataTypes.STRING())
def upper(text: str) -> str:
    return f"<{text}>"


def installed(options: dict[str, str]) -> dict[str, Any]:
    assert options == {"a": "b"}
    return {"UPPER": upper, "Quoted": upper}


@pytest.fixture
def geo(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("geo", f"{__name__}:installed", modules.GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda self: installed)
    monkeypatch.setattr(modules, "entry_points", lambda group: [point] if group == modules.GROUP else [])


@pytest.mark.usefixtures("geo")
def test_functions_are_found_in_the_order_in_which_modules_are_used(env: TableEnvironment) -> None:
    env.execute_sql("LOAD MODULE geo WITH ('a' = 'b')")
    assert run(env, "SHOW MODULES") == [("core",), ("geo",)]
    assert run(env, "SELECT UPPER('a'), quoted('a')") == [("A", "<a>")]
    env.execute_sql("USE MODULES geo, core")
    assert run(env, "SELECT UPPER('a')") == [("<a>",)]
    env.execute_sql("USE MODULES core")
    assert run(env, "SHOW FULL MODULES") == [("core", True), ("geo", False)]
    with pytest.raises(SqlError, match="there is no function 'QUOTED'"):
        env.execute_sql("SELECT quoted('a')")
    env.execute_sql("UNLOAD MODULE geo")
    assert [entry.name() for entry in env.list_full_modules()] == ["core"]


def test_built_in_functions_exist_without_the_module_core(env: TableEnvironment) -> None:
    env.execute_sql("UNLOAD MODULE core")
    assert run(env, "SHOW MODULES") == []
    assert run(env, "SELECT ABS(-1)") == [(1,)]  # as in Flink
    env.execute_sql("LOAD MODULE core")
    assert run(env, "SHOW FULL MODULES") == [("core", True)]


def test_modules_of_the_program(env: TableEnvironment) -> None:
    env.load_module("mine", Module({"shout": upper}))
    assert env.list_modules() == ["core", "mine"]
    assert ("shout",) in run(env, "SHOW USER FUNCTIONS")
    assert run(env, "SELECT shout('x')") == [("<x>",)]
    env.use_modules("mine", "core")
    env.unload_module("mine")
    assert env.list_modules() == ["core"]


# --------------------------------------------------------------------------------------------------------- refusals

REFUSED = [
    ("LOAD MODULE core", "there is a module 'core' already"),
    ("LOAD MODULE hive", "no module 'hive' is installed"),
    ("UNLOAD MODULE hive", "there is no module 'hive'"),
    ("USE MODULES hive", "there is no module 'hive'"),
    ("USE MODULES core, core", "is listed twice"),
    ("ANALYZE TABLE t COMPUTE STATISTICS", "ANALYZE TABLE needs batch mode"),
    ("CREATE MATERIALIZED TABLE m AS SELECT 1 AS a", "option 'connector' is missing"),
    ("ALTER TABLE t ADD PARTITION (id = 1)", "is not partitioned"),
    ("ALTER TABLE t DROP IF EXISTS PARTITION (id = 1)", "is not partitioned"),
    ("SHOW PARTITIONS t", "is not partitioned"),
    ("SHOW PARTITIONS nowhere", "there is no table 'nowhere'"),
    ("STOP JOB 'x'", "there is no job 'x' in this session"),
    ("STOP JOB 'x' WITH DRAIN", "expected WITH SAVEPOINT"),
    ("DESCRIBE JOB 'x'", "there is no job 'x' in this session"),
    ("COMPILE PLAN 'x.json' FOR SELECT 1", "only INSERT statements and statement sets can be compiled"),
    ("EXPLAIN SHOW TABLES", "unexpected 'SHOW'"),
    ("EXPLAIN CREATE TABLE u (a INT)", "only queries, inserts, updates and deletes can be explained"),
]


@pytest.mark.parametrize(("sql", "message"), REFUSED, ids=[sql for sql, _ in REFUSED])
def test_an_invalid_statement_is_refused_with_a_message(env: TableEnvironment, sql: str, message: str) -> None:
    before = env.list_tables(), env.list_full_modules()
    with pytest.raises(SqlError) as caught:
        env.execute_sql(sql)
    assert message in str(caught.value)
    assert caught.value.line == 1
    assert (env.list_tables(), env.list_full_modules()) == before


# ---------------------------------------------------------------------------------------------------------- SHOW


def test_partitions_are_the_existing_directories(env: TableEnvironment, tmp_path: Path) -> None:
    for path in ("day=2026-01-02/hour=1", "day=2026-01-01/hour=10", "day=2026-01-01/hour=9", "_staging"):
        (tmp_path / path).mkdir(parents=True)
    env.execute_sql(
        f"CREATE TABLE p (a INT, `day` STRING, `hour` INT) PARTITIONED BY (`day`, `hour`) "
        f"WITH ('connector' = 'filesystem', 'path' = 'file://{tmp_path}', 'format' = 'csv')"
    )
    everything = ["day=2026-01-01/hour=10", "day=2026-01-01/hour=9", "day=2026-01-02/hour=1"]
    assert [row[0] for row in run(env, "SHOW PARTITIONS p")] == everything
    assert run(env, "SHOW PARTITIONS p PARTITION (`day` = '2026-01-02')") == [("day=2026-01-02/hour=1",)]
    assert run(env, "SHOW PARTITIONS p PARTITION (`hour` = 9)") == [("day=2026-01-01/hour=9",)]
    with pytest.raises(SqlError, match="not a partition column"):
        env.execute_sql("SHOW PARTITIONS p PARTITION (a = 1)")


def test_columns_are_shown_by_pattern(env: TableEnvironment) -> None:
    assert [row[0] for row in run(env, "SHOW COLUMNS FROM t LIKE '%s'")] == ["ts"]
    assert [row[0] for row in run(env, "SHOW COLUMNS IN t NOT LIKE '%s'")] == ["id", "name"]


TEXTS = st.text("`'\"\\{};./*- a\né", min_size=1, max_size=8)


@pytest.mark.usefixtures("inline_engine")
def test_the_statement_of_show_create_creates_an_equal_object() -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())

    @given(TEXTS, TEXTS, TEXTS, TEXTS)
    def check(table: str, column: str, value: str, comment: str) -> None:
        def name(text: str) -> str:
            return "`" + text.replace("`", "``") + "`"

        def string(text: str) -> str:
            return "'" + text.replace("'", "''") + "'"

        env.execute_sql(
            f"CREATE TABLE {name(table)} ({name(column)} INT COMMENT {string(comment)}, other ROW<a INT, b STRING>, "
            f"PRIMARY KEY ({name(column)}) NOT ENFORCED) COMMENT {string(comment)} PARTITIONED BY ({name(column)}) "
            f"WITH ('connector' = 'datagen', {string(value)} = {string(value)})"
        )
        (path,) = [key for key in env._catalogs.all["default_catalog"].databases["default_database"].tables]
        statement = run(env, f"SHOW CREATE TABLE {name(path)}")[0][0]
        before = env._catalogs.table((path,))[1]
        env.execute_sql(f"DROP TABLE {name(path)}")
        env.execute_sql(statement)
        after = env._catalogs.table((path,))[1]
        assert after.columns == before.columns or after.schema == before.schema  # type: ignore[union-attr]
        assert after.options == before.options  # type: ignore[union-attr]
        assert run(env, f"SHOW CREATE TABLE {name(path)}")[0][0] == statement
        env.execute_sql(f"DROP TABLE {name(path)}")

    check()


def test_catalogs_are_created_from_their_show_create(env: TableEnvironment) -> None:
    env.execute_sql("CREATE CATALOG `a``b{}` COMMENT 'it''s' WITH ('type' = 'generic_in_memory')")
    statement = run(env, "SHOW CREATE CATALOG `a``b{}`")[0][0]
    env.execute_sql("DROP CATALOG `a``b{}`")
    env.execute_sql(statement)
    assert run(env, "SHOW CREATE CATALOG `a``b{}`")[0][0] == statement
    assert ("comment", "it's") in run(env, "DESCRIBE CATALOG `a``b{}`")


# --------------------------------------------------------------------------------------------------------- EXPLAIN


def test_explain_has_the_requested_details(env: TableEnvironment) -> None:
    query = "SELECT name, COUNT(*) FROM t WHERE id = 1 GROUP BY name"
    plain = run(env, f"EXPLAIN {query}")[0][0]
    for part in ("rowcount", "== Physical Execution Plan ==", "changelogMode", "== Plan Advice =="):
        assert part not in plain
    statement = run(env, f"EXPLAIN ESTIMATED_COST, CHANGELOG_MODE, JSON_EXECUTION_PLAN, PLAN_ADVICE {query}")[0][0]
    assert "LogicalTableScan(table=[[default_catalog, default_database, t]]): rowcount = 8.0" in statement
    assert "changelogMode=[I,UB,UA,D]" in statement
    assert "'table.exec.state.ttl'" in statement
    graph = json.loads(statement.partition("== Physical Execution Plan ==\n")[2])
    assert [node["type"] for node in graph["nodes"]][-1].startswith("Sink")
    assert env.list_tables() == ["sink", "t"]


def test_a_table_that_would_be_created_is_explained_and_not_created(env: TableEnvironment) -> None:
    statement = run(env, "EXPLAIN CREATE TABLE copy WITH ('connector' = 'print') AS SELECT id FROM t")[0][0]
    assert "LogicalSink(table=[default_catalog.default_database.copy]" in statement
    assert "copy" not in env.list_tables()


# ----------------------------------------------------------------------------------------------------------- plans


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO sink SELECT id FROM t",
        "STATEMENT SET BEGIN INSERT INTO sink SELECT id FROM t; "
        "INSERT INTO sink SELECT CASE WHEN id > 0 THEN 1 END FROM t; END",
    ],
)
def test_a_compiled_plan_runs_later(env: TableEnvironment, tmp_path: Path, statement: str) -> None:
    file = tmp_path / "plan.json"
    env.execute_sql(f"COMPILE PLAN '{file}' FOR {statement}")
    text = file.read_text()
    assert len(json.loads(text)["statements"]) == statement.count("INSERT")
    with pytest.raises(SqlError, match="already"):
        env.execute_sql(f"COMPILE PLAN '{file}' FOR INSERT INTO sink VALUES (1)")
    env.execute_sql(f"COMPILE PLAN '{file}' IF NOT EXISTS FOR INSERT INTO sink VALUES (1)")
    assert file.read_text() == text
    env.execute_sql(f"EXECUTE PLAN '{file}'").wait()
    env.execute_sql(f"COMPILE AND EXECUTE PLAN '{tmp_path / 'other.json'}' FOR {statement};").wait()


# ------------------------------------------------------------------------------------------------------------ jobs


def test_jobs_are_shown_described_and_stopped(env: TableEnvironment, tmp_path: Path) -> None:
    env.execute_sql("CREATE TABLE endless (id INT) WITH ('connector' = 'datagen', 'rows-per-second' = '100')")
    first = env.execute_sql("INSERT INTO sink SELECT id FROM endless").get_job_client()
    second = env.execute_sql("BEGIN STATEMENT SET; INSERT INTO sink SELECT id FROM endless; END").get_job_client()
    assert first is not None
    assert second is not None
    statement = run(env, "SHOW JOBS")
    assert [row[0] for row in statement] == [str(first.get_job_id()), str(second.get_job_id())]
    assert statement[0][1] == "insert-into_default_catalog.default_database.sink"
    assert run(env, f"DESCRIBE JOB '{first.get_job_id()}'") == [statement[0]]
    env.execute_sql(f"STOP JOB '{first.get_job_id()}'")
    assert run(env, "SHOW JOBS")[0][2] == "CANCELED"
    env.get_config().set("execution.checkpointing.savepoint-dir", str(tmp_path))
    path = run(env, f"STOP JOB '{second.get_job_id()}' WITH SAVEPOINT WITH DRAIN")[0][0]
    assert path.startswith(("file:", str(tmp_path)))
    assert run(env, "SHOW JOBS")[1][2] == "FINISHED"
    with pytest.raises(SqlError, match="has already ended"):
        env.execute_sql(f"STOP JOB '{first.get_job_id()}'")


def test_reset_restores_only_options_that_were_set(env: TableEnvironment) -> None:
    env.get_config().set("table.exec.state.ttl", "1 h")
    env.execute_sql("SET 'table.exec.state.ttl' = '2 h'")
    env.execute_sql("SET 'pipeline.name' = 'x'")
    env.execute_sql("RESET")
    assert env.get_config().get("table.exec.state.ttl", "") == "1 h"
    assert env.get_config().get("pipeline.name", "none") == "none"


def test_describe_shows_comments_if_there_are_any(env: TableEnvironment) -> None:
    assert "comment" not in env.execute_sql("DESCRIBE t").get_resolved_schema().get_column_names()
    env.execute_sql("ALTER TABLE t ADD (note STRING COMMENT 'for people')")
    assert run(env, "DESC t")[-1][-1] == "for people"
    env.execute_sql("CREATE DATABASE d COMMENT 'x' WITH ('k' = 'v')")
    assert ("option:k", "v") not in run(env, "DESCRIBE DATABASE d")
    assert ("option:k", "v") in run(env, "DESCRIBE DATABASE EXTENDED d")


def test_plan_files_have_a_path_or_uri_and_errors_have_a_reason(env: TableEnvironment, tmp_path: Path) -> None:
    plan = f"file://{tmp_path}/new/plan.json"
    env.execute_sql(f"COMPILE PLAN '{plan}' FOR INSERT INTO sink SELECT id FROM t")
    env.execute_sql(f"EXECUTE PLAN '{tmp_path}/new/plan.json'").wait()
    env.execute_sql(f"COMPILE AND EXECUTE PLAN '{plan}' FOR INSERT INTO sink SELECT id FROM t").wait()
    with pytest.raises(MillstreamError, match="plan file '/nowhere' cannot be used: no such file"):
        env.execute_sql("EXECUTE PLAN '/nowhere'")
    with pytest.raises(MillstreamError, match="not in 's3' storage"):
        env.execute_sql("EXECUTE PLAN 's3://lake/plan.json'")
    with pytest.raises(SqlError, match="did you mean 'ESTIMATED_COST'"):
        env.execute_sql("EXPLAIN ESTIMATE_COST SELECT 1")
