"""Run all tests in four processes side by side, and print how long each folder of tests took.

python tests/run_all.py LOG_FOLDER

Much of the time of tests with servers or with Spark is waiting, so four processes keep two cores busy. They share the
tests file by file, see `WorkQueue` in conftest.py, so that none of them ends long before the others. The output of the
first process is shown as it comes; that of the others is in LOG_FOLDER and is shown after it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

WORKERS = ("first", "second", "third", "fourth")
ARCHIVE = """
from millstream.engine.spark.class_archive import create_archive
from millstream.engine.spark.java import find_java
create_archive(find_java())
"""

FolderTimes = dict[str, dict[str, float]]


def format_table(runs: dict[str, FolderTimes]) -> str:
    """Return a table with a row for each folder, the slowest first, and two columns for each run."""
    folders = {folder for run in runs.values() for folder in run}
    total = {folder: sum(run.get(folder, {}).get("seconds", 0) for run in runs.values()) for folder in folders}
    lines = ["".join(["tests in".ljust(16), *(f"{name:>24}" for name in runs)])]
    lines += [
        "".join([folder.ljust(16), *(_cell(run.get(folder)) for run in runs.values())])
        for folder in sorted(folders, key=lambda folder: -total[folder])
    ]
    sums = (
        {key: sum(times[key] for times in run.values()) for key in ("tests", "seconds")} if run else None
        for run in runs.values()
    )
    lines.append("".join(["all".ljust(16), *(_cell(times) for times in sums)]))
    return "\n".join(lines)


def _cell(times: dict[str, float] | None) -> str:
    return f"{times['tests']:>10.0f} in {times['seconds']:>8.1f} s" if times else " " * 24


def find_problem(results: dict[str, dict[str, Any]]) -> str | None:
    """Return why these results of the workers are not those of all tests; None if they are."""
    if missing := [name for name in WORKERS if name not in results]:
        return f"no results of the {' and the '.join(missing)} process: tests that it took may not have run"
    collected = {result["collected"] for result in results.values()}
    if len(collected) > 1:
        return f"the processes found different tests: {', '.join(map(str, sorted(collected)))}"
    run = sum(times["tests"] for result in results.values() for times in result["folders"].values())
    return None if run == max(collected) else f"{run:.0f} of {max(collected)} tests were run"


def run_all(log_folder: Path) -> int:
    """Run the tests and return the highest exit status of the processes."""
    begin = time.monotonic()
    processes: list[subprocess.Popen[bytes]] = []
    results_files = {name: log_folder / f"test-times-{name}.json" for name in WORKERS}
    logs = {name: log_folder / f"tests-{name}.log" for name in WORKERS[1:]}
    # Hundreds of processes import the same modules; without their bytecode each of them compiles them again.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # Without an archive of Spark's classes, each start of Spark takes twice the time.
    archive = subprocess.Popen([sys.executable, "-c", ARCHIVE], env=environment, stderr=subprocess.DEVNULL)
    try:
        with tempfile.TemporaryDirectory() as queue:
            for name in WORKERS:
                results_files[name].unlink(missing_ok=True)
                command = [sys.executable, "-m", "pytest", "--timeout", "300", "--durations", "20"]
                command += [f"--folder-times={results_files[name]}", f"--queue={queue}", f"--worker={name}"]
                if name in logs:
                    with logs[name].open("wb") as log:
                        processes.append(
                            subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
                        )
                else:
                    processes.append(subprocess.Popen(command, env=environment))
            status = max(abs(process.wait()) for process in processes)
    finally:
        for process in (*processes, archive):
            process.terminate()  # nothing to a process that has ended
        for process in (*processes, archive):
            process.wait()
    for name, log in logs.items():
        print(f"\n######## tests of the {name} process\n{log.read_text(errors='replace')}")
    results = {name: json.loads(path.read_text()) for name, path in results_files.items() if path.exists()}
    print(format_table({name: results[name]["folders"] if name in results else {} for name in WORKERS}))
    cpu_seconds = sum(result["cpu_seconds"] for result in results.values())
    print(f"all tests together: {time.monotonic() - begin:.0f} s, with {cpu_seconds:.0f} s of the processors")
    if problem := find_problem(results):
        print(problem)
        return max(status, 1)
    return status


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the processes end as well
    sys.exit(run_all(Path(sys.argv[1])))
