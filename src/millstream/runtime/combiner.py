"""Combiner of a batch job: reduces the records of a key before an exchange, where that makes the exchange smaller.

Promises: one record for each key, the reduction of all records that arrived; of two records with timestamps the earlier
is the first argument. Where keys hardly repeat, records pass unchanged for a while. Memory is bounded.
Does not know: exchanges, sorting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.keys import KeySelection
from millstream.runtime.resident_memory import resident_memory

_MIN_RECORDS_PER_KEY = 1.25  # below this, reducing costs more than it saves
_CHECK_EVERY = 1 << 16  # keys after which records per key and memory are checked
_PAUSE = 1 << 22  # records that pass unchanged before reducing is tried again


class Combiner:
    """Reduces batches in a dictionary, and returns the results in batches of `batch_size` keys.

    At least `batch_size` keys are kept, and more as long as they take less than `memory_limit` bytes."""

    def __init__(
        self,
        operator: str,
        key: KeySelection,
        reduce: Callable[[Any, Any], Any],
        batch_size: int,
        memory_limit: int = 0,
    ) -> None:
        self._operator, self._key, self._reduce = operator, key, reduce
        self._batch_size, self._memory_limit = batch_size, memory_limit
        self._memory_before = resident_memory()
        self._key_limit = batch_size
        self._reduced: dict[Any, Any] = {}
        self._record_type: Any = None
        self._timed = False
        self._rows = 0
        self._records_to_pass = 0

    def add(self, batch: Batch) -> Iterator[Batch]:
        """Reduce the records of a batch; yields the batches to send now."""
        if self._records_to_pass > 0:
            self._records_to_pass -= len(batch)
            yield batch
            return
        timed = batch.timestamps is not None
        if self._reduced and timed != self._timed:
            yield from self.flush()
        self._record_type, self._timed = batch.record_type, timed
        keys = self._key.keys(batch, self._operator)
        if timed:
            rowwise.combine_timed(self._operator, self._reduce, self._reduced, keys, batch.rows(), batch.times())
        else:
            rowwise.combine(self._operator, self._reduce, self._reduced, keys, batch.rows())
        self._rows += len(batch)
        key_count = len(self._reduced)
        if key_count >= self._key_limit and self._has_room():
            self._key_limit = key_count + _CHECK_EVERY
        if key_count >= self._key_limit or (
            key_count >= _CHECK_EVERY and self._rows < _MIN_RECORDS_PER_KEY * key_count
        ):
            yield from self.flush()

    def _has_room(self) -> bool:
        now = resident_memory()
        before = self._memory_before
        return now is not None and before is not None and now - before < self._memory_limit

    def flush(self) -> Iterator[Batch]:
        """Yield the reduced records of all keys."""
        reduced, self._reduced, self._key_limit = self._reduced, {}, self._batch_size
        if len(reduced) >= _CHECK_EVERY and self._rows < _MIN_RECORDS_PER_KEY * len(reduced):
            self._records_to_pass = _PAUSE
        self._rows = 0
        keys, values = list(reduced), list(reduced.values())
        del reduced
        for start in range(0, len(keys), self._batch_size):
            part = slice(start, start + self._batch_size)
            yield self._batch(keys[part], values[part])

    def _batch(self, keys: list[Any], values: list[Any]) -> Batch:
        times = None
        if self._timed:
            rows, stamps = map(list, zip(*values, strict=True))
            values, times = rows, np.array(stamps, dtype=np.int64)
        values = rowwise.conform(self._operator, self._record_type, values)
        return Batch(self._record_type, rows=values, timestamps=times, keys=keys)
