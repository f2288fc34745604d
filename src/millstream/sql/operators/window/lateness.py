"""How many rows came too late for all of their windows.

Promises: a row counts once, and only when the last of its windows was over already, as in Flink; a row that is still
in time for one of them was not dropped.
Does not know: how windows are aggregated. Rows come once for each of their windows, all of a row in one batch."""

from __future__ import annotations

import numpy as np

from millstream.sql.logical.nodes import WindowSpec


def rows_dropped(ends: np.ndarray, late: np.ndarray, window: WindowSpec, rows: np.ndarray | None = None) -> int:
    """The rows that are dropped, of the windows' ends of rows (in milliseconds) and which of those are late. Where one
    stands for several, `rows` says for how many."""
    rows = np.ones(len(ends), dtype=np.int64) if rows is None else rows
    if window.kind == "CUMULATE":
        return int(rows[late & (np.mod(ends - window.offset, window.size) == 0)].sum())
    if window.kind != "HOP" or window.slide in (0, window.size):
        return int(rows[late].sum())
    return _hopping(ends, late, window, rows)


def _hopping(ends: np.ndarray, late: np.ndarray, window: WindowSpec, rows: np.ndarray) -> int:
    """Rows by their last window: of the rows at an end, those are not in their last that are at the next end too."""
    found, numbers = np.unique(ends, return_inverse=True)
    counts = np.zeros(len(found), dtype=np.int64)
    np.add.at(counts, numbers, rows)
    at = dict(zip(found.tolist(), counts.tolist(), strict=True))
    gone = set(np.unique(ends[late]).tolist())
    lasts: dict[int, int] = {}
    for end in sorted(at, reverse=True):
        following = end + window.slide
        starting_there = lasts.get(end + window.size, 0)  # they are at the next end, but not at this one
        lasts[end] = at[end] - (at.get(following, 0) - starting_there)
    return sum(count for end, count in lasts.items() if end in gone)
