"""The executor: which statements it executes, and views."""

import pytest

from millstream.sql.ddl import DdlExecutor
from millstream.sql.errors import SqlError
from millstream.sql.logical.bind.expressions import Session
from millstream.sql.syntax import parse_statement
from millstream.table.udf import to_user_function


@pytest.mark.parametrize("text", ["SELECT 1", "INSERT INTO t SELECT 1", "SET 'a' = 'b'", "CREATE TABLE x AS SELECT 1"])
def test_statements_that_run_a_job_or_set_options_are_not_executed(catalogs, text):
    assert DdlExecutor(Session(catalogs), to_user_function).execute(parse_statement(text), text) is None


def test_a_view_has_the_given_column_names(run, catalogs):
    run("CREATE OR REPLACE VIEW v (x, y) AS SELECT id, name FROM t")
    _, view = catalogs.table(("v",))
    assert list(view.schema.names) == ["x", "y"]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE VIEW w (x) AS SELECT 1, 2", "the view has 1 column names, but its query has 2 columns"),
        ("CREATE VIEW w AS SELECT nothing FROM t", "there is no column 'nothing'"),
        ("CREATE VIEW v AS SELECT 1", "already"),
        ("DROP VIEW t", "'t' is a table"),
        ("DROP TABLE v", "'v' is a view"),
        ("ADD JAR 'x.jar'", "ADD JAR is not supported: no Java code is loaded"),
    ],
)
def test_an_error_changes_nothing(run, catalogs, statement, message):
    before = catalogs.table(("t",)), catalogs.table(("v",))
    with pytest.raises(SqlError, match=message):
        run(statement)
    assert (catalogs.table(("t",)), catalogs.table(("v",))) == before
    assert catalogs.find(("w",)) is None
