"""ALTER TABLE ... ADD and DROP PARTITION."""

import pytest

from millstream.sql.errors import SqlError


def registered(catalogs):
    return [dict(spec) for spec in catalogs.notes(catalogs.full_name(("t",))).partitions]


def test_partitions_are_added_and_dropped(run, catalogs):
    run("ALTER TABLE t ADD PARTITION (name = 'a') PARTITION (name = 'b')")
    run("ALTER TABLE t ADD IF NOT EXISTS PARTITION (name = 'a')")
    run("ALTER TABLE t DROP PARTITION (name = 'a')")
    run("ALTER TABLE t DROP IF EXISTS PARTITION (name = 'a')")
    assert registered(catalogs) == [{"name": "b"}]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ADD PARTITION (name = 'c') PARTITION (name = 'a')", "partition name=a of table .* already exists"),
        ("DROP PARTITION (name = 'c')", "partition name=c is not registered for table"),
        ("ADD PARTITION (id = 1)", "'id' is not a partition column of"),
        ("ADD PARTITION (name)", "the value of 'name' must be a literal"),
    ],
)
def test_all_partitions_of_a_statement_change_or_none(run, catalogs, statement, message):
    run("ALTER TABLE t ADD PARTITION (name = 'a')")
    with pytest.raises(SqlError, match=message):
        run(f"ALTER TABLE t {statement}")
    assert registered(catalogs) == [{"name": "a"}]


def test_a_table_without_partitions_has_none_to_add(run):
    run("CREATE TABLE plain (a INT)")
    with pytest.raises(SqlError, match="is not partitioned"):
        run("ALTER TABLE plain ADD PARTITION (a = 1)")
