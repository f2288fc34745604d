"""Wake-up times of keys: when the partial matches of a key must be checked next.

Promises: a key is returned once, at its time. The state table has the times; the heap is an index, checked on use.
Does not know: why a key must be checked."""

from __future__ import annotations

import heapq
from typing import Any

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.state.backend import OperatorState
from millstream.state.store import ABSENT
from millstream.types.factory import Types


class Wakeups:
    """One time for each key, stored in state."""

    def __init__(self, state: OperatorState) -> None:
        self._table = state.table("cep/wakeups", Types.LONG(), in_memory=True)
        self._times, self._dirty = self._table.by_key()
        self._heap: list[tuple[int, int, Any]] = []
        self._pushed = 0
        self._table.set_listener(lambda _, key, time: self._push(key, time))

    def _push(self, key: Any, time: int) -> None:
        self._pushed += 1
        heapq.heappush(self._heap, (time, self._pushed, key))

    def register(self, key: Any, time: int) -> None:
        """Wake a key at `time`, or earlier if that is registered."""
        time = min(time, MAX_WATERMARK)
        registered = self._times[key]
        if registered is ABSENT or time < registered:
            self._times[key] = time
            self._dirty.add(key)
            self._push(key, time)

    def due(self, until: int) -> list[Any]:
        """Remove and return the keys whose time is at or before `until`, in the order of their times."""
        heap, due = self._heap, []
        while heap and heap[0][0] <= until:
            time, _, key = heapq.heappop(heap)
            if self._times[key] == time:
                self._times[key] = ABSENT
                self._dirty.add(key)
                due.append(key)
        return due

    def next(self) -> int | None:
        """Return the time of the first wake-up."""
        heap = self._heap
        while heap and self._times[heap[0][2]] != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None
