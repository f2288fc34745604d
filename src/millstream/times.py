"""Durations, instants, the start of Unix time and the clock.

Promises: a length of time is an exact number of nanoseconds (Duration) or milliseconds (Time), and is written and
parsed as in Flink. `millis` converts every accepted form of a length of time to milliseconds.
Does not know: the current time. A `Clock` is always an argument."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import total_ordering
from typing import Protocol

from millstream.errors import UserError

#: 1970-01-01 00:00:00 UTC, from which timestamps are counted; the same without a time zone; and its date.
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LOCAL_EPOCH = EPOCH.replace(tzinfo=None)
EPOCH_DAY = EPOCH.date()
MILLISECOND, MICROSECOND = timedelta(milliseconds=1), timedelta(microseconds=1)
NANOS_PER_MILLI = 1_000_000
_NANOS_PER_SECOND = 1_000_000_000

# The nanoseconds of a unit, and all labels of it that Flink parses; Flink writes the first one.
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


class MalformedDuration(UserError, ValueError):
    """A text is not a length of time."""

    hint = 'write an integer and a unit, as in "10 s", "500 ms", "5 min", "1 h" or "1 d"'

    def __init__(self, text: object) -> None:
        self.text = text
        super().__init__(f"{text!r} is not a duration")


class Clock(Protocol):
    """The source of the current time."""

    def now(self) -> int:
        """Return the current time in milliseconds since 1970-01-01 UTC."""
        ...

    def precise(self) -> float:
        """Return monotonic seconds, for measuring elapsed time."""
        ...


@total_ordering
class Duration:
    """An exact length of time in nanoseconds.

    Example:
        >>> Duration.parse("5 min") == Duration.of_seconds(300)
        True

    """

    __slots__ = ("_nanos",)

    def __init__(self, nanos: int) -> None:
        self._nanos = nanos

    @staticmethod
    def of_days(days: int) -> Duration:
        """Create a duration of days of 24 hours.

        Args:
            days: The number of days.

        """
        return Duration(days * 86_400 * _NANOS_PER_SECOND)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """Create a duration of hours.

        Args:
            hours: The number of hours.

        """
        return Duration(hours * 3_600 * _NANOS_PER_SECOND)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """Create a duration of milliseconds.

        Args:
            millis: The number of milliseconds.

        """
        return Duration(millis * NANOS_PER_MILLI)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """Create a duration of minutes.

        Args:
            minutes: The number of minutes.

        """
        return Duration(minutes * 60 * _NANOS_PER_SECOND)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """Create a duration of nanoseconds.

        Args:
            nanos: The number of nanoseconds.

        """
        return Duration(nanos)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """Create a duration of seconds.

        Args:
            seconds: The number of seconds.

        """
        return Duration(seconds * _NANOS_PER_SECOND)

    @staticmethod
    def parse(text: str) -> Duration:
        """Parse a duration as Flink does: an integer with a unit (milliseconds without one), or ISO 8601.

        Args:
            text: The text, such as `10 min` or `PT10M`.

        Raises:
            MalformedDuration: If the text is neither.

        """
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
        """Return the duration in milliseconds, rounded down."""
        return self._nanos // NANOS_PER_MILLI

    def to_nanos(self) -> int:
        """Return the duration in nanoseconds."""
        return self._nanos

    def to_seconds(self) -> float:
        """Return the duration in seconds."""
        return self._nanos / _NANOS_PER_SECOND

    def to_timedelta(self) -> timedelta:
        """Return the duration as a timedelta, rounded down to microseconds."""
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
    """A point in time: seconds since 1970-01-01 UTC, and nanoseconds of the second.

    Example:
        >>> Instant.of_epoch_milli(1_500)
        Instant<1, 500000000>

    """

    __slots__ = ("nanos", "seconds")

    def __init__(self, seconds: int, nanos: int) -> None:
        self.seconds = seconds
        self.nanos = nanos

    def to_epoch_milli(self) -> int:
        """Return milliseconds since 1970-01-01 UTC, rounded down."""
        return self.seconds * 1_000 + self.nanos // NANOS_PER_MILLI

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """Create an instant from milliseconds since 1970-01-01 UTC.

        Args:
            epoch_milli: The number of milliseconds; it can be negative.

        """
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


def to_instant(value: datetime) -> Instant:
    """Convert a datetime with a time zone to an instant."""
    since_epoch = value - EPOCH
    nanos = since_epoch.microseconds * 1_000 + getattr(value, "nanosecond", 0)  # of a pandas.Timestamp
    return Instant(since_epoch.days * 86_400 + since_epoch.seconds, nanos)


def to_utc_datetime(value: Instant) -> datetime:
    """Convert an instant to a datetime in UTC, rounded down to microseconds."""
    return EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1_000)


@total_ordering
class Time:
    """A length of time in milliseconds, as used in window definitions.

    Example:
        >>> Time.minutes(5).to_milliseconds()
        300000

    """

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds

    def to_milliseconds(self) -> int:
        """Return the length in milliseconds."""
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """Create a length of milliseconds.

        Args:
            milliseconds: The number of milliseconds.

        """
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        """Create a length of seconds.

        Args:
            seconds: The number of seconds.

        """
        return Time(seconds * 1_000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        """Create a length of minutes.

        Args:
            minutes: The number of minutes.

        """
        return Time(minutes * 60_000)

    @staticmethod
    def hours(hours: int) -> Time:
        """Create a length of hours.

        Args:
            hours: The number of hours.

        """
        return Time(hours * 3_600_000)

    @staticmethod
    def days(days: int) -> Time:
        """Create a length of days of 24 hours.

        Args:
            days: The number of days.

        """
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
    """Convert a length of time in any accepted form to milliseconds; an int is milliseconds already.

    Raises:
        MalformedDuration: If the value is not a length of time.

    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, timedelta):
        return value // MILLISECOND
    if isinstance(value, (Duration, Time)):
        return value.to_milliseconds()
    raise MalformedDuration(value)
