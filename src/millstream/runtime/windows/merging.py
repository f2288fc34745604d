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
    """The in-flight windows of each key."""
    return state.table("windows/merging", Types.PICKLED_BYTE_ARRAY())


def stored_form(mapping: Mapping[Any, Any]) -> Any:
    """window -> state window as a table keeps it, the first one first: windows of time as their four bounds in a row.

    Numbers take little memory and are written quickly; there is one mapping for each key."""
    if not mapping:
        return ABSENT
    windows = list(chain.from_iterable(mapping.items()))
    if all(type(window) is TimeWindow for window in windows):
        return tuple(chain.from_iterable(windows))
    return list(mapping.items())


def mapping_of(stored: Any) -> dict[Any, Any]:
    """The inverse of `stored_form`."""
    if stored is ABSENT:
        return {}
    if not isinstance(stored, tuple):  # pairs, as an earlier release wrote windows of time too
        return dict(stored)
    windows = list(map(TimeWindow, stored[::2], stored[1::2]))
    return dict(zip(windows[::2], windows[1::2], strict=True))


class _Merges(MergeCallback[Any]):
    """Collects what the assigner wants merged."""

    def __init__(self) -> None:
        self.found: dict[Any, list[Any]] = {}

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        """Note one merge."""
        self.found[merge_result] = list(to_be_merged)


class MergingWindows:
    """window -> state window, for every key, as part of the state."""

    def __init__(self, state: OperatorState, assigner: MergingWindowAssigner[Any, Any]) -> None:
        self._table = merging_table(state)
        self._assigner = assigner

    def _mapping(self, key: Any) -> dict[Any, Any]:
        return mapping_of(self._table.get(None, key))

    def _write(self, key: Any, mapping: dict[Any, Any]) -> None:
        self._table.put(None, key, stored_form(mapping))

    def state_window(self, key: Any, window: Any) -> Any:
        """Where the state of an in-flight window is; None when there is no such window."""
        return self._mapping(key).get(window)

    def retire(self, key: Any, window: Any) -> None:
        """The window is over."""
        mapping = self._mapping(key)
        if mapping.pop(window, None) is not None:
            self._write(key, mapping)

    def add(self, key: Any, window: Any, on_merge: OnMerge) -> Any:
        """Add a window, merge overlapping windows, and return the result.

        `on_merge(result, merged windows, state window kept, state windows that go)` is called before it returns."""
        mapping = self._mapping(key)
        merges = _Merges()
        self._assigner.merge_windows([*mapping, window], merges)
        result = window
        for merged_into, members in merges.found.items():
            if window in members:
                result = merged_into
            merged = [other for other in mapping if other in members and other != window]  # in the order of arrival
            if not merged or merged == [merged_into]:
                continue
            kept = mapping[merged[0]]
            gone = [state for each in merged if (state := mapping.pop(each)) != kept]
            mapping[merged_into] = kept
            self._write(key, mapping)
            on_merge(merged_into, merged, kept, gone)
        if result == window and window not in mapping:
            mapping[window] = window
            self._write(key, mapping)
        return result
