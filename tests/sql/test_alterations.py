"""ALTER TABLE, CREATE TABLE ... LIKE and AS, partitions and buckets: what Flink accepts and what it refuses.

The results were compared with those of Flink 2.3."""

from typing import Any

import pytest

from millstream.sql.errors import SqlError
from millstream.table import DataTypes, EnvironmentSettings, TableEnvironment
from millstream.table.catalog import (
    CatalogColumnStatistics,
    CatalogPartition,
    CatalogPartitionSpec,
    CatalogTableStatistics,
    ObjectPath,
)
from millstream.table.types import ArrayType, DecimalType, IntType, MapType, RowField, RowType, TimestampType

BASE = (
    "CREATE TABLE t (id INT, name STRING, ts TIMESTAMP(3), c AS id + 1, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND, "
    "PRIMARY KEY (id) NOT ENFORCED) COMMENT 'hey' DISTRIBUTED BY HASH(id) INTO 3 BUCKETS PARTITIONED BY (name) "
    "WITH ('connector' = 'datagen')"
)
REFUSED = [
    ("ALTER TABLE t RENAME id TO name", "column 'name' already exists"),
    ("ALTER TABLE t RENAME id TO id2", "column 'id' is used by column 'c' and DISTRIBUTED BY"),
    ("ALTER TABLE t RENAME ts TO ts2", "column 'ts' is used by the watermark"),
    ("ALTER TABLE t RENAME name TO n", "column 'name' is used by PARTITIONED BY"),
    ("ALTER TABLE t DROP (id, c)", "column 'id' is part of the primary key"),
    ("ALTER TABLE t DROP name", "column 'name' is used by PARTITIONED BY"),
    ("ALTER TABLE t DROP ts", "column 'ts' is used by the watermark"),
    ("ALTER TABLE t DROP (c, c)", "twice"),
    ("ALTER TABLE t ADD PRIMARY KEY (name) NOT ENFORCED", "already has a primary key"),
    ("ALTER TABLE t ADD k INT PRIMARY KEY NOT ENFORCED", "already has a primary key"),
    ("ALTER TABLE t ADD WATERMARK FOR ts AS ts", "already has a watermark"),
    ("ALTER TABLE t ADD DISTRIBUTION BY (id)", "already has a distribution"),
    ("ALTER TABLE t MODIFY ts STRING", "a watermark needs TIMESTAMP"),
    ("ALTER TABLE t MODIFY PRIMARY KEY (nme) NOT ENFORCED", "the primary key names 'nme', which is not a column"),
    ("ALTER TABLE t DROP CONSTRAINT foo", "there is no constraint 'foo'"),
    ("ALTER TABLE p MODIFY PRIMARY KEY (id) NOT ENFORCED", "has no primary key to modify"),
    ("ALTER TABLE p DROP PRIMARY KEY", "has no primary key to drop"),
    ("ALTER TABLE p DROP WATERMARK", "has no watermark to drop"),
    ("ALTER TABLE p DROP DISTRIBUTION", "has no distribution to drop"),
    ("ALTER TABLE p ADD PARTITION (id = 1)", "is not partitioned"),
    ("ALTER TABLE t ADD PARTITION (nme = 'a')", "'nme' is not a partition column"),
    ("ALTER TABLE t DROP PARTITION (name = 'zz')", "partition name=zz is not registered"),
    ("ALTER TEMPORARY FUNCTION f AS 'a.b' LANGUAGE PYTHON", "a temporary function cannot be altered"),
    ("ALTER CATALOG default_catalog RESET ('type')", "cannot be reset"),
    ("CREATE CATALOG c", "has no option 'type'"),
    ("DROP TEMPORARY TABLE p", "it is not temporary: write DROP TABLE"),
    ("CREATE TABLE l (id INT) LIKE t", "column 'id' is defined twice"),
    ("CREATE TABLE l (c AS id + 5) LIKE t", "OVERWRITING GENERATED"),
    ("CREATE TABLE l (WATERMARK FOR ts AS ts) LIKE t", "both tables define WATERMARKS"),
    ("CREATE TABLE l (PRIMARY KEY (id) NOT ENFORCED) LIKE t", "both tables define CONSTRAINTS"),
    ("CREATE TABLE l PARTITIONED BY (id) LIKE t", "both tables define PARTITIONS"),
    ("CREATE TABLE l WITH ('connector' = 'print') LIKE t (INCLUDING OPTIONS)", "both tables define OPTIONS"),
    ("CREATE TABLE l LIKE t (OVERWRITING PARTITIONS)", "LIKE cannot overwrite PARTITIONS"),
    ("CREATE TABLE l LIKE t (EXCLUDING WATERMARK)", "did you mean 'WATERMARKS'"),
    ("CREATE TABLE l LIKE v", "cannot be copied by LIKE"),
    ("CREATE TABLE k (a INT PRIMARY KEY NOT ENFORCED, PRIMARY KEY (a) NOT ENFORCED)", "only one primary key"),
    ("CREATE TABLE k (a INT, PRIMARY KEY (a, a) NOT ENFORCED)", "contains a column twice"),
    ("CREATE TABLE k (a INT, b AS a + 1) PARTITIONED BY (b)", "which is not a physical column"),
    ("CREATE TABLE k (a INT) DISTRIBUTED BY (b) INTO 2 BUCKETS", "DISTRIBUTED BY names 'b', which is not a column"),
    ("CREATE TABLE k (a INT) DISTRIBUTED INTO 0 BUCKETS", "at least one bucket"),
    ("CREATE TABLE k (b) WITH ('connector' = 'print') AS SELECT 1 AS a, 2 AS b", "1 columns are listed"),
    ("CREATE TABLE k (a, x) WITH ('connector' = 'print') AS SELECT 1 AS a, 2 AS b", "the query has no column 'x'"),
    ("CREATE TABLE k (a INT) WITH ('connector' = 'print') AS SELECT 'x' AS a", "is INT"),
    ("REPLACE TABLE k WITH ('connector' = 'print') AS SELECT 1 AS a", "there is no table 'k' to replace"),
    ("REPLACE TABLE p (a INT) WITH ('connector' = 'print')", "AS SELECT"),
    ("INSERT INTO d SELECT id FROM p", "DISTRIBUTED into buckets"),
    ("SELECT * FROM p FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01 00:00:00'", "for the right side of a join"),
]


