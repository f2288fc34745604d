"""Executors and whole machines of a standalone cluster are killed with `kill -9` while a job runs on it.

Promises: the output is that of a run without faults; how long the job took to go on is measured.
Does not know: what runs in an executor."""

from __future__ import annotations

from pathlib import Path

from millstream.testing.chaos import Report, Trace
from millstream.testing.chaos_driven import options
from millstream.testing.chaos_job import Specification, write_input
from millstream.testing.chaos_kills import compare, kill_as_planned, kills_of
from millstream.testing.chaos_output import lines_by_file
from millstream.testing.spark_cluster import SparkCluster

_SIZES = {
    "ci": {"records": 16_000, "keys": 400, "epoch_records": 300, "kills": 3, "drivers": 1},
    "normal": {"records": 60_000, "keys": 5_000, "epoch_records": 600, "kills": 12, "drivers": 4},
    "long": {"records": 400_000, "keys": 50_000, "epoch_records": 800, "kills": 100, "drivers": 30},
}


def plan(seed: int, size: str) -> Trace:
    """What is killed after which epoch."""
    parameters = dict(_SIZES[size])
    return Trace("executors", seed, size, parameters, kills_of(seed, parameters, ("executor",), ("machine",)))


def play(trace: Trace, directory: Path) -> Report:
    """Start a cluster, run the job on it, kill as planned, and compare."""
    report = Report(trace)
    parameters = trace.parameters
    with SparkCluster(workers=2) as cluster:
        settings = options(directory, epoch_records=parameters["epoch_records"]) | cluster.settings()
        specification = Specification(str(directory), skew_seconds=86_400, options=settings)
        write_input(specification.input, trace.seed, records=parameters["records"], keys=parameters["keys"], files=4)
        kill_as_planned(specification, report, standby=0, cluster=cluster)
    compare(specification, directory, report, lines_by_file(specification.output))
    return report
