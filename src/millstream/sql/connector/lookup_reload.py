"""Reload policies of full lookup caches: 'lookup.cache' = 'FULL'.

Promises: Flink's options lookup.full-cache.*. Times are processing times of epochs; a policy is a pure function of the
times of the first and the last load.
Does not know: how a table is read."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from millstream.sql.connector.table_connector import TableContext
from millstream.sql.types.durations import parse_duration_millis

_PREFIX = "lookup.full-cache."
STRATEGY = f"{_PREFIX}reload-strategy"
INTERVAL, SCHEDULE = f"{_PREFIX}periodic-reload.interval", f"{_PREFIX}periodic-reload.schedule-mode"
TIME, DAYS = f"{_PREFIX}timed-reload.iso-time", f"{_PREFIX}timed-reload.interval-in-days"
FULL_OPTIONS = (STRATEGY, INTERVAL, SCHEDULE, TIME, DAYS)


@dataclass(frozen=True)
class PeriodicReload:
    """Reload at intervals, in milliseconds: since the last load or, with `fixed_rate`, since the first."""

    interval: int
    fixed_rate: bool = False

    def next_reload(self, first: int, last: int) -> int:
        """Return the time of the next reload, after loads at `first` and `last`."""
        if not self.fixed_rate:
            return last + self.interval
        return first + ((last - first) // self.interval + 1) * self.interval


@dataclass(frozen=True)
class TimedReload:
    """Reload at a time of day, every `days` days; a time without an offset is in `zone`."""

    time: datetime.time
    zone: str
    days: int = 1

    def next_reload(self, first: int, last: int) -> int:
        """Return the time of the next reload, after loads at `first` and `last`."""
        zone = self.time.tzinfo or ZoneInfo(self.zone)
        first_load = datetime.datetime.fromtimestamp(first / 1000, zone)
        due = datetime.datetime.combine(first_load.date(), self.time.replace(tzinfo=None), zone)
        if due <= first_load:
            due += datetime.timedelta(days=1)
        while due.timestamp() * 1000 <= last:
            due += datetime.timedelta(days=self.days)
        return int(due.timestamp() * 1000)


Reload = PeriodicReload | TimedReload


def read_reload_policy(context: TableContext) -> Reload:
    """Return the reload policy of the options `lookup.full-cache.*`."""
    if context.word(STRATEGY, ("periodic", "timed"), "periodic") == "timed":
        return TimedReload(_read_time(context), context.zone, _read_days(context))
    if INTERVAL not in context.options:
        message = f"a full cache with periodic reload needs '{INTERVAL}'"
        raise context.fail(message, f"set it, or '{STRATEGY}' = 'TIMED' and '{TIME}'")
    interval = parse_duration_millis(context.options[INTERVAL])
    if interval <= 0:
        message = f"option '{INTERVAL}' must be positive, not '{context.options[INTERVAL]}'"
        raise context.fail(message)
    schedule = context.word(SCHEDULE, ("fixed-delay", "fixed-rate"), "fixed-delay")
    return PeriodicReload(interval, schedule == "fixed-rate")


def _read_time(context: TableContext) -> datetime.time:
    text = context.required(TIME)
    try:
        return datetime.time.fromisoformat(text)
    except ValueError:
        message = f"option '{TIME}' must be a time of day such as 10:15, 10:15Z or 10:15+07:00, not '{text}'"
        raise context.fail(message) from None


def _read_days(context: TableContext) -> int:
    days = context.integer(DAYS, 1) or 0
    if days < 1:
        message = f"option '{DAYS}' must be a positive integer, not '{context.options[DAYS]}'"
        raise context.fail(message)
    return days
