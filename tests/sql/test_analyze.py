"""ANALYZE TABLE registers the statistics that Flink has for each type."""

from pathlib import Path

import pytest

from millstream.sql.errors import SqlError
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.table.catalog import CatalogPartitionSpec, ObjectPath


@pytest.fixture
def env(tmp_path: Path, inline_engine: None) -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    options = f"'connector'='filesystem', 'format'='json', 'path'='{tmp_path}"
    env.execute_sql(
        "CREATE TABLE plain (id INT, name STRING, ok BOOLEAN, tags ARRAY<STRING>, twice AS id * 2) "
        f"WITH ({options}/plain')"
    )
    env.execute_sql(f"CREATE TABLE parts (v INT, day STRING) PARTITIONED BY (day) WITH ({options}/parts')")
    env.execute_sql("CREATE VIEW w AS SELECT 1 AS v")
    env.execute_sql(
        "INSERT INTO plain VALUES (1, 'a', TRUE, ARRAY['x']), (2, 'bcd', FALSE, ARRAY['y']), "
        "(2, CAST(NULL AS STRING), TRUE, ARRAY['y'])"
    ).wait()
    env.execute_sql("INSERT INTO parts VALUES (1, 'mon'), (2, 'mon'), (3, 'tue')").wait()
    return env


def test_statistics_of_a_table_and_its_columns(env: TableEnvironment) -> None:
    catalog, path = env.get_catalog("default_catalog"), ObjectPath("default_database", "plain")
    assert catalog.get_table_statistics(path).get_row_count() == -1
    env.execute_sql("ANALYZE TABLE plain COMPUTE STATISTICS")
    assert catalog.get_table_statistics(path).get_row_count() == 3
    assert catalog.get_table_column_statistics(path).get_column_statistics_data() == {}
    env.execute_sql("ANALYZE TABLE plain COMPUTE STATISTICS FOR ALL COLUMNS")
    assert catalog.get_table_column_statistics(path).get_column_statistics_data() == {
        "id": {"nullCount": 0, "ndv": 2, "minValue": 1, "maxValue": 2},
        "name": {"nullCount": 1, "ndv": 2, "avgLen": 2.0, "maxLen": 3},
        "ok": {"nullCount": 0, "valueCount": {True: 2, False: 1}},
        "tags": {"nullCount": 0},
    }


def test_statistics_of_partitions(env: TableEnvironment) -> None:
    catalog, path = env.get_catalog("default_catalog"), ObjectPath("default_database", "parts")
    env.execute_sql("ANALYZE TABLE parts PARTITION (day = 'mon') COMPUTE STATISTICS FOR COLUMNS v")
    monday = CatalogPartitionSpec({"day": "mon"})
    assert catalog.get_partition_statistics(path, monday).get_row_count() == 2
    data = catalog.get_partition_column_statistics(path, monday).get_column_statistics_data()
    assert data == {"v": {"nullCount": 0, "ndv": 2, "minValue": 1, "maxValue": 2}}
    env.execute_sql("ANALYZE TABLE parts PARTITION (day) COMPUTE STATISTICS")
    assert catalog.get_partition_statistics(path, CatalogPartitionSpec({"day": "tue"})).get_row_count() == 1


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ANALYZE TABLE parts COMPUTE STATISTICS", r"needs PARTITION(?s:.*)PARTITION \(day\)"),
        ("ANALYZE TABLE plain PARTITION (id) COMPUTE STATISTICS", "table 'plain' is not partitioned"),
        ("ANALYZE TABLE parts PARTITION (week) COMPUTE STATISTICS", "'week' is not a partition column"),
        ("ANALYZE TABLE parts PARTITION (day = 'sun') COMPUTE STATISTICS", "has no partition day=sun"),
        ("ANALYZE TABLE plain COMPUTE STATISTICS FOR COLUMNS twice", "'twice' is not a physical column of 'plain'"),
        ("ANALYZE TABLE w COMPUTE STATISTICS", "'w' is not a table"),
    ],
)
def test_what_cannot_be_analyzed_is_refused(env: TableEnvironment, statement: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        env.execute_sql(statement)