@pytest.fixture
def env(inline_engine: None) -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.execute_sql(BASE)
    environment.execute_sql(
        "CREATE TABLE p (id INT, name STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '2')"
    )
    environment.execute_sql("CREATE TABLE d (a INT) DISTRIBUTED BY (a) WITH ('connector' = 'blackhole')")
    environment.execute_sql("CREATE VIEW v AS SELECT id, name, ts FROM t")
    return environment


def run(env: TableEnvironment, sql: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(sql).collect() as rows:
        return [tuple(row) for row in rows]


def show_create(env: TableEnvironment, table: str) -> str:
    return str(run(env, f"SHOW CREATE TABLE {table}")[0][0])


@pytest.mark.parametrize(("sql", "message"), REFUSED, ids=[sql for sql, _ in REFUSED])
def test_a_refused_statement_changes_nothing(env: TableEnvironment, sql: str, message: str) -> None:
    before = env.list_tables(), show_create(env, "t"), show_create(env, "p")
    with pytest.raises(SqlError) as caught:
        env.execute_sql(sql)
    assert message in str(caught.value)
    assert (env.list_tables(), show_create(env, "t"), show_create(env, "p")) == before


def test_a_table_is_altered_step_by_step(env: TableEnvironment) -> None:
    for step in (
        "DROP DISTRIBUTION",
        "DROP c",
        "RENAME id TO key",
        "MODIFY (key BIGINT COMMENT 'the key' FIRST, WATERMARK FOR ts AS ts - INTERVAL '9' SECOND)",
        "ADD (doubled AS key * 2, DISTRIBUTION STRING)",
        "MODIFY PRIMARY KEY (key, name) NOT ENFORCED",
        "ADD DISTRIBUTION INTO 7 BUCKETS",
        "DROP `DISTRIBUTION`",
    ):
        env.execute_sql(f"ALTER TABLE t {step}")
    assert show_create(env, "t") == (
        "CREATE TABLE `default_catalog`.`default_database`.`t` (\n  `key` BIGINT NOT NULL COMMENT 'the key',\n"
        "  `name` VARCHAR(2147483647) NOT NULL,\n  `ts` TIMESTAMP(3),\n  `doubled` AS `key` * 2,\n"
        "  WATERMARK FOR `ts` AS `ts` - INTERVAL '9' SECOND,\n"
        "  CONSTRAINT `PK_key_name` PRIMARY KEY (`key`, `name`) NOT ENFORCED\n)\nCOMMENT 'hey'\n"
        "DISTRIBUTED INTO 7 BUCKETS\nPARTITIONED BY (`name`)\nWITH (\n  'connector' = 'datagen'\n)\n"
    )
    env.execute_sql("ALTER TABLE p MODIFY id BIGINT")
    env.execute_sql("ALTER TABLE p ADD next AS id + 1")
    env.execute_sql("ALTER TABLE p MODIFY id INT")
    assert [row[1] for row in run(env, "DESCRIBE p")] == [
        "INT",
        "STRING",
        "INT",
    ]  # the type of the computed column changes too


def test_parts_of_a_definition_are_copied_by_like(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE l (x INT) LIKE t (EXCLUDING ALL INCLUDING GENERATED)")
    assert [row[0] for row in run(env, "DESCRIBE l")] == ["id", "name", "ts", "c", "x"]
    assert "WATERMARK" not in show_create(env, "l")
    env.execute_sql(
        "CREATE TABLE m (c AS id + 5, WATERMARK FOR ts AS ts) WITH ('connector' = 'print') "
        "LIKE t (OVERWRITING GENERATED OVERWRITING WATERMARKS EXCLUDING DISTRIBUTION)"
    )
    text = show_create(env, "m")
    assert "`c` AS `id` + 5,\n  WATERMARK FOR `ts` AS `ts`,\n" in text
    assert "'connector' = 'print'" in text
    assert "COMMENT" not in text
    assert "BUCKETS" not in text


def test_columns_of_create_table_as(env: TableEnvironment) -> None:
    sink = "WITH ('connector' = 'blackhole') AS SELECT 1 AS a, 2 AS b"
    env.execute_sql(f"CREATE TABLE one (b, a) {sink}").wait()
    env.execute_sql(f"CREATE TABLE two (a BIGINT, y AS a + 1, z INT) {sink}").wait()
    assert [row[0] for row in run(env, "DESCRIBE one")] == ["b", "a"]
    assert [row[:2] for row in run(env, "DESCRIBE two")] == [
        *(("y", "BIGINT"), ("z", "INT"), ("a", "BIGINT"), ("b", "INT")),
    ]
    env.execute_sql(f"REPLACE TABLE two {sink}").wait()
    assert [row[0] for row in run(env, "DESCRIBE two")] == ["a", "b"]


def test_a_view_is_bound_in_the_database_where_it_was_created(env: TableEnvironment) -> None:
    env.execute_sql("CREATE VIEW w AS SELECT COUNT(*) AS n FROM p")
    env.execute_sql("CREATE DATABASE other")
    env.execute_sql("USE other")
    assert run(env, "SELECT n FROM default_database.w")[-1] == (2,)


def test_functions_are_described(env: TableEnvironment) -> None:
    message = dict(run(env, "DESCRIBE FUNCTION EXTENDED sum"))
    assert (message["is system function"], message["is temporary"], message["kind"]) == ("true", "false", "AGGREGATE")
    assert dict(run(env, "DESCRIBE FUNCTION EXTENDED rand"))["is deterministic"] == "false"


# ------------------------------------------------------------------------------------------------------- partitions


def test_partitions_are_registered_by_statements_and_by_programs(env: TableEnvironment) -> None:
    env.execute_sql("ALTER TABLE t ADD PARTITION (name = 'a') WITH ('k' = 'v') PARTITION (name = 'b')")
    with pytest.raises(SqlError, match="already"):
        env.execute_sql("ALTER TABLE t ADD PARTITION (name = 'c') PARTITION (name = 'a')")
    assert run(env, "SHOW PARTITIONS t") == [("name=a",), ("name=b",)]  # a statement adds all of its partitions or none
    env.execute_sql("ALTER TABLE t ADD IF NOT EXISTS PARTITION (name = 'a')")
    catalog = env.get_catalog("default_catalog")
    assert catalog is not None
    path, a = ObjectPath("default_database", "t"), CatalogPartitionSpec({"name": "a"})
    assert catalog.get_partition(path, a).get_properties() == {"k": "v"}
    catalog.create_partition(path, CatalogPartitionSpec({"name": "c"}), CatalogPartition({}, "third"), False)
    assert run(env, "SHOW PARTITIONS t PARTITION (name = 'c')") == [("name=c",)]
    catalog.alter_partition(path, a, CatalogPartition({"k": "w"}), False)
    assert catalog.get_partition(path, a).get_properties() == {"k": "w"}
    env.execute_sql("ALTER TABLE t RENAME TO u")
    moved = ObjectPath("default_database", "u")
    assert [item.get_partition_spec() for item in catalog.list_partitions(moved)] == [{"name": n} for n in "abc"]
    env.execute_sql("ALTER TABLE u DROP PARTITION (name = 'a'), PARTITION (name = 'b')")
    assert not catalog.partition_exists(moved, a)
    with pytest.raises(SqlError, match="has no partition"):
        catalog.drop_partition(moved, a, False)
    env.execute_sql("DROP TABLE u")
    env.execute_sql(BASE)
    assert run(env, "SHOW PARTITIONS t") == []


def test_statistics_are_renamed_and_dropped_with_their_table(env: TableEnvironment) -> None:
    catalog = env.get_catalog("default_catalog")
    assert catalog is not None
    path, a = ObjectPath("default_database", "t"), CatalogPartitionSpec({"name": "a"})
    assert catalog.get_table_statistics(path).get_row_count() == -1
    catalog.alter_table_statistics(path, CatalogTableStatistics(7, 4), False)
    catalog.alter_table_column_statistics(path, CatalogColumnStatistics({"id": 1}), False)
    catalog.alter_table_statistics(ObjectPath("default_database", "nope"), CatalogTableStatistics(1), True)
    with pytest.raises(SqlError, match="has no partition"):
        catalog.alter_partition_statistics(path, a, CatalogTableStatistics(1), False)
    catalog.create_partition(path, a, CatalogPartition({}), False)
    catalog.alter_partition_statistics(path, a, CatalogTableStatistics(3), False)
    catalog.alter_partition_column_statistics(path, a, CatalogColumnStatistics({"id": 2}), False)
    assert catalog.get_table_statistics(path).get_row_count() == 7
    assert catalog.get_table_column_statistics(path).get_column_statistics_data() == {"id": 1}
    assert [item.get_row_count() for item in catalog.bulk_get_partition_statistics(path, [a])] == [3]
    (columns,) = catalog.bulk_get_partition_column_statistics(path, [a])
    assert columns.get_column_statistics_data() == {"id": 2}
    catalog.drop_table(path, False)
    env.execute_sql(BASE)
    assert catalog.get_table_statistics(path).get_row_count() == -1
    assert catalog.list_procedures("default_database") == []


# ------------------------------------------------------------------------------------------------------------- types


def test_types_are_created_by_the_constructor_calls_of_pyflink() -> None:
    assert IntType(False) == IntType(nullable=False) == DataTypes.INT(False)  # type: ignore[call-arg,misc]
    assert DecimalType(5, 2, False) == DataTypes.DECIMAL(5, 2, False)  # type: ignore[misc]
    assert ArrayType(element_type=IntType()) == DataTypes.ARRAY(DataTypes.INT())  # type: ignore[call-arg]
    assert MapType(IntType(), value_type=IntType()) == DataTypes.MAP(IntType(), IntType())  # type: ignore[call-arg]
    assert TimestampType(3, nullable=False) == DataTypes.TIMESTAMP(3, False)  # type: ignore[call-arg]
    row = RowType([RowField("a", IntType())])  # type: ignore[arg-type]
    assert row.add("b", IntType()) == DataTypes.ROW([DataTypes.FIELD(name, DataTypes.INT()) for name in "ab"])
