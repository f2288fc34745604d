"""Drivers of the chaos job as processes of their own, one of them leading, and what they have told so far.

Promises: a driver that dies is replaced; the progress that all of them told is one list, in order; processes that were
started here are gone at the end.
Does not know: who kills what, and when."""

from __future__ import annotations

import contextlib
import json
import os
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
from millstream.testing.chaos_job import BUCKET, WINDOW, Specification, build
from millstream.testing.chaos_output import differences, lines_by_file
from millstream.testing.expected import chaos_lines
from millstream.testing.inline_engine import InlineEngine
from millstream.testing.network import LOCALHOST, Host

LEASE = "2 s"


class ChaosStuck(ExternalError):
    """The job did not do what was waited for."""

    def __init__(self, waited_for: str, seconds: float, last: str) -> None:
        super().__init__(f"{waited_for} did not come within {seconds:g} s; the driver said last: {last}")


def options(directory: Path, *, epoch_records: int, master: str = "local[2]") -> dict[str, str]:
    """The configuration of the job, for drivers that stand by for one another."""
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
    """The drivers of one job. `standby`: how many wait beside the one that leads."""

    def __init__(self, specification: Specification, *, standby: int = 0, hosts: Sequence[Host] = (LOCALHOST,)) -> None:
        """`hosts`: where the drivers run, in turn."""
        self._specification, self._standby, self._hosts = specification, standby, hosts
        self._processes: list[subprocess.Popen[bytes]] = []
        self._log = Path(specification.directory) / "drivers.log"

    def __enter__(self) -> Drivers:
        self.fill()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()

    def fill(self) -> None:
        """Have as many drivers as there should be."""
        while len(self.living()) < 1 + self._standby:
            self.add()

    def add(self) -> None:
        """Start one more driver."""
        number = len(self._processes)
        host = self._hosts[number % len(self._hosts)]
        path = str(self._specification.on(host).save(f"job-{number}.json"))
        with self._log.open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    host.command(sys.executable, "-m", "millstream.testing.chaos_job", path),
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    env={**os.environ, "PYTHONPATH": _python_path()},
                )
            )

    def living(self) -> list[int]:
        """The process ids of the drivers that live."""
        return [process.pid for process in self._processes if process.poll() is None]

    def leader(self) -> int | None:
        """The driver that told something last, if it lives."""
        told = self.told()
        return told[-1]["pid"] if told and told[-1]["pid"] in self.living() else None

    def leading_host(self) -> int:
        """The index in `hosts` of the driver that told something last, or of the first one that lives."""
        leader = self.leader() or self.living()[0]
        return [process.pid for process in self._processes].index(leader) % len(self._hosts)

    def told(self) -> list[dict[str, Any]]:
        """All that the drivers told, in order; a line that is being written is left out."""
        if not self._specification.progress.exists():
            return []
        lines = self._specification.progress.read_text(encoding="utf-8").split("\n")[:-1]
        return [json.loads(line) for line in lines if line.endswith("}") and line.startswith("{")]

    def epoch(self) -> int:
        """The greatest epoch so far."""
        return max((each["epoch"] for each in self.told() if "epoch" in each), default=0)

    def ended(self) -> bool:
        """Whether the job has finished, or every driver is gone."""
        return any(each.get("status") in ("FINISHED", "FAILED") for each in self.told()) or not self.living()

    def wait(self, until: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + seconds
        while not until():
            if time.monotonic() > deadline:
                raise ChaosStuck(what, seconds, self.last_words())
            time.sleep(0.05)

    def wait_for_epoch(self, epoch: int, seconds: float = 120.0) -> None:
        """Wait until the job has come to an epoch, or has ended."""
        self.wait(lambda: self.ended() or self.epoch() >= epoch, f"epoch {epoch}", seconds)

    def wait_for_more_epochs(self, what: str, seconds: float = 120.0) -> None:
        """Wait until two more epochs are accepted, of which the second began later, or the job has ended."""
        before = len(self.told())
        self.wait(lambda: self.ended() or sum("epoch" in line for line in self.told()[before:]) > 1, what, seconds)

    def last_words(self) -> str:
        """The end of what the drivers wrote to their log."""
        return self._log.read_text(errors="replace")[-1500:] if self._log.exists() else ""

    def exit_codes(self) -> list[int | None]:
        """How each driver ended; None for one that lives."""
        return [process.poll() for process in self._processes]


def recovery_seconds(told: list[dict[str, Any]], killed_at: float) -> float | None:
    """From a kill to the second epoch that was accepted after it: the first may have been all but done."""
    later = [each["at"] for each in told if "epoch" in each and each["at"] > killed_at]
    return later[1] - killed_at if len(later) > 1 else None


class ReferenceDiffers(InternalError):
    """The job without faults does not give what plain Python computes from the same input."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = problems
        super().__init__(f"the output without faults is not what plain Python computes: {'; '.join(problems)}")


def fault_free(specification: Specification, directory: Path) -> dict[str, list[str]]:
    """The output of the same job without faults, in this process; the same that plain Python computes."""
    (directory / "output").mkdir(parents=True)
    (directory / "input").symlink_to(specification.input.resolve())
    plain = replace(specification, directory=str(directory), parallelism=1, skew_seconds=0, options={}, kafka="")
    with inline():
        build(plain).execute("without faults")
    found = lines_by_file(plain.output)
    lines = (line for own in lines_by_file(specification.input).values() for line in own)
    problems = [*differences(found, {"computed": chaos_lines(lines, bucket=BUCKET, window=WINDOW)})]
    if problems:
        raise ReferenceDiffers(problems)
    return found


@contextlib.contextmanager
def inline() -> Iterator[None]:
    """Jobs that are submitted here run in this process, without Spark."""

    def submit(graph: StreamGraph, configuration: Configuration, name: str, listeners: Any = ()) -> JobClient:
        running = entrypoint.submit(graph, configuration, name, engine=InlineEngine(), listeners=listeners)
        return JobClient(local.LocalHandle(running))

    before = local.submit
    local.submit = submit
    try:
        yield
    finally:
        local.submit = before


def _python_path() -> str:
    own = str(Path(__file__).resolve().parent.parent.parent)
    return os.pathsep.join([own, *filter(None, [os.environ.get("PYTHONPATH")])])
