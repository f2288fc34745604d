"""Counts of rows that are dropped because they are late.

Promises: a row counts once, and only if its last window has fired already, as in Flink. A row whose last window is
still open is not counted.
Does not know: how windows are aggregated. A row occurs once for each of its windows, all of them in one batch."""

from __future__ import annotations

import numpy as np

from millstream.sql.logical.nodes import WindowSpec


def count_dropped_rows(ends: np.ndarray, late: np.ndarray, window: WindowSpec, rows: np.ndarray | None = None) -> int:
    """Count the dropped rows, given the window ends of rows (in milliseconds) and which of these are late.

    If an entry represents several rows, `rows` is their number."""
    rows = np.ones(len(ends), dtype=np.int64) if rows is None else rows
    if window.kind == "CUMULATE":
        return int(rows[late & (np.mod(ends - window.offset, window.size) == 0)].sum())
    if window.kind != "HOP" or window.slide in (0, window.size):
        return int(rows[late].sum())
    return _count_dropped_hopping_rows(ends, late, window, rows)


def _count_dropped_hopping_rows(ends: np.ndarray, late: np.ndarray, window: WindowSpec, rows: np.ndarray) -> int:
    """Count rows by their last window: rows that are also in the next window are not in their last one."""
    distinct_ends, end_indexes = np.unique(ends, return_inverse=True)
    counts = np.zeros(len(distinct_ends), dtype=np.int64)
    np.add.at(counts, end_indexes, rows)
    rows_by_end = dict(zip(distinct_ends.tolist(), counts.tolist(), strict=True))
    late_ends = set(np.unique(ends[late]).tolist())
    last_counts: dict[int, int] = {}
    for end in sorted(rows_by_end, reverse=True):
        following = end + window.slide
        first_in_next = last_counts.get(end + window.size, 0)  # these are in the next window, but not in this one
        last_counts[end] = rows_by_end[end] - (rows_by_end.get(following, 0) - first_in_next)
    return sum(count for end, count in last_counts.items() if end in late_ends)
