"""Run the fraud detector with two failures, and compare its results with those of an undisturbed run.

First a Python process of its Spark is killed while it works on a task. Spark starts the task again: the job does not
even restart. Then a function of the job raises: the job restarts from its last checkpoint. At last the same job runs
again undisturbed, and the files of both runs must hold the same lines, each as often.
"""

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pyspark import SparkContext, StatusTracker
from rich.console import Console
from rich.table import Table

from millstream.client import local
from millstream.client.job_progress import Progress
from millstream.client.progress import progress
from millstream.common import JobClient
from millstream.datastream import StreamExecutionEnvironment

KILLS = 8  # tries to hit a process that gets a task
PATIENCE = 3.0  # seconds until Spark must have seen that the task failed


@dataclass(frozen=True)
class Plan:
    build: Callable[..., StreamExecutionEnvironment]
    name: str
    results: tuple[str, ...]
    out: Path
    checkpoints: Path
    records: int
    rate: float


class DemoFailed(SystemExit):
    """The demo did not give the documented result."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the demo failed: {why}")


def run(plan: Plan) -> None:
    console = Console(highlight=False, soft_wrap=True)
    began = time.monotonic()
    for name in ("broken", "undisturbed"):
        if (plan.out / name).exists():
            raise DemoFailed(f"{plan.out / name} is there already: give --out a directory without it")
    console.print(f"{plan.records:,} payments, {plan.rate:,.0f} a second; results go to {plan.out}")
    if find_spec("fastapi") and find_spec("uvicorn"):
        console.print(f"watch it in a browser: {local.serve({'rest.bind-port': '8081-8180'})}")
    console.print()

    console.print("1. The job, broken twice while it runs.")
    killed, restarts = broken(plan)
    console.print(f"   worker {killed[-1]} was killed with signal 9: Spark ran its task again, the job went on")
    console.print("   a function raised an error: the job restarted from its last checkpoint\n")

    console.print("2. The same job once more, as fast as it can, and nothing happens to it.")
    undisturbed(plan)

    console.print("\n3. The files of both runs, line by line.")
    compare(plan, console)
    console.print(
        f"\nEvery line is there, none twice: processes killed {len(killed)}, restarts {restarts}, "
        f"{time.monotonic() - began:.0f} s."
    )


def broken(plan: Plan) -> tuple[list[int], int]:
    """Run the job and break it twice; return the processes that were killed, and how often the job restarted."""
    trap = plan.out / "trap"
    env = plan.build(plan.out / "broken", plan.checkpoints / "broken", plan.records, plan.rate, trap)
    with progress(f"{plan.name}, broken twice") as shown:
        env.register_listener(shown)
        client = env.execute_async(plan.name)
        try:
            wait_until(client, lambda: midway(plan, shown), "a checkpoint and a quarter of the payments")
            killed = kill_a_working_process(client, shown)
            # only now: if a process were killed after it took the trap file, the failure would not be reported
            trap.touch()
            client.get_job_execution_result().result()
        except BaseException:
            client.cancel()
            raise
    if trap.exists():
        raise DemoFailed("the job ended before its function could fail: give it more --records")
    if shown.restarts != 1:
        raise DemoFailed(f"one restart was expected, not {shown.restarts}")
    return killed, shown.restarts


def midway(plan: Plan, shown: Progress) -> bool:
    return shown.checkpoint is not None and shown.records >= plan.records // 4


def undisturbed(plan: Plan) -> None:
    env = plan.build(plan.out / "undisturbed", plan.checkpoints / "undisturbed", plan.records, None)
    with progress(f"{plan.name}, undisturbed") as shown:
        env.register_listener(shown)
        env.execute(plan.name)
    if shown.restarts:
        raise DemoFailed("the run that nothing should happen to was restarted")


def kill_a_working_process(client: JobClient, shown: Progress) -> list[int]:
    """Kill Python workers until Spark has reported a failed task; return the processes that were killed.

    A process is suspended first: the next task that it gets hangs, so that the process dies while it runs a task."""
    tracker = SparkContext.getOrCreate().statusTracker()
    killed: list[int] = []
    while len(killed) < KILLS:
        worker = max(workers(), default=None, key=lambda pid: pid not in killed)
        if worker is None:
            raise DemoFailed("there is no Python worker")
        os.kill(worker, signal.SIGSTOP)
        try:
            stages = still_standing(client, tracker)
        finally:
            os.kill(worker, signal.SIGKILL)
        killed.append(worker)
        shown.note(f"killed Python worker {worker} (signal 9)")
        until = time.monotonic() + PATIENCE
        while stages and time.monotonic() < until and not client.wait(0.02):
            for stage in stages:
                info = tracker.getStageInfo(stage)
                if info is not None and info.numFailedTasks:
                    shown.note(f"Spark saw the task fail in stage {stage} and runs it again: no restart of the job")
                    return killed
        shown.note("it had no task: trying another one")
    raise DemoFailed(f"{KILLS} processes were killed, and none of them had a task")


def still_standing(client: JobClient, tracker: StatusTracker) -> set[int]:
    """Return the stages that made no progress for half a second; none if that does not happen for a while."""
    until = time.monotonic() + PATIENCE
    stages, since = set(tracker.getActiveStageIds()), time.monotonic()
    while time.monotonic() < until and not client.wait(0.02):
        now = set(tracker.getActiveStageIds())
        if not now or now != stages:
            stages, since = now, time.monotonic()
        elif time.monotonic() - since >= 0.5:
            return stages
    return set()


def wait_until(client: JobClient, happened: Callable[[], bool], what: str) -> None:
    while not happened():
        if client.wait(0.01):
            client.get_job_execution_result().result()
            raise DemoFailed(f"the job ended before there was {what}: give it more --records")


def workers() -> list[int]:
    """The Python workers of this program's own Spark: this process, its JVM, the JVM's Python daemon, its workers."""
    parents, commands = processes()

    def below(above: set[int], name: str) -> set[int]:
        return {pid for pid, parent in parents.items() if parent in above and name in commands[pid]}

    descendants = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in descendants} - descendants:
        descendants |= more
    jvms = below(descendants, "org.apache.spark")
    return sorted(below(below(jvms, "daemon"), "daemon"))


def processes() -> tuple[dict[int, int], dict[int, str]]:
    """The parent and the command line of every process."""
    if Path("/proc/self/stat").exists():
        return processes_of_linux()
    listing = subprocess.run(["ps", "-axo", "pid=,ppid=,command="], capture_output=True, text=True, check=True).stdout
    parents, commands = {}, {}
    for line in listing.splitlines():
        pid, parent, command = line.split(None, 2) if len(line.split(None, 2)) == 3 else (*line.split(), "")
        parents[int(pid)], commands[int(pid)] = int(parent), command
    return parents, commands


def processes_of_linux() -> tuple[dict[int, int], dict[int, str]]:
    parents, commands = {}, {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdecimal():
            with suppress(OSError):  # it ended meanwhile
                command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                parents[int(directory.name)] = int((directory / "stat").read_text().rpartition(")")[2].split()[1])
                commands[int(directory.name)] = command
    return parents, commands


def compare(plan: Plan, console: Console) -> None:
    """Print and compare the results of both runs, and fail if they differ."""
    table = Table("result", "broken", "undisturbed", "SHA-256 of the sorted lines")
    different, empty = [], []
    for result in plan.results:
        one, other = (committed(plan.out / name / result) for name in ("broken", "undisturbed"))
        digests = [hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12] for lines in (one, other)]
        if one != other:
            different.append(result)
        if not other:
            empty.append(result)
        table.add_row(
            result, f"{len(one):,}", f"{len(other):,}", " = ".join(digests) if one == other else " / ".join(digests)
        )
    console.print(table)
    sys.stdout.flush()
    if different:
        raise DemoFailed(f"the runs differ in {', '.join(different)}")
    if empty:
        raise DemoFailed(f"nothing was compared: no lines in {', '.join(empty)}; give it more --records")


def committed(directory: Path) -> list[str]:
    """All lines of a result, sorted; files whose names begin with a dot or underscore are not results yet."""
    lines = []
    for path in directory.rglob("*"):
        inside = path.relative_to(directory).parts
        if path.is_file() and not any(part.startswith((".", "_")) for part in inside):
            lines += path.read_text(encoding="utf-8").splitlines()
    return sorted(lines)
