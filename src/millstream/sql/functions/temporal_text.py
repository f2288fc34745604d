"""Moments as text or numbers, and back.

Promises: patterns are Java's; text that is no moment gives NULL; local times are those of the session's zone.
Does not know: what time it is, but for the UNIX_TIMESTAMP of now."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import arrow_type, scalar_value
from millstream.sql.functions import javatime, text
from millstream.sql.functions.registry import by_row, define
from millstream.sql.functions.temporal_arithmetic import as_moment
from millstream.sql.types import data_types as t

_T = "temporal"


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
    "Returns the seconds since 1970-01-01 00:00:00 UTC: of the current time, or of text that is parsed by "
    "a pattern in the session's time zone.",
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
    "Formats seconds since 1970-01-01 00:00:00 UTC as text in the session's time zone. The default "
    "pattern is yyyy-MM-dd HH:mm:ss.",
    null="always",
)


def _date_format(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    zone = text.zone(frame.zone)

    def write(value: Any, pattern: str) -> str:
        if isinstance(value, str):
            value = text.parse_timestamp(value)
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            value = value.astimezone(zone)
        elif not isinstance(value, datetime.datetime):
            value = as_moment(value)
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
        alike = None if column.null_count else _all_alike(column, grain)
        if alike is not None:
            one = replace(frame, columns=[], count=1)
            return pa.repeat(write(one, [alike, pattern], kinds, kind)[0], len(column))
        column = pc.floor_temporal(column, unit=grain)
    encoded = pc.dictionary_encode(column)
    if 2 * len(encoded.dictionary) > len(column):
        return write(frame, [column, pattern], kinds, kind)
    few = replace(frame, columns=[], count=len(encoded.dictionary))
    return write(few, [encoded.dictionary, pattern], kinds, kind).take(encoded.indices)


def _all_alike(column: pa.Array, grain: str) -> pa.Array | None:
    """The one moment that all moments are of this grain, as they often are in a batch; None if they differ."""
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
        return datetime.datetime(1970, 1, 1, tzinfo=text.UTC) + datetime.timedelta(milliseconds=millis)

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
    t.LocalZonedTimestampType(3),
    _to_ltz,
    "Converts seconds (precision 0) or milliseconds (precision 3, the default) since 1970-01-01 00:00:00 "
    "UTC to TIMESTAMP_LTZ(3), or parses it from text by a pattern in a time zone.",
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
    "Converts a timestamp, given as text, from one time zone to another.",
    null="always",
)


def _numbered(_frame: Any, args: list[Any], _kinds: list[t.DataType], kind: t.DataType) -> Any:
    return pc.cast(pc.cast(args[0], pa.int32()), arrow_type(kind))


define(
    "$NUMBERED", "internal", "bigint", t.DATE, _numbered, "Returns the date or time with the internal integer value."
)
