"""Slices: the longest batches_by_input of time of which each window is made whole.

Promises: a row is in one slice, and every window of a row is made of its slice and others; so rows that are added up by
slice can be added up further by window.
Does not know: what is aggregated, state.

A slice is known by its end, in milliseconds: of TUMBLE it is the window, of HOP a slide, of CUMULATE a step."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.runtime.batch import NO_TIMESTAMP
from millstream.runtime.operator import OperatorContext
from millstream.runtime.rowwise import UserFunctionFailed
from millstream.sql.logical.nodes import WindowSpec
from millstream.sql.operators import moments


def can_slice(window: WindowSpec) -> bool:
    """Whether windows are made of whole slices."""
    if window.kind == "TUMBLE":
        return True
    return window.kind in ("HOP", "CUMULATE") and window.slide > 0 and window.size % window.slide == 0


def window_times(array: pa.Array, window: WindowSpec, context: OperatorContext) -> np.ndarray:
    """The time by which each row is put into windows."""
    if window.processing:
        return np.full(len(array), context.now, dtype=np.int64)
    return row_times(array.field(window.time), context.name)


def row_times(column: pa.Array, operator: str) -> np.ndarray:
    """The time of each row, which every row in a window must have."""
    times = moments.column_millis(column)
    if (times == NO_TIMESTAMP).any():
        message = "a row without a time cannot be put into a window: its time attribute is NULL"
        raise UserFunctionFailed(operator, message, "")
    return times


def slice_ends(times: np.ndarray, window: WindowSpec) -> np.ndarray:
    """The slice of each row."""
    length = _length(window)
    if len(times):  # few slices: a row that is in the first one, as most are, costs a comparison
        first = int(times.min())
        first += length - (first - window.offset) % length
        if int(times.max()) < first:
            return np.full(len(times), first, dtype=np.int64)
    return times + (length - np.mod(times - window.offset, length))  # type: ignore[no-any-return]


def window_ends(slices: np.ndarray, window: WindowSpec) -> np.ndarray:
    """The ends of all windows that some slices are in, in order."""
    if window.kind == "TUMBLE":
        return np.unique(slices)
    steps = np.arange(0, window.size, window.slide)
    ends = slices[:, None] + steps[None, :]
    return np.unique(ends[ends <= last_ends(slices, window)[:, None]])


def last_ends(slices: np.ndarray, window: WindowSpec) -> np.ndarray:
    """The end of the last window that each slice is in."""
    match window.kind:
        case "TUMBLE":
            return slices
        case "HOP":
            return slices + (window.size - window.slide)
    return slices + np.mod(window.offset - slices, window.size)  # type: ignore[no-any-return]


def start_of(end: int, window: WindowSpec) -> int:
    """Where a window begins."""
    if window.kind == "CUMULATE":
        return end - 1 - (end - 1 - window.offset) % window.size
    return end - window.size


def _length(window: WindowSpec) -> int:
    return window.size if window.kind == "TUMBLE" else window.slide
