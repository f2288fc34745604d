"""Print how long each folder of tests took, from the files that `pytest --folder-times` wrote.

python tests/show_times.py without-spark=FILE on-spark=FILE"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def format_table(runs: dict[str, dict[str, dict[str, float]]]) -> str:
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


def main() -> None:
    """Read the files that the arguments name and print the table."""
    paths = dict(argument.split("=", 1) for argument in sys.argv[1:])
    runs = {name: Path(path) for name, path in paths.items()}
    print(format_table({name: json.loads(path.read_text()) if path.exists() else {} for name, path in runs.items()}))


if __name__ == "__main__":
    main()
