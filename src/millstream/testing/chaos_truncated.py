"""A job that copies one topic to another, exactly once, and is stopped and started again; for topics that lose records.

Promises: each run goes on from the savepoint it is given; what was skipped is counted.
Does not know: why records are gone."""

from __future__ import annotations

import threading
from pathlib import Path

from millstream.client.job_client import JobClient
from millstream.cluster.job_events import EpochDone, JobEvent
from millstream.config.configuration import Configuration
from millstream.connector.serialization_schema import SimpleStringSchema
from millstream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink, KafkaSource
from millstream.datastream.connectors.base import DeliveryGuarantee
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.errors import MillstreamError
from millstream.event_time.watermarks import WatermarkStrategy
from millstream.testing.chaos_driven import ChaosStuck
from millstream.testing.kafka import KafkaBroker

_WAIT = 60.0


def lines_of(count: int) -> list[str]:
    """Lines that can be told apart."""
    return [f"line {number}" for number in range(count)]


class Copying:
    """The job, and its topics of one partition."""

    def __init__(self, broker: KafkaBroker, directory: Path) -> None:
        self._servers, self._directory = broker.bootstrap_servers, directory
        self.source = broker.create_topic(f"{directory.name}-in")
        self.target = broker.create_topic(f"{directory.name}-out")

    def run(self, records: int, savepoint: str | None = None, reset: str = "none") -> tuple[str, int]:
        """Run until so many records were read, then stop; gives the path of the savepoint, and how many were gone."""
        counted = _Counted(records)
        client = self._started(counted, savepoint, reset)
        try:
            if not counted.enough.wait(_WAIT):
                raise ChaosStuck(
                    waited_for=f"record {records}", seconds=_WAIT, last=str(client.get_job_status().result())
                )
            path = str(client.stop_with_savepoint(False, str(self._directory / "savepoints")).result(_WAIT))
        finally:
            client.cancel()
        return path, counted.skipped

    def refused(self, savepoint: str) -> str:
        """What a run from the savepoint says when it fails, as it must."""
        client = self._started(_Counted(), savepoint, "none")
        try:
            client.get_job_execution_result().result(_WAIT)
        except MillstreamError as problem:
            return str(problem)
        finally:
            client.cancel()
        return "nothing"

    def _started(self, counted: _Counted, savepoint: str | None, reset: str) -> JobClient:
        configuration = Configuration()
        (self._directory / "checkpoints").mkdir(exist_ok=True)
        configuration.set_string("execution.checkpointing.dir", str(self._directory / "checkpoints"))
        configuration.set_string("execution.checkpointing.interval", "50 ms")
        configuration.set_string("millstream.epoch.max-records", "50")
        configuration.set_string("restart-strategy.type", "none")
        if savepoint is not None:
            configuration.set_string("execution.state-recovery.path", savepoint)
        environment = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
        environment.register_listener(counted)
        source = KafkaSource.builder().set_bootstrap_servers(self._servers).set_topics(self.source)
        source.set_value_only_deserializer(SimpleStringSchema()).set_property("auto.offset.reset", reset)
        serializer = KafkaRecordSerializationSchema.builder().set_topic(self.target)
        sink = KafkaSink.builder().set_bootstrap_servers(self._servers)
        sink.set_record_serializer(serializer.set_value_serialization_schema(SimpleStringSchema()).build())
        sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(self.target)
        lines = environment.from_source(source.build(), WatermarkStrategy.no_watermarks(), "lines").uid("lines")
        lines.sink_to(sink.build()).uid("copies")
        return environment.execute_async("copies")


class _Counted:
    """A listener that counts records read and skipped."""

    def __init__(self, wanted: int = 0) -> None:
        self._wanted, self._read = wanted, 0
        self.skipped = 0
        self.enough = threading.Event()

    def __call__(self, observation: JobEvent) -> None:
        """Add an epoch."""
        if isinstance(observation, EpochDone):
            self._read += observation.records
            self.skipped += sum(int(each.get("numRecordsSkipped", 0)) for each in observation.metrics.values())
            if self._read >= self._wanted:
                self.enough.set()
