"""Rounds as tables for people, and a run as a section of RESULTS.md.

Promises: medians with their spread, ratios within rounds only; what failed or answered wrongly is in no ratio.
Does not know: how contestants are run."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from benchmarks.plan import Benchmark, Contestant, Goal
from benchmarks.processes import Outcome

# Cores that others may keep busy before a figure is marked as taken on a noisy machine.
NOISE = 0.2


@dataclass(slots=True)
class Rounds:
    """The outcomes of one benchmark: one for each contestant and round."""

    benchmark: Benchmark
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)

    def add(self, contestant: Contestant, outcome: Outcome) -> None:
        """Keep the next round's outcome of a contestant."""
        self.outcomes.setdefault(contestant.name, []).append(outcome)

    def figures(self, contestant: Contestant) -> list[float | None]:
        """The figure of each round; None where there is none."""
        return [
            None if outcome.result is None else float(outcome.result[self.benchmark.figure])
            for outcome in self.outcomes.get(contestant.name, [])
        ]

    def ratios(self, contestant: Contestant) -> list[float]:
        """How the contestant compares with ours in each round that has both."""
        pairs = zip(self.figures(self.benchmark.ours), self.figures(contestant), strict=False)
        return [self.benchmark.ratio(ours, other) for ours, other in pairs if ours is not None and other is not None]

    def failures(self) -> list[str]:
        """What went wrong, a line each, without repetition."""
        lines = [
            f"{self.benchmark.name}: {name}: {outcome.failure}"
            for name, outcomes in self.outcomes.items()
            for outcome in outcomes
            if outcome.failure is not None
        ]
        return list(dict.fromkeys(lines))

    def table(self) -> str:
        """A Markdown table, one line for each contestant."""
        head = ["", self.benchmark.unit + ", median (min..max)", "ratio, median (min..max)", "to reach", "ran"]
        played = [each for each in (self.benchmark.ours, *self.benchmark.peers) if each.name in self.outcomes]
        lines = [head, ["---"] * len(head), *(self._row(contestant) for contestant in played)]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        parts = [f"### {self.benchmark.name}: {self.benchmark.title}", table, self._queries()]
        return "\n\n".join(filter(None, parts))

    def _queries(self) -> str:
        """For a benchmark of several queries: a line for each, with the medians of all contestants and their ratio."""
        played = [each for each in (self.benchmark.ours, *self.benchmark.peers) if each.name in self.outcomes]
        rates = [self._query_rates(each) for each in played]
        names = list(dict.fromkeys(name for each in rates for name in each))
        if not names:
            return ""
        head = ["query", *(each.name for each in played), *(f"ratio to {each.name}" for each in played[1:])]
        lines = [head, ["---"] * len(head)]
        for name in names:
            figures = [_number(each[name]) if name in each else "" for each in rates]
            pairs = [self.benchmark.ratio(rates[0][name], each[name]) for each in rates[1:] if _both(rates, each, name)]
            lines.append([name, *figures, *map(_number, pairs)])
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def _query_rates(self, contestant: Contestant) -> dict[str, float]:
        """The median figure of each query of a contestant."""
        found: dict[str, list[float]] = {}
        for outcome in self.outcomes[contestant.name]:
            for name, figure in (outcome.result or {}).get("queries", {}).items():
                found.setdefault(name, []).append(float(figure))
        return {name: median(figures) for name, figures in found.items()}

    def _row(self, contestant: Contestant) -> list[str]:
        figures = [figure for figure in self.figures(contestant) if figure is not None]
        if not figures:
            return [contestant.name, "failed", "", "", ""]
        ours = contestant == self.benchmark.ours
        ratios = [] if ours else self.ratios(contestant)
        verdict = _verdict(self.benchmark.goal, figures) if ours else _verdict(contestant.goal, ratios)
        return [contestant.name, _spread(figures), _spread(ratios), verdict, self._ran(contestant)]

    def _ran(self, contestant: Contestant) -> str:
        outcomes = [outcome for outcome in self.outcomes[contestant.name] if outcome.result is not None]
        result = outcomes[-1].result or {}
        parts = []
        if "base" in result:
            parts.append(f"{result['records']:,} less {result['base']:,} records")
        if "batch" in result:
            parts.append(f"{result['batch']:,} a batch")
        if "samples" in result:
            parts.append(f"{result['samples']} samples")
        if "p99_ms" in result:
            parts.append(f"p99 {_number(median(float((each.result or {})['p99_ms']) for each in outcomes))} ms")
        if "full_bytes" in result:
            parts.append(f"{result['bytes']:,.0f} of {result['full_bytes']:,.0f} bytes")
            parts.append(f"mean {_number(result['mean_fraction'])}")
        if self.benchmark.growth:
            own, mapped = (max(each) for each in zip(*((one.memory.own, one.memory.mapped) for one in outcomes)))
            parts.append(f"largest worker {own:,.0f} MiB, and {mapped:,.0f} MiB of mapped files")
        others = max(each.others for each in outcomes)
        if others >= NOISE:
            parts.append(f"NOISY: other processes kept {others:.1f} cores busy")
        rounds = len(self.outcomes[contestant.name])
        if len(outcomes) < rounds:
            parts.append(f"failed in {rounds - len(outcomes)} of {rounds} rounds")
        return "; ".join(parts)


def _both(rates: list[dict[str, float]], other: dict[str, float], name: str) -> bool:
    return name in rates[0] and name in other


def _verdict(goal: Goal | None, values: list[float]) -> str:
    if goal is None or not values:
        return "" if goal is None else str(goal)
    return f"{goal}: {'met' if goal.met(median(values)) else 'missed'}"


def _spread(values: list[float]) -> str:
    return f"{_number(median(values))} ({_number(min(values))}..{_number(max(values))})" if values else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def machine() -> str:
    """Cores, memory, Python, Java and the load before the run, in a line."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return (
        f"{os.cpu_count()} cores, {pages:.0f} GiB, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, {_java()}, load {os.getloadavg()[0]:.1f} at the start"
    )


def _java() -> str:
    java = shutil.which("java")
    if java is None:
        return "no Java on PATH"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    return said.splitlines()[0] if said else "Java of unknown version"


def section(command: str, where: str, all_rounds: list[Rounds]) -> str:
    """A run as a section of RESULTS.md."""
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    failures = [f"- {line}" for rounds in all_rounds for line in rounds.failures()]
    parts = [f"## {date}", f"Machine: {where}\n\nCommand: `{command}`", *(rounds.table() for rounds in all_rounds)]
    if failures:
        parts.append("What failed:\n\n" + "\n".join(failures))
    return "\n\n".join(parts) + "\n"


def append(path: Path, text: str) -> None:
    """Add a section at the end of RESULTS.md, which is made if it is absent."""
    title = "# Results\n\nWritten by `run.py --write`; the newest run is the last.\n"
    before = path.read_text() if path.exists() else title
    path.write_text(before.rstrip("\n") + "\n\n" + text)
