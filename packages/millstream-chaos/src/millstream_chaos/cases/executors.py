"""Executors and whole machines of a standalone cluster are killed with `kill -9` while a job runs on it.

Promises: the output is that of a run without faults; the duration of each recovery is measured.
Does not know: what runs in an executor."""

from __future__ import annotations

from pathlib import Path

from millstream.testing.spark_cluster import SparkCluster
from millstream_chaos.jobs.kills import check_output, kill_on_files, plan_kills
from millstream_chaos.machine.python_path import source_folders
from millstream_chaos.outputs.compare import read_lines
from millstream_chaos.trace import Report, Trace

_SIZES = {
    "ci": {"records": 16_000, "keys": 400, "epoch_records": 300, "kills": 3, "drivers": 1},
    "normal": {"records": 60_000, "keys": 5_000, "epoch_records": 600, "kills": 12, "drivers": 4},
    "long": {"records": 400_000, "keys": 50_000, "epoch_records": 800, "kills": 100, "drivers": 30},
}


def plan(seed: int, size: str) -> Trace:
    """Draw what is killed after which epoch."""
    parameters = dict(_SIZES[size])
    return Trace("executors", seed, size, parameters, plan_kills(seed, parameters, ("executor",), ("machine",)))


def play(trace: Trace, directory: Path) -> Report:
    """Start a cluster, run the job on it with the kills, and check the output."""
    report = Report(trace)
    with SparkCluster(workers=2, python_path=source_folders()) as cluster:
        specification = kill_on_files(directory, report, standby=0, cluster=cluster)
    check_output(specification, directory, report, read_lines(specification.output))
    return report
