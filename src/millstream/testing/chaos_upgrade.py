"""A job is upgraded while it runs: its leader is of the last release, the driver that takes over is of this one.

Promises: a consumer that reads what is committed finds the output of a run without faults. The old leader is killed, or
stopped and continued after it was replaced, at epochs that are drawn from the seed; the new driver goes on from its
checkpoint, commits what it has staged, and fences it off.
Does not know: what changed between the two. The last release comes from the history of this repository."""

from __future__ import annotations

import io
import signal
import subprocess
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from millstream.errors import UserError
from millstream.testing.chaos import Report, Trace
from millstream.testing.chaos_driven import Drivers, options
from millstream.testing.chaos_job import Specification
from millstream.testing.chaos_kafka import committed, fill
from millstream.testing.chaos_kills import compare
from millstream.testing.kafka import KafkaBroker
from millstream.testing.network import LOCALHOST, Host
from millstream.testing.spark_cluster import kill

LAST_RELEASE = "6b8b1b2"
_SIZES = {
    "ci": {"records": 8_000, "keys": 200, "epoch_records": 300, "jobs": 1},
    "normal": {"records": 24_000, "keys": 400, "epoch_records": 300, "jobs": 4},
    "long": {"records": 60_000, "keys": 2_000, "epoch_records": 600, "jobs": 20},
}


class NoHistory(UserError):
    """The source of the last release is not at hand."""

    hint = "run this from a clone of the repository with its history (git fetch --unshallow)"

    def __init__(self, reason: str) -> None:
        super().__init__(f"the last release, commit {LAST_RELEASE}, cannot be found: {reason.strip()}")


@dataclass(frozen=True)
class _Release(Host):
    """This machine, for drivers that import millstream from a folder."""

    source: str = ""

    def command(self, *arguments: str) -> list[str]:
        return ["env", f"PYTHONPATH={self.source}", *arguments]


def plan(seed: int, size: str) -> Trace:
    """Draw after which epoch the leader of each job is replaced, and how."""
    parameters = dict(_SIZES[size])
    chance = np.random.default_rng([seed, 47])
    epochs = parameters["records"] // parameters["epoch_records"]
    steps = [
        {
            "epoch": int(chance.integers(2, epochs // 2)),
            "signal": ("KILL", "STOP")[number % 2],
            "wait_ms": int(chance.integers(0, 1_000)),
        }
        for number in range(parameters["jobs"])
    ]
    return Trace("upgrade", seed, size, parameters, steps)


def last_release(directory: Path) -> Path:
    """Unpack the source of the last release; raises `NoHistory` where it is not to be had."""
    repository = Path(__file__).resolve().parents[3]
    command = ["git", "-C", str(repository), "archive", "--format=tar", f"{LAST_RELEASE}:src"]
    packed = subprocess.run(command, capture_output=True, check=False)
    if packed.returncode != 0:
        raise NoHistory(packed.stderr.decode(errors="replace"))
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(directory, filter="data")
    return directory


def play(trace: Trace, directory: Path) -> Report:
    """Run each job from its old leader to its new one."""
    report = Report(trace)
    old = _Release(source=str(last_release(directory / "last-release")))
    for number, step in enumerate(trace.shown()):
        where = directory / f"job-{number}"
        where.mkdir()
        with KafkaBroker() as broker:
            settings = options(where, epoch_records=trace.parameters["epoch_records"])
            specification = Specification(str(where), options=settings, kafka=broker.bootstrap_servers)
            fill(broker, specification, trace)
            with Drivers(specification, hosts=[old, LOCALHOST]) as drivers:
                _replace_leader(drivers, step)
                drivers.wait(drivers.ended, "the end of the job", 300)
            found = committed(broker)
        leaders = {line["pid"] for line in drivers.told() if "epoch" in line}
        report.check(len(leaders) == 2, f"{step}: {len(leaders)} drivers have led the job")
        compare(specification, where, report, found)
    return report


def _replace_leader(drivers: Drivers, step: Mapping[str, Any]) -> None:
    """Start the new driver, end or stop the old one, and let a stopped one go on when it has been replaced."""
    drivers.wait_for_epoch(step["epoch"])
    old = drivers.living()[0]
    drivers.add()
    time.sleep(step["wait_ms"] / 1000)
    kill(old, signal.Signals[f"SIG{step['signal']}"])
    drivers.wait(lambda: drivers.ended() or drivers.leader() not in (None, old), "the new leader")
    kill(old, signal.SIGCONT)
