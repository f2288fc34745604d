"""Merging windows: the state window of each in-flight window of a key.

Promises: after `add`, the windows of a key do not overlap; merged windows keep the state of one of them, so only the
others' state moves.
Does not know: triggers, contents; the callback notifies the operator of merges."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain
from typing import Any

from millstream.state.backend import OperatorState
from millstream.state.store import ABSENT
from millstream.state.table import StateTable
from millstream.types.factory import Types
from millstream.windows.assigners import MergingWindowAssigner
from millstream.windows.window import MergeCallback, TimeWindow

OnMerge = Callable[[Any, Collection[Any], Any, Collection[Any]], None]


def merging_table(state: OperatorState) -> StateTable:
    """Return the state table of the in-flight windows of each key."""
    return state.table("windows/merging", Types.PICKLED_BYTE_ARRAY())


def stored_form(mapping: Mapping[Any, Any]) -> Any:
    """Return the stored form of a mapping from windows to state windows, in order of arrival: for time windows, the
    four bounds of each pair as numbers.

    Numbers take little memory and are written quickly; there is one mapping for each key."""
    if not mapping:
        return ABSENT
    windows = list(chain.from_iterable(mapping.items()))
    if all(type(window) is TimeWindow for window in windows):
        return tuple(chain.from_iterable(windows))
    return list(mapping.items())


def mapping_of(stored: Any) -> dict[Any, Any]:
    """Return the inverse of `stored_form`."""
    if stored is ABSENT:
        return {}
    if not isinstance(stored, tuple):  # pairs; an earlier release wrote time windows in this form, too
        return dict(stored)
    windows = list(map(TimeWindow, stored[::2], stored[1::2]))
    return dict(zip(windows[::2], windows[1::2], strict=True))


class _Merges(MergeCallback[Any]):
    """Collects the merges that the assigner requests."""

    def __init__(self) -> None:
        self.requested: dict[Any, list[Any]] = {}

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        """Record a merge."""
        self.requested[merge_result] = list(to_be_merged)


class MergingWindows:
    """The mapping from windows to state windows of every key, in state."""

    def __init__(self, state: OperatorState, assigner: MergingWindowAssigner[Any, Any]) -> None:
        self._table = merging_table(state)
        self._assigner = assigner

    def _mapping(self, key: Any) -> dict[Any, Any]:
        return mapping_of(self._table.get(None, key))

    def _write(self, key: Any, mapping: dict[Any, Any]) -> None:
        self._table.put(None, key, stored_form(mapping))

    def state_window(self, key: Any, window: Any) -> Any:
        """Return the state window of an in-flight window; None if there is no such window."""
        return self._mapping(key).get(window)

    def retire(self, key: Any, window: Any) -> None:
        """Remove a window that has ended."""
        mapping = self._mapping(key)
        if mapping.pop(window, None) is not None:
            self._write(key, mapping)

    def add(self, key: Any, window: Any, on_merge: OnMerge) -> Any:
        """Add a window, merge overlapping windows, and return the result.

        `on_merge(result, merged windows, kept state window, other state windows)` is called before it returns."""
        mapping = self._mapping(key)
        merges = _Merges()
        self._assigner.merge_windows([*mapping, window], merges)
        result = window
        for merged_into, members in merges.requested.items():
            if window in members:
                result = merged_into
            merged = [
                window_before for window_before in mapping if window_before in members and window_before != window
            ]  # in the order of arrival
            if not merged or merged == [merged_into]:
                continue
            kept_state_window = mapping[merged[0]]
            other_state_windows = [
                state for merged_window in merged if (state := mapping.pop(merged_window)) != kept_state_window
            ]
            mapping[merged_into] = kept_state_window
            self._write(key, mapping)
            on_merge(merged_into, merged, kept_state_window, other_state_windows)
        if result == window and window not in mapping:
            mapping[window] = window
            self._write(key, mapping)
        return result
