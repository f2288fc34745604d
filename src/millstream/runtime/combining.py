"""Records folded by key before an exchange of a batch job, as long as that pays.

Promises: of each key one record, which stands for all that came; of two with times the earlier is the first. Where
keys hardly repeat nothing is folded for a while. What is held does not outgrow its memory.
Does not know: exchanges, sorting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.keys import KeySelection
from millstream.runtime.resident import resident_bytes

_PAYS = 1.25  # records per key from which on folding costs less than it saves
_LOOK = 1 << 16  # keys after which it is asked whether it does, and whether there is room for more
_REST = 1 << 22  # records that pass as they are before it is tried again


class Combining:
    """Folds batches in a dictionary, and hands its keys on in batches of `most`.

    At least `most` keys are held, and more as long as they take less than `room` bytes."""

    def __init__(
        self, operator: str, key: KeySelection, fold: Callable[[Any, Any], Any], most: int, room: int = 0
    ) -> None:
        self._operator, self._key, self._fold, self._most, self._room = operator, key, fold, most, room
        self._before = resident_bytes()
        self._full = most
        self._held: dict[Any, Any] = {}
        self._kind: Any = None
        self._timed = False
        self._rows = 0
        self._resting = 0

    def add(self, batch: Batch) -> Iterator[Batch]:
        """Take records in; what is to be sent now."""
        if self._resting > 0:
            self._resting -= len(batch)
            yield batch
            return
        timed = batch.timestamps is not None
        if self._held and timed != self._timed:
            yield from self.flush()
        self._kind, self._timed = batch.kind, timed
        keys = self._key.keys(batch, self._operator)
        if timed:
            rowwise.combine_timed(self._operator, self._fold, self._held, keys, batch.rows(), batch.times())
        else:
            rowwise.combine(self._operator, self._fold, self._held, keys, batch.rows())
        self._rows += len(batch)
        held = len(self._held)
        if held >= self._full and self._has_room():
            self._full = held + _LOOK
        if held >= self._full or (held >= _LOOK and self._rows < _PAYS * held):
            yield from self.flush()

    def _has_room(self) -> bool:
        now = resident_bytes()
        return now is not None and self._before is not None and now - self._before < self._room

    def flush(self) -> Iterator[Batch]:
        """Hand on what is held."""
        held, self._held, self._full = self._held, {}, self._most
        if len(held) >= _LOOK and self._rows < _PAYS * len(held):
            self._resting = _REST
        self._rows = 0
        keys, values = list(held), list(held.values())
        del held
        for start in range(0, len(keys), self._most):
            part = slice(start, start + self._most)
            yield self._batch(keys[part], values[part])

    def _batch(self, keys: list[Any], values: list[Any]) -> Batch:
        times = None
        if self._timed:
            rows, stamps = map(list, zip(*values, strict=True))
            values, times = rows, np.array(stamps, dtype=np.int64)
        values = rowwise.conform(self._operator, self._kind, values)
        return Batch(self._kind, rows=values, timestamps=times, keys=keys)
