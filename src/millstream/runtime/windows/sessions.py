"""Sessions by event time that fire once, at their end: what the general protocol of windows comes to for them.

A record is in one window of its own; only its end matters, and it is still to come, or the record is late. So for each
record there is nothing to ask a trigger, and of the timers of windows that are merged away within a batch none is seen.

Promises: the state, the results and their order are those of the general window operator, record by record.
Does not know: window functions, where late records go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.runtime.batch import NO_TIMESTAMP
from millstream.runtime.timers import EndTimers, Place, Timers
from millstream.runtime.windows.contents import Contents
from millstream.runtime.windows.merging import mapping_of, merging_table, stored_form
from millstream.state.backend import OperatorState
from millstream.state.store import ABSENT
from millstream.state.views import Scope
from millstream.windows.assigners import WindowAssigner
from millstream.windows.sessions import EventTimeSessionWindows
from millstream.windows.triggers import EventTimeTrigger, Trigger
from millstream.windows.window import TimeWindow

Visit = Callable[[Any, int], None]

_ONE = 4  # numbers that one window is stored as


def session_gap(assigner: WindowAssigner[Any, Any], trigger: Trigger[Any, Any], allowed_lateness: int) -> int | None:
    """The gap of windows that are sessions of this kind; None for others."""
    once = type(trigger) is EventTimeTrigger and allowed_lateness == 0
    return assigner.session_gap if type(assigner) is EventTimeSessionWindows and once else None


class Sessions:
    """The sessions of all keys of a subtask."""

    def __init__(self, state: OperatorState, gap: int, contents: Contents, timers: Timers, late: Visit) -> None:
        self._gap, self._ends, self._late = gap, EndTimers(timers), late
        self._windows, self._changed = merging_table(state).by_key()
        self._contents, self._grown = contents.table.by_scoped_key()
        self._add, self._merge = contents.add, contents.merge

    def can_take(self, times: np.ndarray | None) -> bool:
        """Whether all records of a batch have times, and sessions that end before time does."""
        return times is not None and len(times) > 0 and self._bounded(int(times.min()), int(times.max()))

    def _bounded(self, first: int, last: int) -> bool:
        return first != NO_TIMESTAMP and last + self._gap < MAX_WATERMARK

    def begin(self) -> None:
        """Forget what an attempt that failed may have left."""
        self._ends.forget()

    def settle(self) -> None:
        """A batch is over: the sessions that are left wait for their ends."""
        self._ends.settle()

    def visitor(self, scope: Scope, watermark: int) -> Visit:
        """Puts a record with its time into the sessions of the scope's key."""
        gap, over = self._gap, watermark + 1
        windows, changed, contents, grown = self._windows, self._changed, self._contents, self._grown
        add, wait, stop_waiting, make = self._add, self._ends.set, self._ends.unset, tuple.__new__

        def visit(value: Any, time: int) -> None:
            key = scope.key
            end = time + gap
            known = windows[key]
            if known is ABSENT:
                if end <= over:
                    self._late(value, time)
                    return
                windows[key] = time, end, time, end
                changed.add(key)
                place = make(TimeWindow, (time, end)), key
                contents[place] = grown[place] = add(None, value)
                wait(place)
                return
            if known.__class__ is tuple and len(known) == _ONE:
                start, stop, first, last = known
                if time <= stop and end >= start and stop > over:
                    if time < start or end > stop:
                        stop_waiting((make(TimeWindow, (start, stop)), key))
                        start = start if start < time else time
                        stop = stop if stop > end else end
                        windows[key] = start, stop, first, last
                        changed.add(key)
                        wait((make(TimeWindow, (start, stop)), key))
                    place = make(TimeWindow, (first, last)), key
                    content = contents[place]
                    contents[place] = grown[place] = add(None if content is ABSENT else content, value)
                    return
            self._put(key, TimeWindow(time, end), value, over)

        return visit

    def _put(self, key: Any, window: TimeWindow, value: Any, over: int) -> None:
        """Any number of windows: those that this one touches become one, in the place of the first of them."""
        mapping = mapping_of(self._windows[key])
        merged = [each for each in mapping if each.intersects(window)]
        result = window
        for each in merged:
            result = result.cover(each)
        if result.end <= over:
            self._late(value, window.start)
            return
        if merged != [result]:
            states = [mapping.pop(each) for each in merged]
            mapping[result] = states[0] if states else window
            self._windows[key] = stored_form(mapping)
            self._changed.add(key)
            for each in merged:
                self._ends.unset((each, key))
            self._ends.set((result, key))
            for state in states[1:]:
                self._move((state, key), (states[0], key))
        place = mapping[result], key
        content = self._contents[place]
        self._contents[place] = self._grown[place] = self._add(None if content is ABSENT else content, value)

    def _move(self, source: Place, target: Place) -> None:
        """Merge the content of one window into that of another."""
        contents = self._contents
        moved = contents[source]
        if moved is not ABSENT:
            content = contents[target]
            contents[target] = self._grown[target] = moved if content is ABSENT else self._merge(content, moved)
            self._drop(source)

    def over(self, watermark: int) -> Iterator[tuple[Any, TimeWindow, Any]]:
        """The keys, windows and contents of the sessions that are over, in the order of their timers."""
        windows, contents, make = self._windows, self._contents, tuple.__new__
        for time, window, key in self._ends.take(watermark):
            known = windows[key]
            if known.__class__ is tuple and known[:2] == window and len(known) == _ONE:
                place, left = (make(TimeWindow, known[2:]), key), ABSENT
            else:
                mapping = mapping_of(known)
                place, left = (mapping.pop(window, None), key), stored_form(mapping)
            if place[0] is None or time != window.end - 1:
                continue
            windows[key] = left
            self._changed.add(key)
            content = contents[place]
            if content is not ABSENT:
                self._drop(place)
                yield key, window, content

    def _drop(self, place: Place) -> None:
        """The content has gone elsewhere."""
        self._contents.drop(place)
        self._grown[place] = ABSENT
