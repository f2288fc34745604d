"""When a table that is kept as a whole for a lookup join is read again: 'lookup.cache' = 'FULL'.

Promises: Flink's options lookup.full-cache.*. Time is the epoch's; a table is due at the same time however often it is
asked whether it is.
Does not know: how a table is read."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from millstream.sql.connector.table_connector import TableContext
from millstream.sql.types.durations import duration_millis

_PREFIX = "lookup.full-cache."
STRATEGY = f"{_PREFIX}reload-strategy"
INTERVAL, SCHEDULE = f"{_PREFIX}periodic-reload.interval", f"{_PREFIX}periodic-reload.schedule-mode"
TIME, DAYS = f"{_PREFIX}timed-reload.iso-time", f"{_PREFIX}timed-reload.interval-in-days"
FULL_OPTIONS = (STRATEGY, INTERVAL, SCHEDULE, TIME, DAYS)


@dataclass(frozen=True)
class PeriodicReload:
    """Every so many milliseconds: after the last reading, or, `fixed_rate`, counted from the first one."""

    interval: int
    fixed_rate: bool = False

    def following(self, first: int, last: int) -> int:
        """When to read again, after readings at `first` and `last`."""
        if not self.fixed_rate:
            return last + self.interval
        return first + ((last - first) // self.interval + 1) * self.interval


@dataclass(frozen=True)
class TimedReload:
    """At a time of day, every so many days; a time without an offset is in `zone`."""

    time: datetime.time
    zone: str
    days: int = 1

    def following(self, first: int, last: int) -> int:
        """When to read again, after readings at `first` and `last`."""
        zone = self.time.tzinfo or ZoneInfo(self.zone)
        begun = datetime.datetime.fromtimestamp(first / 1000, zone)
        due = datetime.datetime.combine(begun.date(), self.time.replace(tzinfo=None), zone)
        if due <= begun:
            due += datetime.timedelta(days=1)
        while due.timestamp() * 1000 <= last:
            due += datetime.timedelta(days=self.days)
        return int(due.timestamp() * 1000)


Reload = PeriodicReload | TimedReload


def reload_policy(context: TableContext) -> Reload:
    """What the options of a table say about reading it again."""
    if context.word(STRATEGY, ("periodic", "timed"), "periodic") == "timed":
        return TimedReload(_time(context), context.zone, _days(context))
    if INTERVAL not in context.options:
        message = f"a full cache that is read again from time to time needs '{INTERVAL}'"
        raise context.fail(message, f"set it, or '{STRATEGY}' = 'TIMED' and '{TIME}'")
    interval = duration_millis(context.options[INTERVAL])
    if interval <= 0:
        message = f"option '{INTERVAL}' must be longer than nothing, not '{context.options[INTERVAL]}'"
        raise context.fail(message)
    schedule = context.word(SCHEDULE, ("fixed-delay", "fixed-rate"), "fixed-delay")
    return PeriodicReload(interval, schedule == "fixed-rate")


def _time(context: TableContext) -> datetime.time:
    text = context.required(TIME)
    try:
        return datetime.time.fromisoformat(text)
    except ValueError:
        message = f"option '{TIME}' must be a time of day such as 10:15, 10:15Z or 10:15+07:00, not '{text}'"
        raise context.fail(message) from None


def _days(context: TableContext) -> int:
    days = context.integer(DAYS, 1) or 0
    if days < 1:
        message = f"option '{DAYS}' must be a number above 0, not '{context.options[DAYS]}'"
        raise context.fail(message)
    return days
