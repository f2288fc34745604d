"""CREATE TABLE: what is bound and checked before the table exists."""

import pytest

from millstream.sql.catalog.catalog import TableDistribution
from millstream.sql.errors import SqlError


def test_a_table_has_bound_columns_and_a_watermark(run, catalogs):
    _, table = catalogs.table(("t",))
    assert [(column.name, str(column.type)) for column in table.columns] == [
        ("id", "INT"),
        ("name", "STRING"),
        ("ts", "TIMESTAMP(3)"),
        ("twice", "INT"),
    ]
    assert table.columns[3].expr == "`id` * 2"
    assert table.watermark == ("ts", "`ts`")
    assert (table.primary_key, table.partitions) == (("id",), ("name",))


def test_metadata_columns_and_buckets(run, catalogs):
    run("CREATE TABLE m (a INT, o BIGINT METADATA FROM 'offset' VIRTUAL) DISTRIBUTED BY HASH (a) INTO 4 BUCKETS")
    _, table = catalogs.table(("m",))
    assert (table.columns[1].metadata_key, table.columns[1].virtual) == ("offset", True)
    assert table.distribution == TableDistribution("HASH", ("a",), 4)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("(a INT, a INT)", "column 'a' is defined twice"),
        ("(a)", "column 'a' has no type"),
        ("(a INT, b AS c + 1)", "there is no column 'c'"),
        ("(a INT, WATERMARK FOR b AS b)", "the watermark is for 'b', which is not a column"),
        ("(a INT, WATERMARK FOR a AS a)", r"needs TIMESTAMP\(3\) or TIMESTAMP_LTZ\(3\), but 'a' is INT"),
        ("(a TIMESTAMP(3), WATERMARK FOR a AS 1)", "must be a timestamp, but it is INT"),
        ("(a INT, PRIMARY KEY (b) NOT ENFORCED)", "the primary key names 'b', which is not a column"),
        ("(a INT, PRIMARY KEY (a, a) NOT ENFORCED)", "the primary key contains a column twice"),
        ("(a INT, b AS a) PARTITIONED BY (b)", "PARTITIONED BY names 'b', which is not a physical column"),
        ("(a INT) DISTRIBUTED INTO 0 BUCKETS", "a table needs at least one bucket, not 0"),
    ],
)
def test_a_wrong_table_is_an_error_and_does_not_exist(run, catalogs, columns, message):
    with pytest.raises(SqlError, match=message):
        run(f"CREATE TABLE wrong {columns}")
    assert catalogs.find(("wrong",)) is None
