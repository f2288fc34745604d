"""Changes by primary key are merged by tasks on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millstream.sql.connectors.simple import register_values
from millstream.table import EnvironmentSettings, TableEnvironment

pytest.importorskip("deltalake")
pytest.importorskip("sqlalchemy")


def test_a_query_with_updates_is_a_delta_and_an_iceberg_table(spark_context: Any, tmp_path: Path) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "2")
    env.get_config().set("execution.checkpointing.dir", str(tmp_path / "checkpoints"))
    env.get_config().set("execution.checkpointing.interval", "1 ms")
    env.get_config().set("millstream.epoch.max-records", "40")
    iceberg = (
        "'connector' = 'iceberg', 'catalog-name' = 'c', 'catalog-database' = 'db', 'catalog-type' = 'sql', "
        f"'uri' = 'sqlite:///{tmp_path}/c.db', 'warehouse' = 'file://{tmp_path}/warehouse'"
    )
    tables = {"in_delta": f"'connector' = 'delta', 'table-path' = '{tmp_path}/delta'", "in_iceberg": iceberg}
    register_values("numbers", [(number % 7, number) for number in range(100)])
    env.execute_sql("CREATE TABLE numbers (k INT, v INT) WITH ('connector' = 'values', 'data-id' = 'numbers')")
    inserts = env.create_statement_set()
    for name, options in tables.items():
        env.execute_sql(f"CREATE TABLE {name} (k INT, n BIGINT, m INT, PRIMARY KEY (k) NOT ENFORCED) WITH ({options})")
        inserts.add_insert_sql(f"INSERT INTO {name} SELECT k, COUNT(*), MAX(v) FROM numbers GROUP BY k")
    inserts.execute().wait()
    expected = [(k, len(range(k, 100, 7)), max(range(k, 100, 7))) for k in range(7)]
    for name in tables:
        with env.execute_sql(f"SELECT * FROM {name}").collect() as rows:
            assert sorted(tuple(row) for row in rows) == expected, name
    import deltalake

    assert deltalake.DeltaTable(f"{tmp_path}/delta").version() > 1, "several checkpoints"
