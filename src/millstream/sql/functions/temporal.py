"""Dates, times, timestamps and intervals.

Promises: TIMESTAMP has no zone; TIMESTAMP_LTZ is a moment and is taken apart in the session's zone; "now" is the
processing time of the epoch.
Does not know: watermarks' making."""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql import types as t
from millstream.sql.columns import arrow_type, scalar_value
from millstream.sql.functions import arithmetic, javatime, text
from millstream.sql.functions.registry import by_row, define

_T = "temporal"
_MS = datetime.timedelta(milliseconds=1)
_UNITS = {
    "YEAR": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "WEEK": "week",
    "DAY": "day",
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
    "MILLISECOND": "millisecond",
    "MICROSECOND": "microsecond",
    "NANOSECOND": "nanosecond",
}


def moment(frame: Any) -> datetime.datetime:
    """The epoch's processing time, in UTC."""
    return datetime.datetime.fromtimestamp(frame.now / 1000, text.UTC)


def _local_now(frame: Any) -> datetime.datetime:
    return moment(frame).astimezone(text.zone(frame.zone)).replace(tzinfo=None)


def _now(make: Callable[[Any], Any]) -> Any:
    return lambda frame, _args, _kinds, kind: pa.scalar(make(frame), arrow_type(kind))


_LTZ3 = t.LocalZonedTimestampType(3)
define(
    "CURRENT_DATE",
    _T,
    "",
    t.DATE,
    _now(lambda f: _local_now(f).date()),
    "The date now.",
    deterministic=False,
    null="never",
    syntax="CURRENT_DATE",
)
define(
    "CURRENT_TIME",
    _T,
    "",
    t.TIME,
    _now(lambda f: _local_now(f).time().replace(microsecond=0)),
    "The time now.",
    deterministic=False,
    null="never",
    syntax="CURRENT_TIME",
    aliases=("LOCALTIME",),
)
define(
    "LOCALTIMESTAMP",
    _T,
    "",
    t.TimestampType(3),
    _now(_local_now),
    "The date and time now, in the session's zone.",
    deterministic=False,
    null="never",
    syntax="LOCALTIMESTAMP",
)
define(
    "CURRENT_TIMESTAMP",
    _T,
    "",
    _LTZ3,
    _now(moment),
    "The moment now.",
    deterministic=False,
    null="never",
    syntax="CURRENT_TIMESTAMP",
    aliases=("NOW", "CURRENT_ROW_TIMESTAMP"),
)
define(
    "PROCTIME",
    _T,
    "",
    t.LocalZonedTimestampType(3, t.PROCTIME),
    _now(moment),
    "Processing time, as a time attribute.",
    deterministic=False,
    null="never",
)


