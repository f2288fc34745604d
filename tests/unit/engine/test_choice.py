"""What is known of the engine of a job before it runs."""

from __future__ import annotations

import pytest

from millstream.common import Configuration, WatermarkStrategy
from millstream.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from millstream.datastream.connectors.blackhole import BlackHoleSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.engine.choice import describe_engine
from millstream.graph.execution_plan import execution_plan
from millstream.graph.job_graph import job_graph

DYNAMIC = {"spark.dynamicAllocation.enabled": "true"}
CLUSTER = {"millstream.spark.master": "spark://host:7077"}


def describe(*, batch: bool = False, **settings: str) -> str:
    configuration = Configuration.from_dict({key.replace("__", "."): value for key, value in settings.items()})
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(3)
    if batch:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    numbers = env.from_source(NumberSequenceSource(0, 9), WatermarkStrategy.no_watermarks(), "n")
    numbers.sink_to(BlackHoleSink())
    return describe_engine(execution_plan(job_graph(env._graph(), "engines")), configuration)


@pytest.mark.parametrize(
    ("engine", "settings", "expected"),
    [
        ("jobs", {}, "Spark jobs, because millstream.engine is jobs"),
        ("auto", {}, "resident slots if Spark has 3 free task slots, else Spark jobs"),
        ("resident", {}, "resident slots if Spark has 3 free task slots, else the job fails"),
        ("auto", DYNAMIC, "Spark jobs, because spark.dynamicAllocation.enabled is true"),
        ("resident", DYNAMIC, "none, because spark.dynamicAllocation.enabled is true"),
        ("auto", {**CLUSTER, "spark.network.crypto.enabled": "true"}, "Spark jobs, because spark.network.crypto"),
        ("auto", {"spark.network.crypto.enabled": "true"}, "resident slots"),
    ],
)
def test_the_engine_of_a_streaming_job_and_the_reason(engine: str, settings: dict[str, str], expected: str) -> None:
    assert describe(millstream__engine=engine, **settings).startswith(expected)


def test_a_batch_job_is_spark_jobs_with_every_engine() -> None:
    assert describe(batch=True, millstream__engine="resident") == "Spark jobs, because it is a batch job"
