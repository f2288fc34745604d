"""Arithmetic of dates, times, timestamps and intervals.

Promises: adding months keeps the day of the month, or takes the last day; differences in units are truncated toward
zero.
Does not know: time zones, patterns."""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc

from millstream.sql.columns import arrow_type
from millstream.sql.expressions.nodes import Lit
from millstream.sql.functions import text
from millstream.sql.functions.registry import by_row, define, to_common_type
from millstream.sql.functions.spark import NoSparkSpelling, SparkCall
from millstream.sql.types import data_types as t
from millstream.times import EPOCH_DAY, MICROSECOND, MILLISECOND
from millstream.types.nanoseconds import truncate_fraction

_TEMPORAL = "temporal"


def add_months(value: Any, months: int) -> Any:
    """Add months to a date or timestamp; the day is kept, or is the last day of the month."""
    total = value.year * 12 + value.month - 1 + months
    year, month = divmod(total, 12)
    day = min(value.day, calendar.monthrange(year, month + 1)[1])
    return value.replace(year=year, month=month + 1, day=day)


def _shift(value: Any, interval: Any, sign: int) -> Any:
    """Add an interval, or subtract it if `sign` is -1; an interval is a number of months or a timedelta."""
    if isinstance(interval, int):
        return add_months(value, sign * interval)
    if isinstance(value, datetime.time):
        return (datetime.datetime.combine(EPOCH_DAY, value) + sign * interval).time()
    return value + sign * interval


