"""Driver processes of the keyed job, of which one leads, and the progress that they reported.

Promises: the progress of all drivers is one list, in order; drivers can be added in place of those that died; no
process is left at the end.
Does not know: which processes are killed, and when."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from millstream.client import local
from millstream.client.job_client import JobClient
from millstream.cluster import entrypoint
from millstream.config.configuration import Configuration
from millstream.errors import ExternalError, InternalError
from millstream.graph.stream_graph import StreamGraph
from millstream.testing.host import LOCALHOST, Host
from millstream.testing.inline_engine import InlineEngine
from millstream_chaos.jobs.keyed_job import BUCKET, WINDOW, Specification, build
from millstream_chaos.machine.python_path import child_environment
from millstream_chaos.outputs.compare import find_differences, read_lines
from millstream_chaos.samples.expected import compute_lines

LEASE = "2 s"
JOB_MODULE = "millstream_chaos.jobs.keyed_job"  # the program of a driver


class ChaosStuck(ExternalError):
    """The job made no progress within the time limit."""

    def __init__(self, waited_for: str, seconds: float, last: str) -> None:
        super().__init__(f"{waited_for} did not happen within {seconds:g} s; the end of the driver's log: {last}")


def create_options(directory: Path, *, epoch_records: int, master: str = "local[2]") -> dict[str, str]:
    """Return the options of the job, with high availability, and create its directories."""
    for name in ("checkpoints", "leases", "output"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    return {
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        "execution.checkpointing.interval": "1 s",
        "high-availability.type": "lease",
        "high-availability.storageDir": str(directory / "leases"),
        "millstream.high-availability.lease-duration": LEASE,
        "millstream.epoch.max-records": str(epoch_records),
        "millstream.epoch.idle-interval": "20 ms",
        "restart-strategy.type": "exponential-delay",
        "restart-strategy.exponential-delay.initial-backoff": "100 ms",
        "restart-strategy.exponential-delay.max-backoff": "2 s",
        "millstream.spark.master": master,
        "spark.driver.memory": "512m",
    }


class Drivers:
    """The drivers of one job.

    Args:
        specification: The job.
        standby: The number of drivers beside the leader.
        hosts: Where the drivers run, in turn.

    """

    def __init__(self, specification: Specification, *, standby: int = 0, hosts: Sequence[Host] = (LOCALHOST,)) -> None:
        self._specification, self._standby, self._hosts = specification, standby, hosts
        self._processes: list[subprocess.Popen[bytes]] = []
        self._log = Path(specification.directory) / "drivers.log"

    def __enter__(self) -> Drivers:
        self.start_missing()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()

    def start_missing(self) -> None:
        """Start drivers until as many run as there should be."""
        while len(self.running_pids()) < 1 + self._standby:
            self.add()

    def add(self) -> None:
        """Start one more driver."""
        number = len(self._processes)
        host = self._hosts[number % len(self._hosts)]
        path = str(self._specification.on(host).save(f"job-{number}.json"))
        with self._log.open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    host.command(sys.executable, "-m", JOB_MODULE, path),
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    env=child_environment(),
                )
            )

    def running_pids(self) -> list[int]:
        """Return the process ids of the drivers that run."""
        return [process.pid for process in self._processes if process.poll() is None]

    def leader(self) -> int | None:
        """Return the process id of the driver that reported last; None if it does not run."""
        progress = self.read_progress()
        return progress[-1]["pid"] if progress and progress[-1]["pid"] in self.running_pids() else None

    def leading_host(self) -> int:
        """Return the index in `hosts` of the leader, or of the first driver that runs if there is no leader."""
        leader = self.leader() or self.running_pids()[0]
        return [process.pid for process in self._processes].index(leader) % len(self._hosts)

    def read_progress(self) -> list[dict[str, Any]]:
        """Return the progress of all drivers, in order, without a line that is not complete yet."""
        if not self._specification.progress.exists():
            return []
        lines = self._specification.progress.read_text(encoding="utf-8").split("\n")[:-1]
        return [json.loads(line) for line in lines if line.endswith("}") and line.startswith("{")]

    def epoch(self) -> int:
        """Return the last epoch so far."""
        return max((line["epoch"] for line in self.read_progress() if "epoch" in line), default=0)

    def has_ended(self) -> bool:
        """Return whether the job has ended, or no driver runs."""
        statuses = (line.get("status") for line in self.read_progress())
        return any(status in ("FINISHED", "FAILED") for status in statuses) or not self.running_pids()

    def wait(self, until: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
        """Wait until a condition holds; raise `ChaosStuck`, which names `what`, after `seconds`."""
        deadline = time.monotonic() + seconds
        while not until():
            if time.monotonic() > deadline:
                raise ChaosStuck(what, seconds, self.read_log_end())
            time.sleep(0.05)

    def wait_for_epoch(self, epoch: int, seconds: float = 120.0) -> None:
        """Wait until the job has reached an epoch, or has ended."""
        self.wait(lambda: self.has_ended() or self.epoch() >= epoch, f"epoch {epoch}", seconds)

    def wait_for_more_epochs(self, what: str, seconds: float = 120.0) -> None:
        """Wait until two more epochs are accepted, of which the second was started after this call, or the job has
        ended."""
        before = len(self.read_progress())

        def is_ahead() -> bool:
            return self.has_ended() or sum("epoch" in line for line in self.read_progress()[before:]) > 1

        self.wait(is_ahead, what, seconds)

    def read_log_end(self) -> str:
        """Return the end of the log of the drivers."""
        return self._log.read_text(errors="replace")[-1500:] if self._log.exists() else ""

    def exit_codes(self) -> list[int | None]:
        """Return the exit code of each driver; None for one that runs."""
        return [process.poll() for process in self._processes]


def measure_recovery(progress: list[dict[str, Any]], killed_at: float) -> float | None:
    """Return the seconds from a kill to the second epoch after it, because the first may have been almost complete."""
    later = [line["at"] for line in progress if "epoch" in line and line["at"] > killed_at]
    return later[1] - killed_at if len(later) > 1 else None


class ReferenceDiffers(InternalError):
    """The output of a run without faults differs from what plain Python computes from the same input."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = problems
        super().__init__(f"the output without faults is not what plain Python computes: {'; '.join(problems)}")


def run_without_faults(specification: Specification, directory: Path) -> dict[str, list[str]]:
    """Run the same job without faults in this process and return its output.

    Raises:
        ReferenceDiffers: Plain Python computes another output.

    """
    (directory / "output").mkdir(parents=True)
    (directory / "input").symlink_to(specification.input.resolve())
    faultless = replace(specification, directory=str(directory), parallelism=1, skew_seconds=0, options={}, kafka="")
    with use_inline_engine():
        build(faultless).execute("without faults")
    output = read_lines(faultless.output)
    lines = (line for file in read_lines(specification.input).values() for line in file)
    problems = [*find_differences(output, {"computed": compute_lines(lines, bucket=BUCKET, window=WINDOW)})]
    if problems:
        raise ReferenceDiffers(problems)
    return output


@contextlib.contextmanager
def use_inline_engine() -> Iterator[None]:
    """Run jobs that are submitted in the `with` block in this process, without Spark."""

    def submit(graph: StreamGraph, configuration: Configuration, name: str, listeners: Any = ()) -> JobClient:
        running = entrypoint.submit(graph, configuration, name, engine=InlineEngine(), listeners=listeners)
        return JobClient(local.LocalHandle(running))

    before = local.submit
    local.submit = submit
    try:
        yield
    finally:
        local.submit = before
