"""Slices: the longest intervals of time such that every window consists of whole slices.

Promises: a row is in one slice, and each of its windows contains the whole slice; so rows can be aggregated by slice
first and by window then.
Does not know: what is aggregated, state.

A slice is identified by its end, in milliseconds. For TUMBLE it is the window, for HOP a slide, for CUMULATE a step."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.runtime.batch import NO_TIMESTAMP
from millstream.runtime.operator import OperatorContext
from millstream.runtime.rowwise import UserFunctionFailed
from millstream.sql.logical.nodes import WindowSpec
from millstream.sql.operators import timestamps


def can_slice(window: WindowSpec) -> bool:
    """Return whether windows consist of whole slices."""
    if window.kind == "TUMBLE":
        return True
    return window.kind in ("HOP", "CUMULATE") and window.slide > 0 and window.size % window.slide == 0


def compute_window_times(array: pa.Array, window: WindowSpec, context: OperatorContext) -> np.ndarray:
    """Return the time by which each row is assigned to windows."""
    if window.processing:
        return np.full(len(array), context.now, dtype=np.int64)
    return compute_row_times(array.field(window.time), context.name)


def compute_row_times(column: pa.Array, operator: str) -> np.ndarray:
    """Return the time of each row; NULL is an error."""
    times = timestamps.read_column_millis(column)
    if (times == NO_TIMESTAMP).any():
        message = "a row cannot be assigned to a window: its time attribute is NULL"
        raise UserFunctionFailed(operator, message, "")
    return times


def compute_slice_ends(times: np.ndarray, window: WindowSpec) -> np.ndarray:
    """Return the end of the slice of each row."""
    length = _compute_length(window)
    if len(times):  # often all rows are in one slice, which two comparisons find out
        first = int(times.min())
        first += length - (first - window.offset) % length
        if int(times.max()) < first:
            return np.full(len(times), first, dtype=np.int64)
    return times + (length - np.mod(times - window.offset, length))  # type: ignore[no-any-return]


def compute_window_ends(slices: np.ndarray, window: WindowSpec) -> np.ndarray:
    """Return the ends of all windows that contain some of the slices, in order."""
    if window.kind == "TUMBLE":
        return np.unique(slices)
    steps = np.arange(0, window.size, window.slide)
    ends = slices[:, None] + steps[None, :]
    return np.unique(ends[ends <= compute_last_ends(slices, window)[:, None]])


def compute_last_ends(slices: np.ndarray, window: WindowSpec) -> np.ndarray:
    """Return the end of the last window that contains each slice."""
    match window.kind:
        case "TUMBLE":
            return slices
        case "HOP":
            return slices + (window.size - window.slide)
    return slices + np.mod(window.offset - slices, window.size)  # type: ignore[no-any-return]


def compute_start(end: int, window: WindowSpec) -> int:
    """Return the start of a window."""
    if window.kind == "CUMULATE":
        return end - 1 - (end - 1 - window.offset) % window.size
    return end - window.size


def _compute_length(window: WindowSpec) -> int:
    return window.size if window.kind == "TUMBLE" else window.slide
