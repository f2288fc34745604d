"""Rows of a running query: the last changes, or the table that results from them.

Promises: the number of rows in memory is limited; an updated row keeps its position; one thread may add rows while
another reads.
Does not know: queries, how rows are shown."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from millstream.types.row import Row, RowKind

_MAX_GAPS = 1000  # updates whose new row has not arrived yet; the oldest gap is closed first


class QueryRows(Protocol):
    """The rows of a query, which can be read page by page; `changes` counts the rows that were added."""

    changes: int

    def add(self, row: Row) -> None:
        """Add a row of the changelog."""

    def __len__(self) -> int: ...

    def page(self, start: int, count: int) -> Sequence[Row]:
        """Return some of the rows, in order."""


class Changelog:
    """The last rows of a changelog, in the order of arrival."""

    def __init__(self, max_rows: int) -> None:
        self.changes = 0
        self._rows: deque[Row] = deque(maxlen=max_rows)
        self._lock = threading.Lock()

    def add(self, row: Row) -> None:
        """Add a row of the changelog."""
        with self._lock:
            self._rows.append(row)
            self.changes += 1

    def __len__(self) -> int:
        return len(self._rows)

    def page(self, start: int, count: int) -> Sequence[Row]:
        """Return some of the rows, in order."""
        with self._lock:
            return list(islice(self._rows, start, start + count))


class LiveTable:
    """The current rows of a table that a changelog describes; equal rows can occur several times."""

    def __init__(self, max_rows: int) -> None:
        self.changes = 0
        self._max_rows = max_rows
        self._rows: OrderedDict[int, Row | None] = (
            OrderedDict()
        )  # None: the old row of an update whose new row has not arrived
        self._positions: dict[str, list[int]] = {}
        self._gaps: deque[int] = deque()
        self._next = 0
        self._count = 0
        self._lock = threading.Lock()

    def add(self, row: Row) -> None:
        """Add a row of the changelog."""
        with self._lock:
            self.changes += 1
            kind = row.get_row_kind()
            if kind in (RowKind.INSERT, RowKind.UPDATE_AFTER):
                self._put(row, self._gaps.popleft() if kind is RowKind.UPDATE_AFTER and self._gaps else None)
            else:
                self._remove(row, leave_gap=kind is RowKind.UPDATE_BEFORE)

    def _put(self, row: Row, position: int | None) -> None:
        if position is None:
            position, self._next = self._next, self._next + 1
        self._rows[position] = row
        self._positions.setdefault(_compute_key(row), []).append(position)
        self._count += 1
        while self._count > self._max_rows:
            oldest, removed = self._rows.popitem(last=False)
            if removed is None:
                self._gaps.remove(oldest)
            else:
                self._remove_position(removed, oldest)

    def _remove(self, row: Row, *, leave_gap: bool) -> None:
        positions = self._positions.get(_compute_key(row))
        if not positions:
            return  # it was removed before, because there were too many rows
        position = positions[-1]
        self._remove_position(row, position)
        if not leave_gap:
            del self._rows[position]
            return
        self._rows[position] = None
        self._gaps.append(position)
        if len(self._gaps) > _MAX_GAPS:
            del self._rows[self._gaps.popleft()]

    def _remove_position(self, row: Row, position: int) -> None:
        key = _compute_key(row)
        positions = self._positions[key]
        positions.remove(position)
        if not positions:
            del self._positions[key]
        self._count -= 1

    def __len__(self) -> int:
        return self._count

    def page(self, start: int, count: int) -> Sequence[Row]:
        """Return some of the rows, in order."""
        with self._lock:
            return list(islice((row for row in self._rows.values() if row is not None), start, start + count))


def _compute_key(row: Row) -> str:
    """Equal for equal rows, also if values are not hashable or NaN."""
    return repr(list(row))
