"""The rounds of a benchmark, compared.

Promises: a ratio compares two outcomes of the same round; what failed is in no ratio; of the attempts at a round the
last one counts, and the others are reported.
Does not know: how contestants are run, or how figures are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.contest import Benchmark, Contestant, Goal, Of
from benchmarks.intervals import Interval, bootstrap
from benchmarks.processes import Outcome
from benchmarks.rounds_file import CHECK, Finished

NOISE = 0.2  # cores that other processes may keep busy before a round counts as noisy


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a goal; `is_met` is None if there were too few rounds to say."""

    goal: Goal
    quoted: float | None
    is_met: bool | None


class Rounds:
    """All outcomes of one benchmark."""

    def __init__(self, benchmark: Benchmark, finished: Iterable[Finished]) -> None:
        self.benchmark = benchmark
        self._entries = [entry for entry in finished if entry.benchmark == benchmark.name]
        last: dict[tuple[str, int], Finished] = {}
        for entry in self._entries:
            before = last.get((entry.contestant, entry.round))
            if before is None or entry.attempt >= before.attempt:
                last[entry.contestant, entry.round] = entry
        self._last = last

    def played(self) -> list[Contestant]:
        """Return the contestants that ran, ours first."""
        names = {name for name, number in self._last if number != CHECK}
        return [each for each in self.benchmark.contestants() if each.name in names]

    def rounds_run(self) -> int:
        """Return how many rounds there were."""
        return len({number for _, number in self._last if number != CHECK})

    def outcomes(self, contestant: Contestant) -> dict[int, Outcome]:
        """Return the outcomes that count and have a result, by round."""
        return {
            number: entry.outcome
            for (name, number), entry in self._last.items()
            if name == contestant.name and number != CHECK and entry.outcome.result is not None
        }

    def results(self, contestant: Contestant) -> list[dict[str, Any]]:
        """Return the results that count."""
        return [outcome.result for outcome in self.outcomes(contestant).values() if outcome.result is not None]

    def figure(self, contestant: Contestant) -> Interval | None:
        """Return the contestant's own figure."""
        return _interval(float(result[self.benchmark.figure]) for result in self.results(contestant))

    def middle(self, contestant: Contestant, value: Callable[[Outcome], float | None]) -> float | None:
        """Return the median of something that each outcome may have."""
        values = [found for outcome in self.outcomes(contestant).values() if (found := value(outcome)) is not None]
        return median(values) if values else None

    def ratio(self, peer: Contestant, of: Of = Of.RATIO) -> Interval | None:
        """Return how the contestants compare, from the rounds that both have."""
        mine, theirs = self.outcomes(self.benchmark.ours), self.outcomes(peer)
        pairs = [(mine[number], theirs[number]) for number in sorted(mine.keys() & theirs.keys())]
        return _interval(found for one, other in pairs if (found := self._compare(one, other, of)) is not None)

    def _compare(self, one: Outcome, other: Outcome, of: Of) -> float | None:
        ours, theirs = one.result or {}, other.result or {}
        ratio = self.benchmark.ratio_of_results(ours, theirs)
        if of is Of.CPU:
            used = (ours.get("cpu_us"), theirs.get("cpu_us"))
            return float(used[1]) / float(used[0]) if used[0] and used[1] else None
        if of is Of.MEMORY:
            return ratio * other.peak_mib / one.peak_mib if one.peak_mib and other.peak_mib else None
        return ratio

    def query_ratios(self, peer: Contestant) -> dict[str, Interval]:
        """Return how the contestants compare in each query."""
        mine, theirs = self.outcomes(self.benchmark.ours), self.outcomes(peer)
        found: dict[str, list[float]] = {}
        for number in sorted(mine.keys() & theirs.keys()):
            ratios = self.benchmark.query_ratios(mine[number].result or {}, theirs[number].result or {})
            for query, ratio in ratios.items():
                found.setdefault(query, []).append(ratio)
        return {query: bootstrap(ratios) for query, ratios in found.items()}

    def query_figure(self, contestant: Contestant, query: str) -> float | None:
        """Return the median figure of a query."""
        values = [result["queries"][query] for result in self.results(contestant) if query in result.get("queries", {})]
        return median(values) if values else None

    def verdicts(self, contestant: Contestant) -> list[Verdict]:
        """Return what came of the contestant's goals."""
        return [self._judge(contestant, goal) for goal in contestant.goals]

    def _judge(self, contestant: Contestant, goal: Goal) -> Verdict:
        if goal.of is Of.EACH:
            skipped = self.benchmark.not_compared
            intervals = [each for name, each in self.query_ratios(contestant).items() if name not in skipped]
            worst = min(intervals, key=goal.quoted, default=None)
        elif goal.of is Of.FIGURE:
            worst = self.figure(contestant)
        else:
            worst = self.ratio(contestant, goal.of)
        if worst is None:
            return Verdict(goal, None, False)
        return Verdict(goal, goal.quoted(worst), goal.is_met(worst) if worst.is_quotable else None)

    def failures(self) -> list[str]:
        """Return what went wrong, a line each, without repetition; a later attempt that went well takes it back."""
        lines = [
            f"{self.benchmark.name}: {name}: {entry.outcome.failure}"
            for (name, _), entry in self._last.items()
            if entry.outcome.failure is not None
        ]
        return list(dict.fromkeys(lines))

    def missed(self) -> list[str]:
        """Return the goals that were missed, a line each."""
        return [
            f"{self.benchmark.name}: {contestant.name}: {verdict.goal}, but {_said(verdict.quoted)}"
            for contestant in self.played()
            for verdict in self.verdicts(contestant)
            if verdict.is_met is False
        ]

    def noise(self) -> list[str]:
        """Return the noisy attempts, those that count and those that were repeated."""
        lines = []
        for entry in self._entries:
            if entry.round == CHECK or entry.outcome.others < NOISE:
                continue
            is_last = self._last[entry.contestant, entry.round] is entry
            what = "counts: there was no quieter attempt" if is_last else "was repeated"
            lines.append(
                f"{self.benchmark.name}, round {entry.round}, attempt {entry.attempt}: others kept "
                f"{entry.outcome.others:.1f} cores busy beside {entry.contestant}; it {what}"
            )
        return lines


def _interval(values: Iterable[float]) -> Interval | None:
    found = list(values)
    return bootstrap(found) if found else None


def _said(value: float | None) -> str:
    return "there is no figure" if value is None else f"{value:.3g}"
