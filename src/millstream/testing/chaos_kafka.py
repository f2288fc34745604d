"""Python workers, executors and drivers are killed while a job on a cluster goes from Kafka to Kafka, exactly once.

Promises: a consumer that reads what is committed finds the output of a run without faults: every line once, each key's
in the order of its partition; how long the job took to go on after each kill is measured.
Does not know: brokers that die; see `chaos_brokers`."""

from __future__ import annotations

from pathlib import Path

from millstream.testing.chaos import Report, Trace
from millstream.testing.chaos_driven import options
from millstream.testing.chaos_job import Specification, write_input
from millstream.testing.chaos_kills import compare, kill_as_planned, kills_of
from millstream.testing.kafka import KafkaBroker
from millstream.testing.kafka_cluster import KafkaCluster
from millstream.testing.spark_cluster import SparkCluster

_SIZES = {
    "ci": {"records": 16_000, "keys": 400, "epoch_records": 300, "kills": 8, "drivers": 1},
    "normal": {"records": 120_000, "keys": 5_000, "epoch_records": 800, "kills": 20, "drivers": 3},
    "long": {"records": 1_000_000, "keys": 100_000, "epoch_records": 800, "kills": 200, "drivers": 20},
}
OUTPUTS = ("running", "windowed")
_PARTITIONS = 4


def plan(seed: int, size: str) -> Trace:
    """Which process is killed after which epoch."""
    parameters = dict(_SIZES[size])
    return Trace("kafka", seed, size, parameters, kills_of(seed, parameters, ("worker", "executor"), ("driver",)))


def play(trace: Trace, directory: Path) -> Report:
    """Start a broker, run the job, kill as planned, and compare what is committed."""
    report = Report(trace)
    parameters = trace.parameters
    with KafkaBroker() as broker, SparkCluster(workers=2) as cluster:
        settings = options(directory, epoch_records=parameters["epoch_records"]) | cluster.settings()
        specification = Specification(
            str(directory), skew_seconds=86_400, options=settings, kafka=broker.bootstrap_servers
        )
        fill(broker, specification, trace)
        kill_as_planned(specification, report, standby=1, cluster=cluster)
        found = committed(broker)
    compare(specification, directory, report, found)
    return report


def fill(broker: KafkaBroker | KafkaCluster, specification: Specification, trace: Trace) -> None:
    """Make the topics of the job, and write its input to files and to the topic that it reads."""
    records, keys = trace.parameters["records"], trace.parameters["keys"]
    write_input(specification.input, trace.seed, records=records, keys=keys, files=_PARTITIONS)
    for name in ("input", *OUTPUTS):
        broker.create_topic(name, _PARTITIONS, {"retention.ms": "-1"})  # event times are of 1970: a broker forgets such
    for partition, file in enumerate(sorted(specification.input.iterdir())):
        broker.produce("input", file.read_text(encoding="utf-8").splitlines(), partition=partition)


def committed(broker: KafkaBroker | KafkaCluster) -> dict[str, list[str]]:
    """The lines that a reader of committed data sees, by topic and partition."""
    found: dict[str, list[str]] = {}
    for name in OUTPUTS:
        for message in broker.read(name):
            found.setdefault(f"{name}/{message.partition()}", []).append((message.value() or b"").decode())
    return found
