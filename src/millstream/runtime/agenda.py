"""What is due when: entries with a time, taken as time passes.

Promises: an entry is given once, when its time has come; adding costs next to nothing, taking costs what is taken.
Does not know: what entries mean, or whether they still count."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from operator import itemgetter
from typing import Any

Entry = tuple[int, Any, Any]  # time, namespace, key

_TIME = itemgetter(0)


class Agenda:
    """Entries in runs, each sorted with the earliest last; a run is more than twice as long as the next one."""

    def __init__(self) -> None:
        self._fresh: list[Entry] = []
        self._later: list[Entry] = []  # fresh ones that were looked at and are not due
        self._runs: list[list[Entry]] = []
        self.add: Callable[[Entry], None]
        self._begin()

    def _begin(self) -> None:
        self._fresh, self._later = [], []
        self.add = self._fresh.append

    def take(self, until: int) -> list[Entry]:
        """What is due up to and with `until`; of equal times, what was added first is first."""
        self._arrange()
        taken: list[Entry] = []
        for run in self._runs:
            if run[-1][0] <= until:
                cut = bisect_left(run, -until, key=_backwards)
                taken += run[cut:]
                del run[cut:]
        self._runs = [run for run in self._runs if run]
        return taken

    def arrivals(self, until: int) -> list[Entry]:
        """As `take`, of what was added since the last call of either."""
        if not self._fresh:
            return []
        fresh, later = self._fresh, self._later
        self._begin()
        self._later = later + [entry for entry in fresh if entry[0] > until]
        return [entry for entry in fresh if entry[0] <= until]

    def next(self, counts: Callable[[Entry], bool]) -> int | None:
        """The earliest time of an entry that counts; others that come before it are let go."""
        self._arrange()
        for run in self._runs:
            while run and not counts(run[-1]):
                run.pop()
        self._runs = [run for run in self._runs if run]
        return min((run[-1][0] for run in self._runs), default=None)

    def _arrange(self) -> None:
        """Make a run of what is new."""
        run = self._later + self._fresh
        if not run:
            return
        self._begin()
        run.sort(key=_TIME, reverse=True)
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = self._runs.pop() + run
            run.sort(key=_TIME, reverse=True)
        self._runs.append(run)


def _backwards(entry: Entry) -> int:
    return -entry[0]
