"""Windows of records that are sorted by key and time: each is a range of rows.

Promises: the windows of the assigner with the default event-time trigger, if all records of a key arrive before the
watermark; the windows of each key are in the order in which they end.
Does not know: records, functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from millstream.windows.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from millstream.windows.sessions import EventTimeSessionWindows


@dataclass(frozen=True)
class Ranges:
    """Window i has the rows from `starts[i]` to before `stops[i]`, and the time from `opens[i]` to `closes[i]`."""

    starts: np.ndarray
    stops: np.ndarray
    opens: np.ndarray
    closes: np.ndarray


def has_ranges(assigner: object) -> bool:
    """Whether the windows of this assigner are ranges."""
    return type(assigner) in (EventTimeSessionWindows, TumblingEventTimeWindows, SlidingEventTimeWindows)


def window_ranges(assigner: object, times: np.ndarray, keys: np.ndarray) -> Ranges:
    """Return the windows of rows with these times; each key begins at one of the rows `keys`."""
    match assigner:
        case EventTimeSessionWindows(session_gap=gap):
            return _sessions(times, keys, gap)
        case TumblingEventTimeWindows(size=size, offset=offset):
            return _fixed_windows(times, keys, size, size, offset)
        case SlidingEventTimeWindows(size=size, slide=slide, offset=offset):
            return _fixed_windows(times, keys, size, slide, offset)
    raise AssertionError(assigner)


def _sessions(times: np.ndarray, keys: np.ndarray, gap: int) -> Ranges:
    begins = np.zeros(len(times), dtype=bool)
    begins[1:] = times[1:] - times[:-1] > gap
    begins[keys] = True
    starts = np.flatnonzero(begins)
    stops = np.append(starts[1:], len(times))
    return Ranges(starts, stops, times[starts], times[stops - 1] + gap)


def _fixed_windows(times: np.ndarray, keys: np.ndarray, size: int, slide: int, offset: int) -> Ranges:
    """Return the ranges of tumbling or sliding windows. A window that starts `step` slides before the last window of a
    record contains the record if it ends after it."""
    owner = np.zeros(len(times), dtype=np.int64)
    owner[keys] = 1
    owner = np.cumsum(owner)
    last = times - np.mod(times - offset, slide)
    parts = []
    for step in range(-(-size // slide)):
        opens = last - step * slide
        rows = np.flatnonzero(opens + size > times)
        if len(rows):
            parts.append(_runs(rows, owner[rows], opens[rows]))
    if not parts:
        empty = np.empty(0, dtype=np.int64)
        return Ranges(empty, empty, empty, empty)
    owners, opens, starts, stops = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((opens, owners))
    owners, opens, starts, stops = owners[order], opens[order], starts[order], stops[order]
    run_starts = np.flatnonzero(np.append(True, (owners[1:] != owners[:-1]) | (opens[1:] != opens[:-1])))
    return Ranges(
        np.minimum.reduceat(starts, run_starts),
        np.maximum.reduceat(stops, run_starts),
        opens[run_starts],
        opens[run_starts] + size,
    )


def _runs(rows: np.ndarray, owners: np.ndarray, opens: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return runs of consecutive rows of the same key and window, as (key, window, first row, end row)."""
    run_starts = np.flatnonzero(np.append(True, (owners[1:] != owners[:-1]) | (opens[1:] != opens[:-1])))
    ends = np.append(run_starts[1:], len(rows)) - 1
    return owners[run_starts], opens[run_starts], rows[run_starts], rows[ends] + 1
