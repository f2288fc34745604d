"""Windows computed as ranges of sorted rows equal the windows that assigners return for each record."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.runtime.windows.sorted_ranges import window_ranges
from millstream.windows.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from millstream.windows.sessions import EventTimeSessionWindows

ASSIGNERS = [
    TumblingEventTimeWindows(7, 0),
    TumblingEventTimeWindows(7, 3),
    SlidingEventTimeWindows(10, 4, 1),
    SlidingEventTimeWindows(4, 10, 0),
    EventTimeSessionWindows(3),
]


def one_by_one(assigner, times: list[int]) -> list[tuple[int, int, tuple[int, ...]]]:
    """(start, end, rows) of the windows of one key's sorted times, by end."""
    windows: list[tuple[int, int, list[int]]] = []
    for row, time in enumerate(times):
        for made in assigner.assign_windows(None, time, None):
            last = windows[-1] if windows else None
            if isinstance(assigner, EventTimeSessionWindows) and last is not None and made.start <= last[1]:
                windows[-1] = (last[0], made.end, [*last[2], row])
            else:
                same = [rows for start, _, rows in windows if start == made.start]
                if same and not isinstance(assigner, EventTimeSessionWindows):
                    same[0].append(row)
                else:
                    windows.append((made.start, made.end, [row]))
    return sorted((start, end, tuple(rows)) for start, end, rows in windows)


@pytest.mark.parametrize("assigner", ASSIGNERS, ids=str)
@given(st.lists(st.lists(st.integers(-30, 30), min_size=1, max_size=12), min_size=1, max_size=4))
def test_ranges_are_windows(assigner, keys: list[list[int]]) -> None:
    keys = [sorted(times) for times in keys]
    times = np.array([time for key in keys for time in key], dtype=np.int64)
    begins = np.cumsum([0, *map(len, keys)])[:-1]
    found = window_ranges(assigner, times, begins)
    expected = [
        (start, end, tuple(int(begin) + row for row in rows))
        for begin, key in zip(begins, keys, strict=True)
        for start, end, rows in one_by_one(assigner, key)
    ]
    columns = (found.opens.tolist(), found.closes.tolist(), found.starts.tolist(), found.stops.tolist())
    assert [(a, b, tuple(range(c, d))) for a, b, c, d in zip(*columns, strict=True)] == expected
