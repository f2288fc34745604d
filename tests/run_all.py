"""Run all tests in three processes side by side, and print how long each folder of tests took.

python tests/run_all.py LOG_FOLDER

Much of the time of tests with servers or with Spark is waiting, so three processes keep two cores busy. The parts are
those of `--part` in conftest.py. The output of the first part is shown as it comes; that of the others is in LOG_FOLDER
and is shown after it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

PARTS = ("others", "faults", "servers")  # see conftest.py

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


def run_all(log_folder: Path) -> int:
    """Run the tests and return the highest exit status of the processes."""
    begin = time.monotonic()
    processes: list[subprocess.Popen[bytes]] = []
    times_files = {name: log_folder / f"test-times-{index}.json" for index, name in enumerate(PARTS)}
    logs = {name: log_folder / f"tests-{index}.log" for index, name in enumerate(PARTS) if index}
    try:
        for name in PARTS:
            times_files[name].unlink(missing_ok=True)
            command = [sys.executable, "-m", "pytest", "--timeout", "300", "--durations", "20"]
            command += ["--folder-times", str(times_files[name]), "--part", name]
            if name in logs:
                with logs[name].open("wb") as log:
                    processes.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT))
            else:
                processes.append(subprocess.Popen(command))
        status = max(abs(process.wait()) for process in processes)
    finally:
        for process in processes:
            process.terminate()  # nothing to a process that has ended
        for process in processes:
            process.wait()
    for name, log in logs.items():
        print(f"\n######## tests {name}\n{log.read_text(errors='replace')}")
    print(
        format_table(
            {name: json.loads(path.read_text()) if path.exists() else {} for name, path in times_files.items()}
        )
    )
    print(f"all tests together: {time.monotonic() - begin:.0f} s")
    return status


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the processes end as well
    sys.exit(run_all(Path(sys.argv[1])))
