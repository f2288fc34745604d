"""Rows of a running query, kept to be looked at: the changes themselves, or the table they make.

Promises: a bounded number of rows, whatever the query sends; an updated row stays in its place. One thread may add
while another reads.
Does not know: how rows are read or shown."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from millstream.types.row import Row, RowKind

_GAPS = 1000  # updates that are under way at once; an older gap closes


class Kept(Protocol):
    """Rows that can be looked at page by page."""

    changes: int

    def add(self, row: Row) -> None:
        """Take one change."""

    def __len__(self) -> int: ...

    def page(self, start: int, count: int) -> Sequence[Row]:
        """Some of the rows, in order."""


class Changes:
    """The last changes, in the order they came."""

    def __init__(self, most: int) -> None:
        self.changes = 0
        self._rows: deque[Row] = deque(maxlen=most)
        self._lock = threading.Lock()

    def add(self, row: Row) -> None:
        """Take one change."""
        with self._lock:
            self._rows.append(row)
            self.changes += 1

    def __len__(self) -> int:
        return len(self._rows)

    def page(self, start: int, count: int) -> Sequence[Row]:
        """Some of the changes."""
        with self._lock:
            return list(islice(self._rows, start, start + count))


class LiveTable:
    """The rows that the changes leave: equal ones may be there many times."""

    def __init__(self, most: int) -> None:
        self.changes = 0
        self._most = most
        self._rows: OrderedDict[int, Row | None] = OrderedDict()  # None: an update's old row has gone
        self._places: dict[str, list[int]] = {}
        self._gaps: deque[int] = deque()
        self._next = 0
        self._count = 0
        self._lock = threading.Lock()

    def add(self, row: Row) -> None:
        """Take one change."""
        with self._lock:
            self.changes += 1
            kind = row.get_row_kind()
            if kind in (RowKind.INSERT, RowKind.UPDATE_AFTER):
                self._put(row, self._gaps.popleft() if kind is RowKind.UPDATE_AFTER and self._gaps else None)
            else:
                self._take(row, leave_gap=kind is RowKind.UPDATE_BEFORE)

    def _put(self, row: Row, place: int | None) -> None:
        if place is None:
            place, self._next = self._next, self._next + 1
        self._rows[place] = row
        self._places.setdefault(_key(row), []).append(place)
        self._count += 1
        while self._count > self._most:
            oldest, gone = self._rows.popitem(last=False)
            if gone is None:
                self._gaps.remove(oldest)
            else:
                self._forget(gone, oldest)

    def _take(self, row: Row, *, leave_gap: bool) -> None:
        places = self._places.get(_key(row))
        if not places:
            return  # it was one too many, and went before
        place = places[-1]
        self._forget(row, place)
        if not leave_gap:
            del self._rows[place]
            return
        self._rows[place] = None
        self._gaps.append(place)
        if len(self._gaps) > _GAPS:
            del self._rows[self._gaps.popleft()]

    def _forget(self, row: Row, place: int) -> None:
        key = _key(row)
        places = self._places[key]
        places.remove(place)
        if not places:
            del self._places[key]
        self._count -= 1

    def __len__(self) -> int:
        return self._count

    def page(self, start: int, count: int) -> Sequence[Row]:
        """Some of the rows."""
        with self._lock:
            return list(islice((row for row in self._rows.values() if row is not None), start, start + count))


def _key(row: Row) -> str:
    """Equal for equal rows, of values that need not be hashable, and of NaN too."""
    return repr(list(row))
