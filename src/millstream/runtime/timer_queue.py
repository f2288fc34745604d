"""Priority queue of timers, ordered by time.

A log-structured queue: new timers are appended to a buffer, the buffer is sorted into a run on the next read, and runs
of similar size are merged. Appending is O(1); polling n due timers is O(n) plus amortised merging. This beats `heapq`
when thousands of timers are registered and fired per epoch.

Promises: each timer is returned once, in time order within a run; timers with equal times keep their insertion order.
Does not know: what a timer's namespace and key mean, or whether the timer was deleted (callers filter)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from operator import itemgetter
from typing import Any

Timer = tuple[int, Any, Any]  # (timestamp, namespace, key)

_timestamp = itemgetter(0)


class TimerQueue:
    """Timers in sorted runs, latest first within a run, so that due timers are cut off the end. Each run is more than
    twice as long as the next one."""

    def __init__(self) -> None:
        self._buffer: list[Timer] = []
        self._examined: list[Timer] = []  # not due when `poll_due_since_last_call` looked at them
        self._runs: list[list[Timer]] = []
        self.add: Callable[[Timer], None]
        self._clear_buffer()

    def _clear_buffer(self) -> None:
        self._buffer, self._examined = [], []
        self.add = self._buffer.append

    def poll_due(self, timestamp: int) -> list[Timer]:
        """Remove and return all timers with a time at or before `timestamp`."""
        self._merge_buffer()
        due: list[Timer] = []
        for run in self._runs:
            if run[-1][0] <= timestamp:
                start = bisect_left(run, -timestamp, key=_negated_timestamp)
                due += run[start:]
                del run[start:]
        self._runs = [run for run in self._runs if run]
        return due

    def poll_due_since_last_call(self, timestamp: int) -> list[Timer]:
        """Like `poll_due`, restricted to timers that were added since the last poll. It merges nothing."""
        if not self._buffer:
            return []
        buffer, examined = self._buffer, self._examined
        self._clear_buffer()
        self._examined = examined + [timer for timer in buffer if timer[0] > timestamp]
        return [timer for timer in buffer if timer[0] <= timestamp]

    def earliest_time(self, is_live: Callable[[Timer], bool]) -> int | None:
        """Return the time of the earliest live timer, and drop deleted timers in front of it; None if empty."""
        self._merge_buffer()
        for run in self._runs:
            while run and not is_live(run[-1]):
                run.pop()
        self._runs = [run for run in self._runs if run]
        return min((run[-1][0] for run in self._runs), default=None)

    def _merge_buffer(self) -> None:
        """Sort the buffer into a run, and merge it with runs of similar size."""
        run = self._examined + self._buffer
        if not run:
            return
        self._clear_buffer()
        run.sort(key=_timestamp, reverse=True)
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = self._runs.pop() + run
            run.sort(key=_timestamp, reverse=True)
        self._runs.append(run)


def _negated_timestamp(timer: Timer) -> int:
    return -timer[0]
