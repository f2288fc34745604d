"""The disk is full or memory runs out while a job runs; later there is room again.

Promises: the output is that of a run without faults. The disk that fills is a real one of a few megabytes: the one with
local stores, with Spark's shuffle files or with checkpoints. Memory runs out in a control group, where the kernel kills
the largest process: a Python worker or the driver's JVM.
Does not know: simulated faults of storage, see `chaos_storage`."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from millstream.testing.chaos import Report, Trace
from millstream.testing.chaos_driven import Drivers, fault_free, options
from millstream.testing.chaos_job import HUNGRY, Specification, write_input
from millstream.testing.chaos_output import differences, digest, lines_by_file
from millstream.testing.limits import MemoryLimit, SmallDisk

DISKS = {"stores": "io.tmp.dirs", "shuffle files": "spark.local.dir", "checkpoints": "execution.checkpointing.dir"}
_SIZES = {
    "ci": {"records": 12_000, "keys": 300, "epoch_records": 300, "rounds": 1},
    "normal": {"records": 60_000, "keys": 5_000, "epoch_records": 600, "rounds": 3},
    "long": {"records": 300_000, "keys": 20_000, "epoch_records": 800, "rounds": 12},
}
_DISK = 48 << 20
_MEMORY = 1_600 << 20


def plan(seed: int, size: str) -> Trace:
    """Draw after which epochs there is no room, and for how long: each kind of room in a job of its own."""
    parameters = dict(_SIZES[size])
    chance = np.random.default_rng([seed, 43])
    epochs = parameters["records"] / parameters["epoch_records"]
    steps = [
        {
            "kind": kind,
            "epoch": int(epochs / (parameters["rounds"] + 1) * (number + 0.4 + chance.random() / 2)),
            "seconds": round(float(chance.uniform(1.0, 4.0)), 1),
        }
        for kind in (*DISKS, "memory")
        for number in range(parameters["rounds"])
    ]
    return Trace("resources", seed, size, parameters, steps)


def play(trace: Trace, directory: Path) -> Report:
    """Run one job for each kind of room."""
    report = Report(trace)
    for kind in dict.fromkeys(step["kind"] for step in trace.shown()):
        where = directory / kind.replace(" ", "-")
        settings = options(where, epoch_records=trace.parameters["epoch_records"])
        settings |= {"state.backend.type": "rocksdb", "millstream.high-availability.lease-duration": "30 s"}
        steps = [step for step in trace.steps if step["kind"] == kind]
        if kind == "memory":
            specification = _prepare(where, settings, trace)
            with MemoryLimit(_MEMORY) as limit, Drivers(specification, hosts=[limit.host]) as drivers:
                _exhaust_memory(where, drivers, limit, steps, report)
        else:
            with SmallDisk(where / "small", _DISK) as disk:
                folder = disk.directory / "folder"
                folder.mkdir()
                specification = _prepare(where, settings | {DISKS[kind]: str(folder)}, trace)
                with Drivers(specification) as drivers:
                    _fill_disk(drivers, disk, steps, report)
        found = lines_by_file(specification.output)
        for problem in differences(found, fault_free(specification, where / "without-faults")):
            report.check(False, f"{kind}: {problem}")
        lines = [line for file in found.values() for line in file]
        report.figures[f"{kind}: lines"] = f"{len(lines)} ({digest(lines)[:16]})"
    return report


def _prepare(where: Path, settings: dict[str, str], trace: Trace) -> Specification:
    specification = Specification(str(where), options=settings)
    records, keys = trace.parameters["records"], trace.parameters["keys"]
    write_input(specification.input, trace.seed, records=records, keys=keys, files=4)
    return specification


def _fill_disk(drivers: Drivers, disk: SmallDisk, steps: list[Any], report: Report) -> None:
    for step in steps:
        drivers.wait_for_epoch(step["epoch"])
        if drivers.ended():
            report.check(False, f"the job ended before {step}")
            continue
        disk.fill()
        time.sleep(step["seconds"])
        disk.free()
        drivers.wait_for_more_epochs(f"epochs after {step}")
    drivers.wait(drivers.ended, "the end of the job", 300)
    report.figures[f"{steps[0]['kind']}: restarts"] = _restarts(drivers)


def _exhaust_memory(where: Path, drivers: Drivers, limit: MemoryLimit, steps: list[Any], report: Report) -> None:
    for step in steps:
        drivers.wait_for_epoch(step["epoch"])
        if drivers.ended():
            report.check(False, f"the job ended before {step}")
            continue
        expected = limit.kills() + 1
        (where / HUNGRY).touch()
        drivers.wait(partial(_killed, drivers, limit, expected), "a process that is killed")
        drivers.wait_for_more_epochs(f"epochs after {step}")
    drivers.wait(drivers.ended, "the end of the job", 300)
    report.figures["memory: processes killed"] = limit.kills()
    report.figures["memory: restarts"] = _restarts(drivers)


def _killed(drivers: Drivers, limit: MemoryLimit, count: int) -> bool:
    return drivers.ended() or limit.kills() >= count


def _restarts(drivers: Drivers) -> int:
    return sum(line.get("status") == "RESTARTING" for line in drivers.told())
