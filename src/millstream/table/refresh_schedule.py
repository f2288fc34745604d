"""The schedule of full refreshes of a session.

Promises: a refresh runs at the times of its freshness, one refresh at a time. A refresh that fails is logged and
repeated at its next time. Times that pass while another refresh runs are left out.
Does not know: what a refresh does. The clock and the thread are arguments."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from millstream.sql.catalog.materialization import Freshness
from millstream.times import Clock

_log = logging.getLogger(__name__)


@dataclass
class _Entry:
    freshness: Freshness
    zone: str
    refresh: Callable[[int], None]
    due: int


def start_thread(run: Callable[[], None]) -> None:
    """Run a function in a thread that ends with the process."""
    threading.Thread(target=run, name="refresh-schedule", daemon=True).start()


class RefreshSchedule:
    """Refreshes by name. A thread waits for the next one while there is any."""

    def __init__(self, clock: Clock, start: Callable[[Callable[[], None]], None] = start_thread) -> None:
        self._clock, self._start = clock, start
        self._entries: dict[tuple[str, str, str], _Entry] = {}
        self._changed = threading.Condition()
        self._is_running = False

    def add(self, name: tuple[str, str, str], freshness: Freshness, zone: str, refresh: Callable[[int], None]) -> None:
        """Call `refresh` with the scheduled time, from the next time of the freshness on."""
        with self._changed:
            due = freshness.next_time(self._clock.now(), zone)
            self._entries[name] = _Entry(freshness, zone, refresh, due)
            self._changed.notify()
            if self._is_running:
                return
            self._is_running = True
        self._start(self._run)

    def remove(self, name: tuple[str, str, str]) -> None:
        """Remove a refresh; one that runs already runs to its end."""
        with self._changed:
            self._entries.pop(name, None)
            self._changed.notify()

    def run_due(self) -> None:
        """Run the refreshes that are due."""
        now = self._clock.now()
        with self._changed:
            due = [(name, entry, entry.due) for name, entry in self._entries.items() if entry.due <= now]
            for _, entry, _ in due:
                entry.due = entry.freshness.next_time(now, entry.zone)
        for name, entry, scheduled in due:
            try:
                entry.refresh(scheduled)
            except Exception:
                _log.exception("the refresh of materialized table '%s' failed", ".".join(name))

    def _run(self) -> None:
        while True:
            self.run_due()
            with self._changed:
                if not self._entries:
                    self._is_running = False
                    return
                next_due = min(entry.due for entry in self._entries.values())
                self._changed.wait(max(next_due - self._clock.now(), 0) / 1000)
