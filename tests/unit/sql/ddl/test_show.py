"""SHOW: lists of objects and the statements that create them."""

import pytest

from millstream.sql.errors import SqlError


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("SHOW CATALOGS", [("default_catalog",)]),
        ("SHOW CURRENT CATALOG", [("default_catalog",)]),
        ("SHOW DATABASES", [("default_database",)]),
        ("SHOW CURRENT DATABASE", [("default_database",)]),
        ("SHOW TABLES", [("t",), ("v",)]),
        ("SHOW TABLES LIKE 't%'", [("t",)]),
        ("SHOW TABLES NOT LIKE 't%'", [("v",)]),
        ("SHOW TABLES FROM default_catalog.default_database ILIKE 'T'", [("t",)]),
        ("SHOW VIEWS", [("v",)]),
        ("SHOW COLUMNS FROM t LIKE 'id'", [("id", "INT", False, "PRI(id)", None, None)]),
        ("SHOW MODULES", [("core",)]),
        ("SHOW USER FUNCTIONS", []),
        ("SHOW JARS", []),
    ],
)
def test_names_are_listed_and_filtered(run, statement, rows):
    assert list(run(statement)) == rows


def test_show_create_can_be_executed_again(run, catalogs):
    ((statement,),) = run("SHOW CREATE TABLE t")
    run("DROP TABLE t")
    run(statement)
    _, table = catalogs.table(("t",))
    assert [column.expr for column in table.columns] == [None, None, None, "`id` * 2"]
    assert (table.watermark, table.partitions, dict(table.options)) == (
        ("ts", "`ts`"),
        ("name",),
        {"connector": "print"},
    )
    assert run("SHOW CREATE TABLE t") == ((statement,),)


def test_show_create_view_and_catalog(run):
    run("CREATE CATALOG c COMMENT 'it''s' WITH ('type' = 'generic_in_memory', 'password' = 'x')")
    ((view,),) = run("SHOW CREATE VIEW v")
    assert view == ("CREATE VIEW `default_catalog`.`default_database`.`v` (\n  `a`\n)\nAS SELECT id AS a FROM t\n")
    ((catalog,),) = run("SHOW CREATE CATALOG c")
    assert catalog.startswith("CREATE CATALOG `c`\nCOMMENT 'it''s'\nWITH (")
    assert "'x'" not in catalog


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SHOW CREATE TABLE v", "'v' is not a table"),
        ("SHOW CREATE VIEW t", "'t' is not a view"),
        ("SHOW CREATE DATABASE d", "SHOW CREATE DATABASE is not supported"),
        ("SHOW TABLES FROM nowhere", "there is no database 'nowhere'"),
        ("SHOW PARTITIONS v", "'v' is not a table"),
    ],
)
def test_an_error_names_the_object(run, statement, message):
    with pytest.raises(SqlError, match=message):
        run(statement)
