"""The trace of a case, which holds everything that the case does, and the report of what happened.

Promises: a trace is a plain JSON value that can be saved, loaded and played again; a report says whether all checks
passed, with the measurements.
Does not know: any case."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from millstream.errors import UserError

SIZES = ("ci", "normal", "long")
_PROGRESS_SECONDS = 20


class UnreadableTrace(UserError):
    """A file is not a trace."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"'{path}' is not a trace: {reason}", hint="give a file that `millstream chaos` wrote")


@dataclass(frozen=True)
class Trace:
    """Everything a case does: its parameters, its steps in order, and the engine; all plain JSON values."""

    case: str
    seed: int
    size: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    steps: Sequence[Mapping[str, Any]] = ()
    engine: str = ""  # what runs the epochs of jobs on Spark, see `millstream.engine`; empty: the default

    def slice_steps(self, first: int, last: int | None) -> Trace:
        """Return a trace with some of the steps, so that a long trace can be played in parts."""
        return replace(self, steps=self.steps[first:last])

    def iterate_steps(self) -> Iterator[Mapping[str, Any]]:
        """Yield the steps one by one, and print the progress to standard error from time to time."""
        started = printed = time.monotonic()
        for number, step in enumerate(self.steps):
            now = time.monotonic()
            if now - printed > _PROGRESS_SECONDS:
                printed = now
                print(f"{self.case}: {number} of {len(self.steps)} steps in {now - started:.0f} s", file=sys.stderr)
            yield step

    def save(self, path: Path) -> None:
        """Write the trace to a file."""
        path.write_text(json.dumps(vars(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Trace:
        """Read a trace from a file."""
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as problem:
            raise UnreadableTrace(str(path), str(problem)) from problem


@dataclass
class Report:
    """The result of a trace: measurements, and the problems that were found."""

    trace: Trace
    figures: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether all checks passed."""
        return not self.problems

    def check(self, holds: bool, problem: str) -> None:
        """Add a problem unless a condition holds."""
        if not holds:
            self.problems.append(problem)

    def count(self, name: str) -> None:
        """Add one to a figure."""
        self.figures[name] = self.figures.get(name, 0) + 1

    def format_lines(self) -> list[str]:
        """Return the report as text."""
        trace = self.trace
        engine = f", engine {trace.engine}" if trace.engine else ""
        lines = [f"{trace.case}: seed {trace.seed}, size {trace.size}, {len(trace.steps)} steps{engine}"]
        lines += [f"  {name}: {value}" for name, value in self.figures.items()]
        lines += [f"  WRONG: {problem}" for problem in self.problems]
        return [*lines, f"  {'all held' if self.ok else 'NOT right'}"]


def draw_epoch(chance: np.random.Generator, epochs: float, number: int, count: int) -> int:
    """Draw the epoch of step `number` of `count` steps that are spread over the epochs of a job."""
    return int(epochs / (count + 1) * (number + 0.5 + chance.random() / 2))


def is_machine_busy() -> bool:
    """Return whether the load of this machine is too high for measured times to be meaningful."""
    return os.getloadavg()[0] > 2 * (os.cpu_count() or 1)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of the values do not exceed; the largest if there are few values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
