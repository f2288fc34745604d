"""Python workers and drivers are killed with `kill -9` while a job runs on this machine; what all such cases share.

Promises: the output is that of a run without faults: every line once, each key's in order; how long the job took to go
on after each kill is measured. The clocks of workers are a day wrong, in both directions. A machine that was killed
comes back a little later, as another one would.
Does not know: where the job reads and writes; see `chaos_kafka` and `chaos_executors`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from millstream.testing.chaos import Report, Trace, percentile, too_busy
from millstream.testing.chaos_driven import Drivers, fault_free, options, recovery_seconds
from millstream.testing.chaos_job import Specification, write_input
from millstream.testing.chaos_output import differences, digest, lines_by_file
from millstream.testing.spark_cluster import SparkCluster, kill, python_workers

#: Seconds, for 95 of 100 kills.
LIMITS = {"worker": 3.0, "driver": 15.0, "executor": 8.0, "machine": 8.0}
_SIZES = {
    "ci": {"records": 24_000, "keys": 400, "epoch_records": 300, "kills": 6, "drivers": 1},
    "normal": {"records": 120_000, "keys": 5_000, "epoch_records": 800, "kills": 20, "drivers": 3},
    "long": {"records": 1_000_000, "keys": 100_000, "epoch_records": 800, "kills": 200, "drivers": 20},
}


def plan(seed: int, size: str) -> Trace:
    """Which process is killed after which epoch."""
    parameters = dict(_SIZES[size])
    return Trace("kills", seed, size, parameters, kills_of(seed, parameters, ("worker",), ("driver",)))


def kills_of(
    seed: int, parameters: dict[str, int], often: tuple[str, ...], seldom: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Kills spread over the epochs of the job; `seldom` ones as many as `parameters["drivers"]` says."""
    chance = np.random.default_rng([seed, 3])
    kills, epochs = parameters["kills"], parameters["records"] // parameters["epoch_records"]
    kinds = [str(chance.choice(often)) for _ in range(kills)]
    for place in chance.choice(kills, min(parameters["drivers"], kills), replace=False):
        kinds[int(place)] = str(chance.choice(seldom))
    gap = epochs / (kills + 1)
    return [
        {
            "after_epoch": int(gap * (number + 0.5 + chance.random() / 2)),
            "wait_ms": int(chance.integers(0, 400)),
            "kind": kind,
            "pick": int(chance.integers(0, 1_000)),
        }
        for number, kind in enumerate(kinds)
    ]


def play(trace: Trace, directory: Path) -> Report:
    """Run the job, kill as planned, and compare."""
    report = Report(trace)
    parameters = trace.parameters
    specification = Specification(
        str(directory), skew_seconds=86_400, options=options(directory, epoch_records=parameters["epoch_records"])
    )
    write_input(specification.input, trace.seed, records=parameters["records"], keys=parameters["keys"], files=4)
    kill_as_planned(specification, report, standby=1)
    compare(specification, directory, report, lines_by_file(specification.output))
    return report


def kill_as_planned(
    specification: Specification, report: Report, *, standby: int, cluster: SparkCluster | None = None
) -> None:
    """Run the job to its end, with the kills of the trace: on a cluster, or on this machine alone."""
    started = time.monotonic()
    with Drivers(specification, standby=standby) as drivers:
        for step in report.trace.shown():
            _kill(drivers, cluster, step, report)
        drivers.wait(drivers.ended, "the end of the job", 600)
    report.figures["seconds"] = round(time.monotonic() - started, 1)


def _kill(drivers: Drivers, cluster: SparkCluster | None, step: Any, report: Report) -> None:
    kind, pick = step["kind"], step["pick"]
    drivers.wait_for_epoch(step["after_epoch"])
    time.sleep(step["wait_ms"] / 1000)
    drivers.wait(lambda: drivers.ended() or bool(_living(kind, drivers, cluster)), f"a living {kind}")
    living = _living(kind, drivers, cluster)
    if drivers.ended() or not living:
        report.figures["too late"] = report.figures.get("too late", 0) + 1
        return
    killed_at = time.monotonic()
    if kind == "machine" and cluster is not None:
        cluster.kill_worker(pick % len(living))
    else:
        kill(living[pick % len(living)])
    _measure(drivers, kind, killed_at, report)
    drivers.fill()  # not before: the start of another driver would be measured, too
    if kind == "machine" and cluster is not None:
        cluster.start_worker(pick % len(living))


def _living(kind: str, drivers: Drivers, cluster: SparkCluster | None) -> list[int]:
    """The processes of a kind that could be killed now; there are none until a driver leads."""
    leader = drivers.leader()
    if leader is None:
        return []
    if kind == "driver":
        return [leader]
    if cluster is None:
        return python_workers(leader)
    return {"worker": cluster.python_workers, "executor": cluster.executors, "machine": cluster.machines}[kind]()


def _measure(drivers: Drivers, kind: str, killed_at: float, report: Report) -> None:
    """Wait until the job goes on, and note how long that took."""
    drivers.wait(
        lambda: drivers.ended() or recovery_seconds(drivers.told(), killed_at) is not None, f"life after a dead {kind}"
    )
    took = recovery_seconds(drivers.told(), killed_at)
    if took is not None:
        report.figures.setdefault(f"{kind} kills", []).append(round(took, 2))


def compare(specification: Specification, directory: Path, report: Report, found: dict[str, list[str]]) -> None:
    """The output against that of a run without faults, and the times against their limits."""
    for problem in differences(found, fault_free(specification, directory / "without-faults")):
        report.check(False, problem)
    lines = [line for each in found.values() for line in each]
    report.figures |= {"lines": len(lines), "digest": digest(lines)[:16]}
    busy = too_busy()
    report.figures["load"] = f"{os.getloadavg()[0]:.1f}{', too high to judge times' if busy else ''}"
    for kind in [name.removesuffix(" kills") for name in report.figures if name.endswith(" kills")]:
        times = report.figures[f"{kind} kills"]
        report.figures[f"{kind} p95 s"] = p95 = percentile(times, 0.95)
        judged = report.trace.size != "ci" and not busy  # a few kills on a machine of strangers tell no 95 of 100
        report.check(not judged or p95 <= LIMITS[kind], f"95 of 100 {kind} kills took up to {p95} s")
    planned = len(report.trace.steps)
    report.check(report.figures.get("too late", 0) <= planned // 2, "the job ended before half of the kills")
