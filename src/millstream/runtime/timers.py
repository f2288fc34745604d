"""Timers of one operator: per key and namespace, in event or processing time.

Promises: a timer fires once, in time order, equal times in an order that depends on the keys and namespaces alone, and
is part of the state; registering twice is registering once.
Does not know: windows, triggers, or who registered the timer."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from operator import eq, itemgetter
from typing import Any

from millstream.runtime.timer_queue import Timer, TimerQueue
from millstream.state.backend import OperatorState
from millstream.state.key_groups import stable_hash
from millstream.state.store import ABSENT
from millstream.types.factory import Types
from millstream.windows.window import CountWindow, TimeWindow

WindowKey = tuple[TimeWindow, Any]  # window and key

_TIME = itemgetter(0)


class Timers:
    """The timers of one time domain. The table holds each key's times; the queue is an index that is checked on use."""

    def __init__(self, state: OperatorState, domain: str) -> None:
        self.table = state.table(f"timers/{domain}", Types.LIST(Types.LONG()), in_memory=True)
        self.queue = TimerQueue()
        self._arrived = 0
        self.table.set_listener(self._index)

    def _index(self, namespace: Any, key: Any, times: list[int]) -> None:
        for time in times:
            self.queue.add((time, namespace, key))

    def register(self, namespace: Any, key: Any, time: int) -> None:
        """Register a timer; a second registration has no effect."""
        times = self.table.get(namespace, key)
        if times is ABSENT:
            self.table.put(namespace, key, [time])
        elif time in times:
            return
        else:
            self.table.put(namespace, key, [*times, time])
        self.queue.add((time, namespace, key))

    def delete(self, namespace: Any, key: Any, time: int) -> None:
        """Delete a timer, if it is registered."""
        times = self.table.get(namespace, key)
        if times is not ABSENT and time in times:
            remaining = [registered for registered in times if registered != time]
            self.table.put(namespace, key, remaining or ABSENT)

    def due(self, until: int) -> Iterator[Timer]:
        """Yield the timers that are due at `until`, also those registered meanwhile; must be read to its end."""
        waiting = _firing_order(filter(self._is_live, self.queue.poll_due(until)))
        waiting.reverse()
        arrived: list[tuple[Any, ...]] = []
        while True:
            for timer in self.queue.poll_due_since_last_call(until):
                self._arrived += 1
                heapq.heappush(arrived, (*_order_key(timer), self._arrived, timer))
            if arrived and (not waiting or arrived[0] < (*_order_key(waiting[-1]), 0)):
                timer = heapq.heappop(arrived)[-1]
            elif waiting:
                timer = waiting.pop()
            else:
                return
            if self._is_live(timer):
                time, namespace, key = timer
                self.delete(namespace, key, time)
                yield timer

    def next(self) -> int | None:
        """Return the time of the next timer."""
        return self.queue.earliest_time(self._is_live)

    def _is_live(self, timer: Timer) -> bool:
        time, namespace, key = timer
        times = self.table.get(namespace, key)
        return times is not ABSENT and time in times


class EndTimers:
    """The timers of windows that have one timer each, at their end. The operator registers no other timers, and none
    while these fire.

    Timers are part of the state from `flush` on: a timer that is deleted before leaves no trace."""

    def __init__(self, timers: Timers) -> None:
        self._queue = timers.queue
        self._live, self._dirty = timers.table.by_scoped_key()
        self._buffer: set[WindowKey] = set()
        self.set = self._buffer.add

    def unset(self, window_key: WindowKey) -> None:
        """Unset or delete the timer of a window."""
        if window_key in self._buffer:
            self._buffer.remove(window_key)
        else:
            self._live.pop(window_key, None)
            self._dirty[window_key] = ABSENT

    def flush(self) -> None:
        """Write the timers that were set to state."""
        live, dirty, add = self._live, self._dirty, self._queue.add
        for window_key in self._buffer:
            window, key = window_key
            end = window[1] - 1
            live[window_key] = dirty[window_key] = [end]
            add((end, window, key))
        self._buffer.clear()

    def forget(self) -> None:
        """Drop the timers that were set and not flushed."""
        self._buffer.clear()

    def poll_due(self, until: int) -> list[Timer]:
        """Remove and return the timers that are due at `until`."""
        live, dirty, due = self._live, self._dirty, []
        for timer in self._queue.poll_due(until):
            window_key = timer[1:]
            times = live[window_key]
            if times is ABSENT or timer[0] not in times:
                continue
            due.append(timer)
            if len(times) == 1:
                del live[window_key]
                dirty[window_key] = ABSENT
            else:  # another version of the program registered other timers
                live[window_key] = dirty[window_key] = [time for time in times if time != timer[0]]
        return _firing_order(due)


def _firing_order(timers: Iterable[Timer]) -> list[Timer]:
    """Return the timers in the order in which they fire."""
    ordered = sorted(timers, key=_TIME)
    times = list(map(_TIME, ordered))
    if any(map(eq, times, times[1:])):
        ordered.sort(key=_order_key)
    return ordered


def _order_key(timer: Timer) -> tuple[int, int, tuple[int, ...]]:
    time, namespace, key = timer
    return time, stable_hash(key), _order(namespace)


def _order(namespace: Any) -> tuple[int, ...]:
    """Return the sort key of a namespace: windows are sorted by start and end, the same before and after a restore;
    names by their characters."""
    if isinstance(namespace, TimeWindow):
        return namespace.start, namespace.end
    if isinstance(namespace, str):
        return tuple(namespace.encode())
    return (namespace.id,) if isinstance(namespace, CountWindow) else ()
