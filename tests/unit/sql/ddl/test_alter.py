"""ALTER TABLE and ALTER VIEW."""

import pytest

from millstream.sql.errors import SqlError


def names(catalogs, table="t"):
    return [column.name for column in catalogs.table((table,))[1].columns]


def test_columns_are_added_moved_renamed_and_dropped(run, catalogs):
    run("ALTER TABLE t ADD (a INT FIRST, b INT AFTER id, c INT)")
    assert names(catalogs) == ["a", "id", "b", "name", "ts", "twice", "c"]
    run("ALTER TABLE t MODIFY c BIGINT AFTER a")
    run("ALTER TABLE t RENAME b TO bb")
    run("ALTER TABLE t DROP a")
    assert names(catalogs) == ["c", "id", "bb", "name", "ts", "twice"]
    assert str(catalogs.table(("t",))[1].columns[0].type) == "BIGINT"


def test_options_key_and_watermark(run, catalogs):
    run("ALTER TABLE t SET ('a' = 'b', 'c' = 'd')")
    run("ALTER TABLE t RESET ('a')")
    run("ALTER TABLE t DROP PRIMARY KEY")
    run("ALTER TABLE t DROP WATERMARK")
    _, table = catalogs.table(("t",))
    assert (dict(table.options), table.primary_key, table.watermark) == ({"connector": "print", "c": "d"}, (), None)


def test_a_table_and_a_view_are_renamed(run, catalogs):
    run("ALTER TABLE t RENAME TO u")
    run("ALTER VIEW v RENAME TO w")
    assert catalogs.table_names(catalogs.current_catalog, catalogs.current_database) == ["u", "w"]


def test_a_view_gets_another_query(run, catalogs):
    run("ALTER VIEW v AS SELECT name FROM t")
    _, view = catalogs.table(("v",))
    assert (view.text, list(view.schema.names)) == ("SELECT name FROM t", ["name"])


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ALTER TABLE t ADD id INT", "column 'id' already exists"),
        ("ALTER TABLE t RENAME id TO name", "column 'name' already exists"),
        ("ALTER TABLE t RENAME id TO x", "column 'id' is used by column 'twice'"),
        ("ALTER TABLE t MODIFY x INT", "there is no column 'x'"),
        ("ALTER TABLE t DROP (ts, ts)", "a column is listed twice: ts, ts"),
        ("ALTER TABLE t DROP ts", "column 'ts' is used by the watermark"),
        ("ALTER TABLE t DROP id", "column 'id' is part of the primary key"),
        ("ALTER TABLE t DROP name", "column 'name' is used by PARTITIONED BY"),
        ("ALTER TABLE t ADD WATERMARK FOR ts AS ts", "'t' already has a watermark"),
        ("ALTER TABLE t MODIFY DISTRIBUTION INTO 2 BUCKETS", "'t' has no distribution to modify"),
        ("ALTER TABLE t DROP DISTRIBUTION", "'t' has no distribution to drop"),
        ("ALTER TABLE t DROP CONSTRAINT x", "there is no constraint 'x'"),
        ("ALTER TABLE t RESET ('connector')", "the option 'connector' cannot be reset"),
        ("ALTER TABLE v SET ('a' = 'b')", "'v' is not a table"),
        ("ALTER VIEW t AS SELECT 1", "'t' is not a view"),
        ("ALTER TABLE x DROP WATERMARK", "there is no table 'x'"),
    ],
)
def test_a_statement_that_fails_changes_nothing(run, catalogs, statement, message):
    before = catalogs.table(("t",)), catalogs.table(("v",))
    with pytest.raises(SqlError, match=message):
        run(statement)
    assert (catalogs.table(("t",)), catalogs.table(("v",))) == before


def test_a_missing_table_is_tolerated_with_if_exists(run):
    assert run("ALTER TABLE IF EXISTS x DROP WATERMARK") == ()
