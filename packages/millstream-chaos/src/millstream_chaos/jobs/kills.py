"""Kills processes while the keyed job runs: shared by the cases that kill workers, executors, machines or drivers.

Promises: kills are drawn from a seed and spread over the epochs of the job; the duration of each recovery is measured;
the output is compared with that of a run without faults. A machine that was killed is replaced a little later.
Does not know: Kafka; cases with topics read and write them themselves."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from millstream.testing.spark_cluster import SparkCluster, kill, python_workers
from millstream_chaos.jobs.drivers import Drivers, create_options, measure_recovery, run_without_faults
from millstream_chaos.jobs.engines import engine_options
from millstream_chaos.jobs.keyed_job import Specification, write_input
from millstream_chaos.outputs.compare import find_differences, hash_lines
from millstream_chaos.trace import Report, draw_epoch, is_machine_busy, percentile

#: Seconds of a recovery, for 95 of 100 kills.
LIMITS = {"worker": 3.0, "driver": 15.0, "executor": 8.0, "machine": 8.0}


def plan_kills(
    seed: int, parameters: dict[str, int], frequent: tuple[str, ...], rare: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Draw kills, spread over the epochs of the job; `parameters["drivers"]` of them are of `rare` processes."""
    chance = np.random.default_rng([seed, 3])
    kills, epochs = parameters["kills"], parameters["records"] // parameters["epoch_records"]
    processes = [str(chance.choice(frequent)) for _ in range(kills)]
    for index in chance.choice(kills, min(parameters["drivers"], kills), replace=False):
        processes[int(index)] = str(chance.choice(rare))
    return [
        {
            "after_epoch": draw_epoch(chance, epochs, number, kills),
            "wait_ms": int(chance.integers(0, 400)),
            "kind": process,
            "pick": int(chance.integers(0, 1_000)),
        }
        for number, process in enumerate(processes)
    ]


def kill_on_files(
    directory: Path, report: Report, *, standby: int, cluster: SparkCluster | None = None
) -> Specification:
    """Run the job with the kills of the trace, from files to files; the clocks of workers are wrong by a day."""
    parameters = report.trace.parameters
    settings = create_options(directory, epoch_records=parameters["epoch_records"])
    settings |= engine_options(report.trace) | ({} if cluster is None else cluster.settings())
    specification = Specification(str(directory), skew_seconds=86_400, options=settings)
    seed, records, keys = report.trace.seed, parameters["records"], parameters["keys"]
    write_input(specification.input, seed, records=records, keys=keys, files=4)
    kill_as_planned(specification, report, standby=standby, cluster=cluster)
    return specification


def kill_as_planned(
    specification: Specification, report: Report, *, standby: int, cluster: SparkCluster | None = None
) -> None:
    """Run the job to its end with the kills of the trace, on a cluster or in local mode."""
    started = time.monotonic()
    with Drivers(specification, standby=standby) as drivers:
        for step in report.trace.iterate_steps():
            _kill(drivers, cluster, step, report)
        drivers.wait(drivers.has_ended, "the end of the job", 600)
    report.figures["seconds"] = round(time.monotonic() - started, 1)


def _kill(drivers: Drivers, cluster: SparkCluster | None, step: Any, report: Report) -> None:
    process, pick = step["kind"], step["pick"]
    drivers.wait_for_epoch(step["after_epoch"])
    time.sleep(step["wait_ms"] / 1000)
    drivers.wait(lambda: drivers.has_ended() or bool(_running_pids(process, drivers, cluster)), f"a running {process}")
    pids = _running_pids(process, drivers, cluster)
    if drivers.has_ended() or not pids:
        report.figures["too late"] = report.figures.get("too late", 0) + 1
        return
    killed_at = time.monotonic()
    if process == "machine" and cluster is not None:
        cluster.kill_worker(pick % len(pids))
    else:
        kill(pids[pick % len(pids)])
    _measure(drivers, process, killed_at, report)
    drivers.start_missing()  # not started earlier, because its start would be part of the measured recovery
    if process == "machine" and cluster is not None:
        cluster.start_worker(pick % len(pids))


def _running_pids(process: str, drivers: Drivers, cluster: SparkCluster | None) -> list[int]:
    """Return the process ids that can be killed now; there are none while no driver leads."""
    leader = drivers.leader()
    if leader is None:
        return []
    if process == "driver":
        return [leader]
    if cluster is None:
        return python_workers(leader)
    return {"worker": cluster.python_workers, "executor": cluster.executors, "machine": cluster.machines}[process]()


def _measure(drivers: Drivers, process: str, killed_at: float, report: Report) -> None:
    """Wait until the job has recovered, and record how long that took."""
    drivers.wait(
        lambda: drivers.has_ended() or measure_recovery(drivers.read_progress(), killed_at) is not None,
        f"recovery from a killed {process}",
    )
    took = measure_recovery(drivers.read_progress(), killed_at)
    if took is not None:
        report.figures.setdefault(f"{process} kills", []).append(round(took, 2))


def check_output(specification: Specification, directory: Path, report: Report, output: dict[str, list[str]]) -> None:
    """Compare the output with that of a run without faults, and the recovery times with their limits."""
    for problem in find_differences(output, run_without_faults(specification, directory / "without-faults")):
        report.check(False, problem)
    lines = [line for file in output.values() for line in file]
    report.figures |= {"lines": len(lines), "digest": hash_lines(lines)[:16]}
    busy = is_machine_busy()
    report.figures["load"] = f"{os.getloadavg()[0]:.1f}{', too high to judge times' if busy else ''}"
    for process in [name.removesuffix(" kills") for name in report.figures if name.endswith(" kills")]:
        times = report.figures[f"{process} kills"]
        report.figures[f"{process} p95 s"] = p95 = percentile(times, 0.95)
        judged = report.trace.size != "ci" and not busy  # a few kills on a shared machine have no 95th percentile
        report.check(
            not judged or p95 <= LIMITS[process], f"recovery from 95 of 100 {process} kills took up to {p95} s"
        )
    planned = len(report.trace.steps)
    report.check(report.figures.get("too late", 0) <= planned // 2, "the job ended before half of the kills")
