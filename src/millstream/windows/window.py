"""Windows: finite groups of records of a stream.

Promises: a window is an immutable value, comparable and picklable. Windows are merged as in Flink: windows that touch
are merged.
Does not know: assigners, triggers and state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Generic, TypeVar

MAX_TIMESTAMP = 2**63 - 1
W = TypeVar("W")


class Window(ABC):
    """A finite group of records of a key.

    Example:
        >>> TimeWindow(0, 10_000).max_timestamp()
        9999

    """

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """Return the largest timestamp that belongs to the window."""


class MergeCallback(ABC, Generic[W]):
    """Receives the groups of windows that are merged.

    Example:
        >>> class Print(MergeCallback):
        ...     def merge(self, to_be_merged, merge_result):
        ...         print(list(to_be_merged), "become", merge_result)
        >>> TimeWindow.merge_windows([TimeWindow(0, 5), TimeWindow(4, 9)], Print())
        [TimeWindow(start=4, end=9), TimeWindow(start=0, end=5)] become TimeWindow(start=0, end=9)

    """

    @abstractmethod
    def merge(self, to_be_merged: Iterable[W], merge_result: W) -> None:
        """Merge windows.

        Args:
            to_be_merged: Two or more windows.
            merge_result: The window that replaces them.

        """


class TimeWindow(Window, tuple[int, int]):
    """A time interval from `start` (inclusive) to `end` (exclusive), in milliseconds.

    Example:
        >>> window = TimeWindow(0, 10_000)
        >>> window.max_timestamp(), window.intersects(TimeWindow(9_000, 12_000))
        (9999, True)

    """

    __slots__ = ()

    # A tuple is faster than a dataclass: a window is created for each record, and is part of the key of state.
    start: int = property(itemgetter(0))  # type: ignore[assignment]
    end: int = property(itemgetter(1))  # type: ignore[assignment]

    def __new__(cls, start: int, end: int) -> TimeWindow:
        """Create a window."""
        return tuple.__new__(cls, (start, end))

    def max_timestamp(self) -> int:
        """Return `end - 1`."""
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Return whether two windows overlap or touch.

        Args:
            other: The other window.

        """
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """Return the smallest window that contains both.

        Args:
            other: The other window.

        """
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Return the start of the window that contains a timestamp.

        Args:
            timestamp: The timestamp in milliseconds.
            offset: Windows start at this offset plus multiples of the size.
            window_size: The size of the windows.

        """
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: MergeCallback[TimeWindow]) -> None:
        """Call `callback` for each group of two or more windows that overlap or touch.

        Args:
            windows: The windows of one key.
            callback: Gets the windows of a group, and the window that replaces them.

        """
        for result, members in group_overlapping(windows):
            if len(members) > 1 and len(distinct := set(members)) > 1:
                callback.merge(distinct, result)

    def __reduce__(self) -> tuple[Any, ...]:
        return TimeWindow, (self.start, self.end)

    def __repr__(self) -> str:
        return f"TimeWindow(start={self.start}, end={self.end})"


class CountWindow(Window):
    """A window of a number of records, identified by its number in the key.

    Example:
        >>> CountWindow(3)
        CountWindow(id=3)

    """

    __slots__ = ("id",)

    def __init__(self, id: int) -> None:
        self.id = id

    def max_timestamp(self) -> int:
        """Return the largest possible timestamp: the window does not end by time."""
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
    """The only window of `GlobalWindows`; it contains all records of a key. All instances are equal.

    Example:
        >>> GlobalWindow.get()
        GlobalWindow

    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()

    @staticmethod
    def get() -> GlobalWindow:
        """Return the shared instance."""
        return _GLOBAL

    def max_timestamp(self) -> int:
        """Return the largest possible timestamp: the window does not end by time."""
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


def group_overlapping(windows: Iterable[TimeWindow]) -> list[tuple[TimeWindow, list[TimeWindow]]]:
    """Group windows that overlap or touch, ordered by start; return each merged window with its members."""
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
