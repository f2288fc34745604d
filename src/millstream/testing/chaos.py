"""Cases of chaos: what goes wrong is drawn from a seed, written down as a trace, and can be played again.

Promises: the trace of a case is a function of its seed and size, and holds everything that will be done; playing a
trace twice does the same things at the same points; a report says whether all held, with what was measured.
Does not know: any case. A case is a module with `plan(seed, size) -> Trace` and `play(trace, directory) -> Report`."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from millstream.errors import UserError

SIZES = ("ci", "normal", "long")
_TELL_EVERY = 20  # seconds

CASES: Mapping[str, tuple[str, str]] = {
    "kills": ("chaos_kills", "files > keyed state, timers, windows > exactly-once files; workers and drivers killed"),
    "kafka": ("chaos_kafka", "Kafka > keyed state, timers, windows > Kafka exactly-once; workers and drivers killed"),
    "brokers": ("chaos_brokers", "the broker dies and comes back, transactions expire, topics lose unread records"),
    "replicas": ("chaos_replicas", "three brokers: leaders die, replicas fall behind, too few are in sync"),
    "poison": ("chaos_poison", "records that cannot be read, in every format: fail, skip and dead-letter"),
    "executors": ("chaos_executors", "the same on a standalone cluster; executors and whole machines killed"),
    "mixed": (
        "chaos_mixed",
        "a cluster with state on disk: processes killed or stopped, several at once; SQL; rescales",
    ),
    "upgrade": ("chaos_upgrade", "the leader is of the last release, the driver that takes over of this one"),
    "network": ("chaos_network", "links between drivers, executors and the broker break, in one direction or both"),
    "leaders": ("chaos_leaders", "two drivers for one job; the old one wakes at every step it can do"),
    "rescale": (
        "chaos_rescale",
        "a random walk of the parallelism from 1 to 16, with crashes inside half of the steps",
    ),
    "damage": ("chaos_damage", "every file of a checkpoint damaged in every way"),
    "storage": ("chaos_storage", "storage without space, with errors, read-only, stalling; crashes at every operation"),
    "objects": ("chaos_objects", "an object store that throttles, fails, loses answers, lists slowly; drivers killed"),
    "clocks": ("chaos_clocks", "the wall clock jumps; idle partitions; the ends of time"),
    "pressure": ("chaos_pressure", "slow sink, fast source, a hot key, 1 MB records: memory stays flat"),
    "resources": ("chaos_resources", "a full disk for stores, shuffle files or checkpoints; memory runs out"),
    "soak": ("chaos_soak", "small epochs for hours, rescales and kills: nothing grows, every record once"),
    "hostile": ("chaos_hostile", "pickles in checkpoint files: nothing is executed"),
}


class NoSuchCase(UserError):
    """There is no case of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no case '{name}'", hint=f"there are {', '.join(CASES)}")


class UnreadableTrace(UserError):
    """A file that is not a trace."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"'{path}' is not a trace: {why}", hint="give a file that `millstream chaos` wrote")


@dataclass(frozen=True)
class Trace:
    """Everything a case does: its parameters, and its steps in order, all plain JSON values."""

    case: str
    seed: int
    size: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    steps: Sequence[Mapping[str, Any]] = ()

    def sliced(self, first: int, last: int | None) -> Trace:
        """Some of its steps: a long trace can be played in pieces."""
        return replace(self, steps=self.steps[first:last])

    def shown(self) -> Iterator[Mapping[str, Any]]:
        """Its steps, one by one; how far they are is told on standard error while it takes long."""
        began = told = time.monotonic()
        for number, step in enumerate(self.steps):
            now = time.monotonic()
            if now - told > _TELL_EVERY:
                told = now
                print(f"{self.case}: {number} of {len(self.steps)} steps in {now - began:.0f} s", file=sys.stderr)
            yield step

    def save(self, path: Path) -> None:
        """Write it where `load` finds it."""
        path.write_text(json.dumps(vars(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Trace:
        """Read it back."""
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as problem:
            raise UnreadableTrace(str(path), str(problem)) from problem


@dataclass
class Report:
    """What came of a trace. `problems` is empty when all held."""

    trace: Trace
    figures: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether all held."""
        return not self.problems

    def check(self, holds: bool, problem: str) -> None:
        """Note a problem unless something holds."""
        if not holds:
            self.problems.append(problem)

    def lines(self) -> list[str]:
        """The report for a person."""
        trace = self.trace
        told = [f"{trace.case}: seed {trace.seed}, size {trace.size}, {len(trace.steps)} steps"]
        told += [f"  {name}: {value}" for name, value in self.figures.items()]
        told += [f"  WRONG: {problem}" for problem in self.problems]
        return [*told, f"  {'all held' if self.ok else 'NOT right'}"]


def planned(case: str, seed: int, size: str, **parameters: Any) -> Trace:
    """The trace of a case; `parameters` are those that its own `plan` takes."""
    return cast(Trace, _module(case).plan(seed, size, **parameters))


def played(trace: Trace, directory: Path) -> Report:
    """Do what a trace says, in a directory of its own."""
    return cast(Report, _module(trace.case).play(trace, directory))


def _module(case: str) -> Any:
    if case not in CASES:
        raise NoSuchCase(case)
    return importlib.import_module(f"millstream.testing.{CASES[case][0]}")


def too_busy() -> bool:
    """Whether others use this machine so much that times say nothing about the job."""
    return os.getloadavg()[0] > 2 * (os.cpu_count() or 1)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed; the largest when there are few."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
