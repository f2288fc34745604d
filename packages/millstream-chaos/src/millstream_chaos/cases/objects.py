"""Checkpoints, leases and output are on an object store that throttles, fails, loses responses and lists slowly.

Promises: every line is in the output once, whichever requests fail and whenever the driver is killed. The store is a
real S3 server; the driver is a process that is started again until the job has ended.
Does not know: Spark. The job runs in the driver, and accesses storage as it does on Spark."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from millstream.testing.s3 import list_client_variables, s3_server
from millstream_chaos.jobs.objects_job import BUCKET, KEYS
from millstream_chaos.machine.faulty_store import FaultyStore, Rates
from millstream_chaos.machine.python_path import child_environment
from millstream_chaos.trace import Report, Trace

_SIZES = {
    "ci": {"records": 100, "epoch_records": 15, "jobs": 1, "kills": 1},
    "normal": {"records": 1_000, "epoch_records": 25, "jobs": 3, "kills": 3},
    "long": {"records": 1_500, "epoch_records": 25, "jobs": 12, "kills": 5},
}
_LATE = 0.1  # the delay of a late response, in seconds
_LONGEST = 900  # the most seconds that a job may take
_STARTS = 60


def plan(seed: int, size: str) -> Trace:
    """Draw after how many of its epochs each driver is killed."""
    sizes = _SIZES[size]
    chance = np.random.default_rng([seed, 31])
    epochs = sizes["records"] // sizes["epoch_records"]
    steps = [
        {"kind": "job", "seed": int(chance.integers(1 << 30)), "kills": _draw_kills(chance, epochs, sizes["kills"])}
        for _ in range(sizes["jobs"])
    ]
    return Trace("objects", seed, size, {key: sizes[key] for key in ("records", "epoch_records")}, steps)


def _draw_kills(chance: np.random.Generator, epochs: int, kills: int) -> list[int]:
    """Draw after how many of its epochs each driver is killed, so that the job has not ended by then."""
    return [int(chance.integers(1, max(2, epochs // (2 * kills)))) for _ in range(kills)]


def play(trace: Trace, _directory: Path) -> Report:
    """Run the jobs one after another, each below a prefix of its own."""
    report = Report(trace)
    injected: Counter[str] = Counter()
    starts = kills = 0
    with s3_server() as server:
        for number, step in enumerate(trace.iterate_steps()):
            with FaultyStore(server, step["seed"], Rates(seconds=_LATE)) as store:
                _make_bucket(server)
                run = _Run(store, f"job-{number}", trace.parameters["records"], trace.parameters["epoch_records"])
                problem = run.run_to_end(step["kills"])
                report.check(problem is None, f"{step}: {problem}")
                report.check(_lines(server, run.name) == compute_expected(run.records), f"{step}: the output differs")
                injected += store.injected
                starts, kills = starts + run.starts, kills + run.kills
    report.figures |= {"drivers started": starts, "drivers killed": kills, **dict(sorted(injected.items()))}
    return report


def compute_expected(records: int) -> list[str]:
    """Compute the lines of the output, sorted: each number with the count of its key so far."""
    return sorted(f"{number},{number // KEYS + 1}" for number in range(records))


class _Run:
    """A run of a job, with all of its drivers."""

    def __init__(self, store: FaultyStore, name: str, records: int, epoch_records: int) -> None:
        self._store, self.name, self.records, self._epoch_records = store, name, records, epoch_records
        self.starts = self.kills = 0

    def run_to_end(self, kills: list[int]) -> str | None:
        """Start drivers until the job has ended; return the problem, None if it finished."""
        deadline = time.monotonic() + _LONGEST
        last = "no driver was started"
        while self.starts < _STARTS and time.monotonic() < deadline:
            with self._driver() as driver:
                killed = self.kills < len(kills) and self._kill_after(driver, kills[self.kills])
                if not killed:
                    printed = driver.communicate(timeout=max(1.0, deadline - time.monotonic()))[0]
                    last = printed.strip().splitlines()[-1] if printed.strip() else f"exit code {driver.returncode}"
                    if last == "FINISHED":
                        return None
        return f"not finished after {self.starts} starts: {last}"

    def _kill_after(self, driver: subprocess.Popen[str], epochs: int) -> bool:
        """Kill a driver after a number of epochs; return False if it ended earlier."""
        assert driver.stdout is not None
        for count, line in enumerate(iter(driver.stdout.readline, "")):
            if count + 1 >= epochs and line.startswith("epoch"):
                driver.kill()
                self.kills += 1
                return True
        return False

    @contextmanager
    def _driver(self) -> Iterator[subprocess.Popen[str]]:
        self.starts += 1
        arguments = [self.name, str(self.records), str(self._epoch_records)]
        command = [sys.executable, "-m", "millstream_chaos.jobs.objects_job", *arguments]
        variables = child_environment() | list_client_variables(self._store.url)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with subprocess.Popen(command, env=variables, text=True, **pipes) as driver:  # type: ignore[call-overload]
            try:
                yield driver
            finally:
                driver.kill()


def _client(server: str) -> Any:
    s3fs = import_module("s3fs")  # of the extra `s3`
    return s3fs.S3FileSystem(key="id", secret="secret", endpoint_url=server, skip_instance_cache=True)


def _make_bucket(server: str) -> None:
    client = _client(server)
    if not client.exists(BUCKET):
        client.mkdir(BUCKET)


def _lines(server: str, name: str) -> list[str]:
    """Return the lines of all visible files, sorted."""
    client = _client(server)
    files = [path for path in client.find(f"{BUCKET}/{name}/out") if not Path(path).name.startswith((".", "_"))]
    visible = (path for path in files if "/." not in path)
    return sorted(chain.from_iterable(client.cat_file(path).decode().splitlines() for path in visible))
