"""Conversion of timestamps to and from text and numbers.

Promises: patterns are those of Java; text that does not match returns NULL; local times are in the time zone of the
session.
Does not know: the current time, except UNIX_TIMESTAMP without arguments."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import arrow_type, scalar_value
from millstream.sql.functions import date_patterns, text
from millstream.sql.functions.registry import by_row, define
from millstream.sql.functions.temporal_arithmetic import as_moment
from millstream.sql.types import data_types as t

_T = "temporal"


def _unix(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    if not args:
        return pa.scalar(frame.now // 1000, pa.int64())
    zone = text.zone(frame.zone)

    def read(value: str, pattern: str = "yyyy-MM-dd HH:mm:ss") -> int:
        try:
            result = date_patterns.parser(pattern)(value)
        except (ValueError, StopIteration):
            return -(2**63)
        return int(result.replace(tzinfo=zone).timestamp())

    return by_row(read)(frame, args, arg_types, result_type)


define(
    "UNIX_TIMESTAMP",
    _T,
    ("", "string", "string, string"),
    t.BIGINT,
    _unix,
    "Returns the seconds since 1970-01-01 00:00:00 UTC: of the current time, or of text that is parsed by "
    "a pattern in the session's time zone.",
    deterministic=False,
)


def _from_unix(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    zone = text.zone(frame.zone)

    def write(seconds: int, pattern: str = "yyyy-MM-dd HH:mm:ss") -> str:
        return date_patterns.formatter(pattern)(datetime.datetime.fromtimestamp(seconds, zone))

    return by_row(write)(frame, args, arg_types, result_type)


define(
    "FROM_UNIXTIME",
    _T,
    ("bigint", "bigint, string"),
    t.STRING,
    _from_unix,
    "Formats seconds since 1970-01-01 00:00:00 UTC as text in the session's time zone. The default "
    "pattern is yyyy-MM-dd HH:mm:ss.",
    null="always",
)


def _date_format(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    zone = text.zone(frame.zone)

    def write(value: Any, pattern: str) -> str:
        if isinstance(value, str):
            value = text.parse_timestamp(value)
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            value = value.astimezone(zone)
        elif not isinstance(value, datetime.datetime):
            value = as_moment(value)
        return date_patterns.formatter(pattern)(value)

    column, pattern = args
    if not t.is_timestamp(arg_types[0]) or isinstance(column, pa.Scalar) or not isinstance(pattern, pa.Scalar):
        return by_row(write)(frame, args, arg_types, result_type)
    return _format_distinct(frame, column, pattern, by_row(write), arg_types, result_type)


def _format_distinct(
    frame: Any, column: pa.Array, pattern: pa.Scalar, write: Any, arg_types: list[t.DataType], data_type: t.DataType
) -> Any:
    """Format timestamps that are equal in the finest unit of the pattern once."""
    grain = date_patterns.finest_unit(scalar_value(pattern) or "", zoned=column.type.tz is not None)
    if grain is not None:
        alike = None if column.null_count else _common_timestamp(column, grain)
        if alike is not None:
            one = replace(frame, columns=[], count=1)
            return pa.repeat(write(one, [alike, pattern], arg_types, data_type)[0], len(column))
        column = pc.floor_temporal(column, unit=grain)
    encoded = pc.dictionary_encode(column)
    if 2 * len(encoded.dictionary) > len(column):
        return write(frame, [column, pattern], arg_types, data_type)
    few = replace(frame, columns=[], count=len(encoded.dictionary))
    return write(few, [encoded.dictionary, pattern], arg_types, data_type).take(encoded.indices)


def _common_timestamp(column: pa.Array, grain: str) -> pa.Array | None:
    """Return the timestamp, rounded down to a unit, that all timestamps of a batch share; None if they differ."""
    if not len(column):
        return None
    ends = pc.min_max(column)
    first, last = (pc.floor_temporal(pa.array([ends[name]]), unit=grain) for name in ("min", "max"))
    return first if first.equals(last) else None


define(
    "DATE_FORMAT",
    _T,
    ("timestamp, string", "string, string"),
    t.STRING,
    _date_format,
    "Formats a timestamp by a pattern of Java's DateTimeFormatter.",
    null="always",
)


def _to_date(value: str, pattern: str | None = None) -> datetime.date | None:
    try:
        return text.parse_date(value) if pattern is None else date_patterns.parser(pattern)(value).date()
    except (ValueError, StopIteration):
        return None


def _to_timestamp(value: str, pattern: str | None = None) -> datetime.datetime | None:
    try:
        return text.parse_timestamp(value) if pattern is None else date_patterns.parser(pattern)(value)
    except (ValueError, StopIteration):
        return None


define(
    "TO_DATE",
    _T,
    ("string", "string, string"),
    t.DATE,
    by_row(_to_date),
    "Parses a date by a pattern (yyyy-MM-dd if not given). Returns NULL if the text does not match.",
    null="always",
)
define(
    "TO_TIMESTAMP",
    _T,
    ("string", "string, string"),
    t.TimestampType(3),
    by_row(_to_timestamp),
    "Parses a TIMESTAMP by a pattern (yyyy-MM-dd HH:mm:ss if not given). Returns NULL if the text does not match.",
    null="always",
)


def _to_ltz(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    zone = text.zone(frame.zone)

    def make(value: Any, precision: Any = 3, named: str | None = None) -> datetime.datetime | None:
        if isinstance(value, str):
            result = _to_timestamp(value, precision if isinstance(precision, str) else None)
            local = zone if named is None else text.zone(named)
            return None if result is None else result.replace(tzinfo=local).astimezone(text.UTC)
        if precision not in (0, 3):
            msg = "the precision of TO_TIMESTAMP_LTZ is 0 for seconds or 3 for milliseconds"
            raise ValueError(msg)
        millis = int(value * 1000) if precision == 0 else int(value)
        return datetime.datetime(1970, 1, 1, tzinfo=text.UTC) + datetime.timedelta(milliseconds=millis)

    if len(args) == 2 and isinstance(arg_types[0], t.IntegerType) and isinstance(args[1], pa.Scalar):
        factor = {0: 1000, 3: 1}.get(scalar_value(args[1]))
        if factor is not None:
            millis = pc.multiply(pc.cast(args[0], pa.int64()), factor)
            return _to_timestamps(millis)
    return by_row(make)(frame, args, arg_types, result_type)


def _to_timestamps(millis: Any) -> Any:
    return pc.assume_timezone(pc.cast(millis, pa.timestamp("ms")), "UTC")


define(
    "TO_TIMESTAMP_LTZ",
    _T,
    ("number", "number, int", "string", "string, string", "string, string, string"),
    t.LocalZonedTimestampType(3),
    _to_ltz,
    "Converts seconds (precision 0) or milliseconds (precision 3, the default) since 1970-01-01 00:00:00 "
    "UTC to TIMESTAMP_LTZ(3), or parses it from text by a pattern in a time zone.",
    null="always",
)


def _convert_tz(value: str, source: str, target: str) -> str | None:
    try:
        zoned = text.parse_timestamp(value).replace(tzinfo=text.zone(source))
        return zoned.astimezone(text.zone(target)).strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return None


define(
    "CONVERT_TZ",
    _T,
    "string, string, string",
    t.STRING,
    by_row(_convert_tz),
    "Converts a timestamp, given as text, from one time zone to another.",
    null="always",
)


def _from_internal(_frame: Any, args: list[Any], _arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    return pc.cast(pc.cast(args[0], pa.int32()), arrow_type(result_type))


define(
    "$NUMBERED",
    "internal",
    "bigint",
    t.DATE,
    _from_internal,
    "Returns the date or time with the internal integer value.",
)
