"""Durations, instants and the clock.

Promises: a length of time is an exact whole number of nanoseconds (Duration) or milliseconds (Time), written and
read as Flink writes and reads it; `millis` turns every accepted form of a length of time into milliseconds.
Does not know: what time it is; a `Clock` is always an argument."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import total_ordering
from typing import Protocol

from millstream.errors import UserError

NANOS_PER_MILLI = 1_000_000
_NANOS_PER_SECOND = 1_000_000_000

# unit -> (nanoseconds, every label Flink reads; the first one is the one it writes)
_UNITS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (86_400 * _NANOS_PER_SECOND, ("d", "day", "days")),
    (3_600 * _NANOS_PER_SECOND, ("h", "hour", "hours")),
    (60 * _NANOS_PER_SECOND, ("min", "m", "minute", "minutes")),
    (_NANOS_PER_SECOND, ("s", "sec", "secs", "second", "seconds")),
    (NANOS_PER_MILLI, ("ms", "milli", "millis", "millisecond", "milliseconds")),
    (1_000, ("µs", "micro", "micros", "microsecond", "microseconds")),
    (1, ("ns", "nano", "nanos", "nanosecond", "nanoseconds")),
)
_NANOS_BY_LABEL = {label: nanos for nanos, labels in _UNITS for label in labels}
_TEXT = re.compile(r"\s*(\d+)\s*(\D*?)\s*")
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,9}))?S)?)?", re.IGNORECASE)


class MalformedDuration(UserError):
    """A text that is no length of time."""

    hint = 'write a whole number and a unit, as in "10 s", "500 ms", "5 min", "1 h" or "1 d"'

    def __init__(self, text: object) -> None:
        self.text = text
        super().__init__(f"{text!r} is not a duration")


class Clock(Protocol):
    """Where the current time comes from."""

    def now(self) -> int:
        """The current time in milliseconds since the epoch."""
        ...

    def precise(self) -> float:
        """Seconds that only go forward, for measuring how long something took."""
        ...


@total_ordering
class Duration:
    """An exact length of time, kept in nanoseconds."""

    __slots__ = ("_nanos",)

    def __init__(self, nanos: int) -> None:
        self._nanos = nanos

    @staticmethod
    def of_days(days: int) -> Duration:
        """As many days of 24 hours."""
        return Duration(days * 86_400 * _NANOS_PER_SECOND)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """As many hours."""
        return Duration(hours * 3_600 * _NANOS_PER_SECOND)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """As many milliseconds."""
        return Duration(millis * NANOS_PER_MILLI)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """As many minutes."""
        return Duration(minutes * 60 * _NANOS_PER_SECOND)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """As many nanoseconds."""
        return Duration(nanos)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """As many seconds."""
        return Duration(seconds * _NANOS_PER_SECOND)

    @staticmethod
    def parse(text: str) -> Duration:
        """The duration a text names by Flink's rules: a whole number with a unit (none means ms), or ISO 8601."""
        if match := _TEXT.fullmatch(text):
            unit = match[2].lower() or "ms"
            if unit in _NANOS_BY_LABEL:
                return Duration(int(match[1]) * _NANOS_BY_LABEL[unit])
        iso = _ISO.fullmatch(text.strip())
        if iso and any(iso.groups()):
            days, hours, minutes, seconds = (int(part or 0) for part in iso.groups()[:4])
            fraction = int((iso[5] or "").ljust(9, "0"))
            return Duration((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * _NANOS_PER_SECOND + fraction)
        raise MalformedDuration(text)

    def to_milliseconds(self) -> int:
        """The whole milliseconds in it."""
        return self._nanos // NANOS_PER_MILLI

    def to_nanos(self) -> int:
        """Its exact length in nanoseconds."""
        return self._nanos

    def to_seconds(self) -> float:
        """Its length in seconds, for waiting."""
        return self._nanos / _NANOS_PER_SECOND

    def to_timedelta(self) -> timedelta:
        """The same length to the microsecond."""
        return timedelta(microseconds=self._nanos // 1_000)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self._nanos == other._nanos

    def __lt__(self, other: Duration) -> bool:
        if not isinstance(other, Duration):
            return NotImplemented
        return self._nanos < other._nanos

    def __hash__(self) -> int:
        return hash(self._nanos)

    def __str__(self) -> str:
        if self._nanos == 0:
            return "0 ms"
        nanos, label = next((nanos, labels[0]) for nanos, labels in _UNITS if self._nanos % nanos == 0)
        return f"{self._nanos // nanos} {label}"

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"


class Instant:
    """A point on the time line: seconds since the epoch and nanoseconds after that second."""

    __slots__ = ("nanos", "seconds")

    def __init__(self, seconds: int, nanos: int) -> None:
        self.seconds = seconds
        self.nanos = nanos

    def to_epoch_milli(self) -> int:
        """The whole milliseconds since the epoch, rounded down."""
        return self.seconds * 1_000 + self.nanos // NANOS_PER_MILLI

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """The instant that many milliseconds after the epoch."""
        seconds, millis_of_second = divmod(epoch_milli, 1_000)
        return Instant(seconds, millis_of_second * NANOS_PER_MILLI)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instant) and (self.seconds, self.nanos) == (other.seconds, other.nanos)

    def __lt__(self, other: Instant) -> bool:
        return (self.seconds, self.nanos) < (other.seconds, other.nanos)

    def __hash__(self) -> int:
        return hash((self.seconds, self.nanos))

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


@total_ordering
class Time:
    """A length of time in milliseconds, as window definitions use it."""

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds

    def to_milliseconds(self) -> int:
        """Its length in milliseconds."""
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """As many milliseconds."""
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        """As many seconds."""
        return Time(seconds * 1_000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        """As many minutes."""
        return Time(minutes * 60_000)

    @staticmethod
    def hours(hours: int) -> Time:
        """As many hours."""
        return Time(hours * 3_600_000)

    @staticmethod
    def days(days: int) -> Time:
        """As many days of 24 hours."""
        return Time(days * 86_400_000)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self._milliseconds == other._milliseconds

    def __lt__(self, other: Time) -> bool:
        if not isinstance(other, Time):
            return NotImplemented
        return self._milliseconds < other._milliseconds

    def __hash__(self) -> int:
        return hash(self._milliseconds)

    def __str__(self) -> str:
        return f"{self._milliseconds} ms"

    def __repr__(self) -> str:
        return f"Time({self._milliseconds} ms)"


def millis(value: int | timedelta | Duration | Time) -> int:
    """Whole milliseconds of any form in which the API takes a length of time; an int already counts them."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    if isinstance(value, (Duration, Time)):
        return value.to_milliseconds()
    raise MalformedDuration(value)
