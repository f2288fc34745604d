"""Fields of dates, times, timestamps and intervals; FLOOR and CEIL to a time unit.

Promises: TIMESTAMP has no time zone; the fields of TIMESTAMP_LTZ are those in the time zone of the session.
Does not know: the current time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import arrow_type
from millstream.sql.expressions.nodes import Sym
from millstream.sql.functions import arithmetic
from millstream.sql.functions.registry import define
from millstream.sql.functions.spark import NoSparkSpelling, SparkCall
from millstream.sql.types import data_types as t

_TEMPORAL = "temporal"
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


def _to_local(datum: Any, data_type: t.DataType, zone: str) -> Any:
    """Convert TIMESTAMP_LTZ to a timestamp in the time zone of the session."""
    if not isinstance(data_type, t.LocalZonedTimestampType):
        return datum
    if zone == "UTC":
        return pc.cast(datum, pa.timestamp(datum.type.unit))
    return pc.local_timestamp(pc.cast(datum, pa.timestamp(datum.type.unit, zone)))


_EXTRACTORS: dict[str, Callable[[Any], Any]] = {
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
    "NANOSECOND": lambda v: pc.add(
        pc.multiply(pc.add(pc.multiply(pc.millisecond(v), 1000), pc.microsecond(v)), 1000), pc.nanosecond(v)
    ),
    "DECADE": lambda v: pc.divide(pc.year(v), 10),
    "CENTURY": lambda v: pc.divide(pc.add(pc.year(v), 99), 100),
    "MILLENNIUM": lambda v: pc.divide(pc.add(pc.year(v), 999), 1000),
}


def _extract_unit(unit: str, datum: Any, data_type: t.DataType, zone: str) -> Any:
    if isinstance(data_type, t.DayTimeIntervalType):
        return _extract_interval_unit(unit, datum)
    if isinstance(data_type, t.YearMonthIntervalType):
        return (
            pc.divide(pc.cast(datum, pa.int64()), 12)
            if unit == "YEAR"
            else pc.subtract(datum, pc.multiply(pc.divide(datum, 12), 12))
        )
    if unit == "EPOCH":
        seconds = datum if pa.types.is_date(datum.type) else pc.floor_temporal(datum, unit="second")
        return pc.cast(pc.cast(seconds, pa.timestamp("s"), safe=False), pa.int64())
    local = _to_local(datum, data_type, zone)
    if isinstance(data_type, t.DateType) and unit in (
        "HOUR",
        "MINUTE",
        "SECOND",
        "MILLISECOND",
        "MICROSECOND",
        "NANOSECOND",
    ):
        return pc.multiply(pc.cast(pc.year(local), pa.int64()), 0)
    return _EXTRACTORS[unit](local)


def _extract_interval_unit(unit: str, datum: Any) -> Any:
    millis = pc.cast(pc.cast(datum, pa.duration("ms")), pa.int64())
    sizes = {"DAY": (86_400_000, None), "HOUR": (3_600_000, 24), "MINUTE": (60_000, 60), "SECOND": (1000, 60)}
    size, modulus = sizes.get(unit, (1, 1000))
    total = pc.divide(millis, size)
    return total if modulus is None else pc.subtract(total, pc.multiply(pc.divide(total, modulus), modulus))


def _extract(frame: Any, args: list[Any], arg_types: list[t.DataType], _result_type: t.DataType) -> Any:
    return pc.cast(_extract_unit(args[0], args[1], arg_types[1], frame.zone), pa.int64())


_SPARK_DATE_UNITS = ("YEAR", "QUARTER", "MONTH", "DAY")
_SPARK_TIME_UNITS = ("HOUR", "MINUTE")


def _spell_extract(call: SparkCall) -> str:
    unit, value = call.args
    units = (*_SPARK_DATE_UNITS, *_SPARK_TIME_UNITS) if isinstance(value.type, t.TimestampType) else _SPARK_DATE_UNITS
    if not isinstance(unit, Sym) or unit.word not in units or not isinstance(value.type, t.DateType | t.TimestampType):
        raise NoSparkSpelling(call)
    return f"CAST(EXTRACT({unit.word} FROM {call.text(1)}) AS BIGINT)"


define(
    "EXTRACT",
    _TEMPORAL,
    ("symbol, temporal", "symbol, interval"),
    t.BIGINT,
    _extract,
    "Returns a field of a date, time, timestamp or interval as BIGINT.",
    syntax="EXTRACT(unit FROM temporal)",
    spark=_spell_extract,
)
for _name, _unit, _doc in (
    ("YEAR", "YEAR", "Returns the year."),
    ("QUARTER", "QUARTER", "Returns the quarter of the year, counted from 1."),
    ("MONTH", "MONTH", "Returns the month, counted from 1."),
    ("WEEK", "WEEK", "Returns the ISO week of the year."),
    ("DAYOFYEAR", "DOY", "Returns the day of the year, counted from 1."),
    ("DAYOFMONTH", "DAY", "Returns the day of the month, counted from 1."),
    ("DAYOFWEEK", "DOW", "Returns the day of the week. Sunday is 1."),
    ("HOUR", "HOUR", "Returns the hour."),
    ("MINUTE", "MINUTE", "Returns the minute."),
    ("SECOND", "SECOND", "Returns the second."),
):

    def _extract_named_unit(frame: Any, args: list[Any], arg_types: Any, _result_type: Any, unit: str = _unit) -> Any:
        return pc.cast(_extract_unit(unit, args[0], arg_types[0], frame.zone), pa.int64())

    define(_name, _TEMPORAL, "temporal", t.BIGINT, _extract_named_unit, _doc)


def _create_rounding(up: bool) -> Any:
    evaluate_numbers = arithmetic.create_rounding(up=up)

    def evaluate(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
        if len(args) == 1:
            return evaluate_numbers(frame, args, arg_types, result_type)
        datum, source = args[0], arg_types[0]
        unit = _UNITS[args[1]]
        if isinstance(source, t.DateType) and unit in ("hour", "minute", "second", "millisecond", "day"):
            return datum
        function = pc.ceil_temporal if up else pc.floor_temporal
        if isinstance(source, t.LocalZonedTimestampType):
            zoned = pc.cast(datum, pa.timestamp(datum.type.unit, frame.zone))
            result = function(zoned, unit=unit, week_starts_monday=False)
        else:
            result = function(datum, unit=unit, week_starts_monday=False)
        return pc.cast(result, arrow_type(result_type))

    return evaluate


def _derive_floor_type(arg_types: list[t.DataType]) -> t.DataType:
    return arithmetic.derive_integer_part_type(arg_types) if len(arg_types) == 1 else arg_types[0]


define(
    "FLOOR",
    "arithmetic",
    ("number", "temporal, symbol"),
    _derive_floor_type,
    _create_rounding(up=False),
    "Rounds a number down to an integer, or a date or timestamp down to a time unit.",
    syntax="FLOOR(number) or FLOOR(temporal TO unit)",
)
define(
    "CEIL",
    "arithmetic",
    ("number", "temporal, symbol"),
    _derive_floor_type,
    _create_rounding(up=True),
    "Rounds a number up to an integer, or a date or timestamp up to a time unit.",
    syntax="CEIL(number) or CEIL(temporal TO unit)",
    aliases=("CEILING",),
)
