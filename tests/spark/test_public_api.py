"""Jobs that do not use features of the newest Spark, or private classes of the JVM."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from millstream.common import Configuration, Encoder, Types
from millstream.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from millstream.datastream.connectors.file_system import FileSink
from millstream.engine.spark import stages
from millstream.engine.spark.compatibility import choose_slot_keys, has_arrow_tables, partition_by_slot, spark_hash
from millstream.engine.spark.public_stages import PublicStageBuilder
from millstream.engine.spark.stage_builder import StageBuilder
from millstream.table import EnvironmentSettings, TableEnvironment

WORDS = ["to be", "or not", "to be"] * 20
COUNTS = {"to": 40, "be": 40, "or": 20, "not": 20}


@pytest.fixture
def oldest_api(monkeypatch: pytest.MonkeyPatch, spark_context: Any) -> None:
    """DataFrames have the methods of Spark 3.5."""
    for frame_class in {DataFrame, type(SparkSession(spark_context).range(1))}:
        for method in ("toArrow", "repartitionById"):
            monkeypatch.delattr(frame_class, method, raising=False)
    assert not has_arrow_tables()


def environment(directory: Path, **settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    (directory / "checkpoints").mkdir()
    configuration.set_string("execution.checkpointing.dir", str(directory / "checkpoints"))
    for key, value in settings.items():
        configuration.set_string(key.replace("__", ".").replace("_", "-"), value)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)


def count_words(env: StreamExecutionEnvironment, directory: Path) -> Counter[str]:
    """The lines that a word count writes."""
    pairs = env.from_collection(WORDS).flat_map(str.split, Types.STRING()).map(_one, Types.TUPLE(
        [Types.STRING(), Types.LONG()]
    ))  # fmt: skip
    counts = pairs.key_by(_word).reduce(_add).map(_line, Types.STRING())
    counts.sink_to(FileSink.for_row_format(str(directory / "out"), Encoder.simple_string_encoder()).build())
    env.execute("words")
    files = [file for file in (directory / "out").rglob("part-*") if file.is_file()]
    return Counter(line for file in files for line in file.read_text().splitlines())


def _one(word: str) -> tuple[str, int]:
    return word, 1


def _word(pair: tuple[str, int]) -> str:
    return pair[0]


def _add(left: tuple[str, int], right: tuple[str, int]) -> tuple[str, int]:
    return left[0], left[1] + right[1]


def _line(pair: tuple[str, int]) -> str:
    return f"{pair[0]} {pair[1]}"


def test_a_stream_has_the_same_output_with_the_public_api(tmp_path: Path, spark_context: Any) -> None:
    env = environment(tmp_path, millstream__spark__public_api="true", millstream__epoch__max_records="20")
    running_counts = Counter(f"{word} {n + 1}" for word, count in COUNTS.items() for n in range(count))
    assert count_words(env, tmp_path) == running_counts


def test_a_batch_job_has_the_same_output_without_the_newest_methods(tmp_path: Path, oldest_api: None) -> None:
    env = environment(tmp_path)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    assert count_words(env, tmp_path) == Counter(f"{word} {count}" for word, count in COUNTS.items())


def test_a_batch_query_has_the_same_result_without_the_newest_methods(oldest_api: None) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    query = """SELECT k, SUM(v), MAX(t) FROM (VALUES
        ('a', 1, TIMESTAMP '2024-01-01 00:00:00.123'), ('b', 2, CAST(NULL AS TIMESTAMP(3))), ('a', NULL, NULL)
    ) AS numbers(k, v, t) GROUP BY k ORDER BY k"""
    with env.execute_sql(query).collect() as rows:
        assert [(row[0], row[1], str(row[2])) for row in rows] == [
            ("a", 1, "2024-01-01 00:00:00.123000"),
            ("b", 2, "None"),
        ]
    with env.execute_sql("SELECT k, COUNT(*) FROM (VALUES 1) AS n(k) WHERE k > 1 GROUP BY k").collect() as rows:
        assert list(rows) == []


@pytest.mark.parametrize("slots", [1, 2, 7, 64])
def test_rows_reach_the_partition_of_their_slot(slots: int, spark_context: Any, oldest_api: None) -> None:
    rows = SparkSession(spark_context).range(0, 3 * slots).selectExpr(f"CAST(id % {slots} AS INT) AS slot", "id")
    placed = partition_by_slot(rows, slots)
    assert placed.columns == ["slot", "id"]
    assert placed.rdd.getNumPartitions() == slots
    assert placed.where("spark_partition_id() <> slot").count() == 0
    assert len(set(choose_slot_keys(slots))) == slots


def test_integers_are_hashed_as_spark_hashes_them(spark_context: Any) -> None:
    numbers = [0, 1, -1, 42, 1 << 20, (1 << 31) - 1, -(1 << 31)]
    spelled = ", ".join(f"hash(CAST({number} AS INT))" for number in numbers)
    (row,) = SparkSession(spark_context).sql(f"SELECT {spelled}").collect()
    assert list(row) == [spark_hash(number) for number in numbers]


def test_a_jvm_without_a_class_is_detected_before_a_job_runs(
    spark_context: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert isinstance(stages.create_stages(spark_context, 2, (), public_only=False), StageBuilder)

    class OtherClasses(StageBuilder):
        def seeds(self) -> Any:
            return spark_context._jvm.org.apache.spark.NoSuchClass()

    monkeypatch.setattr(stages, "StageBuilder", OtherClasses)
    monkeypatch.setattr(stages, "_tried", [])
    with caplog.at_level(logging.WARNING, "millstream.spark"):
        assert isinstance(stages.create_stages(spark_context, 2, (), public_only=False), PublicStageBuilder)
    assert "public API only" in caplog.text
