"""The grammar of statements: definitions, alterations, options and jobs."""

import pytest

from millstream.sql.errors import SqlError
from millstream.sql.syntax import parse_query, parse_statement, parse_statements, parse_type
from millstream.sql.syntax import tree as s
from millstream.sql.syntax.statements import STATEMENTS
from millstream.sql.types import data_types as t

COLUMN = s.ColumnDef(0, "a", parse_type("INT"))
QUERY = parse_query("SELECT 1")


def test_create_table_with_every_clause() -> None:
    table = parse_statement(
        "CREATE TEMPORARY TABLE IF NOT EXISTS d.t (a INT COMMENT 'x', b AS a + 1, c INT METADATA FROM 'k' VIRTUAL, "
        "ts TIMESTAMP(3), WATERMARK FOR ts AS ts, CONSTRAINT p PRIMARY KEY (a) NOT ENFORCED) COMMENT 'y' "
        "DISTRIBUTED BY HASH (a) INTO 4 BUCKETS PARTITIONED BY (a) WITH ('k' = 'v') LIKE o (EXCLUDING ALL)"
    )
    assert isinstance(table, s.CreateTable)
    a, b, c, _ = table.columns
    assert a == s.ColumnDef(0, "a", parse_type("INT"), comment="x")
    assert isinstance(b.expr, s.Call)
    assert (c.metadata, c.metadata_key, c.virtual) == (True, "k", True)
    assert table.watermark == s.WatermarkDef(0, ("ts",), s.Name(0, ("ts",)))
    assert (table.primary_key, table.constraint) == (("a",), "p")
    assert table.distribution == s.DistributionDef(0, "HASH", ("a",), 4)
    assert (table.partitions, table.options, table.comment) == (("a",), (("k", "v"),), "y")
    assert table.like == s.LikeClause(0, ("o",), (("EXCLUDING", "ALL"),))
    assert (table.temporary, table.if_not_exists, table.or_replace) == (True, True, False)


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("SELECT 1", s.SelectStatement(0, QUERY)),
        ("(SELECT 1)", s.SelectStatement(0, QUERY)),
        ("CREATE TABLE t AS SELECT 1", s.CreateTable(0, ("t",), query=QUERY)),
        (
            "REPLACE TABLE t AS SELECT 1",
            s.CreateTable(0, ("t",), query=QUERY, or_replace=True, must_exist=True),
        ),
        (
            "CREATE OR REPLACE VIEW v (a) COMMENT 'c' AS SELECT 1 ;",
            s.CreateView(0, ("v",), QUERY, "SELECT 1", ("a",), "c", or_replace=True),
        ),
        (
            "CREATE CATALOG c COMMENT 'x' WITH ('type' = 'y')",
            s.CreateNamespace(0, "CATALOG", ("c",), (("type", "y"),), "x"),
        ),
        ("CREATE DATABASE IF NOT EXISTS d", s.CreateNamespace(0, "DATABASE", ("d",), if_not_exists=True)),
        (
            "CREATE TEMPORARY SYSTEM FUNCTION f AS 'm.f' LANGUAGE PYTHON",
            s.CreateFunction(0, ("f",), "m.f", "PYTHON", temporary=True, system=True),
        ),
        ("CREATE FUNCTION f AS 'm.f' USING JAR 'a'", s.CreateFunction(0, ("f",), "m.f", "JAVA")),
        ("DROP TEMPORARY VIEW IF EXISTS a.v", s.Drop(0, "VIEW", ("a", "v"), if_exists=True, temporary=True)),
        ("DROP DATABASE d CASCADE", s.Drop(0, "DATABASE", ("d",), cascade=True)),
        ("ALTER TABLE t RENAME TO u", s.Alter(0, "TABLE", ("t",), s.Rename(("u",)))),
        ("ALTER TABLE IF EXISTS t RENAME a TO b", s.Alter(0, "TABLE", ("t",), s.RenameColumn("a", "b"), True)),
        ("ALTER TABLE t SET ('k' = 'v')", s.Alter(0, "TABLE", ("t",), s.SetOptions((("k", "v"),)))),
        ("ALTER TABLE t RESET ('k')", s.Alter(0, "TABLE", ("t",), s.ResetOptions(("k",)))),
        (
            "ALTER TABLE t ADD a INT FIRST",
            s.Alter(0, "TABLE", ("t",), s.AddSchemaParts((s.PositionedColumn(COLUMN, first=True),))),
        ),
        (
            "ALTER TABLE t MODIFY (a INT AFTER b)",
            s.Alter(0, "TABLE", ("t",), s.ModifySchemaParts((s.PositionedColumn(COLUMN, after="b"),))),
        ),
        (
            "ALTER TABLE t ADD PRIMARY KEY (a) NOT ENFORCED",
            s.Alter(0, "TABLE", ("t",), s.AddSchemaParts((s.PrimaryKeyDef(None, ("a",)),))),
        ),
        ("ALTER TABLE t DROP (a, b)", s.Alter(0, "TABLE", ("t",), s.DropColumns(("a", "b")))),
        ("ALTER TABLE t DROP WATERMARK", s.Alter(0, "TABLE", ("t",), s.DropWatermark())),
        ("ALTER TABLE t DROP CONSTRAINT c", s.Alter(0, "TABLE", ("t",), s.DropPrimaryKey("c"))),
        ("ALTER TABLE t DROP DISTRIBUTION", s.Alter(0, "TABLE", ("t",), s.DropDistribution())),
        (
            "ALTER TABLE t ADD DISTRIBUTION INTO 2 BUCKETS",
            s.Alter(0, "TABLE", ("t",), s.AddDistribution(s.DistributionDef(0, None, (), 2))),
        ),
        (
            "ALTER TABLE t DROP IF EXISTS PARTITION (p = 1)",
            s.Alter(0, "TABLE", ("t",), s.DropPartitions((s.PartitionDef(0, (("p", s.Literal(0, 1)),)),), True)),
        ),
        ("ALTER CATALOG c COMMENT 'x'", s.Alter(0, "CATALOG", ("c",), s.SetComment("x"))),
        (
            "ALTER TABLE t ADD IF NOT EXISTS PARTITION (p = 1) WITH ('k' = 'v') PARTITION (p = 2)",
            s.Alter(
                0,
                "TABLE",
                ("t",),
                s.AddPartitions(
                    (
                        s.PartitionDef(0, (("p", s.Literal(0, 1)),), (("k", "v"),)),
                        s.PartitionDef(0, (("p", s.Literal(0, 2)),)),
                    ),
                    if_not_exists=True,
                ),
            ),
        ),
        ("ALTER VIEW v AS SELECT 1", s.Alter(0, "VIEW", ("v",), s.SetViewQuery(QUERY, "SELECT 1"))),
        (
            "ALTER TEMPORARY FUNCTION f AS 'm.f' LANGUAGE PYTHON",
            s.Alter(0, "FUNCTION", ("f",), s.SetFunctionTarget("m.f", "PYTHON"), temporary=True),
        ),
        ("SHOW TABLES FROM d NOT LIKE 'a%'", s.Show(0, "TABLES", ("d",), "a%", negated=True)),
        ("SHOW CREATE TABLE t", s.Show(0, "CREATE TABLE", ("t",))),
        ("SHOW USER FUNCTIONS ILIKE 'a'", s.Show(0, "USER FUNCTIONS", (), "a", ignore_case=True)),
        (
            "SHOW PARTITIONS t PARTITION (p = 1)",
            s.Show(0, "PARTITIONS", ("t",), partition=(("p", s.Literal(0, 1)),)),
        ),
        ("DESC EXTENDED t", s.Describe(0, ("t",), extended=True)),
        ("DESCRIBE DATABASE d", s.Describe(0, ("d",), "DATABASE")),
        ("DESCRIBE JOB 'x'", s.Describe(0, ("x",), "JOB")),
        ("DESCRIBE catalog", s.Describe(0, ("catalog",))),
        ("USE c.d", s.Use(0, "DATABASE", ("c", "d"))),
        ("USE CATALOG c", s.Use(0, "CATALOG", ("c",))),
        ("USE MODULES a, b", s.Use(0, "MODULES", ("a", "b"))),
        ("LOAD MODULE m WITH ('k' = 'v')", s.Module(0, "LOAD", "m", (("k", "v"),))),
        ("UNLOAD MODULE m", s.Module(0, "UNLOAD", "m")),
        ("SET", s.SetOption(0)),
        ("SET 'k' = 'v'", s.SetOption(0, "k", "v")),
        ("SET a.b-c = 1 min;", s.SetOption(0, "a.b-c", "1 min")),
        ("RESET", s.ResetOption(0)),
        ("RESET a.b", s.ResetOption(0, "a.b")),
        (
            "INSERT OVERWRITE t PARTITION (p = 1) (a) SELECT 1 ON CONFLICT DO NOTHING",
            s.Insert(
                0, ("t",), QUERY, ("a",), (("p", s.Literal(0, 1)),), overwrite=True, conflict="NOTHING", table_at=17
            ),
        ),
        ("EXPLAIN PLAN FOR SELECT 1", s.Explain(0, s.SelectStatement(0, QUERY))),
        ("EXPLAIN CHANGELOG_MODE, PLAN_ADVICE SELECT 1", s.Explain(
            0, s.SelectStatement(0, QUERY), ("CHANGELOG_MODE", "PLAN_ADVICE")
        )),
        ("EXECUTE PLAN 'f'", s.PlanFile(0, "EXECUTE", "f")),
        ("COMPILE PLAN 'f' IF NOT EXISTS FOR SELECT 1", s.PlanFile(
            0, "COMPILE", "f", s.SelectStatement(0, QUERY), if_not_exists=True
        )),
        ("STOP JOB 'j' WITH SAVEPOINT WITH DRAIN", s.StopJob(0, "j", savepoint=True, drain=True)),
        ("TRUNCATE TABLE c.d.t", s.Truncate(0, ("c", "d", "t"), 15)),
        ("ANALYZE TABLE t COMPUTE STATISTICS", s.Analyze(0, ("t",), table_at=14)),
        ("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS", s.Analyze(0, ("t",), (), None, 14)),
        ("ANALYZE TABLE t PARTITION (p = 1, q) COMPUTE STATISTICS FOR COLUMNS a, b", s.Analyze(
            0, ("t",), (("p", s.Literal(0, 1)), ("q", None)), ("a", "b"), 14
        )),
        ("DELETE FROM t", s.Delete(0, ("t",), table_at=12)),
        ("DELETE FROM d.t AS x WHERE TRUE", s.Delete(0, ("d", "t"), s.Literal(0, True), "x", 12)),
        ("UPDATE t x SET a = 1, b = 2 WHERE TRUE", s.Update(
            0, ("t",), (("a", s.Literal(0, 1)), ("b", s.Literal(0, 2))), s.Literal(0, True), "x", 7
        )),
        ("CREATE TEMPORARY MODEL IF NOT EXISTS m INPUT (a INT) OUTPUT (b INT) COMMENT 'c' WITH('k'='v')", s.CreateModel(
            0, ("m",), (s.ColumnDef(0, "a", t.INT),), (s.ColumnDef(0, "b", t.INT),), (("k", "v"),), "c", True, True
        )),
        ("SHOW PROCEDURES IN d", s.Show(0, "PROCEDURES", ("d",))),
        ("CALL c.d.p(1, n => 2)", s.CallProcedure(
            0, ("c", "d", "p"), (s.Literal(0, 1), s.NamedArgument(0, "n", s.Literal(0, 2)))
        )),
        ("CALL p()", s.CallProcedure(0, ("p",))),
    ],
)  # fmt: skip
def test_a_statement_becomes_its_node(text: str, node: s.Statement) -> None:
    assert parse_statement(text) == node


