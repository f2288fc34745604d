"""Event-time sessions that fire once, at their end: a fast path of the window operator.

A record begins in one window of its own. The end of that window is in the future, or the record is late. So no trigger
is called for each record, and timers of windows that are merged within a batch never reach the state.

Promises: the state, the results and their order are those of the general window operator, record by record.
Does not know: window functions, where late records go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.runtime.batch import NO_TIMESTAMP
from millstream.runtime.timers import EndTimers, Timers, WindowKey
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

_SINGLE_WINDOW = 4  # one window is stored as four numbers


def session_gap(assigner: WindowAssigner[Any, Any], trigger: Trigger[Any, Any], allowed_lateness: int) -> int | None:
    """Return the session gap if this fast path applies; else None."""
    fires_once = type(trigger) is EventTimeTrigger and allowed_lateness == 0
    return assigner.session_gap if type(assigner) is EventTimeSessionWindows and fires_once else None


class Sessions:
    """The sessions of all keys of a subtask."""

    def __init__(self, state: OperatorState, gap: int, contents: Contents, timers: Timers, on_late: Visit) -> None:
        self._gap, self._ends, self._on_late = gap, EndTimers(timers), on_late
        self._windows, self._changed = merging_table(state).by_key()
        self._contents, self._grown = contents.table.by_scoped_key()
        self._add, self._merge = contents.add, contents.merge

    def can_take(self, times: np.ndarray | None) -> bool:
        """Whether all records of a batch have timestamps, and their sessions end before the last watermark."""
        return times is not None and len(times) > 0 and self._is_bounded(int(times.min()), int(times.max()))

    def _is_bounded(self, first: int, last: int) -> bool:
        return first != NO_TIMESTAMP and last + self._gap < MAX_WATERMARK

    def begin(self) -> None:
        """Drop timers that a failed attempt may have left."""
        self._ends.forget()

    def flush_timers(self) -> None:
        """Write the timers of the sessions that exist after a batch to state."""
        self._ends.flush()

    def visitor(self, scope: Scope, watermark: int) -> Visit:
        """Return a function that adds a record with its timestamp to the sessions of the scope's key."""
        gap, first_open_end = self._gap, watermark + 1
        windows, changed, contents, grown = self._windows, self._changed, self._contents, self._grown
        add, set_timer, unset_timer, make = self._add, self._ends.set, self._ends.unset, tuple.__new__

        def visit(value: Any, time: int) -> None:
            key = scope.key
            end = time + gap
            stored = windows[key]
            if stored is ABSENT:
                if end <= first_open_end:
                    self._on_late(value, time)
                    return
                windows[key] = time, end, time, end
                changed.add(key)
                window_key = make(TimeWindow, (time, end)), key
                contents[window_key] = grown[window_key] = add(None, value)
                set_timer(window_key)
                return
            if stored.__class__ is tuple and len(stored) == _SINGLE_WINDOW:
                start, stop, first, last = stored
                if time <= stop and end >= start and stop > first_open_end:
                    if time < start or end > stop:
                        unset_timer((make(TimeWindow, (start, stop)), key))
                        start = start if start < time else time
                        stop = stop if stop > end else end
                        windows[key] = start, stop, first, last
                        changed.add(key)
                        set_timer((make(TimeWindow, (start, stop)), key))
                    window_key = make(TimeWindow, (first, last)), key
                    content = contents[window_key]
                    contents[window_key] = grown[window_key] = add(None if content is ABSENT else content, value)
                    return
            self._put(key, TimeWindow(time, end), value, first_open_end)

        return visit

    def _put(self, key: Any, window: TimeWindow, value: Any, first_open_end: int) -> None:
        """Add a record to a key with several windows: those that it touches are merged into the first of them."""
        mapping = mapping_of(self._windows[key])
        merged = [touched for touched in mapping if touched.intersects(window)]
        result = window
        for touched in merged:
            result = result.cover(touched)
        if result.end <= first_open_end:
            self._on_late(value, window.start)
            return
        if merged != [result]:
            states = [mapping.pop(touched) for touched in merged]
            mapping[result] = states[0] if states else window
            self._windows[key] = stored_form(mapping)
            self._changed.add(key)
            for touched in merged:
                self._ends.unset((touched, key))
            self._ends.set((result, key))
            for state in states[1:]:
                self._move((state, key), (states[0], key))
        window_key = mapping[result], key
        content = self._contents[window_key]
        self._contents[window_key] = self._grown[window_key] = self._add(None if content is ABSENT else content, value)

    def _move(self, source: WindowKey, target: WindowKey) -> None:
        """Merge the content of one window into that of another."""
        contents = self._contents
        moved = contents[source]
        if moved is not ABSENT:
            content = contents[target]
            contents[target] = self._grown[target] = moved if content is ABSENT else self._merge(content, moved)
            self._drop(source)

    def pop_ended(self, watermark: int) -> Iterator[tuple[Any, TimeWindow, Any]]:
        """Remove and yield the sessions that end by the watermark (key, window, content), in the order of timers."""
        windows, contents, make = self._windows, self._contents, tuple.__new__
        for time, window, key in self._ends.poll_due(watermark):
            stored = windows[key]
            if stored.__class__ is tuple and stored[:2] == window and len(stored) == _SINGLE_WINDOW:
                window_key, remaining = (make(TimeWindow, stored[2:]), key), ABSENT
            else:
                mapping = mapping_of(stored)
                window_key, remaining = (mapping.pop(window, None), key), stored_form(mapping)
            if window_key[0] is None or time != window.end - 1:
                continue
            windows[key] = remaining
            self._changed.add(key)
            content = contents[window_key]
            if content is not ABSENT:
                self._drop(window_key)
                yield key, window, content

    def _drop(self, window_key: WindowKey) -> None:
        """Remove the content of a window."""
        self._contents.drop(window_key)
        self._grown[window_key] = ABSENT
