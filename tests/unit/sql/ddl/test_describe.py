"""DESCRIBE for tables, functions, catalogs and databases."""

import pytest

from millstream.sql.errors import SqlError


def test_a_table_has_a_row_for_each_column(run):
    assert run("DESCRIBE t") == (
        ("id", "INT", False, "PRI(id)", None, None),
        ("name", "STRING", True, None, None, None),
        ("ts", "TIMESTAMP(3) *ROWTIME*", True, None, None, "`ts`"),
        ("twice", "INT", True, None, "AS `id` * 2", None),
    )
    assert run("DESCRIBE v") == (("a", "INT", False, None, None, None),)


def test_comments_are_one_more_column(run):
    run("CREATE TABLE c (a INT COMMENT 'x', m INT METADATA FROM 'k' VIRTUAL)")
    assert run("DESC c") == (
        ("a", "INT", True, None, None, None, "x"),
        ("m", "INT", True, None, "METADATA FROM 'k' VIRTUAL", None, None),
    )


def test_catalogs_and_databases(run):
    run("CREATE CATALOG c COMMENT 'x' WITH ('type' = 'generic_in_memory', 'k' = 'v')")
    run("CREATE DATABASE d COMMENT 'y' WITH ('k' = 'v')")
    assert run("DESCRIBE CATALOG EXTENDED c") == (
        ("name", "c"),
        ("type", "generic_in_memory"),
        ("comment", "x"),
        ("option:k", "v"),
    )
    assert run("DESCRIBE DATABASE d") == (("catalog", "default_catalog"), ("database", "d"), ("comment", "y"))


def test_functions_of_the_system_and_of_the_user(run):
    run("CREATE FUNCTION f AS 'math.sqrt' LANGUAGE PYTHON")
    described = dict(run("DESCRIBE FUNCTION EXTENDED f"))
    assert (described["class name"], described["is system function"], described["is temporary"]) == (
        "math.sqrt",
        "false",
        "false",
    )
    assert dict(run("DESCRIBE FUNCTION EXTENDED UPPER"))["kind"] == "SCALAR"
    assert dict(run("DESCRIBE FUNCTION EXTENDED SUM"))["kind"] == "AGGREGATE"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DESCRIBE x", "there is no table 'x'"),
        ("DESCRIBE FUNCTION UPER", "there is no function 'UPER'"),
        ("DESCRIBE CATALOG x", "there is no catalog 'x'"),
        ("DESCRIBE DATABASE x", "there is no database 'x'"),
    ],
)
def test_an_error_names_the_object(run, statement, message):
    with pytest.raises(SqlError, match=message):
        run(statement)
