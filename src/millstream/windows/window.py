"""Windows: finite groups of a stream's records.

Promises: a window is an immutable value, comparable and picklable; merging follows Flink (windows that touch merge).
Does not know: assigners, triggers or state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Generic, TypeVar

MAX_TIMESTAMP = 2**63 - 1
W = TypeVar("W")


class Window(ABC):
    """A group of records."""

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """The largest timestamp that still belongs to the window."""


class MergeCallback(ABC, Generic[W]):
    """Told which windows become one."""

    @abstractmethod
    def merge(self, to_be_merged: Iterable[W], merge_result: W) -> None:
        """`to_be_merged`, two or more, become `merge_result`."""


class TimeWindow(Window, tuple[int, int]):
    """The records from `start` (inclusive) to `end` (exclusive), in milliseconds."""

    __slots__ = ()

    # a pair rather than a dataclass: one is made for each record and window, and state is found by it
    start: int = property(itemgetter(0))  # type: ignore[assignment]
    end: int = property(itemgetter(1))  # type: ignore[assignment]

    def __new__(cls, start: int, end: int) -> TimeWindow:
        """The window."""
        return tuple.__new__(cls, (start, end))

    def max_timestamp(self) -> int:
        """One less than `end`."""
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the two overlap or touch."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that holds both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Start of the window that holds `timestamp`, where windows start at `offset` plus multiples of the size."""
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: MergeCallback[TimeWindow]) -> None:
        """Tell `callback` of each group of two or more windows that overlap or touch."""
        for result, members in merged(windows):
            if len(members) > 1 and len(distinct := set(members)) > 1:
                callback.merge(distinct, result)

    def __reduce__(self) -> tuple[Any, ...]:
        return TimeWindow, (self.start, self.end)

    def __repr__(self) -> str:
        return f"TimeWindow(start={self.start}, end={self.end})"


class CountWindow(Window):
    """The records of one count, numbered per key."""

    __slots__ = ("id",)

    def __init__(self, id: int) -> None:
        self.id = id

    def max_timestamp(self) -> int:
        """The largest of all: time does not end it."""
        return MAX_TIMESTAMP

    def __eq__(self, other: object) -> bool:
        return type(other) is CountWindow and self.id == other.id

    def __hash__(self) -> int:
        return hash((CountWindow, self.id))

    def __reduce__(self) -> tuple[Any, ...]:
        return CountWindow, (self.id,)

    def __repr__(self) -> str:
        return f"CountWindow(id={self.id})"


class GlobalWindow(Window):
    """The one window that holds everything. All instances are equal; `get` always returns the same one."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()

    @staticmethod
    def get() -> GlobalWindow:
        """The instance."""
        return _GLOBAL

    def max_timestamp(self) -> int:
        """The largest of all: time does not end it."""
        return MAX_TIMESTAMP

    def __eq__(self, other: object) -> bool:
        return type(other) is GlobalWindow

    def __hash__(self) -> int:
        return hash(GlobalWindow)

    def __reduce__(self) -> tuple[Any, ...]:
        return GlobalWindow.get, ()

    def __repr__(self) -> str:
        return "GlobalWindow"


_GLOBAL = GlobalWindow()


def merged(windows: Iterable[TimeWindow]) -> list[tuple[TimeWindow, list[TimeWindow]]]:
    """Groups of windows that overlap or touch, by start: what each becomes, and who its members are."""
    groups: list[tuple[TimeWindow, list[TimeWindow]]] = []
    end = 0
    for window in sorted(windows):
        if groups and window.start <= end:
            result, members = groups[-1]
            members.append(window)
            if window.end > end:
                end = window.end
                groups[-1] = (TimeWindow(result.start, end), members)
        else:
            groups.append((window, [window]))
            end = window.end
    return groups
