"""One contestant as a process: started, watched, and ended with everything it started.

Promises: returns by the deadline; nothing of the contestant's session is left; a failure says why in a line or two.
Does not know: what the contestant measures."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import RESULT_MARK

SAMPLE_EVERY = 0.5
GRACE = 10.0


@dataclass(frozen=True, slots=True)
class Memory:
    """Peaks, in MiB, of one Python process that the contestant started: memory of its `own`, and `mapped` files."""

    own: float = 0.0
    mapped: float = 0.0

    def joined(self, other: Memory) -> Memory:
        """The higher of each."""
        return Memory(max(self.own, other.own), max(self.mapped, other.mapped))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a contestant: a result or a failure, and the memory of its workers."""

    result: dict[str, Any] | None
    failure: str | None
    memory: Memory
    others: float = 0.0  # cores that processes outside the session kept busy, on average


def run(command: list[str], variables: dict[str, str], deadline: float, log: Path) -> Outcome:
    """Run a command to its end or to the deadline; its output goes to the log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    memory, ticks, busy, began = Memory(), dict[int, int](), _busy_ticks(), time.monotonic()
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            limit = time.monotonic() + deadline
            while process.poll() is None and time.monotonic() < limit:
                memory = memory.joined(_memory(process.pid))
                ticks.update(_ticks(process.pid))
                time.sleep(SAMPLE_EVERY)
            late = process.poll() is None
            foreign = _busy_ticks() - busy - sum(ticks.values())
            others = max(0.0, foreign / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began))
        finally:
            _end(process)
    if late:
        return Outcome(None, f"not done after {deadline:.0f} s; last lines: {_tail(log)}", memory, others)
    result = _result(log)
    if process.returncode or result is None:
        return Outcome(None, f"ended with status {process.returncode}; last lines: {_tail(log)}", memory, others)
    return Outcome(result, None, memory, others)


def _result(log: Path) -> dict[str, Any] | None:
    with log.open(errors="replace") as lines:
        found = [line for line in lines if line.startswith(RESULT_MARK)]
    return dict(json.loads(found[-1][len(RESULT_MARK) :])) if found else None


def _tail(log: Path) -> str:
    """The last lines that are not frames of a stack."""
    with log.open(errors="replace") as lines:
        kept = deque((line.strip() for line in lines if line.strip() and not line.lstrip().startswith("at ")), maxlen=3)
    return " / ".join(line[:300] for line in kept) or "none"


def _session(leader: int) -> list[int]:
    """The processes of a session, from /proc; none where the system has no /proc."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(entry.parent.name))
    return found


def _ticks(leader: int) -> dict[int, int]:
    """CPU time of each process of a session so far; a process that has ended since keeps what it had."""
    found = {}
    for pid in _session(leader):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            found[pid] = int(fields[11]) + int(fields[12])
    return found


def _busy_ticks() -> int:
    """CPU time of the whole machine so far, without idling; 0 where the system has no /proc."""
    try:
        user, nice, system, _, _, interrupts, soft = map(int, Path("/proc/stat").read_text().split()[1:8])
    except OSError:
        return 0
    return user + nice + system + interrupts + soft


def _memory(leader: int) -> Memory:
    own, mapped = 0, 0
    for pid in _session(leader):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
            program = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
        except OSError:
            continue
        if pid == leader or b"python" not in program:
            continue
        sizes = {line.split(":")[0]: int(line.split()[1]) for line in status.splitlines() if line.startswith("Rss")}
        own = max(own, sizes.get("RssAnon", 0))
        mapped = max(mapped, sizes.get("RssFile", 0) + sizes.get("RssShmem", 0))
    return Memory(own / 1024, mapped / 1024)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let what is left of the session end by itself for a moment, then kill it."""
    grace = time.monotonic() + GRACE
    while process.poll() is not None and time.monotonic() < grace and _session(process.pid):
        time.sleep(0.1)
    # A worker may have left the process group but not the session; the session is ours alone.
    for pid in _session(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if process.poll() is None:
        process.kill()
    process.wait()
