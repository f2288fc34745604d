"""How many rows came too late for all of their windows.

Promises: a row counts once, and only when the last of its windows was over already, as in Flink; a row that is still
in time for one of them was not dropped.
Does not know: how windows are aggregated. Rows come once for each of their windows, all of a row in one batch."""

from __future__ import annotations

import numpy as np

from millstream.sql.logical import WindowSpec


def rows_dropped(ends: np.ndarray, late: np.ndarray, window: WindowSpec) -> int:
    """The rows that are dropped, of the windows' ends of rows (in milliseconds) and which of those are late."""
    if window.kind == "CUMULATE":
        return int(np.count_nonzero(late & (np.mod(ends - window.offset, window.size) == 0)))
    if window.kind != "HOP" or window.slide in (0, window.size):
        return int(np.count_nonzero(late))
    return _hopping(ends, late, window)


def _hopping(ends: np.ndarray, late: np.ndarray, window: WindowSpec) -> int:
    """Rows by their last window: of the rows at an end, those are not in their last that are at the next end too."""
    found, counts = np.unique(ends, return_counts=True)
    at = dict(zip(found.tolist(), counts.tolist(), strict=True))
    gone = set(np.unique(ends[late]).tolist())
    lasts: dict[int, int] = {}
    for end in sorted(at, reverse=True):
        following = end + window.slide
        starting_there = lasts.get(end + window.size, 0)  # they are at the next end, but not at this one
        lasts[end] = at[end] - (at.get(following, 0) - starting_there)
    return sum(count for end, count in lasts.items() if end in gone)
