"""DataFrames of Spark become tables and streams, and tables become DataFrames, with their types."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from millstream.datastream import StreamExecutionEnvironment
from millstream.errors import UserError
from millstream.table import DataTypes, EnvironmentSettings, StreamTableEnvironment, TableEnvironment
from millstream.table.expressions import col

SCHEMA = """
    b BOOLEAN, i1 TINYINT, i2 SMALLINT, i4 INT, i8 BIGINT NOT NULL, f4 FLOAT, f8 DOUBLE, s STRING, y BINARY, d DATE,
    dec DECIMAL(10, 2), ltz TIMESTAMP, ntz TIMESTAMP_NTZ, arr ARRAY<INT>, m MAP<STRING, INT>,
    r STRUCT<x: INT, y: STRING>
"""
INSTANT = datetime.datetime(2020, 1, 1, 1, 2, 3, 456789, tzinfo=datetime.UTC)
ROW = (
    True, 1, 2, 3, 4, 1.5, 2.5, "a", bytearray(b"x"), datetime.date(2020, 1, 1), Decimal("1.50"), INSTANT,
    INSTANT.replace(tzinfo=None), [1, None], {"k": 1}, (1, "u"),
)  # fmt: skip
NULLS = tuple(5 if i == 4 else None for i in range(len(ROW)))


@pytest.fixture
def session(spark_context: Any) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    session = SparkSession(spark_context).newSession()
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    return session


def environment(mode: str) -> TableEnvironment:
    settings = EnvironmentSettings.new_instance()
    t_env = TableEnvironment.create(
        (settings.in_batch_mode() if mode == "batch" else settings.in_streaming_mode()).build()
    )
    t_env.get_config().set("parallelism.default", "2")
    return t_env


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_types_of_spark_survive_a_round_trip(session: Any, mode: str) -> None:
    frame = session.createDataFrame([ROW, NULLS], SCHEMA)
    table = environment(mode).from_spark(frame)
    assert str(table.get_schema().get_field_data_type("ltz")) == "TIMESTAMP_LTZ(6)"
    assert str(table.get_schema().get_field_data_type("i8")) == "BIGINT NOT NULL"
    result = table.to_spark(session)
    assert result.schema.simpleString() == frame.schema.simpleString()
    assert sorted(result.collect(), key=str) == sorted(frame.collect(), key=str)


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_partitions_are_read_by_tasks(session: Any, mode: str) -> None:
    numbers = session.range(0, 10_000, 1, 5).selectExpr("id", "id % 3 AS k")
    table = environment(mode).from_spark(numbers)
    totals = table.group_by(col("k")).select(col("k"), col("id").sum.alias("total")).to_arrow().to_pylist()
    expected = {k: sum(range(k, 10_000, 3)) for k in range(3)}
    assert {row["k"]: row["total"] for row in totals} == expected


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_arrow_data_is_read_by_queries_in_spark(spark_context: Any, mode: str) -> None:
    data = pa.table({"k": ["a", "b", "a"], "r": [{"x": 1}, None, {"x": 3}]})
    table = environment(mode).from_arrow(data)
    assert sorted(table.to_arrow().to_pylist(), key=str) == sorted(data.to_pylist(), key=str)
    totals = table.group_by(col("k")).select(col("k"), col("r").get("x").sum.alias("s")).to_pandas()
    assert sorted(totals.values.tolist(), key=str) == [["a", 4.0], ["b", None]] or totals.s.isna().sum() == 1


def test_a_data_frame_is_a_stream(session: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    t_env = StreamTableEnvironment.create(env)
    stream = t_env.to_data_stream(t_env.from_spark(session.range(0, 10)))
    doubled = stream.map(lambda row: row[0] * 2)
    with doubled.execute_and_collect() as values:
        assert sorted(values) == list(range(0, 20, 2))


def test_no_rows(session: Any) -> None:
    t_env = environment("streaming")
    table = t_env.from_spark(session.range(0, 10).where("id > 10"))
    assert table.to_arrow() == pa.table(
        {"id": pa.array([], pa.int64())}, pa.schema([pa.field("id", pa.int64(), False)])
    )
    assert table.to_spark(session).count() == 0


def test_unsupported_types_are_refused(session: Any, tmp_path: Path) -> None:
    t_env = environment("streaming")
    with pytest.raises(UserError, match=r"column 'i' has Spark's type .* which no SQL type represents"):
        t_env.from_spark(session.sql("SELECT INTERVAL '1' YEAR AS i"))
    with pytest.raises(TypeError, match="from_spark needs a DataFrame of Spark, not list"):
        t_env.from_spark([1])
    with pytest.raises(UserError, match="this one is a stream"):
        t_env.from_spark(session.readStream.format("rate").load())
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is not empty"):
        t_env.from_spark(session.range(1), str(tmp_path))
    precise = t_env.from_elements([], DataTypes.ROW([DataTypes.FIELD("t", DataTypes.TIMESTAMP(9))]))
    with pytest.raises(UserError, match=r"column 't' is a TIMESTAMP\(9\), which no type of Spark represents exactly"):
        precise.to_spark(session)
