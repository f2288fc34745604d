"""Instants and datetimes are converted exactly, to the microsecond, in every year."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from millstream.formats.columnar import records_of
from millstream.formats.format_types import FormatType, TypeRoot
from millstream.times import EPOCH, EPOCH_DAY, LOCAL_EPOCH, Instant, to_instant, to_utc_datetime

UTC = datetime.UTC


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        (EPOCH, Instant(0, 0)),
        (datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), Instant(-1, 999_999_000)),
        (datetime.datetime(2026, 11, 18, 12, 0, 0, 1, UTC), Instant(1_794_996_000 + 7200, 1000)),
        (datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC), Instant(253_402_300_799, 999_999_000)),
        (datetime.datetime(1, 1, 1, 0, 0, 0, 1, UTC), Instant(-62_135_596_800, 1000)),
    ],
)
def test_an_instant_is_the_datetime(value: datetime.datetime, instant: Instant) -> None:
    assert to_instant(value) == instant
    assert to_utc_datetime(instant) == value
    column = pa.table({"at": pa.array([value], pa.timestamp("us", "UTC"))})
    data_type = FormatType(TypeRoot.ROW, names=("at",), children=(FormatType(TypeRoot.TIMESTAMP_LTZ, 6),))
    decoded = records_of(data_type, column)
    assert [row.at for row in decoded.rows(data_type.type_info())] == [instant]


def test_the_time_zone_does_not_matter() -> None:
    berlin = datetime.timezone(datetime.timedelta(hours=1))
    assert to_instant(datetime.datetime(1970, 1, 1, 1, tzinfo=berlin)) == Instant(0, 0)


def test_nanoseconds_are_rounded_down() -> None:
    assert to_utc_datetime(Instant(0, 1999)) == EPOCH + datetime.timedelta(microseconds=1)


def test_unix_time_has_one_origin() -> None:
    assert EPOCH.replace(tzinfo=None) == LOCAL_EPOCH
    assert (EPOCH_DAY, LOCAL_EPOCH.time()) == (datetime.date(1970, 1, 1), datetime.time())
