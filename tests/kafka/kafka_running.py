"""Helpers of the Kafka tests: sources, sinks, and small jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from millstream.common import Configuration, SimpleStringSchema, WatermarkStrategy
from millstream.connector.sink import WriterContext
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors import DeliveryGuarantee
from millstream.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaSourceBuilder,
)
from millstream.testing.kafka import KafkaBroker

LATEST = KafkaOffsetsInitializer.latest()


class PowerCut(Exception):
    """Simulates the end of the process."""


def cut(*_args: Any, **_kwargs: Any) -> None:
    raise PowerCut


def reading(broker: KafkaBroker, *topics: str) -> KafkaSourceBuilder:
    builder = KafkaSource.builder().set_bootstrap_servers(broker.bootstrap_servers)
    builder.set_value_only_deserializer(SimpleStringSchema())
    return builder.set_topics(*topics) if topics else builder


def writing(broker: KafkaBroker, topic: str, staging: str = "", guarantee: str = "EXACTLY_ONCE") -> KafkaSink:
    serializer = KafkaRecordSerializationSchema.builder().set_topic(topic)
    serializer.set_value_serialization_schema(SimpleStringSchema())
    builder = KafkaSink.builder().set_bootstrap_servers(broker.bootstrap_servers)
    builder.set_record_serializer(serializer.build()).set_delivery_guarantee(DeliveryGuarantee[guarantee])
    builder.set_transactional_id_prefix(topic)
    return (builder.set_staging_directory(staging) if staging else builder).build()


def environment(directory: Path | None = None, **settings: str) -> StreamExecutionEnvironment:
    """With a directory, a checkpoint after every epoch."""
    configuration = Configuration()
    if directory is not None:
        (directory / "checkpoints").mkdir(exist_ok=True)
        configuration.set_string("execution.checkpointing.dir", str(directory / "checkpoints"))
        configuration.set_string("execution.checkpointing.interval", "1 ms")
        configuration.set_string("restart-strategy.type", "fixed-delay")
        configuration.set_string("restart-strategy.fixed-delay.attempts", "3")
        configuration.set_string("restart-strategy.fixed-delay.delay", "10 ms")
    for key, value in settings.items():
        configuration.set_string(key.replace("__", ".").replace("_", "-"), value)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)


def collected(source: KafkaSource, env: StreamExecutionEnvironment | None = None) -> list[Any]:
    stream = (env or environment()).from_source(source, WatermarkStrategy.no_watermarks(), "kafka")
    with stream.execute_and_collect() as results:
        return list(results)


def stage(
    sink: KafkaSink,
    epoch: int,
    values: list[str],
    subtask: int = 0,
    job: str = "job",
    attempt: str = "a",
    parallelism: int = 2,
) -> list[Any]:
    """The output that a writer of the sink stages in an epoch."""
    context = WriterContext(job, "sink", subtask, parallelism, epoch, f"{attempt}{epoch}-{subtask}", 0)
    writer = sink.create_writer(context)
    writer.write(values, None)
    made = writer.prepare_commit()
    writer.close()
    return made


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
