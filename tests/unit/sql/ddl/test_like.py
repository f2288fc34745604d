"""CREATE TABLE ... LIKE: which parts of the other table are copied."""

import pytest

from millstream.sql.errors import SqlError


def test_everything_is_copied_by_default(run, catalogs):
    run("CREATE TABLE l (extra INT) WITH ('x' = 'y') LIKE t")
    _, table = catalogs.table(("l",))
    assert [column.name for column in table.columns] == ["id", "name", "ts", "twice", "extra"]
    assert dict(table.options) == {"connector": "print", "x": "y"}
    assert (table.primary_key, table.partitions, table.watermark) == (("id",), ("name",), ("ts", "`ts`"))


def test_excluded_parts_are_not_copied(run, catalogs):
    run("CREATE TABLE l LIKE t (EXCLUDING ALL)")
    _, table = catalogs.table(("l",))
    assert [column.name for column in table.columns] == ["id", "name", "ts"]
    assert (dict(table.options), table.primary_key, table.partitions, table.watermark) == ({}, (), (), None)


def test_a_computed_column_can_be_overwritten(run, catalogs):
    run("CREATE TABLE l (twice AS id + id) LIKE t (OVERWRITING GENERATED)")
    _, table = catalogs.table(("l",))
    assert [column.expr for column in table.columns] == [None, None, None, "`id` + `id`"]


def test_options_are_overwritten_by_default_and_with_overwriting(run, catalogs):
    for number, clause in enumerate(("", " (OVERWRITING OPTIONS)", " (INCLUDING ALL OVERWRITING OPTIONS)")):
        run(f"CREATE TABLE l{number} WITH ('connector' = 'blackhole', 'x' = 'y') LIKE t{clause}")
        _, table = catalogs.table((f"l{number}",))
        assert dict(table.options) == {"connector": "blackhole", "x": "y"}
    run("CREATE TABLE m WITH ('x' = 'y') LIKE t (OVERWRITING OPTIONS)")
    assert dict(catalogs.table(("m",))[1].options) == {"connector": "print", "x": "y"}


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        ("CREATE TABLE l (id INT) LIKE t", "column 'id' is defined twice", "the table in LIKE has this column"),
        ("CREATE TABLE l (twice AS 1) LIKE t", "column 'twice' is defined twice", "write OVERWRITING GENERATED"),
        ("CREATE TABLE l PARTITIONED BY (id) LIKE t", "both tables define PARTITIONS", "EXCLUDING PARTITIONS"),
        (
            "CREATE TABLE l (WATERMARK FOR ts AS ts) LIKE t",
            "both tables define WATERMARKS",
            "EXCLUDING or OVERWRITING WATERMARKS",
        ),
        (
            "CREATE TABLE l WITH ('connector' = 'blackhole') LIKE t (INCLUDING OPTIONS)",
            "both tables define OPTIONS",
            "EXCLUDING or OVERWRITING OPTIONS",
        ),
        ("CREATE TABLE l LIKE t (INCLUDING NOTHING)", "LIKE has no feature NOTHING", None),
        ("CREATE TABLE l LIKE t (OVERWRITING PARTITIONS)", "LIKE cannot overwrite PARTITIONS", "EXCLUDING PARTITIONS"),
        ("CREATE TABLE l LIKE v", "'v' cannot be copied by LIKE, because it is not a table", "AS SELECT"),
    ],
)
def test_conflicts_are_errors_with_a_remedy(run, statement, message, hint):
    with pytest.raises(SqlError, match=message) as caught:
        run(statement)
    assert hint is None or hint in (caught.value.hint or "")
