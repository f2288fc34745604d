"""Records folded by key before an exchange of a batch job, as long as that pays.

Promises: of each key one record, which stands for all that came; of two with times the earlier is the first. Where
keys hardly repeat nothing is folded for a while.
Does not know: exchanges, sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.keys import KeySelection

_PAYS = 1.25  # records per key from which on folding costs less than it saves
_LOOK = 1 << 16  # keys after which it is asked whether it does
_REST = 1 << 22  # records that pass as they are before it is tried again


class Combining:
    """Folds batches in a dictionary. `most` keys are held before they are handed on."""

    def __init__(self, operator: str, key: KeySelection, fold: Callable[[Any, Any], Any], most: int) -> None:
        self._operator, self._key, self._fold, self._most = operator, key, fold, most
        self._held: dict[Any, Any] = {}
        self._kind: Any = None
        self._timed = False
        self._rows = 0
        self._resting = 0

    def add(self, batch: Batch) -> list[Batch]:
        """Take records in; what is to be sent now."""
        ready: list[Batch] = []
        if self._resting > 0:
            self._resting -= len(batch)
            return [batch]
        timed = batch.timestamps is not None
        if self._held and timed != self._timed:
            ready = self.flush()
        self._kind, self._timed = batch.kind, timed
        keys = self._key.keys(batch, self._operator)
        if timed:
            rowwise.combine_timed(self._operator, self._fold, self._held, keys, batch.rows(), batch.times())
        else:
            rowwise.combine(self._operator, self._fold, self._held, keys, batch.rows())
        self._rows += len(batch)
        held = len(self._held)
        if held >= self._most or (held >= _LOOK and self._rows < _PAYS * held):
            ready += self.flush()
        return ready

    def flush(self) -> list[Batch]:
        """Hand on what is held."""
        if not self._held:
            return []
        if len(self._held) >= _LOOK and self._rows < _PAYS * len(self._held):
            self._resting = _REST
        held, self._held, self._rows = self._held, {}, 0
        values, times = list(held.values()), None
        if self._timed:
            rows, stamps = map(list, zip(*values, strict=True))
            values, times = rows, np.array(stamps, dtype=np.int64)
        values = rowwise.conform(self._operator, self._kind, values)
        return [Batch(self._kind, rows=values, timestamps=times, keys=list(held))]