@pytest.mark.parametrize(
    "text",
    [
        "EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1; INSERT INTO u SELECT 1; END",
        "BEGIN STATEMENT SET; INSERT INTO t SELECT 1; INSERT INTO u SELECT 1; END",
    ],
)
def test_a_statement_set_holds_its_inserts(text: str) -> None:
    statements = parse_statement(text)
    assert isinstance(statements, s.StatementSet)
    assert [insert.table for insert in statements.inserts] == [("t",), ("u",)]


def test_a_script_is_split_at_semicolons() -> None:
    assert [type(node) for node in parse_statements(";SET 'a' = 'b;c';; SHOW TABLES")] == [s.SetOption, s.Show]


def test_every_keyword_of_a_statement_has_a_rule() -> None:
    def find_problem(text: str) -> str:
        try:
            parse_statement(text)
        except SqlError as error:
            return error.problem
        return ""

    assert len(STATEMENTS) == 29
    for word in STATEMENTS:
        assert "expected a statement" not in find_problem(f"{word} nothing that follows the grammar"), word


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("CRATE TABLE t", 0, "unexpected 'CRATE': expected a statement"),
        ("CREATE TABEL t", 7, "expected TABLE, MATERIALIZED TABLE, VIEW, DATABASE, CATALOG, FUNCTION or MODEL"),
        ("CREATE TABLE t (a INT, WATERMARK FOR a AS a, WATERMARK FOR a AS a)", 45, "only one watermark"),
        ("CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED, b INT PRIMARY KEY NOT ENFORCED)", 48, "only one primary key"),
        ("CREATE TABLE t (a INT PRIMARY KEY ENFORCED)", 34, "unexpected 'ENFORCED': expected NOT ENFORCED"),
        ("CREATE TABLE t (a INT) DISTRIBUTED (a)", 35, "expected BY or INTO"),
        ("CREATE TABLE t LIKE u (ALL)", 23, "expected INCLUDING, EXCLUDING or OVERWRITING"),
        ("REPLACE TABLE t (a INT)", 23, "expected AS SELECT"),
        ("ALTER TABLE t CHANGE a", 14, "expected ADD, MODIFY, DROP, RENAME, SET or RESET"),
        ("ALTER TABLE t COMMENT 'x'", 14, "expected ADD, MODIFY, DROP, RENAME, SET or RESET"),
        ("ALTER DATABASE d ADD x", 17, "expected RENAME TO, SET, RESET or AS"),
        ("SHOW TABEL", 5, "unexpected 'TABEL': expected what to show"),
        ("INSERT t SELECT 1", 7, "expected INTO or OVERWRITE"),
        ("EXPLAIN CHANGELOG SELECT 1", 8, "expected a detail or a statement to explain"),
        ("EXECUTE STATEMENT SET BEGIN END", 0, "a statement set needs at least one INSERT"),
        ("BEGIN STATEMENT SET; SELECT 1; END", 21, "expected INSERT or END"),
        ("STOP JOB 'j' WITH DRAIN", 13, "expected WITH SAVEPOINT"),
        ("SET = 1", 4, "expected the key of an option in quotes"),
        ("SELECT 1; SELECT 2", 10, "expected the end of the statement"),
    ],
)
def test_an_error_names_the_expected_token(text: str, at: int, message: str) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        parse_statement(text)
    assert caught.value.at == at
