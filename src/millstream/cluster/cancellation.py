"""The request to cancel a job, and pauses that it ends.

Promises: `pause` returns early when the job is cancelled; any thread may cancel.
Does not know: what is cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable

from millstream.times import Clock

_MAX_SLEEP = 0.1  # seconds until a pause notices that the job is cancelled


class Cancellation:
    """Whether one job is cancelled."""

    def __init__(self, clock: Clock, sleep: Callable[[float], None]) -> None:
        self._clock, self._sleep = clock, sleep
        self._requested = threading.Event()

    def request(self) -> None:
        """Cancel the job, soon."""
        self._requested.set()

    def is_requested(self) -> bool:
        """Whether the job is to end."""
        return self._requested.is_set()

    def pause(self, millis: int) -> None:
        """Sleep, but not after the job was cancelled."""
        until = self._clock.precise() + millis / 1000
        while not self.is_requested() and (remaining := until - self._clock.precise()) > 0:
            self._sleep(min(remaining, _MAX_SLEEP))
