"""The CPU time of a dozen small programs, compared with the committed figures.

    python benchmarks/guard.py              # compare; the exit status is 1 if one differs by more than a tenth
    python benchmarks/guard.py --record     # write guard.json

Promises: a figure is CPU time divided by that of a fixed loop of plain Python, NumPy and Arrow in the same rounds, the
least of several rounds each, so that it depends little on the machine and on other processes. Where `perf` counts
instructions, these are compared, too. Programs run in this process, without Spark, in epochs of a fixed size.
Does not know: throughput; run.py measures that."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "src")]

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.compute as pc  # noqa: E402
from benchmarks.guard_programs import PROGRAMS, use_inline_engine  # noqa: E402

FILE = Path(__file__).with_name("guard.json")
TOLERANCE = 0.10
ROUNDS = 5


def calibrate() -> None:
    """Do a fixed amount of the kinds of work that the programs do."""
    counts: dict[str, list[int]] = {}
    for number in range(400_000):
        entry = counts.setdefault(f"key-{number * 7_919 % 10_007}", [0, 0])
        entry[0] += 1
        entry[1] += number
    numbers = np.arange(1_500_000, dtype=np.int64) * 2_654_435_761 % 1_000_003
    for _ in range(2):
        order = np.argsort(numbers, kind="stable")
        np.add.at(np.zeros(1_000_003, dtype=np.int64), numbers[order][:300_000], 1)
    texts = pa.array(numbers[:400_000]).cast(pa.string())
    pc.value_counts(pc.utf8_upper(texts))


def cpu_seconds(action: Callable[[], object]) -> float:
    """Return the CPU time of one call, of all threads of this process."""
    start = time.process_time()
    action()
    return time.process_time() - start


def measure(names: list[str], rounds: int) -> dict[str, float]:
    """Return the figure of each program."""
    least: dict[str, float] = {}
    loops: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds + 1):
            loops.append(cpu_seconds(calibrate))
            for name in names:
                taken = cpu_seconds(lambda name=name: PROGRAMS[name](Path(folder)))
                if number:  # the first round loads modules and makes files
                    least[name] = min(taken, least.get(name, taken))
            print(f"round {number} of {rounds}", flush=True)
    return {name: round(taken / min(loops), 4) for name, taken in least.items()}


def count_instructions(names: list[str]) -> dict[str, float]:
    """Return the instructions of each program in a process of its own, in millions; nothing where perf has none."""
    perf = shutil.which("perf")
    counts: dict[str, float] = {}
    for name in names if perf else []:
        command = [perf, "stat", "-x", ",", "-e", "instructions:u", sys.executable, __file__, "--run", name]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        count = read_instructions(done.stderr)
        if done.returncode or count is None:
            return {}
        counts[name] = round(count / 1e6, 1)
    return counts


def read_instructions(output: str) -> int | None:
    """Return the count in the output of `perf stat -x ,`; None if the machine does not count."""
    found = re.search(r"^(\d+),[^,]*,instructions", output, re.MULTILINE)
    return int(found.group(1)) if found else None


def compare(expected: dict[str, float], found: dict[str, float]) -> list[str]:
    """Return what differs by more than the tolerance, a line each. A program without a committed figure differs."""
    lines = []
    for name, figure in found.items():
        if name not in expected:
            lines.append(f"{name}: {figure:.3f}, and no committed figure; hint: make bench-guard RECORD=1")
            continue
        change = figure / expected[name] - 1
        if abs(change) > TOLERANCE:
            hint = "" if change > 0 else "; hint: if that is meant, make bench-guard RECORD=1"
            lines.append(f"{name}: {figure:.3f} instead of {expected[name]:.3f} ({change:+.0%}){hint}")
    return lines


def main() -> int:
    """Compare, or record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--record", action="store_true", help="write the figures instead of comparing")
    parser.add_argument("--only", action="append", choices=list(PROGRAMS), help="this program alone")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--run", choices=list(PROGRAMS), help="run a program once, for perf")
    args = parser.parse_args()
    use_inline_engine()
    if args.run:
        with tempfile.TemporaryDirectory() as folder:
            PROGRAMS[args.run](Path(folder))
        return 0
    names = args.only or list(PROGRAMS)
    figures: dict[str, Any] = {"cpu": measure(names, args.rounds), "instructions": count_instructions(names)}
    committed = json.loads(FILE.read_text()) if FILE.exists() else {"cpu": {}, "instructions": {}}
    if args.record:
        merged = {what: {**committed[what], **figures[what]} for what in figures}
        FILE.write_text(json.dumps(merged, indent=1) + "\n")
        return 0
    for name, figure in figures["cpu"].items():
        print(f"{name:24} {figure:8.3f}  committed {committed['cpu'].get(name, float('nan')):8.3f}")
    counted = figures["instructions"] and committed["instructions"]
    lines = compare(committed["instructions"], figures["instructions"]) if counted else []
    lines = lines if counted else compare(committed["cpu"], figures["cpu"])
    print("\n".join(lines) or f"all {len(names)} within {TOLERANCE:.0%}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
