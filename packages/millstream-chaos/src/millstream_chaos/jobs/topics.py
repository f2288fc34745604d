"""The Kafka topics of the keyed job: its input, and its committed output.

Promises: the topic has the same input as the files; only committed output is read.
Does not know: faults."""

from __future__ import annotations

from pathlib import Path

from millstream.testing.kafka import KafkaBroker
from millstream.testing.kafka_cluster import KafkaCluster
from millstream_chaos.jobs.keyed_job import Specification, write_input
from millstream_chaos.trace import Trace

OUTPUTS = ("running", "windowed")
_PARTITIONS = 4


def options_with_restarts(directory: Path, trace: Trace) -> dict[str, str]:
    """Return the options of a job whose brokers fail: frequent checkpoints, and restarts until the brokers are back."""
    return {
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        "execution.checkpointing.interval": "100 ms",
        "millstream.epoch.max-records": str(trace.parameters["epoch_records"]),
        "restart-strategy.type": "exponential-delay",
        "restart-strategy.exponential-delay.initial-backoff": "100 ms",
        "restart-strategy.exponential-delay.max-backoff": "1 s",
    }


def fill_topics(broker: KafkaBroker | KafkaCluster, specification: Specification, trace: Trace) -> None:
    """Create the topics of the job, and write its input to files and to the input topic."""
    records, keys = trace.parameters["records"], trace.parameters["keys"]
    write_input(specification.input, trace.seed, records=records, keys=keys, files=_PARTITIONS)
    for name in ("input", *OUTPUTS):
        broker.create_topic(
            name, _PARTITIONS, {"retention.ms": "-1"}
        )  # event times are in 1970, so retention would delete the records
    for partition, file in enumerate(sorted(specification.input.iterdir())):
        broker.produce("input", file.read_text(encoding="utf-8").splitlines(), partition=partition)


def read_committed(broker: KafkaBroker | KafkaCluster) -> dict[str, list[str]]:
    """Return the committed lines, by topic and partition."""
    lines: dict[str, list[str]] = {}
    for name in OUTPUTS:
        for message in broker.read(name):
            lines.setdefault(f"{name}/{message.partition()}", []).append((message.value() or b"").decode())
    return lines
