"""Samples of the keys that a subtask reads, to find those with many records.

Promises: at most one sample a second, of records at equal distances in the first blocks of an epoch; the records
between them cost nothing.
Does not know: other subtasks, or what share of a job a key has."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from millstream.runtime.batch import Batch
from millstream.runtime.keys import KeySelection
from millstream.runtime.value_text import to_text

_SAMPLED = 256  # keys in one sample
_REPORTED = 8  # of them, the most frequent ones
_INTERVAL = 1_000  # milliseconds


class KeySampler:
    """Samples the keys of one subtask; `operator` is the name of the operator that reads them."""

    def __init__(self, operator: str) -> None:
        self._operator = operator
        self._due = 0
        self._open = False
        self._keys: list[Any] = []

    def begin(self, now: int) -> None:
        """Begin an epoch with this processing time."""
        self._keys = []
        self._open = now >= self._due
        if self._open:
            self._due = now + _INTERVAL

    def add(self, batch: Batch, selection: KeySelection) -> None:
        """Sample the keys of a batch, unless the sample of this epoch is complete."""
        wanted = min(_SAMPLED - len(self._keys), len(batch))
        if not self._open or not wanted:
            return
        rows = np.arange(wanted) * len(batch) // wanted
        self._keys += selection.keys(batch.take(rows), self._operator)

    def take(self) -> tuple[int, list[tuple[str, int]]] | None:
        """Return the number of sampled keys, and those that are in the sample repeatedly with their numbers, the most
        frequent one first; None without a sample."""
        keys, self._keys = self._keys, []
        if not keys:
            return None
        frequent = [(to_text(key), count) for key, count in Counter(keys).most_common(_REPORTED) if count > 1]
        return len(keys), frequent
