"""How a stream of training data is divided into windows.

Promises: the names of Flink ML.
Does not know: models."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.errors import InvalidArgument


class Windows:
    """The base of window strategies."""


@dataclass(frozen=True)
class GlobalWindows(Windows):
    """One window of all records, which ends with the input.

    Example:
        >>> GlobalWindows()
        GlobalWindows()

    """


@dataclass(frozen=True)
class CountTumblingWindows(Windows):
    """Windows of a number of records.

    Attributes:
        size: The number of records.

    Example:
        >>> CountTumblingWindows.of(100)
        CountTumblingWindows(size=100)

    """

    size: int

    def __post_init__(self) -> None:
        if not isinstance(self.size, int) or self.size < 1:
            msg = f"a window of {self.size!r} records is not possible"
            raise InvalidArgument(msg, hint="use an int of at least 1")

    @staticmethod
    def of(size: int) -> CountTumblingWindows:
        """Create windows of a number of records.

        Args:
            size: The number of records.

        """
        return CountTumblingWindows(size)
