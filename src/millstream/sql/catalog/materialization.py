"""Materialized tables: their freshness and their refresh mode.

Promises: Flink's rules for FRESHNESS and refresh modes. The times of full refreshes divide a minute, an hour or a day
evenly, in the time zone of the session.
Does not know: jobs and clocks; the time is an argument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from millstream.sql.errors import SqlValidationError
from millstream.sql.syntax import tree as s
from millstream.times import Duration

CONTINUOUS, FULL = "CONTINUOUS", "FULL"
_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400}
_LARGEST_COUNTS = {"SECOND": 60, "MINUTE": 60, "HOUR": 24, "DAY": 1}


@dataclass(frozen=True)
class Freshness:
    """How far the content of a table may be behind its sources: a number of seconds, minutes, hours or days."""

    count: int
    unit: str

    @staticmethod
    def read(node: s.IntervalLiteral) -> Freshness:
        """Read FRESHNESS = INTERVAL 'count' unit."""
        if node.unit not in _SECONDS or node.to is not None:
            message = f"FRESHNESS must be a number of {', '.join(_SECONDS)}, not of {node.unit}"
            raise SqlValidationError(message, at=node.at)
        if node.negative or not node.value.isdigit() or int(node.value) < 1:
            message = f"FRESHNESS must be a positive integer, not '{'-' if node.negative else ''}{node.value}'"
            raise SqlValidationError(message, at=node.at)
        return Freshness(int(node.value), node.unit)

    @staticmethod
    def of(duration: Duration) -> Freshness:
        """Return a duration in the largest unit in which it is an integer."""
        seconds = max(duration.to_milliseconds() // 1000, 1)
        unit = next(unit for unit in reversed(_SECONDS) if seconds % _SECONDS[unit] == 0)
        return Freshness(seconds // _SECONDS[unit], unit)

    @property
    def millis(self) -> int:
        """The freshness in milliseconds."""
        return self.count * _SECONDS[self.unit] * 1000

    def check_schedule(self, at: int | None = None) -> None:
        """Raise if a full refresh cannot be scheduled: the number must divide the next larger unit."""
        largest = _LARGEST_COUNTS[self.unit]
        if largest % self.count or (self.count == largest and self.unit != "DAY"):
            message = f"a full refresh cannot be scheduled every {self.count} {self.unit.lower()}s"
            counts = [str(n) for n in range(1, largest) if largest % n == 0] or ["1"]
            hint = f"the number of {self.unit.lower()}s must be one of {', '.join(counts)}"
            raise SqlValidationError(message, at=at, hint=hint)

    def next_time(self, after: int, zone: str) -> int:
        """Return the time of the first refresh after a time, both in milliseconds since 1970."""
        local = datetime.fromtimestamp(after / 1000, UTC).astimezone(ZoneInfo(zone)).replace(microsecond=0)
        match self.unit:
            case "SECOND":
                start = local.replace(second=local.second // self.count * self.count)
            case "MINUTE":
                start = local.replace(second=0, minute=local.minute // self.count * self.count)
            case "HOUR":
                start = local.replace(second=0, minute=0, hour=local.hour // self.count * self.count)
            case _:
                start = local.replace(second=0, minute=0, hour=0)
        step = timedelta(milliseconds=self.millis)
        following = start + step
        while (
            following.astimezone(UTC).timestamp() * 1000 <= after
        ):  # the clock was set back at the end of daylight saving time
            following += step
        return int(following.astimezone(UTC).timestamp() * 1000)

    def __str__(self) -> str:
        return f"INTERVAL '{self.count}' {self.unit}"


@dataclass(frozen=True)
class Materialization:
    """How a table is filled by a query.

    Attributes:
        query: The query as written.
        home: The catalog and the database that were current: names of the query are resolved against them.
        freshness: How often the table is refreshed, or how often its job makes its output visible.
        mode: CONTINUOUS, a streaming job, or FULL, a batch job that is repeated.
        date_patterns: The patterns of time partitions, by column: a full refresh writes only the newest partition.
        is_suspended: Whether the table is not refreshed.
        savepoint: Where the streaming job was stopped.

    """

    query: str
    home: tuple[str, str]
    freshness: Freshness
    mode: str
    date_patterns: Mapping[str, str] = field(default_factory=dict)
    is_suspended: bool = False
    savepoint: str | None = None


def choose_mode(
    freshness: Freshness | None, mode: str | None, threshold: Duration, defaults: Mapping[str, Duration]
) -> tuple[Freshness, str]:
    """Return the freshness and the refresh mode of a table whose statement may leave out both."""
    if freshness is None:
        freshness = Freshness.of(defaults[mode or CONTINUOUS])
    if mode is None:
        mode = CONTINUOUS if freshness.millis < threshold.to_milliseconds() else FULL
    return freshness, mode
