"""A clock that moves only when it is told to.

Promises: `now` is what was set, to the millisecond, and never goes back; `precise` moves with it.
Does not know: who reads it."""

from __future__ import annotations

from millstream.errors import UserError


class ClockWentBack(UserError):
    """A test set its clock to an earlier time."""

    hint = "processing time only moves forward"

    def __init__(self, now: int, wanted: int) -> None:
        self.now, self.wanted = now, wanted
        super().__init__(f"the clock is at {now} and cannot be set to {wanted}")


class ManualClock:
    """The `Clock` of tests."""

    def __init__(self, now: int = 0) -> None:
        self._now = now

    def now(self) -> int:
        """Milliseconds since 1970, as set."""
        return self._now

    def precise(self) -> float:
        """The same time in seconds."""
        return self._now / 1000

    def set(self, now: int) -> None:
        """Move to a time."""
        if now < self._now:
            raise ClockWentBack(self._now, now)
        self._now = now

    def advance(self, millis: int) -> None:
        """Move on by so many milliseconds."""
        self.set(self._now + millis)

    def __repr__(self) -> str:
        return f"ManualClock({self._now})"
