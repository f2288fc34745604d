"""The position of a generator: one offset in a sequence of records, which is distributed to splits.

Promises: every index from 0 on is planned once, in order; the number of splits and the size of an epoch do not
change which records exist. With a rate, records become available with processing time.
Does not know: what the records hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millstream.connector.source import Budget, SplitEnumerator, SplitRange
from millstream.errors import UserError


class InvalidGenerator(UserError, ValueError):
    """An invalid number of records, rate or number of splits."""


def check_generator(count: int | None, rate: float | None, splits: int | None) -> None:
    """Raise `InvalidGenerator` if a parameter is invalid."""
    if count is not None and not 0 <= count < 1 << 63:
        msg = f"the count is {count}"
        raise InvalidGenerator(msg, hint="use an integer that is not negative, or None for unbounded input")
    if rate is not None and not rate > 0:
        msg = f"the rate is {rate} records per second"
        raise InvalidGenerator(msg, hint="use a number greater than 0, or None for no limit")
    if splits is not None and splits < 1:
        msg = f"the number of splits is {splits}"
        raise InvalidGenerator(msg, hint="use a number greater than 0, or None for no limit")


class PositionEnumerator(SplitEnumerator):
    """Plans the next indexes, as one range for each split.

    The next index is the whole state, so the number of splits can change at every restart."""

    def __init__(self, split_count: int, count: int | None, rate: float | None, state: Any = None) -> None:
        position = state or {}
        self._splits = [f"{index:04d}" for index in range(split_count)]
        self._count = count
        self._rate = rate
        self._next: int = position.get("next", 0)
        # with a rate: when the counting of arrivals began, and at which index
        self._began: int | None = position.get("began")
        self._base: int = position.get("base", 0)
        self._arrived: int | None = None

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan as many of the available records as the budget allows."""
        self._arrived = self._arrivals(budget.now)
        stop = self._next + max(budget.records, 1)
        if self._arrived is not None:
            stop = min(stop, self._arrived)
        # The first split changes with the position, so that plans of few records still advance the watermark of every
        # split.
        first = self._next % len(self._splits)
        splits = [split for split in self._splits[first:] + self._splits[:first] if split not in budget.held]
        ranges = []
        for served, split in enumerate(splits):
            share = -(-(stop - self._next) // (len(splits) - served))
            if share > 0:
                ranges.append(SplitRange(split, self._next, self._next + share, share))
                self._next += share
        return sorted(ranges, key=lambda part: part.split)

    def plan_again(self, planned: Sequence[SplitRange], budget: Budget) -> list[SplitRange]:
        """Plan again from the restored position, which is the whole state."""
        return self.plan(budget)

    def _arrivals(self, now: int) -> int | None:
        """Return the first index that is not available at `now`; None if the source has neither a rate nor an end."""
        if self._rate is None:
            return self._count
        if self._began is None:
            self._began, self._base = now, self._next
        arrived = self._base + int(max(now - self._began, 0) * self._rate / 1000)
        return arrived if self._count is None else min(arrived, self._count)

    def skip(self, split_range: SplitRange) -> None:
        """Continue after the range."""
        self._next = max(self._next, split_range.end)

    def snapshot(self) -> dict[str, Any]:
        """Return the next index and, with a rate, the time of the first plan."""
        position: dict[str, Any] = {"next": self._next}
        if self._began is not None:
            position |= {"began": self._began, "base": self._base}
        return position

    def finished(self) -> bool:
        """Whether all records were planned."""
        return self._count is not None and self._next >= self._count

    def splits(self) -> list[str]:
        """Return all splits, until all records are planned."""
        return [] if self.finished() else list(self._splits)

    def lag(self) -> int | None:
        """Return how many available records are not planned; without a rate, how many are left."""
        available = self._arrived if self._rate is not None else self._count
        return None if available is None else max(available - self._next, 0)
