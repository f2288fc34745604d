"""The request to cancel a job, and pauses that it interrupts.

Promises: `pause` returns early when the job is cancelled, `wait_for_input` also when a source has records; any thread
may cancel.
Does not know: what is cancelled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from millstream.times import Clock

_MAX_SLEEP = 0.1  # seconds after which a pause checks whether the job was cancelled


class Cancellation:
    """Whether one job is cancelled."""

    def __init__(self, clock: Clock, sleep: Callable[[float], None]) -> None:
        self._clock, self._sleep = clock, sleep
        self._requested = threading.Event()
        self._arrival = threading.Event()

    def request(self) -> None:
        """Request that the job is cancelled."""
        self._requested.set()
        self._arrival.set()

    def wake(self) -> None:
        """End the present or the next wait for input, from any thread."""
        self._arrival.set()

    def wait_for_input(self, seconds: float) -> None:
        """Sleep until a source has input or the job is cancelled, at most this long."""
        if self._sleep is time.sleep:
            self._arrival.wait(seconds)
        elif not self._arrival.is_set():
            self._sleep(seconds)  # a virtual clock
        if not self.is_requested():
            self._arrival.clear()

    def is_requested(self) -> bool:
        """Return whether cancellation was requested."""
        return self._requested.is_set()

    def pause(self, millis: int) -> None:
        """Sleep until the time has passed or the job is cancelled."""
        until = self._clock.precise() + millis / 1000
        while not self.is_requested() and (remaining := until - self._clock.precise()) > 0:
            self._sleep(min(remaining, _MAX_SLEEP))
