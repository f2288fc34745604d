"""Freshness of materialized tables: how it is read, which refresh mode it gives, and when refreshes are due."""

from __future__ import annotations

import datetime

import pytest

from millstream.sql.catalog.materialization import CONTINUOUS, FULL, Freshness, choose_mode
from millstream.sql.errors import SqlError
from millstream.sql.syntax import parse_statement
from millstream.sql.syntax import tree as s
from millstream.times import Duration

DEFAULTS = {CONTINUOUS: Duration.of_minutes(3), FULL: Duration.of_hours(1)}


def read(interval: str) -> Freshness:
    node = parse_statement(f"CREATE MATERIALIZED TABLE m FRESHNESS = INTERVAL {interval} AS SELECT 1")
    assert isinstance(node, s.CreateMaterializedTable)
    assert node.freshness is not None
    return Freshness.read(node.freshness)


@pytest.mark.parametrize(
    ("interval", "message"),
    [
        ("'0' SECOND", "positive integer"),
        ("'-1' SECOND", "positive integer"),
        ("-'1' SECOND", "positive integer, not '-1'"),
        ("'1' MONTH", "must be a number of SECOND"),
        ("'1:30' HOUR TO MINUTE", "must be a number of"),
    ],
)
def test_a_freshness_is_a_positive_number_of_units(interval: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        read(interval)


@pytest.mark.parametrize("interval", ["'60' SECOND", "'7' MINUTE", "'5' HOUR", "'24' HOUR", "'2' DAY"])
def test_a_full_refresh_divides_the_next_unit(interval: str) -> None:
    with pytest.raises(SqlError, match="cannot be scheduled every"):
        read(interval).check_schedule()
    for allowed in ("'30' SECOND", "'20' MINUTES", "'8' HOURS", "'1' DAY"):
        read(allowed).check_schedule()


@pytest.mark.parametrize(
    ("freshness", "mode", "expected"),
    [
        (None, None, (Freshness(3, "MINUTE"), CONTINUOUS)),
        (None, FULL, (Freshness(1, "HOUR"), FULL)),
        (Freshness(29, "MINUTE"), None, (Freshness(29, "MINUTE"), CONTINUOUS)),
        (Freshness(30, "MINUTE"), None, (Freshness(30, "MINUTE"), FULL)),
        (Freshness(1, "DAY"), CONTINUOUS, (Freshness(1, "DAY"), CONTINUOUS)),
    ],
)
def test_the_mode_follows_from_the_freshness(
    freshness: Freshness | None, mode: str | None, expected: tuple[Freshness, str]
) -> None:
    assert choose_mode(freshness, mode, Duration.of_minutes(30), DEFAULTS) == expected


@pytest.mark.parametrize(
    ("freshness", "after", "zone", "due"),
    [
        (Freshness(20, "SECOND"), "2024-01-01T10:05:19+00:00", "UTC", "2024-01-01T10:05:20+00:00"),
        (Freshness(20, "SECOND"), "2024-01-01T10:05:40+00:00", "UTC", "2024-01-01T10:06:00+00:00"),
        (Freshness(15, "MINUTE"), "2024-01-01T10:46:01+00:00", "UTC", "2024-01-01T11:00:00+00:00"),
        (Freshness(6, "HOUR"), "2024-01-01T23:00:00+00:00", "UTC", "2024-01-02T00:00:00+00:00"),
        (Freshness(1, "DAY"), "2024-01-01T10:00:00+00:00", "Asia/Tokyo", "2024-01-01T15:00:00+00:00"),
        (Freshness(1, "DAY"), "2024-03-30T12:00:00+00:00", "Europe/Berlin", "2024-03-30T23:00:00+00:00"),
        (Freshness(1, "DAY"), "2024-03-31T12:00:00+00:00", "Europe/Berlin", "2024-03-31T22:00:00+00:00"),
        (Freshness(1, "HOUR"), "2024-10-27T01:30:00+00:00", "Europe/Berlin", "2024-10-27T02:00:00+00:00"),
    ],
)
def test_a_refresh_is_due_at_even_times_of_the_zone(freshness: Freshness, after: str, zone: str, due: str) -> None:
    def millis(text: str) -> int:
        return int(datetime.datetime.fromisoformat(text).timestamp() * 1000)

    assert freshness.next_time(millis(after), zone) == millis(due)
