"""Windows of records that are sorted by key and time: each is a range of rows.

Promises: the windows that an assigner and event time's own trigger give when all records of a key are there before time
passes; of each key in the order in which they end.
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
    """Whether windows of this kind are ranges."""
    return type(assigner) in (EventTimeSessionWindows, TumblingEventTimeWindows, SlidingEventTimeWindows)


def window_ranges(assigner: object, times: np.ndarray, keys: np.ndarray) -> Ranges:
    """The windows of rows with these times, whose keys begin at the rows `keys`."""
    match assigner:
        case EventTimeSessionWindows(session_gap=gap):
            return _sessions(times, keys, gap)
        case TumblingEventTimeWindows(size=size, offset=offset):
            return _fixed(times, keys, size, size, offset)
        case SlidingEventTimeWindows(size=size, slide=slide, offset=offset):
            return _fixed(times, keys, size, slide, offset)
    raise AssertionError(assigner)


def _sessions(times: np.ndarray, keys: np.ndarray, gap: int) -> Ranges:
    begins = np.zeros(len(times), dtype=bool)
    begins[1:] = times[1:] - times[:-1] > gap
    begins[keys] = True
    starts = np.flatnonzero(begins)
    stops = np.append(starts[1:], len(times))
    return Ranges(starts, stops, times[starts], times[stops - 1] + gap)


def _fixed(times: np.ndarray, keys: np.ndarray, size: int, slide: int, offset: int) -> Ranges:
    """A window that starts `step` slides before the last one a record is in has the record if it has not ended."""
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
        nothing = np.empty(0, dtype=np.int64)
        return Ranges(nothing, nothing, nothing, nothing)
    owners, opens, starts, stops = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((opens, owners))
    owners, opens, starts, stops = owners[order], opens[order], starts[order], stops[order]
    fresh = np.flatnonzero(np.append(True, (owners[1:] != owners[:-1]) | (opens[1:] != opens[:-1])))
    return Ranges(
        np.minimum.reduceat(starts, fresh), np.maximum.reduceat(stops, fresh), opens[fresh], opens[fresh] + size
    )


def _runs(rows: np.ndarray, owners: np.ndarray, opens: np.ndarray) -> tuple[np.ndarray, ...]:
    """Rows of the same key and window, which follow each other, as (key, window, first row, behind the last)."""
    fresh = np.flatnonzero(np.append(True, (owners[1:] != owners[:-1]) | (opens[1:] != opens[:-1])))
    ends = np.append(fresh[1:], len(rows)) - 1
    return owners[fresh], opens[fresh], rows[fresh], rows[ends] + 1
