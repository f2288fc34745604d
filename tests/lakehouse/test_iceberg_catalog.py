"""The catalog of Iceberg tables, through pyiceberg's SQL catalog on SQLite."""

from pathlib import Path

import pytest

from millstream.sql.errors import CatalogError, SqlNotSupported
from millstream.table import EnvironmentSettings, TableEnvironment

pytest.importorskip("pyiceberg")


def create_session(path: Path) -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    env.execute_sql(
        f"CREATE CATALOG lake WITH ('type' = 'iceberg', 'catalog-type' = 'sql', 'uri' = 'sqlite:///{path}/catalog.db', "
        f"'warehouse' = 'file://{path}/warehouse')"
    )
    env.use_catalog("lake")
    return env


def test_tables_are_created_written_read_and_survive_the_session(tmp_path):
    first = create_session(tmp_path)
    first.execute_sql("CREATE DATABASE web COMMENT 'x' WITH ('a' = 'b')")
    first.execute_sql(
        "CREATE TABLE web.clicks (id BIGINT, who STRING COMMENT 'a name', price DECIMAL(10, 2), at TIMESTAMP(6), "
        "seen TIMESTAMP_LTZ(6), data ROW<a INT, b ARRAY<STRING>>, dt DATE, small SMALLINT, "
        "PRIMARY KEY (id) NOT ENFORCED) COMMENT 'clicks' PARTITIONED BY (who)"
    )
    first.execute_sql("INSERT INTO web.clicks (id, who, price) VALUES (1, 'ann', 1.25), (2, 'bob', 2)").wait()
    second = create_session(tmp_path)
    assert second.list_databases() == ["default", "web"]
    second.use_database("web")
    assert second.list_tables() == ["clicks"]
    table = second._catalogs.table(("clicks",))[1]
    assert (table.primary_key, table.partitions, table.comment) == (("id",), ("who",), "clicks")
    assert [str(column.type) for column in table.columns] == [
        "BIGINT NOT NULL", "STRING", "DECIMAL(10, 2)", "TIMESTAMP(6)", "TIMESTAMP_LTZ(6)",
        "ROW<`a` INT, `b` ARRAY<STRING>>", "DATE", "INT",
    ]  # fmt: skip
    with second.execute_sql("SELECT id, who, price FROM clicks").collect() as rows:
        assert sorted((row[0], row[1], str(row[2])) for row in rows) == [(1, "ann", "1.25"), (2, "bob", "2.00")]
    second.execute_sql("DROP TABLE clicks")
    assert second.list_tables() == []


def test_types_that_iceberg_lacks_are_refused(tmp_path):
    t_env = create_session(tmp_path)
    t_env.execute_sql("CREATE TABLE t (a INT)")
    for statement, error, message in (
        ("CREATE VIEW v AS SELECT 1 AS a", SqlNotSupported, "cannot store the view 'v'"),
        ("ALTER TABLE t ADD b INT", SqlNotSupported, "cannot alter table 't'"),
        ("CREATE TABLE u (a INT, b AS a + 1)", CatalogError, "'u' has a watermark, a computed or a metadata column"),
        ("CREATE TABLE u (a INT) WITH ('connector' = 'print')", CatalogError, "'u' has the connector 'print'"),
        ("CREATE TABLE u (a TIMESTAMP(9))", CatalogError, r"'u\.a' is TIMESTAMP\(9\), but Iceberg keeps microseconds"),
        ("CREATE TABLE u (a MULTISET<INT>)", CatalogError, "which Iceberg does not have"),
        ("CREATE CATALOG c WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop')", CatalogError, "Flink's jdbc is sql"),
    ):
        with pytest.raises(error, match=message):
            t_env.execute_sql(statement)
    assert t_env.list_tables() == ["t"]