def _unix(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    if not args:
        return pa.scalar(frame.now // 1000, pa.int64())
    zone = text.zone(frame.zone)

    def read(value: str, pattern: str = "yyyy-MM-dd HH:mm:ss") -> int:
        try:
            found = javatime.reader(pattern)(value)
        except (ValueError, StopIteration):
            return -(2**63)
        return int(found.replace(tzinfo=zone).timestamp())

    return by_row(read)(frame, args, kinds, kind)


define(
    "UNIX_TIMESTAMP",
    _T,
    ("", "string", "string, string"),
    t.BIGINT,
    _unix,
    "Seconds since 1970: of now, or of a string read by a pattern.",
    deterministic=False,
)


def _from_unix(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    zone = text.zone(frame.zone)

    def write(seconds: int, pattern: str = "yyyy-MM-dd HH:mm:ss") -> str:
        return javatime.writer(pattern)(datetime.datetime.fromtimestamp(seconds, zone))

    return by_row(write)(frame, args, kinds, kind)


define(
    "FROM_UNIXTIME",
    _T,
    ("bigint", "bigint, string"),
    t.STRING,
    _from_unix,
    "Seconds since 1970 as text, by a pattern, in the session's zone.",
    null="always",
)


def _in_zone(datum: Any, kind: t.DataType, zone: str) -> Any:
    """A moment as its date and time in the session's zone."""
    if not isinstance(kind, t.LocalZonedTimestampType):
        return datum
    if zone == "UTC":
        return pc.cast(datum, pa.timestamp(datum.type.unit))
    return pc.local_timestamp(pc.cast(datum, pa.timestamp(datum.type.unit, zone)))


_PARTS: dict[str, Callable[[Any], Any]] = {
    "YEAR": pc.year,
    "QUARTER": pc.quarter,
    "MONTH": pc.month,
    "WEEK": pc.iso_week,
    "DAY": pc.day,
    "DOY": pc.day_of_year,
    "DOW": lambda v: pc.day_of_week(v, count_from_zero=False, week_start=7),
    "ISODOW": lambda v: pc.day_of_week(v, count_from_zero=False, week_start=1),
    "ISOYEAR": pc.iso_year,
    "HOUR": pc.hour,
    "MINUTE": pc.minute,
    "SECOND": pc.second,
    "MILLISECOND": pc.millisecond,
    "MICROSECOND": lambda v: pc.add(pc.multiply(pc.millisecond(v), 1000), pc.microsecond(v)),
    "DECADE": lambda v: pc.divide(pc.year(v), 10),
    "CENTURY": lambda v: pc.divide(pc.add(pc.year(v), 99), 100),
    "MILLENNIUM": lambda v: pc.divide(pc.add(pc.year(v), 999), 1000),
}


def _part(unit: str, datum: Any, kind: t.DataType, zone: str) -> Any:
    if isinstance(kind, t.DayTimeIntervalType):
        return _interval_part(unit, datum)
    if isinstance(kind, t.YearMonthIntervalType):
        return (
            pc.divide(pc.cast(datum, pa.int64()), 12)
            if unit == "YEAR"
            else pc.subtract(datum, pc.multiply(pc.divide(datum, 12), 12))
        )
    if unit == "EPOCH":
        whole = pc.cast(pc.cast(datum, pa.timestamp("s"), safe=False), pa.int64())
        return whole
    local = _in_zone(datum, kind, zone)
    if isinstance(kind, t.DateType) and unit in ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"):
        return pc.multiply(pc.cast(pc.year(local), pa.int64()), 0)
    return _PARTS[unit](local)


def _interval_part(unit: str, datum: Any) -> Any:
    millis = pc.cast(pc.cast(datum, pa.duration("ms")), pa.int64())
    sizes = {"DAY": (86_400_000, None), "HOUR": (3_600_000, 24), "MINUTE": (60_000, 60), "SECOND": (1000, 60)}
    size, span = sizes.get(unit, (1, 1000))
    whole = pc.divide(millis, size)
    return whole if span is None else pc.subtract(whole, pc.multiply(pc.divide(whole, span), span))


def _extract(frame: Any, args: list[Any], kinds: list[t.DataType], _kind: t.DataType) -> Any:
    return pc.cast(_part(args[0], args[1], kinds[1], frame.zone), pa.int64())


define(
    "EXTRACT",
    _T,
    ("symbol, temporal", "symbol, interval"),
    t.BIGINT,
    _extract,
    "A part of a moment or an interval.",
    syntax="EXTRACT(unit FROM temporal)",
)
for _name, _unit, _doc in (
    ("YEAR", "YEAR", "The year."),
    ("QUARTER", "QUARTER", "The quarter, from 1."),
    ("MONTH", "MONTH", "The month, from 1."),
    ("WEEK", "WEEK", "The week of the year."),
    ("DAYOFYEAR", "DOY", "The day of the year, from 1."),
    ("DAYOFMONTH", "DAY", "The day of the month, from 1."),
    ("DAYOFWEEK", "DOW", "The day of the week; Sunday is 1."),
    ("HOUR", "HOUR", "The hour."),
    ("MINUTE", "MINUTE", "The minute."),
    ("SECOND", "SECOND", "The second."),
):

    def _named(frame: Any, args: list[Any], kinds: Any, _kind: Any, unit: str = _unit) -> Any:
        return pc.cast(_part(unit, args[0], kinds[0], frame.zone), pa.int64())

    define(_name, _T, "temporal", t.BIGINT, _named, _doc)


def _turned(up: bool) -> Any:
    numbers = arithmetic.whole(up)

    def evaluate(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
        if len(args) == 1:
            return numbers(frame, args, kinds, kind)
        datum, source = args[0], kinds[0]
        unit = _UNITS[args[1]]
        if isinstance(source, t.DateType) and unit in ("hour", "minute", "second", "millisecond", "day"):
            return datum
        function = pc.ceil_temporal if up else pc.floor_temporal
        if isinstance(source, t.LocalZonedTimestampType):
            zoned = pc.cast(datum, pa.timestamp(datum.type.unit, frame.zone))
            made = function(zoned, unit=unit, week_starts_monday=False)
        else:
            made = function(datum, unit=unit, week_starts_monday=False)
        return pc.cast(made, arrow_type(kind))

    return evaluate


def _floor_type(kinds: list[t.DataType]) -> t.DataType:
    return arithmetic.whole_type(kinds) if len(kinds) == 1 else kinds[0]


define(
    "FLOOR",
    "arithmetic",
    ("number", "temporal, symbol"),
    _floor_type,
    _turned(up=False),
    "The number, or the moment to a unit, rounded down.",
    syntax="FLOOR(number) or FLOOR(temporal TO unit)",
)
define(
    "CEIL",
    "arithmetic",
    ("number", "temporal, symbol"),
    _floor_type,
    _turned(up=True),
    "The number, or the moment to a unit, rounded up.",
    syntax="CEIL(number) or CEIL(temporal TO unit)",
    aliases=("CEILING",),
)


# ------------------------------------------------------------------------------------------- moments and intervals


def add_months(value: Any, months: int) -> Any:
    """A date or moment so many months later; the day is kept or is the last of the month."""
    total = value.year * 12 + value.month - 1 + months
    year, month = divmod(total, 12)
    day = min(value.day, calendar.monthrange(year, month + 1)[1])
    return value.replace(year=year, month=month + 1, day=day)


def _shift(value: Any, span: Any, sign: int) -> Any:
    if isinstance(span, int):
        return add_months(value, sign * span)
    if isinstance(value, datetime.time):
        moved = datetime.datetime.combine(text.EPOCH.date(), value) + sign * span
        return moved.time()
    return value + sign * span


def _shifted(sign: int) -> Any:
    slow = by_row(lambda value, span: _shift(value, span, sign))

    def evaluate(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
        if t.is_timestamp(kinds[0]) and isinstance(kinds[1], t.DayTimeIntervalType):
            made = (pc.add if sign > 0 else pc.subtract)(args[0], args[1])
            return pc.cast(made, arrow_type(kind))
        if isinstance(kinds[0], t.DateType) and t.is_timestamp(kind):
            lifted = pc.cast(args[0], arrow_type(kind))
            return evaluate(frame, [lifted, args[1]], [kind, kinds[1]], kind)
        return slow(frame, args, kinds, kind)

    return evaluate


def _shift_type(kinds: list[t.DataType]) -> t.DataType:
    value, span = kinds
    if isinstance(value, t.DateType) and isinstance(span, t.DayTimeIntervalType) and span.resolution != "DAY":
        return t.TimestampType(3) if "SECOND" in span.resolution else t.TimestampType(0)
    return value


define(
    "TEMPORAL +",
    _T,
    "temporal, interval",
    _shift_type,
    _shifted(1),
    "A moment so much later.",
    syntax="temporal + interval",
)
define(
    "TEMPORAL -",
    _T,
    "temporal, interval",
    _shift_type,
    _shifted(-1),
    "A moment so much earlier.",
    syntax="temporal - interval",
)


def _interval_sum(sign: int) -> Any:
    return lambda _frame, args, _kinds, kind: pc.cast((pc.add if sign > 0 else pc.subtract)(*args), arrow_type(kind))


def _intervals(kinds: list[t.DataType]) -> list[t.DataType] | None:
    common = t.common_type(kinds)
    return None if common is None else [common.with_null(kind.null) for kind in kinds]


define(
    "INTERVAL +",
    _T,
    "interval, interval",
    lambda kinds: kinds[0],
    _interval_sum(1),
    "The sum of intervals.",
    coerce=_intervals,
    syntax="interval + interval",
)
define(
    "INTERVAL -",
    _T,
    "interval, interval",
    lambda kinds: kinds[0],
    _interval_sum(-1),
    "The difference of intervals.",
    coerce=_intervals,
    syntax="interval - interval",
)
define(
    "INTERVAL *",
    _T,
    "interval, number",
    lambda kinds: kinds[0],
    by_row(lambda span, n: span * int(n) if isinstance(span, int) else span * float(n)),
    "An interval so many times.",
    syntax="interval * number",
)
define(
    "INTERVAL /",
    _T,
    "interval, number",
    lambda kinds: kinds[0],
    by_row(lambda span, n: int(span / n) if isinstance(span, int) else span / float(n)),
    "A part of an interval.",
    syntax="interval / number",
)


def _timestampadd(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    def add(unit: str, count: int, value: Any) -> Any:
        if unit in ("YEAR", "QUARTER", "MONTH"):
            return add_months(value, count * {"YEAR": 12, "QUARTER": 3, "MONTH": 1}[unit])
        span = datetime.timedelta(milliseconds=count * _MILLIS[unit]) if unit in _MILLIS else datetime.timedelta(0)
        if isinstance(value, datetime.datetime) or not t.is_timestamp(kind):
            return value + span
        return datetime.datetime.combine(value, datetime.time()) + span

    return by_row(add)(frame, args, kinds, kind)


_MILLIS = {
    "WEEK": 604_800_000,
    "DAY": 86_400_000,
    "HOUR": 3_600_000,
    "MINUTE": 60_000,
    "SECOND": 1000,
    "MILLISECOND": 1,
}


def timestampadd_type(unit: str, kind: t.DataType) -> t.DataType:
    """The type of TIMESTAMPADD for a unit: a date with hours becomes a timestamp."""
    if isinstance(kind, t.DateType) and unit in ("HOUR", "MINUTE", "SECOND", "MILLISECOND"):
        return t.TimestampType(0, null=kind.null)
    return kind


define(
    "TIMESTAMPADD",
    _T,
    "symbol, bigint, temporal",
    lambda kinds: kinds[2],
    _timestampadd,
    "A moment so many units later.",
    syntax="TIMESTAMPADD(unit, count, temporal)",
)


def _timestampdiff(unit: str, start: Any, end: Any) -> int:
    one, other = _as_moment(start), _as_moment(end)
    if unit in ("YEAR", "QUARTER", "MONTH"):
        months = (other.year - one.year) * 12 + other.month - one.month
        if months > 0 and add_months(one, months) > other:
            months -= 1
        elif months < 0 and add_months(one, months) < other:
            months += 1
        size = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}[unit]
        return months // size if months >= 0 else -(-months // size)
    micros = (other - one) // datetime.timedelta(microseconds=1)
    size = _MILLIS.get(unit, 1) * 1000
    return micros // size if micros >= 0 else -(-micros // size)


def _as_moment(value: Any) -> datetime.datetime:
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None) if value.tzinfo is None else value.astimezone(text.UTC).replace(tzinfo=None)
    if isinstance(value, datetime.time):
        return datetime.datetime.combine(text.EPOCH.date(), value)
    return datetime.datetime.combine(value, datetime.time())


define(
    "TIMESTAMPDIFF",
    _T,
    "symbol, temporal, temporal",
    t.INT,
    by_row(_timestampdiff),
    "How many whole units lie between two moments.",
    syntax="TIMESTAMPDIFF(unit, start, end)",
)


def _overlaps(one: Any, other: Any) -> bool:
    def ends(pair: Any) -> tuple[Any, Any]:
        start, end = pair
        end = _shift(start, end, 1) if isinstance(end, datetime.timedelta | int) else end
        return (start, end) if start <= end else (end, start)

    (a, b), (c, d) = ends(one), ends(other)
    return bool(a <= d and c <= b)


define(
    "OVERLAPS",
    _T,
    "row, row",
    t.BOOLEAN,
    by_row(_overlaps),
    "TRUE when two spans of time have a moment in common.",
    syntax="(start1, end1) OVERLAPS (start2, end2)",
)


# -------------------------------------------------------------------------------------------------- as text and back


def _date_format(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    zone = text.zone(frame.zone)

    def write(value: Any, pattern: str) -> str:
        if isinstance(value, str):
            value = text.parse_timestamp(value)
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            value = value.astimezone(zone)
        elif not isinstance(value, datetime.datetime):
            value = _as_moment(value)
        return javatime.writer(pattern)(value)

    column, pattern = args
    if not t.is_timestamp(kinds[0]) or isinstance(column, pa.Scalar) or not isinstance(pattern, pa.Scalar):
        return by_row(write)(frame, args, kinds, kind)
    return _once_each(frame, column, pattern, by_row(write), kinds, kind)


def _once_each(
    frame: Any, column: pa.Array, pattern: pa.Scalar, write: Any, kinds: list[t.DataType], kind: t.DataType
) -> Any:
    """Moments that look the same by the pattern are written once."""
    grain = javatime.grain(scalar_value(pattern) or "", zoned=column.type.tz is not None)
    if grain is not None:
        column = pc.floor_temporal(column, unit=grain)
    encoded = pc.dictionary_encode(column)
    if 2 * len(encoded.dictionary) > len(column):
        return write(frame, [column, pattern], kinds, kind)
    few = replace(frame, columns=[], count=len(encoded.dictionary))
    return write(few, [encoded.dictionary, pattern], kinds, kind).take(encoded.indices)


define(
    "DATE_FORMAT",
    _T,
    ("timestamp, string", "string, string"),
    t.STRING,
    _date_format,
    "A moment as text, by a pattern of Java's.",
    null="always",
)


def _to_date(value: str, pattern: str | None = None) -> datetime.date | None:
    try:
        return text.parse_date(value) if pattern is None else javatime.reader(pattern)(value).date()
    except (ValueError, StopIteration):
        return None


def _to_timestamp(value: str, pattern: str | None = None) -> datetime.datetime | None:
    try:
        return text.parse_timestamp(value) if pattern is None else javatime.reader(pattern)(value)
    except (ValueError, StopIteration):
        return None


define(
    "TO_DATE",
    _T,
    ("string", "string, string"),
    t.DATE,
    by_row(_to_date),
    "A date read from text; NULL when it is none.",
    null="always",
)
define(
    "TO_TIMESTAMP",
    _T,
    ("string", "string, string"),
    t.TimestampType(3),
    by_row(_to_timestamp),
    "A timestamp read from text; NULL when it is none.",
    null="always",
)


def _to_ltz(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    zone = text.zone(frame.zone)

    def make(value: Any, precision: Any = 3, named: str | None = None) -> datetime.datetime | None:
        if isinstance(value, str):
            found = _to_timestamp(value, precision if isinstance(precision, str) else None)
            local = zone if named is None else text.zone(named)
            return None if found is None else found.replace(tzinfo=local).astimezone(text.UTC)
        if precision not in (0, 3):
            msg = "the precision of TO_TIMESTAMP_LTZ is 0 for seconds or 3 for milliseconds"
            raise ValueError(msg)
        millis = int(value * 1000) if precision == 0 else int(value)
        return datetime.datetime(1970, 1, 1, tzinfo=text.UTC) + millis * _MS

    if len(args) == 2 and isinstance(kinds[0], t.IntegerType) and isinstance(args[1], pa.Scalar):
        factor = {0: 1000, 3: 1}.get(scalar_value(args[1]))
        if factor is not None:
            millis = pc.multiply(pc.cast(args[0], pa.int64()), factor)
            return _moments(millis)
    return by_row(make)(frame, args, kinds, kind)


def _moments(millis: Any) -> Any:
    return pc.assume_timezone(pc.cast(millis, pa.timestamp("ms")), "UTC")


define(
    "TO_TIMESTAMP_LTZ",
    _T,
    ("number", "number, int", "string", "string, string", "string, string, string"),
    _LTZ3,
    _to_ltz,
    "A moment from seconds or milliseconds since 1970, or from text.",
    null="always",
)


def _convert_tz(value: str, source: str, target: str) -> str | None:
    try:
        moment_there = text.parse_timestamp(value).replace(tzinfo=text.zone(source))
        return moment_there.astimezone(text.zone(target)).strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return None


define(
    "CONVERT_TZ",
    _T,
    "string, string, string",
    t.STRING,
    by_row(_convert_tz),
    "A timestamp as text, from one zone to another.",
    null="always",
)


def _watermark(frame: Any, _args: list[Any], _kinds: list[t.DataType], kind: t.DataType) -> Any:
    mark = getattr(frame, "watermark", None)
    if mark is None or mark <= -(2**63) or mark >= 2**63 - 1:
        return pa.scalar(None, arrow_type(kind))
    at = datetime.datetime(1970, 1, 1, tzinfo=text.UTC) + mark * _MS
    return pa.scalar(at if isinstance(kind, t.LocalZonedTimestampType) else at.replace(tzinfo=None), arrow_type(kind))


define(
    "CURRENT_WATERMARK",
    _T,
    "timestamp",
    lambda kinds: kinds[0],
    _watermark,
    "The watermark of a rowtime attribute here; NULL where there is none yet.",
    null="always",
    deterministic=False,
)


def _past(frame: Any, args: list[Any], _kinds: list[t.DataType], kind: t.DataType) -> Any:
    millis = pc.add(args[0], frame.now)
    made = pc.cast(millis, pa.timestamp("ms"))
    return pc.cast(
        pc.assume_timezone(made, "UTC") if isinstance(kind, t.LocalZonedTimestampType) else made, arrow_type(kind)
    )


def _numbered(_frame: Any, args: list[Any], _kinds: list[t.DataType], kind: t.DataType) -> Any:
    return pc.cast(pc.cast(args[0], pa.int32()), arrow_type(kind))


define("$PAST", "internal", "bigint", t.TimestampType(3), _past, "So many milliseconds from now.")
define("$NUMBERED", "internal", "bigint", t.DATE, _numbered, "The date or time of a number.")
