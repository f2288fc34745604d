"""Python workers, executors and drivers are killed while a job on a cluster goes from Kafka to Kafka, exactly once.

Promises: the committed output is that of a run without faults: every line once, in the order of its key; the duration
of each recovery is measured.
Does not know: killed brokers; see `brokers`."""

from __future__ import annotations

from pathlib import Path

from millstream.testing.kafka import KafkaBroker
from millstream.testing.spark_cluster import SparkCluster
from millstream_chaos.jobs.drivers import create_options
from millstream_chaos.jobs.engines import engine_options
from millstream_chaos.jobs.keyed_job import Specification
from millstream_chaos.jobs.kills import check_output, kill_as_planned, plan_kills
from millstream_chaos.jobs.topics import fill_topics, read_committed
from millstream_chaos.machine.python_path import source_folders
from millstream_chaos.trace import Report, Trace

_SIZES = {
    "ci": {"records": 7_000, "keys": 400, "epoch_records": 300, "kills": 3, "drivers": 1},
    "normal": {"records": 120_000, "keys": 5_000, "epoch_records": 800, "kills": 20, "drivers": 3},
    "long": {"records": 1_000_000, "keys": 100_000, "epoch_records": 800, "kills": 200, "drivers": 20},
}


def plan(seed: int, size: str) -> Trace:
    """Draw which process is killed after which epoch."""
    parameters = dict(_SIZES[size])
    return Trace("kafka", seed, size, parameters, plan_kills(seed, parameters, ("worker", "executor"), ("driver",)))


def play(trace: Trace, directory: Path) -> Report:
    """Start a broker, run the job with the kills, and check the committed output."""
    report = Report(trace)
    parameters = trace.parameters
    with KafkaBroker() as broker, SparkCluster(workers=2, python_path=source_folders()) as cluster:
        settings = create_options(directory, epoch_records=parameters["epoch_records"])
        settings |= engine_options(trace) | cluster.settings()
        specification = Specification(
            str(directory), skew_seconds=86_400, options=settings, kafka=broker.bootstrap_servers
        )
        fill_topics(broker, specification, trace)
        kill_as_planned(specification, report, standby=1, cluster=cluster)
        output = read_committed(broker)
    check_output(specification, directory, report, output)
    return report
