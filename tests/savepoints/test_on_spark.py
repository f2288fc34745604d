"""Savepoints on Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors import NumberSequenceSource
from millstream.datastream.functions import KeyedProcessFunction
from millstream.datastream.state import ValueStateDescriptor
from millstream.state_processor import Savepoint, SavepointWriter

pytestmark = pytest.mark.spark
LAST = 60_000


@pytest.fixture(autouse=True)
def inline():
    """Use Spark, unlike the other tests of this folder."""


@dataclass
class Sum:
    total: int


@dataclass
class Sums:
    count: int = 0
    total: float = field(default=0.0)


class Add(KeyedProcessFunction):
    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def open(self, runtime_context):
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", self.kind))

    def process_element(self, value, ctx):
        total = (self.sum.value() or self.kind(total=0)).total + value
        self.sum.update(self.kind(total=total))
        if value > LAST - 10:
            yield ctx.get_current_key(), total


def start(kind: Any, directory: Any, path: str | None = None, parallelism: int = 2) -> Any:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.savepoint-dir", str(directory))
    configuration.set_string("execution.checkpointing.interval", "100 ms")
    configuration.set_string("millstream.epoch.max-records", "4000")
    if path is not None:
        configuration.set_string("execution.state-recovery.path", path)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
    numbers = env.from_source(NumberSequenceSource(1, LAST), WatermarkStrategy.no_watermarks(), "numbers")
    return env, numbers.uid("numbers").key_by(lambda n: n % 10, Types.LONG()).process(Add(kind)).uid("add")


def test_a_stopped_job_continues_with_more_subtasks_and_another_record_type(tmp_path, spark_context):
    env, stream = start(Sum, tmp_path)
    stream.print()
    path = env.execute_async("first").stop_with_savepoint(False).result(120)
    assert 0 < len(Savepoint(path).operator("add").state("sum")) <= 10
    env, stream = start(Sums, tmp_path, path, parallelism=3)
    found = dict(stream.execute_and_collect())
    assert found == {key: sum(range(key or 10, LAST + 1, 10)) for key in range(10)}


def test_state_is_converted_to_a_data_frame_and_back(tmp_path, spark_context):
    from pyspark.sql import SparkSession  # here, so that other tests start without it

    session = SparkSession(spark_context)
    frame = session.createDataFrame([(1, 10), (2, 20)], ["key", "value"])
    count = ValueStateDescriptor("count", Types.LONG())
    path = SavepointWriter.new_savepoint().with_state("counts", count, frame).write(str(tmp_path / "savepoint"))
    back = Savepoint(path).operator("counts").state("count").to_spark(session)
    assert sorted(map(tuple, back.collect())) == [(1, 10), (2, 20)]
