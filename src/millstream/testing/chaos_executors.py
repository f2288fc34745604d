"""Executors and whole machines of a standalone cluster are killed with `kill -9` while a job runs on it.

Promises: the output is that of a run without faults; how long the job took to go on is measured. A machine that was
killed comes back a little later, as another one would.
Does not know: what runs in an executor."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from millstream.testing.chaos import Report, Trace
from millstream.testing.chaos_driven import Drivers, options
from millstream.testing.chaos_job import Specification, write_input
from millstream.testing.chaos_kills import compare, kills_of, measure
from millstream.testing.chaos_output import lines_by_file
from millstream.testing.spark_cluster import SparkCluster, kill

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
        started = time.monotonic()
        with Drivers(specification) as drivers:
            for step in trace.shown():
                _kill(cluster, drivers, step, report)
            drivers.wait(drivers.ended, "the end of the job", 600)
        report.figures["seconds"] = round(time.monotonic() - started, 1)
    compare(specification, directory, report, lines_by_file(specification.output))
    return report


def _kill(cluster: SparkCluster, drivers: Drivers, step: Any, report: Report) -> None:
    drivers.wait(lambda: drivers.ended() or drivers.epoch() >= step["after_epoch"], f"epoch {step['after_epoch']}")
    time.sleep(step["wait_ms"] / 1000)
    if drivers.ended():
        report.figures["too late"] = report.figures.get("too late", 0) + 1
        return
    if step["kind"] == "machine":
        number = step["pick"] % 2
        killed_at = time.monotonic()
        cluster.kill_worker(number)
    else:
        drivers.wait(lambda: drivers.ended() or bool(cluster.executors()), "an executor")
        executors = cluster.executors()
        killed_at = time.monotonic()
        if executors:
            kill(executors[step["pick"] % len(executors)])
    measure(drivers, step["kind"], killed_at, report)
    if step["kind"] == "machine":
        cluster.start_worker(number)
