"""Catalogs and databases: CREATE, ALTER, DROP and USE."""

import pytest

from millstream.sql.errors import CatalogError


def test_a_catalog_is_created_used_altered_and_dropped(run, catalogs):
    run("CREATE CATALOG c COMMENT 'x' WITH ('type' = 'generic_in_memory', 'default-database' = 'd')")
    run("ALTER CATALOG c SET ('a' = 'b')")
    run("ALTER CATALOG c COMMENT 'y'")
    assert (catalogs.all["c"].options["a"], catalogs.all["c"].comment) == ("b", "y")
    run("USE CATALOG c")
    assert (catalogs.current_catalog, catalogs.current_database) == ("c", "d")
    run("USE CATALOG default_catalog")
    run("DROP CATALOG c")
    assert "c" not in catalogs.all


def test_a_database_is_created_used_and_dropped(run, catalogs):
    run("CREATE DATABASE d WITH ('a' = 'b')")
    run("CREATE DATABASE IF NOT EXISTS d")
    run("ALTER DATABASE d SET ('a' = 'c')")
    assert catalogs.database("default_catalog", "d").options == {"a": "c"}
    run("USE d")
    assert catalogs.current_database == "d"
    run("USE default_catalog.default_database")
    run("CREATE TABLE d.x (a INT)")
    run("DROP DATABASE d CASCADE")
    run("DROP DATABASE IF EXISTS d")
    assert "d" not in catalogs.catalog("default_catalog").databases


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE CATALOG default_catalog WITH ('type' = 'x')", "catalog 'default_catalog' already exists"),
        ("CREATE CATALOG c", "catalog 'c' has no option 'type'"),
        ("CREATE CATALOG c WITH ('type' = 'hive')", "catalogs of type 'hive' are not supported"),
        ("DROP CATALOG default_catalog", "is the current catalog and cannot be dropped"),
        ("DROP CATALOG c", "there is no catalog 'c'"),
        ("ALTER CATALOG default_catalog RESET ('type')", "the option 'type' of a catalog cannot be reset"),
        ("CREATE DATABASE default_database", "database 'default_database' already exists in catalog 'default_catalog'"),
        ("DROP DATABASE default_database", "is the current database and cannot be dropped"),
        ("DROP DATABASE full", "database 'full' is not empty"),
        ("USE nowhere", "there is no database 'nowhere'"),
    ],
)
def test_an_error_names_the_object(run, statement, message):
    run("CREATE DATABASE `full`")
    run("CREATE TABLE `full`.x (a INT)")
    with pytest.raises(CatalogError, match=message):
        run(statement.replace(" full", " `full`"))
