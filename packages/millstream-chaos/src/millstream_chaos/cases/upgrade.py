"""A job is upgraded while it runs: its leader runs the last release, and the driver that takes over runs this one.

Promises: the committed output is that of a run without faults. The old leader is killed, or stopped and continued after
its replacement, at epochs that are drawn from the seed. The new driver continues from its checkpoint, commits its
staged output, and fences it.
Does not know: the changes between the two releases. The last release comes from the history of this repository."""

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
from millstream.testing.host import LOCALHOST, Host
from millstream.testing.kafka import KafkaBroker
from millstream.testing.spark_cluster import kill
from millstream_chaos.jobs.drivers import JOB_MODULE, Drivers, create_options
from millstream_chaos.jobs.keyed_job import Specification
from millstream_chaos.jobs.kills import check_output
from millstream_chaos.jobs.topics import fill_topics, read_committed
from millstream_chaos.trace import Report, Trace

LAST_RELEASE = "6b8b1b2"
_LAST_JOB_MODULE = "millstream.testing.chaos_job"  # the module of the job in that release
_SIZES = {
    "ci": {"records": 8_000, "keys": 200, "epoch_records": 300, "jobs": 1},
    "normal": {"records": 24_000, "keys": 400, "epoch_records": 300, "jobs": 4},
    "long": {"records": 60_000, "keys": 2_000, "epoch_records": 600, "jobs": 20},
}


class NoHistory(UserError):
    """The source of the last release is not available."""

    hint = "run this from a clone of the repository with its history (git fetch --unshallow)"

    def __init__(self, reason: str) -> None:
        super().__init__(f"the last release, commit {LAST_RELEASE}, cannot be found: {reason.strip()}")


@dataclass(frozen=True)
class _Release(Host):
    """This machine, for drivers that import the last release from a folder."""

    source: str = ""

    def command(self, *arguments: str) -> list[str]:
        renamed = [_LAST_JOB_MODULE if argument == JOB_MODULE else argument for argument in arguments]
        return ["env", f"PYTHONPATH={self.source}", *renamed]


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


def unpack_last_release(directory: Path) -> Path:
    """Unpack the source of the last release into a directory.

    Raises:
        NoHistory: The repository does not have that commit.

    """
    repository = Path(__file__).resolve().parents[5]
    command = ["git", "-C", str(repository), "archive", "--format=tar", f"{LAST_RELEASE}:src"]
    packed = subprocess.run(command, capture_output=True, check=False)
    if packed.returncode != 0:
        raise NoHistory(packed.stderr.decode(errors="replace"))
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(directory, filter="data")
    return directory


def play(trace: Trace, directory: Path) -> Report:
    """Run each job with an old and a new leader, and check the output."""
    report = Report(trace)
    old = _Release(source=str(unpack_last_release(directory / "last-release")))
    for number, step in enumerate(trace.iterate_steps()):
        where = directory / f"job-{number}"
        where.mkdir()
        with KafkaBroker() as broker:
            settings = create_options(where, epoch_records=trace.parameters["epoch_records"])
            specification = Specification(str(where), options=settings, kafka=broker.bootstrap_servers)
            fill_topics(broker, specification, trace)
            with Drivers(specification, hosts=[old, LOCALHOST]) as drivers:
                _replace_leader(drivers, step)
                drivers.wait(drivers.has_ended, "the end of the job", 300)
            output = read_committed(broker)
        leaders = {line["pid"] for line in drivers.read_progress() if "epoch" in line}
        report.check(len(leaders) == 2, f"{step}: {len(leaders)} drivers have led the job")
        check_output(specification, where, report, output)
    return report


def _replace_leader(drivers: Drivers, step: Mapping[str, Any]) -> None:
    """Start the new driver, kill or stop the old one, and continue a stopped one after its replacement."""
    drivers.wait_for_epoch(step["epoch"])
    old = drivers.running_pids()[0]
    drivers.add()
    time.sleep(step["wait_ms"] / 1000)
    kill(old, signal.Signals[f"SIG{step['signal']}"])
    drivers.wait(lambda: drivers.has_ended() or drivers.leader() not in (None, old), "the new leader")
    kill(old, signal.SIGCONT)
