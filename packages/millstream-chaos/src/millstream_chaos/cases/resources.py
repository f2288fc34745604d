"""The disk is full or memory runs out while a job runs; later there is space again.

Promises: the output is that of a run without faults. The full disk is a real one of a few megabytes, with the local
stores, Spark's shuffle files or the checkpoints. Memory runs out in a control group, where the kernel kills the largest
process: a Python worker or the driver's JVM.
Does not know: simulated faults of storage; see `storage`."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from millstream_chaos.jobs.drivers import Drivers, create_options, run_without_faults
from millstream_chaos.jobs.engines import engine_options
from millstream_chaos.jobs.keyed_job import HUNGRY, Specification, write_input
from millstream_chaos.machine.limits import MemoryLimit, SmallDisk
from millstream_chaos.outputs.compare import find_differences, hash_lines, read_lines
from millstream_chaos.trace import Report, Trace

DISKS = {"stores": "io.tmp.dirs", "shuffle files": "spark.local.dir", "checkpoints": "execution.checkpointing.dir"}
_SIZES = {
    "ci": {"records": 9_000, "keys": 300, "epoch_records": 300, "rounds": 1},
    "normal": {"records": 60_000, "keys": 5_000, "epoch_records": 600, "rounds": 3},
    "long": {"records": 300_000, "keys": 20_000, "epoch_records": 800, "rounds": 12},
}
_DISK = 48 << 20
_MEMORY = 1_600 << 20


def plan(seed: int, size: str) -> Trace:
    """Draw after which epochs each resource is exhausted, and for how long; each resource has a job of its own."""
    parameters = dict(_SIZES[size])
    chance = np.random.default_rng([seed, 43])
    epochs = parameters["records"] / parameters["epoch_records"]
    steps = [
        {
            "kind": resource,
            "epoch": int(epochs / (parameters["rounds"] + 1) * (number + 0.4 + chance.random() / 2)),
            "seconds": round(float(chance.uniform(1.0, 4.0)), 1),
        }
        for resource in (*DISKS, "memory")
        for number in range(parameters["rounds"])
    ]
    return Trace("resources", seed, size, parameters, steps)


def play(trace: Trace, directory: Path) -> Report:
    """Run one job for each resource, and check its output."""
    report = Report(trace)
    for resource in dict.fromkeys(step["kind"] for step in trace.iterate_steps()):
        where = directory / resource.replace(" ", "-")
        settings = create_options(where, epoch_records=trace.parameters["epoch_records"])
        settings |= engine_options(trace) | {
            "state.backend.type": "rocksdb",
            "millstream.high-availability.lease-duration": "30 s",
        }
        steps = [step for step in trace.steps if step["kind"] == resource]
        if resource == "memory":
            specification = _prepare(where, settings, trace)
            with MemoryLimit(_MEMORY) as limit, Drivers(specification, hosts=[limit.host]) as drivers:
                _exhaust_memory(where, drivers, limit, steps, report)
        else:
            with SmallDisk(where / "small", _DISK) as disk:
                folder = disk.directory / "folder"
                folder.mkdir()
                specification = _prepare(where, settings | {DISKS[resource]: str(folder)}, trace)
                with Drivers(specification) as drivers:
                    _fill_disk(drivers, disk, steps, report)
        output = read_lines(specification.output)
        for problem in find_differences(output, run_without_faults(specification, where / "without-faults")):
            report.check(False, f"{resource}: {problem}")
        lines = [line for file in output.values() for line in file]
        report.figures[f"{resource}: lines"] = f"{len(lines)} ({hash_lines(lines)[:16]})"
    return report


def _prepare(where: Path, settings: dict[str, str], trace: Trace) -> Specification:
    specification = Specification(str(where), options=settings)
    records, keys = trace.parameters["records"], trace.parameters["keys"]
    write_input(specification.input, trace.seed, records=records, keys=keys, files=4)
    return specification


def _fill_disk(drivers: Drivers, disk: SmallDisk, steps: list[Any], report: Report) -> None:
    for step in steps:
        drivers.wait_for_epoch(step["epoch"])
        if drivers.has_ended():
            report.check(False, f"the job ended before {step}")
            continue
        disk.fill()
        time.sleep(step["seconds"])
        disk.free()
        drivers.wait_for_more_epochs(f"epochs after {step}")
    drivers.wait(drivers.has_ended, "the end of the job", 300)
    report.figures[f"{steps[0]['kind']}: restarts"] = _count_restarts(drivers)


def _exhaust_memory(where: Path, drivers: Drivers, limit: MemoryLimit, steps: list[Any], report: Report) -> None:
    for step in steps:
        drivers.wait_for_epoch(step["epoch"])
        if drivers.has_ended():
            report.check(False, f"the job ended before {step}")
            continue
        expected = limit.kills() + 1
        (where / HUNGRY).touch()
        drivers.wait(partial(_has_killed, drivers, limit, expected), "the kill of a process")
        drivers.wait_for_more_epochs(f"epochs after {step}")
    drivers.wait(drivers.has_ended, "the end of the job", 300)
    report.figures["memory: processes killed"] = limit.kills()
    report.figures["memory: restarts"] = _count_restarts(drivers)


def _has_killed(drivers: Drivers, limit: MemoryLimit, count: int) -> bool:
    return drivers.has_ended() or limit.kills() >= count


def _count_restarts(drivers: Drivers) -> int:
    return sum(line.get("status") == "RESTARTING" for line in drivers.read_progress())
