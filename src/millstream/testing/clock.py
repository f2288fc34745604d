"""A clock for tests, which moves only when the test moves it.

Promises: the time never goes back; `now` and `precise` show the same time.
Does not know: who reads it."""

from __future__ import annotations

from millstream.errors import UserError


class ClockWentBack(UserError):
    """A test set its clock to an earlier time."""

    hint = "processing time only moves forward"

    def __init__(self, now: float, wanted: float) -> None:
        self.now, self.wanted = now, wanted
        super().__init__(f"the clock is at {now} and cannot be set to {wanted}")


class ManualClock:
    """A clock whose time changes only when the test changes it.

    Args:
        now: The time at the beginning, in milliseconds since 1970.

    Example:
        >>> clock = ManualClock(1_000)
        >>> clock.advance(500)
        >>> clock.now()
        1500

    """

    def __init__(self, now: float = 0) -> None:
        self._millis = now

    @property
    def millis(self) -> float:
        """The time in milliseconds, with its fraction."""
        return self._millis

    def now(self) -> int:
        """Return the time in whole milliseconds since 1970."""
        return round(self._millis)

    def precise(self) -> float:
        """Return the time in seconds."""
        return self._millis / 1000

    def set(self, now: float) -> None:
        """Move to a time.

        Args:
            now: The new time, in milliseconds since 1970.

        Raises:
            ClockWentBack: The time is before that of the clock.

        """
        if now < self._millis:
            raise ClockWentBack(self._millis, now)
        self._millis = now

    def advance(self, millis: float) -> None:
        """Move forward by a number of milliseconds.

        Args:
            millis: The number of milliseconds, at least 0.

        """
        self.set(self._millis + millis)

    def sleep(self, seconds: float) -> None:
        """Move forward by a number of seconds; stands in for `time.sleep`.

        Args:
            seconds: The number of seconds, at least 0.

        """
        self.advance(seconds * 1000)

    def __repr__(self) -> str:
        return f"ManualClock({self._millis})"
