"""Timers of one operator: per key and namespace, in event or processing time.

Promises: a timer fires once, in time order, equal times in an order that depends on the keys and namespaces alone, and
is part of the state; registering twice is registering once.
Does not know: windows, triggers, or who registered the timer."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from operator import eq, itemgetter
from typing import Any

from millstream.runtime.agenda import Agenda, Entry
from millstream.state.backend import OperatorState
from millstream.state.key_groups import stable_hash
from millstream.state.store import ABSENT
from millstream.types.factory import Types
from millstream.windows.window import CountWindow, TimeWindow

Place = tuple[TimeWindow, Any]  # window and key

_TIME = itemgetter(0)


class Timers:
    """The timers of one time domain. The table holds each key's times; the agenda is an index that is checked on use.

    What fires is an `Entry`: (time, namespace, key)."""

    def __init__(self, state: OperatorState, domain: str) -> None:
        self.table = state.table(f"timers/{domain}", Types.LIST(Types.LONG()), in_memory=True)
        self.agenda = Agenda()
        self._arrived = 0
        self.table.set_listener(self._index)

    def _index(self, namespace: Any, key: Any, times: list[int]) -> None:
        for time in times:
            self.agenda.add((time, namespace, key))

    def register(self, namespace: Any, key: Any, time: int) -> None:
        """Ask to be called at `time`."""
        times = self.table.get(namespace, key)
        if times is ABSENT:
            self.table.put(namespace, key, [time])
        elif time in times:
            return
        else:
            self.table.put(namespace, key, [*times, time])
        self.agenda.add((time, namespace, key))

    def delete(self, namespace: Any, key: Any, time: int) -> None:
        """Take a request back."""
        times = self.table.get(namespace, key)
        if times is not ABSENT and time in times:
            left = [other for other in times if other != time]
            self.table.put(namespace, key, left or ABSENT)

    def due(self, until: int) -> Iterator[Entry]:
        """Fire what is due up to and with `until`, also what is registered meanwhile; to be read to its end."""
        waiting = _in_turn(filter(self._stands, self.agenda.take(until)))
        waiting.reverse()
        arrived: list[tuple[Any, ...]] = []
        while True:
            for entry in self.agenda.arrivals(until):
                self._arrived += 1
                heapq.heappush(arrived, (*_turn(entry), self._arrived, entry))
            if arrived and (not waiting or arrived[0] < (*_turn(waiting[-1]), 0)):
                entry = heapq.heappop(arrived)[-1]
            elif waiting:
                entry = waiting.pop()
            else:
                return
            if self._stands(entry):
                time, namespace, key = entry
                self.delete(namespace, key, time)
                yield entry

    def next(self) -> int | None:
        """The time of the next timer."""
        return self.agenda.next(self._stands)

    def _stands(self, entry: Entry) -> bool:
        time, namespace, key = entry
        times = self.table.get(namespace, key)
        return times is not ABSENT and time in times


class EndTimers:
    """The timers of windows that have one each, at their end: for who sets no others, and none while these fire.

    Those that are set are part of the state from `settle` on: what is taken back before leaves no trace."""

    def __init__(self, timers: Timers) -> None:
        self._agenda = timers.agenda
        self._live, self._dirty = timers.table.by_scoped_key()
        self._fresh: set[Place] = set()
        self.set = self._fresh.add

    def unset(self, place: Place) -> None:
        """Take a request back."""
        if place in self._fresh:
            self._fresh.remove(place)
        else:
            self._live.pop(place, None)
            self._dirty[place] = ABSENT

    def settle(self) -> None:
        """Keep what was set."""
        live, dirty, add = self._live, self._dirty, self._agenda.add
        for place in self._fresh:
            window, key = place
            end = window[1] - 1
            live[place] = dirty[place] = [end]
            add((end, window, key))
        self._fresh.clear()

    def forget(self) -> None:
        """Drop what was set and not kept."""
        self._fresh.clear()

    def take(self, until: int) -> list[Entry]:
        """Fire what is due up to and with `until`, all at once."""
        live, dirty, found = self._live, self._dirty, []
        for entry in self._agenda.take(until):
            place = entry[1:]
            times = live[place]
            if times is ABSENT or entry[0] not in times:
                continue
            found.append(entry)
            if len(times) == 1:
                del live[place]
                dirty[place] = ABSENT
            else:  # others were set before, by another program
                live[place] = dirty[place] = [time for time in times if time != entry[0]]
        return _in_turn(found)


def _in_turn(entries: Iterable[Entry]) -> list[Entry]:
    """The entries in the order in which they fire."""
    found = sorted(entries, key=_TIME)
    times = list(map(_TIME, found))
    if any(map(eq, times, times[1:])):
        found.sort(key=_turn)
    return found


def _turn(entry: Entry) -> tuple[int, int, tuple[int, ...]]:
    time, namespace, key = entry
    return time, stable_hash(key), _order(namespace)


def _order(namespace: Any) -> tuple[int, ...]:
    """Windows of one key by their start and end; the same before and after a restore."""
    if isinstance(namespace, TimeWindow):
        return namespace.start, namespace.end
    return (namespace.id,) if isinstance(namespace, CountWindow) else ()
