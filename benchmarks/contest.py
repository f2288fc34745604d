"""What a benchmark is: contestants, their sizes, and what is to be reached.

Promises: frozen values.
Does not know: which benchmarks there are, processes, files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from benchmarks.intervals import Interval

SCALED = frozenset({"base", "records", "keys"})


class Of(Enum):
    """What a goal bounds."""

    FIGURE = "figure"  # of millstream itself
    RATIO = "ratio"  # of the figures
    EACH = "each query"
    CPU = "per CPU second"
    MEMORY = "per GiB"


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound, which the end of the interval that is worse for millstream must keep."""

    at_least: float | None = None
    at_most: float | None = None
    of: Of = Of.RATIO

    def quoted(self, interval: Interval) -> float:
        """Return the end of the interval that the goal is judged by."""
        return interval.low if self.at_least is not None else interval.high

    def is_met(self, interval: Interval) -> bool:
        """Return whether the whole interval is within the bound."""
        value = self.quoted(interval)
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def __str__(self) -> str:
        bound = f"≥ {self.at_least:g}" if self.at_least is not None else f"≤ {self.at_most:g}"
        return bound if self.of in (Of.RATIO, Of.FIGURE) else f"{bound} {self.of.value}"


@dataclass(frozen=True, slots=True)
class Contestant:
    """A script with its options. `warm_up` and `timed` are the least seconds before the clock and by the clock, and
    `engine` runs millstream's jobs."""

    name: str
    script: str
    environment: str
    options: tuple[tuple[str, int | str], ...]
    goals: tuple[Goal, ...] = ()
    warm_up: float = 5.0
    timed: float = 5.0
    engine: str = "jobs"

    def arguments(self, scale: float, part: str) -> list[str]:
        """Return the command line after the script's name. The scale is that of records, keys and seconds."""
        words = ["--part", part, "--warm-up", f"{self.warm_up * scale:g}", "--timed", f"{self.timed * scale:g}"]
        for name, value in self.options:
            is_scaled = isinstance(value, int) and name in SCALED
            words += ["--" + name.replace("_", "-"), str(max(10, round(value * scale)) if is_scaled else value)]  # type: ignore[operator]
        return words


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One contest. The ratio says how many times better ours is; with `growth`, how many times the other is of ours.

    `digest` is the name of the expected digest of the check, if there is a check. `quick` is the scale at which the
    benchmark is part of a quick run, which has those peers that `quick_peers` names."""

    name: str
    title: str
    figure: str
    unit: str
    ours: Contestant
    peers: tuple[Contestant, ...] = ()
    higher_is_better: bool = True
    growth: bool = False
    digest: str | None = None
    not_compared: tuple[str, ...] = ()
    quick: float | None = None
    quick_peers: tuple[str, ...] = ()
    note: str = ""

    def contestants(self) -> tuple[Contestant, ...]:
        """Return all, in the order in which they take turns."""
        return (self.ours, *self.peers)

    def ratio(self, ours: float, other: float) -> float:
        """Return how two figures compare."""
        return ours / other if self.higher_is_better and not self.growth else other / ours

    def query_ratios(self, ours: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, float]:
        """Return how two results compare in each query that both have."""
        mine, theirs = ours.get("queries", {}), other.get("queries", {})
        return {name: self.ratio(mine[name], theirs[name]) for name in mine if name in theirs}

    def ratio_of_results(self, ours: Mapping[str, Any], other: Mapping[str, Any]) -> float:
        """Return how two results compare; of rates of several queries, the geometric mean of what compares."""
        ratios = [ratio for name, ratio in self.query_ratios(ours, other).items() if name not in self.not_compared]
        if not ratios or not self.higher_is_better:  # times add up, rates do not
            return self.ratio(float(ours[self.figure]), float(other[self.figure]))
        return math.exp(sum(map(math.log, ratios)) / len(ratios))
