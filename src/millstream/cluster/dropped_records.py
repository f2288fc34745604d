"""Samples of the records that operators of one job dropped: late ones, and those that could not be decoded.

Promises: the newest samples of each operator are kept, and their number is bounded; the values are left out if an
option says so. The methods may be called from any thread.
Does not know: why records are dropped."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from millstream.times import Clock

_KEPT = 50  # samples of each operator
_MOST_OPERATORS = 200
HIDDEN = "(hidden)"


@dataclass(frozen=True, slots=True)
class DroppedRecord:
    """A record that was dropped, as text. `time` is when the epoch was accepted, in milliseconds since 1970."""

    time: int
    reason: str
    key: str | None
    value: str


class DroppedRecords:
    """The samples of one job, by operator id. With `redacted`, keys and values are hidden."""

    def __init__(self, clock: Clock, *, redacted: bool) -> None:
        self._clock, self._redacted = clock, redacted
        self._lock = threading.Lock()
        self._samples: dict[str, deque[DroppedRecord]] = {}

    def add(self, samples: Mapping[str, Sequence[tuple[str, str | None, str]]]) -> None:
        """Add what an epoch reported: (reason, key, value) by operator id."""
        now = self._clock.now()
        with self._lock:
            for operator, records in samples.items():
                if operator not in self._samples and len(self._samples) >= _MOST_OPERATORS:
                    continue
                kept = self._samples.setdefault(operator, deque(maxlen=_KEPT))
                for reason, key, value in records:
                    shown = None if key is None else HIDDEN if self._redacted else key
                    kept.append(DroppedRecord(now, reason, shown, HIDDEN if self._redacted else value))

    def of(self, operator: str) -> list[DroppedRecord]:
        """Return the samples of an operator, newest first."""
        with self._lock:
            return list(self._samples.get(operator, ()))[::-1]
