"""Tables of the connector filesystem."""

import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from millstream.sql.errors import SqlError
from millstream.table import EnvironmentSettings, TableEnvironment

OPTIONS = "'connector' = 'filesystem', 'path' = '{}', 'format' = '{}'"
COLUMNS = "id INT, name STRING, price DECIMAL(10, 2), at_time TIMESTAMP(3), tags ARRAY<STRING>"


@pytest.mark.parametrize("name", ["json", "parquet", "avro"])
def test_written_rows_are_read_again(name: str, tmp_path: Path, inline_engine: None) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    env.execute_sql(f"CREATE TABLE f ({COLUMNS}) WITH ({OPTIONS.format(tmp_path, name)})")
    env.execute_sql(
        "INSERT INTO f VALUES (1, 'a', 1.50, TIMESTAMP '2024-01-01 10:00:00.123', ARRAY['x', 'y']), "
        "(2, CAST(NULL AS STRING), 2.25, CAST(NULL AS TIMESTAMP(3)), ARRAY['z'])"
    ).wait()
    with env.execute_sql("SELECT * FROM f").collect() as rows:
        rows_read = sorted((tuple(row) for row in rows), key=lambda row: row[0])
    moment = datetime.datetime(2024, 1, 1, 10, 0, 0, 123000)  # noqa: DTZ001
    assert rows_read == [(1, "a", Decimal("1.50"), moment, ["x", "y"]), (2, None, Decimal("2.25"), None, ["z"])]


def test_csv_is_read(tmp_path: Path, inline_engine: None) -> None:
    (tmp_path / "a.csv").write_text("1,x,2024-01-01\n2,,2024-01-02\n")
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.execute_sql(f"CREATE TABLE f (id INT, s STRING, d DATE) WITH ({OPTIONS.format(tmp_path, 'csv')})")
    with env.execute_sql("SELECT id, d FROM f").collect() as rows:
        assert sorted(tuple(row) for row in rows) == [(1, datetime.date(2024, 1, 1)), (2, datetime.date(2024, 1, 2))]


def test_an_unknown_format_is_refused(tmp_path: Path, inline_engine: None) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.execute_sql(f"CREATE TABLE f (id INT) WITH ({OPTIONS.format(tmp_path, 'jsn')})")
    with pytest.raises(SqlError, match="did you mean 'json'"):
        env.execute_sql("SELECT * FROM f")


def test_every_partition_of_a_batch_is_complete_at_its_end(tmp_path: Path, inline_engine: None) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    commit = "'sink.partition-commit.trigger'='partition-time', 'sink.partition-commit.delay'='1 d'"
    env.execute_sql(
        f"CREATE TABLE f (id INT, dt STRING) PARTITIONED BY (dt) WITH ({OPTIONS.format(tmp_path, 'csv')}, {commit}, "
        "'sink.partition-commit.policy.kind'='success-file')"
    )
    env.execute_sql("INSERT INTO f VALUES (1, '2024-01-01'), (2, '2024-01-02')").wait()
    assert len(list(tmp_path.glob("dt=*/_SUCCESS"))) == 2


def test_legacy_options_of_csv_files(t_env, tmp_path):
    (tmp_path / "in.csv").write_text("1|hi\n2|\n")
    legacy = "'connector.type' = 'filesystem', 'format.type' = 'csv', 'format.ignore-first-line' = 'false'"
    columns = "'format.fields.0.name' = 'id', 'format.fields.0.data-type' = 'INT', 'format.field-delimiter' = '|'"
    t_env.get_config().set("pipeline.time-characteristic", "EventTime")
    t_env.execute_sql(
        f"CREATE TABLE a (id INT, s STRING) WITH ({legacy}, {columns}, 'connector.path' = '{tmp_path / 'in.csv'}')"
    )
    t_env.execute_sql(f"CREATE TABLE b (id INT, s STRING) WITH ({legacy}, 'connector.path' = '{tmp_path / 'out'}')")
    t_env.execute_sql("INSERT INTO b SELECT * FROM a").wait()
    text = "".join(path.read_text() for path in (tmp_path / "out").iterdir() if path.is_file())
    assert sorted(text.splitlines()) == ["1,hi", "2,"]
    t_env.execute_sql("CREATE TABLE k (id INT) WITH ('connector.type' = 'kafka', 'format.type' = 'json')")
    with pytest.raises(SqlError, match=r"are not supported(.|\n)*hint: use 'connector'='kafka', 'format'='json'"):
        t_env.execute_sql("SELECT * FROM k")
    headed = legacy.replace("'false'", "'true'")
    t_env.execute_sql(f"CREATE TABLE h (id INT) WITH ({headed}, 'connector.path' = 'x')")
    with pytest.raises(SqlError, match="every line of a CSV file is a row"):
        t_env.execute_sql("SELECT * FROM h")
    t_env.execute_sql(f"CREATE TABLE c (id INT) WITH ({legacy}, 'connector.pth' = 'x')")
    with pytest.raises(SqlError, match=r"unknown option 'connector.pth'(.|\n)*'connector.path'"):
        t_env.execute_sql("SELECT * FROM c")
