"""Statements about catalogs, and the errors of refused statements."""

from typing import Any

import pytest

from millstream.sql.errors import SqlError
from millstream.table import EnvironmentSettings, TableEnvironment


@pytest.fixture
def env(inline_engine: None) -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.execute_sql(
        "CREATE TABLE t (id INT, name STRING, ts TIMESTAMP(3)) WITH ('connector' = 'datagen', 'number-of-rows' = '1')"
    )
    return environment


def run(env: TableEnvironment, sql: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(sql).collect() as rows:
        return [tuple(row) for row in rows]


def test_databases_and_catalogs(env: TableEnvironment) -> None:
    env.execute_sql("CREATE DATABASE d COMMENT 'x'")
    env.execute_sql("CREATE CATALOG c WITH ('type' = 'generic_in_memory')")
    assert run(env, "SHOW DATABASES") == [("d",), ("default_database",)]
    env.execute_sql("USE d")
    assert run(env, "SHOW TABLES") == []
    env.execute_sql("CREATE TABLE u LIKE default_database.t")
    assert run(env, "SHOW TABLES") == [("u",)]
    env.execute_sql("USE CATALOG c")
    assert run(env, "SHOW CURRENT CATALOG") == [("c",)]
    env.execute_sql("USE CATALOG default_catalog")
    with pytest.raises(SqlError, match="not empty"):
        env.execute_sql("DROP DATABASE d")
    env.execute_sql("DROP DATABASE d CASCADE")


def test_tables_are_altered(env: TableEnvironment) -> None:
    env.execute_sql("ALTER TABLE t ADD (x INT AFTER id, y AS id + 1)")
    env.execute_sql("ALTER TABLE t RENAME name TO label")
    env.execute_sql("ALTER TABLE t DROP ts")
    env.execute_sql("ALTER TABLE t SET ('number-of-rows' = '2')")
    assert [row[:2] for row in run(env, "DESCRIBE t")] == [
        ("id", "INT"),
        ("x", "INT"),
        ("label", "STRING"),
        ("y", "INT"),
    ]
    env.execute_sql("ALTER TABLE t RENAME TO renamed")
    assert run(env, "SHOW TABLES LIKE 'ren%'") == [("renamed",)]


def test_views(env: TableEnvironment) -> None:
    env.execute_sql("CREATE VIEW v (a) AS SELECT id FROM t")
    assert run(env, "DESCRIBE v")[0][0] == "a"
    assert "AS SELECT id FROM t" in run(env, "SHOW CREATE VIEW v")[0][0]
    env.execute_sql("DROP TABLE t")
    with pytest.raises(SqlError, match="can no longer be used"):
        env.sql_query("SELECT * FROM v")


def test_a_temporary_table_hides_a_permanent_one(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TEMPORARY TABLE t (z INT) WITH ('connector' = 'datagen')")
    assert run(env, "DESCRIBE t")[0][0] == "z"
    env.execute_sql("DROP TEMPORARY TABLE t")
    assert run(env, "DESCRIBE t")[0][0] == "id"


def test_create_table_as(env: TableEnvironment, capsys: Any) -> None:
    env.execute_sql("CREATE TABLE copy WITH ('connector' = 'print') AS SELECT 1 AS a, 'x' AS b").wait()
    assert "+I[1, x]" in capsys.readouterr().out
    assert [row[0] for row in run(env, "DESCRIBE copy")] == ["a", "b"]


def test_options_are_set_and_reset(env: TableEnvironment) -> None:
    env.execute_sql("SET 'table.local-time-zone' = 'Europe/Berlin'")
    assert env.get_config().get_local_timezone() == "Europe/Berlin"
    env.execute_sql("RESET 'table.local-time-zone'")
    assert env.get_config().get_local_timezone() == "UTC"


REFUSED = [
    ("SELECT nme FROM t", "did you mean 'name'", 7),
    ("SELECT * FROM tt", "did you mean 't'", 14),
    ("SELECT UPER(name) FROM t", "did you mean 'UPPER'", 7),
    ("SELECT name || 'x' FROM t GROUP BY id", "neither grouped by", 0),
    ("SELECT id FROM t WHERE COUNT(*) > 1", "cannot be used in WHERE", 23),
    ("SELECT t.id FROM t, t", "ambiguous", 7),
    ("SELECT CAST(id AS DATE) FROM t", "cannot be cast", 7),
    ("SELECT UPPER(id) FROM t", "UPPER cannot be applied to (INT)", 7),
    ("SELECT id FROM t ORDER BY name", "sorted only by a time attribute", 17),
    ("SELECT name, COUNT(*) FROM t", "neither grouped by nor inside an aggregate", 7),
    ("SELECT /*+ BRODCAST(t) */ * FROM t", "did you mean 'BROADCAST'", 11),
    ("SELECT /*+ BROADCAST(u) */ * FROM t", "'u', which is not a table of this query", 11),
    ("SELECT /*+ STATE_TTL('u' = '1 d') */ name, COUNT(*) FROM t GROUP BY name", "not a table of this query", 11),
    ("SELECT * FROM t /*+ STATE_TTL('t' = '1 d') */", "write it after SELECT", 20),
    ("SELECT * FROM nodb.t", "there is no database 'nodb'", 14),
    (
        "SELECT 1 FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY)) GROUP BY window_start, window_end",
        "WATERMARK",
        36,
    ),
    ("INSERT INTO t SELECT 1", "the query has 1 columns", 12),
    ("INSERT INTO nowhere SELECT 1", "there is no table 'nowhere'", 12),
    ("INSERT INTO t (id, nme) SELECT 1, 'a'", "did you mean 'name'", 12),
    ("INSERT INTO t (id, id) SELECT 1, 2", "column 'id' is written to twice", 12),
    ("INSERT INTO t SELECT * FROM t", "cannot be written to", 12),
    (
        "CREATE TABLE x (a INT, WATERMARK FOR a AS a) WITH ('connector' = 'datagen')",
        "a watermark needs TIMESTAMP(3)",
        23,
    ),
    ("CREATE TABLE x (a INT, PRIMARY KEY (b) NOT ENFORCED) WITH ('connector' = 'datagen')", "which is not a column", 0),
    ("CREATE TABLE t (a INT) WITH ('connector' = 'datagen')", "already", 0),
    ("DELETE FROM t", "DELETE needs batch mode", 12),
    ("UPDATE t SET", "unexpected end of statement: expected a name", 12),
    ("SELECT a FROM (VALUES (1)) AS v(a) UNION SELECT 1, 2", "UNION of 1 and 2 columns", 35),
]


@pytest.mark.parametrize(("sql", "message", "offset"), REFUSED, ids=[sql for sql, _, _ in REFUSED])
def test_an_invalid_statement_is_refused_with_its_position(
    env: TableEnvironment, sql: str, message: str, offset: int | None
) -> None:
    before = env.list_tables()
    with pytest.raises(SqlError) as caught:
        env.execute_sql(sql)
    assert message in str(caught.value)
    assert caught.value.at == offset
    assert env.list_tables() == before


def test_a_join_without_an_equality_is_logged(env: TableEnvironment, caplog: pytest.LogCaptureFixture) -> None:
    for query, warned in (
        ("SELECT a.id, b.id FROM t AS a CROSS JOIN t AS b", True),
        ("SELECT a.id FROM t AS a JOIN t AS b ON a.id < b.id", True),
        ("SELECT a.id FROM t AS a JOIN t AS b ON a.id = b.id", False),
        ("SELECT a.id, x FROM t AS a CROSS JOIN (VALUES (1)) AS v (x)", False),
        ("SELECT id FROM t WHERE id > (SELECT AVG(id) FROM t)", False),
    ):
        caplog.clear()
        env.execute_sql(query).get_job_client().cancel().result()  # type: ignore[union-attr]
        assert ("has no equality" in caplog.text) is warned, query


def test_a_side_of_a_join_without_selected_columns_is_counted(env: TableEnvironment) -> None:
    query = "SELECT a.x FROM (VALUES (1), (2)) AS a (x) CROSS JOIN (VALUES (3), (4), (5)) AS b (y)"
    with env.execute_sql(query).collect() as rows:
        assert sorted(row[0] for row in rows) == [1, 1, 1, 2, 2, 2]


CONNECTORS = [
    ("'connector' = 'datagn'", "did you mean 'datagen'"),
    ("'connector' = 'datagen', 'rows-per-secnd' = '1'", "did you mean 'rows-per-second'"),
    ("'connector' = 'datagen', 'number-of-rows' = 'x'", "must be an integer"),
    ("'format' = 'csv'", "option 'connector' is missing"),
    ("'connector' = 'print'", "cannot be read"),
]


@pytest.mark.parametrize(("options", "message"), CONNECTORS)
def test_options_of_connectors_are_checked(env: TableEnvironment, options: str, message: str) -> None:
    env.execute_sql(f"CREATE TABLE x (a INT) WITH ({options})")
    with pytest.raises(SqlError) as caught:
        env.execute_sql("SELECT * FROM x")
    assert message in str(caught.value)


def test_explain_shows_all_three_plans(env: TableEnvironment) -> None:
    plan = env.explain_sql("SELECT name, COUNT(*) FROM t WHERE id > 1 GROUP BY name")
    assert "== Abstract Syntax Tree ==" in plan
    assert "== Optimized Execution Plan ==" in plan
    assert "GroupAggregate(groupBy=[name]" in plan
    assert "Exchange(distribution=[hash[name]])" in plan
    changes = next(iter(env.execute_sql("EXPLAIN CHANGELOG_MODE SELECT COUNT(*) FROM t").collect()))[0]
    assert "changelogMode=[I,UB,UA,D]" in changes
