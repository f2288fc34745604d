"""A job that copies one topic to another, exactly once, and is stopped and restarted; for topics that lose records.

Promises: each run continues from a savepoint; skipped records are counted.
Does not know: why records are missing."""

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
from millstream.testing.kafka import KafkaBroker
from millstream_chaos.jobs.drivers import ChaosStuck

_WAIT = 60.0


def create_lines(count: int) -> list[str]:
    """Return distinct lines."""
    return [f"line {number}" for number in range(count)]


class CopyJob:
    """The job, and its two topics with one partition each."""

    def __init__(self, broker: KafkaBroker, directory: Path) -> None:
        self._servers, self._directory = broker.bootstrap_servers, directory
        self.source = broker.create_topic(f"{directory.name}-in")
        self.target = broker.create_topic(f"{directory.name}-out")

    def run(self, records: int, savepoint: str | None = None, reset: str = "none") -> tuple[str, int]:
        """Run until `records` records were read and stop with a savepoint.

        Returns:
            The path of the savepoint, and the number of skipped records.

        """
        counter = _RecordCounter(records)
        client = self._start(counter, savepoint, reset)
        try:
            if not counter.enough.wait(_WAIT):
                raise ChaosStuck(
                    waited_for=f"record {records}", seconds=_WAIT, last=str(client.get_job_status().result())
                )
            path = str(client.stop_with_savepoint(False, str(self._directory / "savepoints")).result(_WAIT))
        finally:
            client.cancel()
        return path, counter.skipped

    def run_until_failure(self, savepoint: str) -> str:
        """Run from a savepoint and return the error, with which the run is expected to fail."""
        client = self._start(_RecordCounter(), savepoint, "none")
        try:
            client.get_job_execution_result().result(_WAIT)
        except MillstreamError as problem:
            return str(problem)
        finally:
            client.cancel()
        return "nothing"

    def _start(self, counter: _RecordCounter, savepoint: str | None, reset: str) -> JobClient:
        configuration = Configuration()
        (self._directory / "checkpoints").mkdir(exist_ok=True)
        configuration.set_string("execution.checkpointing.dir", str(self._directory / "checkpoints"))
        configuration.set_string("execution.checkpointing.interval", "50 ms")
        configuration.set_string("millstream.epoch.max-records", "50")
        configuration.set_string("restart-strategy.type", "none")
        if savepoint is not None:
            configuration.set_string("execution.state-recovery.path", savepoint)
        environment = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
        environment.register_listener(counter)
        source = KafkaSource.builder().set_bootstrap_servers(self._servers).set_topics(self.source)
        source.set_value_only_deserializer(SimpleStringSchema()).set_property("auto.offset.reset", reset)
        serializer = KafkaRecordSerializationSchema.builder().set_topic(self.target)
        sink = KafkaSink.builder().set_bootstrap_servers(self._servers)
        sink.set_record_serializer(serializer.set_value_serialization_schema(SimpleStringSchema()).build())
        sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(self.target)
        lines = environment.from_source(source.build(), WatermarkStrategy.no_watermarks(), "lines").uid("lines")
        lines.sink_to(sink.build()).uid("copies")
        return environment.execute_async("copies")


class _RecordCounter:
    """A listener that counts records read and skipped."""

    def __init__(self, wanted: int = 0) -> None:
        self._wanted, self._read = wanted, 0
        self.skipped = 0
        self.enough = threading.Event()

    def __call__(self, event: JobEvent) -> None:
        """Add the records of an epoch."""
        if isinstance(event, EpochDone):
            self._read += event.records
            self.skipped += sum(int(metrics.get("numRecordsSkipped", 0)) for metrics in event.metrics.values())
            if self._read >= self._wanted:
                self.enough.set()