def _add_interval(sign: int) -> Any:
    fallback = by_row(lambda value, interval: _shift(value, interval, sign))

    def evaluate(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
        if t.is_timestamp(arg_types[0]) and isinstance(arg_types[1], t.DayTimeIntervalType):
            result = (pc.add if sign > 0 else pc.subtract)(args[0], args[1])
            return pc.cast(result, arrow_type(result_type))
        if isinstance(arg_types[0], t.DateType) and t.is_timestamp(result_type):
            timestamps = pc.cast(args[0], arrow_type(result_type))
            return evaluate(frame, [timestamps, args[1]], [result_type, arg_types[1]], result_type)
        return fallback(frame, args, arg_types, result_type)

    return evaluate


def _derive_shift_type(arg_types: list[t.DataType]) -> t.DataType:
    value, interval = arg_types
    if isinstance(value, t.DateType) and isinstance(interval, t.DayTimeIntervalType) and interval.resolution != "DAY":
        return t.TimestampType(3) if "SECOND" in interval.resolution else t.TimestampType(0)
    return value


def _spell_shift(sign: int) -> Callable[[SparkCall], str]:
    """Spell a timestamp plus or minus a constant interval of days or smaller units."""

    def spell(call: SparkCall) -> str:
        value, interval = call.args
        if not t.is_timestamp(value.type) or not t.is_timestamp(call.type):
            raise NoSparkSpelling(call)
        if not isinstance(interval, Lit) or not isinstance(interval.value, datetime.timedelta):
            raise NoSparkSpelling(call)
        micros = sign * (interval.value // MICROSECOND)  # TIMESTAMPADD of Spark 3.5 takes an INT
        operator, seconds = "+" if micros >= 0 else "-", divmod(abs(micros), 1_000_000)
        return f"({call.text(0)} {operator} INTERVAL '{seconds[0]}.{seconds[1]:06d}' SECOND)"

    return spell


define(
    "TEMPORAL +",
    _TEMPORAL,
    "temporal, interval",
    _derive_shift_type,
    _add_interval(1),
    "Returns the date, time or timestamp plus the interval.",
    syntax="temporal + interval",
    spark=_spell_shift(1),
)
define(
    "TEMPORAL -",
    _TEMPORAL,
    "temporal, interval",
    _derive_shift_type,
    _add_interval(-1),
    "Returns the date, time or timestamp minus the interval.",
    syntax="temporal - interval",
    spark=_spell_shift(-1),
)


def _add_intervals(sign: int) -> Any:
    return lambda _frame, args, _arg_types, result_type: pc.cast(
        (pc.add if sign > 0 else pc.subtract)(*args), arrow_type(result_type)
    )


define(
    "INTERVAL +",
    _TEMPORAL,
    "interval, interval",
    lambda arg_types: arg_types[0],
    _add_intervals(1),
    "Returns the sum of the intervals.",
    coerce=to_common_type,
    syntax="interval + interval",
)
define(
    "INTERVAL -",
    _TEMPORAL,
    "interval, interval",
    lambda arg_types: arg_types[0],
    _add_intervals(-1),
    "Returns the difference of the intervals.",
    coerce=to_common_type,
    syntax="interval - interval",
)
define(
    "INTERVAL *",
    _TEMPORAL,
    "interval, number",
    lambda arg_types: arg_types[0],
    by_row(lambda interval, n: interval * int(n) if isinstance(interval, int) else interval * float(n)),
    "Returns the interval multiplied by the number.",
    syntax="interval * number",
)
define(
    "INTERVAL /",
    _TEMPORAL,
    "interval, number",
    lambda arg_types: arg_types[0],
    by_row(lambda interval, n: int(interval / n) if isinstance(interval, int) else interval / float(n)),
    "Returns the interval divided by the number.",
    syntax="interval / number",
)


def _timestampadd(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    def add(unit: str, count: int, value: Any) -> Any:
        if unit in ("YEAR", "QUARTER", "MONTH"):
            return add_months(value, count * {"YEAR": 12, "QUARTER": 3, "MONTH": 1}[unit])
        interval = datetime.timedelta(milliseconds=count * _MILLIS[unit]) if unit in _MILLIS else datetime.timedelta(0)
        if isinstance(value, datetime.datetime) or not t.is_timestamp(result_type):
            return value + interval
        return datetime.datetime.combine(value, datetime.time()) + interval

    return by_row(add)(frame, args, arg_types, result_type)


_MILLIS = {
    "WEEK": 604_800_000,
    "DAY": 86_400_000,
    "HOUR": 3_600_000,
    "MINUTE": 60_000,
    "SECOND": 1000,
    "MILLISECOND": 1,
}


def derive_timestampadd_type(unit: str, data_type: t.DataType) -> t.DataType:
    """Return the type of TIMESTAMPADD for a unit: a date plus hours is a timestamp."""
    if isinstance(data_type, t.DateType) and unit in ("HOUR", "MINUTE", "SECOND", "MILLISECOND"):
        return t.TimestampType(0, null=data_type.null)
    return data_type


define(
    "TIMESTAMPADD",
    _TEMPORAL,
    "symbol, bigint, temporal",
    lambda arg_types: arg_types[2],
    _timestampadd,
    "Returns the timestamp or date plus `count` time units.",
    syntax="TIMESTAMPADD(unit, count, temporal)",
)


def _timestampdiff(unit: str, start: Any, end: Any) -> int:
    first, last = as_timestamp(start), as_timestamp(end)
    if unit in ("YEAR", "QUARTER", "MONTH"):
        months = (last.year - first.year) * 12 + last.month - first.month
        if months > 0 and add_months(first, months) > last:
            months -= 1
        elif months < 0 and add_months(first, months) < last:
            months += 1
        size = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}[unit]
        return months // size if months >= 0 else -(-months // size)
    # the digits below milliseconds do not count, as in Flink
    millis = (truncate_fraction(last, 3) - truncate_fraction(first, 3)) // MILLISECOND
    size = _MILLIS.get(unit, 1)
    return millis // size if millis >= 0 else -(-millis // size)


def as_timestamp(value: Any) -> datetime.datetime:
    """Convert a date, time or timestamp to a timestamp in UTC: midnight of a date, 1970-01-01 for a time."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None) if value.tzinfo is None else value.astimezone(text.UTC).replace(tzinfo=None)
    if isinstance(value, datetime.time):
        return datetime.datetime.combine(EPOCH_DAY, value)
    return datetime.datetime.combine(value, datetime.time())


define(
    "TIMESTAMPDIFF",
    _TEMPORAL,
    "symbol, temporal, temporal",
    t.INT,
    by_row(_timestampdiff),
    "Returns the number of complete time units between start and end.",
    syntax="TIMESTAMPDIFF(unit, start, end)",
)


def _overlaps(left: Any, right: Any) -> bool:
    def order_bounds(period: Any) -> tuple[Any, Any]:
        start, end = period
        end = _shift(start, end, 1) if isinstance(end, datetime.timedelta | int) else end
        return (start, end) if start <= end else (end, start)

    (left_start, left_end), (right_start, right_end) = order_bounds(left), order_bounds(right)
    return bool(left_start <= right_end and right_start <= left_end)


define(
    "OVERLAPS",
    _TEMPORAL,
    "row, row",
    t.BOOLEAN,
    by_row(_overlaps),
    "Returns TRUE if the two time periods overlap. The end can be an interval.",
    syntax="(start1, end1) OVERLAPS (start2, end2)",
)
