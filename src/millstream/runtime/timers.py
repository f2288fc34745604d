"""Timers of one operator: per key and namespace, in event or processing time.

Promises: a timer fires once, in time order, equal times in an order that depends on the keys and namespaces alone, and
is part of the state; registering twice is registering once.
Does not know: windows, triggers, or who registered the timer."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from millstream.model.types import Types
from millstream.model.windows import CountWindow, TimeWindow
from millstream.state.backend import OperatorState
from millstream.state.key_groups import stable_hash
from millstream.state.store import ABSENT


class Timers:
    """The timers of one time domain. The table holds each key's times; the heap is an index that is checked on use."""

    def __init__(self, state: OperatorState, domain: str) -> None:
        self._table = state.table(f"timers/{domain}", Types.LIST(Types.LONG()), in_memory=True)
        self._table.listener = self._index
        self._heap: list[tuple[int, int, tuple[int, ...], int, Any, Any]] = []
        self._pushed = 0

    def _index(self, namespace: Any, key: Any, times: list[int]) -> None:
        for time in times:
            self._push(time, namespace, key)

    def _push(self, time: int, namespace: Any, key: Any) -> None:
        self._pushed += 1
        heapq.heappush(self._heap, (time, stable_hash(key), _order(namespace), self._pushed, namespace, key))

    def register(self, namespace: Any, key: Any, time: int) -> None:
        """Ask to be called at `time`."""
        times = self._table.get(namespace, key)
        if times is ABSENT:
            self._table.put(namespace, key, [time])
        elif time in times:
            return
        else:
            self._table.put(namespace, key, [*times, time])
        self._push(time, namespace, key)

    def delete(self, namespace: Any, key: Any, time: int) -> None:
        """Take a request back."""
        times = self._table.get(namespace, key)
        if times is not ABSENT and time in times:
            left = [other for other in times if other != time]
            self._table.put(namespace, key, left or ABSENT)

    def due(self, until: int) -> Iterator[tuple[int, Any, Any]]:
        """Fire (time, namespace, key) up to and with `until`, also those registered meanwhile."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            time, *_, namespace, key = heapq.heappop(heap)
            if self._stands(time, namespace, key):
                self.delete(namespace, key, time)
                yield time, namespace, key

    def next(self) -> int | None:
        """The time of the next timer."""
        heap = self._heap
        while heap:
            time, *_, namespace, key = heap[0]
            if self._stands(time, namespace, key):
                return time
            heapq.heappop(heap)
        return None

    def _stands(self, time: int, namespace: Any, key: Any) -> bool:
        times = self._table.get(namespace, key)
        return times is not ABSENT and time in times


def _order(namespace: Any) -> tuple[int, ...]:
    """Windows of one key by their start and end; the same before and after a restore."""
    if isinstance(namespace, TimeWindow):
        return namespace.start, namespace.end
    return (namespace.id,) if isinstance(namespace, CountWindow) else ()
