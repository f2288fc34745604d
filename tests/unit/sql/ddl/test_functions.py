"""CREATE, ALTER and DROP FUNCTION, LOAD and UNLOAD MODULE."""

import pytest

from millstream.sql.errors import SqlError


def test_a_function_is_created_and_dropped_with_each_type_of_name(run, catalogs):
    run("CREATE FUNCTION f AS 'math.sqrt' LANGUAGE PYTHON")
    run("CREATE FUNCTION IF NOT EXISTS F AS 'math.sin' LANGUAGE PYTHON")
    run("CREATE TEMPORARY FUNCTION f AS 'math.cos' LANGUAGE PYTHON")
    run("CREATE TEMPORARY SYSTEM FUNCTION g AS 'math.tan' LANGUAGE PYTHON")
    assert sorted(catalogs.database("default_catalog", "default_database").functions) == ["f"]
    assert list(catalogs.temporary_functions) == [("default_catalog", "default_database", "f")]
    assert list(catalogs.system_functions) == ["g"]
    run("DROP TEMPORARY SYSTEM FUNCTION g")
    run("DROP TEMPORARY FUNCTION f")
    run("DROP FUNCTION f")
    run("DROP FUNCTION IF EXISTS f")
    assert catalogs.function(("f",)) is None


def test_alter_replaces_the_function(run, catalogs):
    import math

    run("CREATE FUNCTION f AS 'math.sqrt' LANGUAGE PYTHON")
    run("ALTER FUNCTION f AS 'math.sin' LANGUAGE PYTHON")
    assert catalogs.function(("f",)).function is math.sin


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE FUNCTION f AS 'math.sin' LANGUAGE PYTHON", "function 'f' already exists"),
        ("CREATE FUNCTION g AS 'a.B'", "functions in JAVA are not supported"),
        ("CREATE FUNCTION g AS 'no_such_module.f' LANGUAGE PYTHON", "function 'no_such_module.f' cannot be imported"),
        ("CREATE FUNCTION g AS 'math.no' LANGUAGE PYTHON", "function 'math.no' cannot be imported"),
        ("DROP FUNCTION g", "there is no function 'g'"),
        ("ALTER FUNCTION g AS 'math.sin' LANGUAGE PYTHON", "there is no function 'g'"),
        ("ALTER TEMPORARY FUNCTION f AS 'math.sin' LANGUAGE PYTHON", "a temporary function cannot be altered"),
        ("LOAD MODULE nowhere", "no module 'nowhere' is installed"),
        ("UNLOAD MODULE nowhere", "there is no module 'nowhere'"),
    ],
)
def test_an_error_leaves_the_functions_as_they_are(run, catalogs, statement, message):
    run("CREATE FUNCTION f AS 'math.sqrt' LANGUAGE PYTHON")
    before = catalogs.function(("f",))
    with pytest.raises(SqlError, match=message):
        run(statement)
    assert catalogs.function(("f",)) is before
    assert catalogs.function(("g",)) is None


def test_a_module_is_unloaded_and_loaded(run):
    run("UNLOAD MODULE core")
    assert run("SHOW MODULES") == ()
    run("LOAD MODULE core")
    assert run("SHOW FULL MODULES") == (("core", True),)
