"""One contestant as a process: started, watched, and ended with everything it started.

Promises: returns by the deadline; nothing of the contestant's family is left; a failure says why in a line or two. CPU
time and memory are those of all its processes, a broker that it started included.
Does not know: what the contestant measures."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import RESULT_MARK
from benchmarks.family import Family

SAMPLE_EVERY = 0.5
MEMORY_EVERY = 4  # samples of CPU time; to add up memory costs more
GRACE = 10.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a contestant: a result or a failure, and what all its processes used."""

    result: dict[str, Any] | None
    failure: str | None
    cpu_seconds: float = 0.0
    peak_mib: float = 0.0
    seconds: float = 0.0
    others: float = 0.0  # cores that other processes kept busy, on average


class Watch:
    """What a family used so far, from samples."""

    def __init__(self, leader: int) -> None:
        self.family = Family(leader)
        self.cpu_seconds = self.peak_mib = 0.0
        self._samples = 0
        self._began, self._busy, self._waited = time.monotonic(), busy_seconds(), _seconds_of_children()

    def sample(self) -> None:
        """Read the CPU time, and now and then the memory."""
        self.cpu_seconds = max(self.cpu_seconds, self.family.cpu_seconds())
        if self._samples % MEMORY_EVERY == 0:
            self.peak_mib = max(self.peak_mib, self.family.memory_mib())
        self._samples += 1

    def outcome(self, result: dict[str, Any] | None, failure: str | None) -> Outcome:
        """Return the outcome of the family, which has ended."""
        seconds = time.monotonic() - self._began
        # The last moments are in no sample, but in the times of children that were waited for.
        used = max(self.cpu_seconds, _seconds_of_children() - self._waited)
        others = max(0.0, busy_seconds() - self._busy - used) / seconds
        return Outcome(result, failure, used, self.peak_mib, seconds, others)


def run(command: list[str], variables: dict[str, str], deadline: float, log: Path) -> Outcome:
    """Run a command to its end or to the deadline; its output goes to the log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        watch = Watch(process.pid)
        try:
            limit = time.monotonic() + deadline
            while process.poll() is None and time.monotonic() < limit:
                watch.sample()
                time.sleep(SAMPLE_EVERY)
            late = process.poll() is None
        finally:
            _end(process, watch.family)
    if late:
        return watch.outcome(None, f"not done after {deadline:.0f} s; last lines: {_tail(log)}")
    result = _result(log)
    if process.returncode or result is None:
        return watch.outcome(None, f"ended with status {process.returncode}; last lines: {_tail(log)}")
    return watch.outcome(result, None)


def busy_seconds() -> float:
    """CPU time of the whole machine so far, without idling; 0 where the system has no /proc."""
    try:
        user, nice, system, _, _, interrupts, soft = map(int, Path("/proc/stat").read_text().split()[1:8])
    except OSError:
        return 0.0
    return (user + nice + system + interrupts + soft) / os.sysconf("SC_CLK_TCK")


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _result(log: Path) -> dict[str, Any] | None:
    with log.open(errors="replace") as lines:
        found = [line for line in lines if line.startswith(RESULT_MARK)]
    return dict(json.loads(found[-1][len(RESULT_MARK) :])) if found else None


def _tail(log: Path) -> str:
    """The last lines that are not frames of a stack."""
    with log.open(errors="replace") as lines:
        kept = deque((line.strip() for line in lines if line.strip() and not line.lstrip().startswith("at ")), maxlen=3)
    return " / ".join(line[:300] for line in kept) or "none"


def _end(process: subprocess.Popen[bytes], family: Family) -> None:
    """Let what is left of the family end by itself for a moment, then kill it."""
    grace = time.monotonic() + GRACE
    while process.poll() is not None and time.monotonic() < grace and family.members():
        time.sleep(0.1)
    for member in family.members():
        with contextlib.suppress(ProcessLookupError):
            os.kill(member.pid, signal.SIGKILL)
    if process.poll() is None:
        process.kill()
    process.wait()
