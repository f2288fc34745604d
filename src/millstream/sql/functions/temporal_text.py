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

from millstream.sql.columns import get_arrow_unit, scalar_value
from millstream.sql.functions import text
from millstream.sql.functions.date_parsing import compile_parser
from millstream.sql.functions.date_patterns import check_format_pattern, compile_formatter, find_finest_unit
from millstream.sql.functions.registry import by_row, define
from millstream.sql.functions.simple_date_patterns import (
    check_simple_pattern,
    compile_simple_formatter,
    compile_simple_parser,
)
from millstream.sql.functions.temporal_arithmetic import as_timestamp
from millstream.sql.types import data_types as t
from millstream.times import EPOCH, MICROSECOND

_TEMPORAL = "temporal"
_DEFAULT_PATTERN = "yyyy-MM-dd HH:mm:ss"


def _unix_timestamp(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    if not args:
        return pa.scalar(frame.now // 1000, pa.int64())
    zone = text.find_time_zone(frame.zone)

    def parse(value: str, pattern: str = _DEFAULT_PATTERN) -> int:
        parse_text = compile_simple_parser(pattern)
        try:
            return int(parse_text(value, zone).timestamp())
        except (ValueError, OverflowError):
            return -(2**63)

    return by_row(parse)(frame, args, arg_types, result_type)


define(
    "UNIX_TIMESTAMP",
    _TEMPORAL,
    ("", "string", "string, string"),
    t.BIGINT,
    _unix_timestamp,
    "Returns the seconds since 1970-01-01 00:00:00 UTC: of the current time, or of text that is parsed by "
    "a pattern, in the session's time zone unless the text has an offset.",
    deterministic=False,
)


def _from_unixtime(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    zone = text.find_time_zone(frame.zone)

    def format_seconds(seconds: int, pattern: str = _DEFAULT_PATTERN) -> str:
        return compile_simple_formatter(pattern)(datetime.datetime.fromtimestamp(seconds, zone))

    return by_row(format_seconds)(frame, args, arg_types, result_type)


define(
    "FROM_UNIXTIME",
    _TEMPORAL,
    ("bigint", "bigint, string"),
    t.STRING,
    _from_unixtime,
    "Formats seconds since 1970-01-01 00:00:00 UTC as text in the session's time zone. The default "
    "pattern is yyyy-MM-dd HH:mm:ss.",
    null="always",
)


def _date_format(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    zone = text.find_time_zone(frame.zone)

    def format_value(value: Any, pattern: str) -> str | None:
        if isinstance(value, str):
            return _format_text(value, pattern, zone)
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            value = value.astimezone(zone)
        elif not isinstance(value, datetime.datetime):
            value = as_timestamp(value)
        return compile_formatter(pattern)(value)

    column, pattern = args
    if not t.is_timestamp(arg_types[0]) or isinstance(column, pa.Scalar) or not isinstance(pattern, pa.Scalar):
        return by_row(format_value)(frame, args, arg_types, result_type)
    return _format_distinct(frame, column, pattern, by_row(format_value), arg_types, result_type)


def _format_text(value: str, pattern: str, zone: datetime.tzinfo) -> str | None:
    format_timestamp = compile_simple_formatter(pattern)
    try:
        timestamp = compile_simple_parser(_DEFAULT_PATTERN)(value, zone)
    except (ValueError, OverflowError):
        return None
    return format_timestamp(timestamp)


def check_pattern(function: str, arg_type: t.DataType, pattern: str) -> None:
    """Raise ValueError if a function cannot use a pattern; functions that return NULL for it are not checked."""
    if function == "DATE_FORMAT" and not t.is_text(arg_type):
        check_format_pattern(pattern)
    elif function in ("DATE_FORMAT", "FROM_UNIXTIME", "UNIX_TIMESTAMP", "TO_DATE"):
        check_simple_pattern(pattern)


def _format_distinct(
    frame: Any,
    column: pa.Array,
    pattern: pa.Scalar,
    evaluate: Any,
    arg_types: list[t.DataType],
    result_type: t.DataType,
) -> Any:
    """Format timestamps that are equal in the finest unit of the pattern once."""
    unit = find_finest_unit(scalar_value(pattern) or "")
    if unit is not None and column.type.tz is not None:
        unit = "second"  # offsets of time zones have minutes, and historical ones seconds
    if unit is not None:
        common_timestamp = None if column.null_count else _find_common_timestamp(column, unit)
        if common_timestamp is not None:
            one_row = replace(frame, columns=[], count=1)
            texts = evaluate(one_row, [common_timestamp, pattern], arg_types, result_type)
            return pa.repeat(texts[0], len(column))
        column = pc.floor_temporal(column, unit=unit)
    encoded = pc.dictionary_encode(column)
    if 2 * len(encoded.dictionary) > len(column):
        return evaluate(frame, [column, pattern], arg_types, result_type)
    distinct_rows = replace(frame, columns=[], count=len(encoded.dictionary))
    return evaluate(distinct_rows, [encoded.dictionary, pattern], arg_types, result_type).take(encoded.indices)


def _find_common_timestamp(column: pa.Array, unit: str) -> pa.Array | None:
    """Return the timestamp, rounded down to a unit, that all timestamps of a batch share; None if they differ."""
    if not len(column):
        return None
    min_max = pc.min_max(column)
    first, last = (pc.floor_temporal(pa.array([min_max[name]]), unit=unit) for name in ("min", "max"))
    return first if first.equals(last) else None


define(
    "DATE_FORMAT",
    _TEMPORAL,
    ("timestamp, string", "string, string"),
    t.STRING,
    _date_format,
    "Formats a timestamp by a pattern of Java's DateTimeFormatter.",
    null="always",
)


def _to_date(value: str, pattern: str | None = None) -> datetime.date | None:
    try:
        return text.parse_date(value) if pattern is None else compile_simple_parser(pattern)(value, text.UTC).date()
    except (ValueError, OverflowError):
        return None


def _to_timestamp(value: str, pattern: str | None = None) -> datetime.datetime | None:
    try:
        return text.parse_timestamp(value) if pattern is None else compile_parser(pattern)(value).timestamp
    except (ValueError, OverflowError):
        return None


define(
    "TO_DATE",
    _TEMPORAL,
    ("string", "string, string"),
    t.DATE,
    by_row(_to_date),
    "Parses a date by a pattern (yyyy-MM-dd if not given). Returns NULL if the text does not match.",
    null="always",
)
define(
    "TO_TIMESTAMP",
    _TEMPORAL,
    ("string", "string, string"),
    t.TimestampType(3),
    by_row(_to_timestamp),
    "Parses a TIMESTAMP by a pattern (yyyy-MM-dd HH:mm:ss if not given). Returns NULL if the text does not match.",
    null="always",
)


_MIN_LTZ_PRECISION = 3
_MAX_PRECISION = 9


def to_timestamp_ltz_type(precision_or_pattern: int | str | None) -> t.LocalZonedTimestampType:
    """Return the type of TO_TIMESTAMP_LTZ with a constant second argument, or None for others.

    The precision is that of a number, or the number of S at the end of a pattern, but at least 3.

    Raises:
        ValueError: If the precision is not 0 to 9.

    """
    match precision_or_pattern:
        case int(precision):
            _check_precision(precision)
        case str(pattern):
            precision = min(len(pattern) - len(pattern.rstrip("S")), _MAX_PRECISION)
        case None:
            precision = _MIN_LTZ_PRECISION
    return t.LocalZonedTimestampType(max(precision, _MIN_LTZ_PRECISION))


def _check_precision(precision: int) -> None:
    if not 0 <= precision <= _MAX_PRECISION:
        msg = f"the precision of TO_TIMESTAMP_LTZ must be 0 to 9, not {precision}"
        raise ValueError(msg)


def _to_timestamp_ltz(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    assert isinstance(result_type, t.LocalZonedTimestampType)
    unit = get_arrow_unit(result_type.precision)
    nanos_per_unit = {"ms": 1_000_000, "us": 1000, "ns": 1}[unit]
    if t.is_text(arg_types[0]):
        return by_row(lambda *values: _parse_epoch_units(nanos_per_unit, *values))(frame, args, arg_types, result_type)
    precision = scalar_value(args[1]) if len(args) == 2 and isinstance(args[1], pa.Scalar) else None
    nanos_per_number = 0 if precision is None else 10 ** (_MAX_PRECISION - precision)
    if isinstance(arg_types[0], t.IntegerType) and nanos_per_number >= nanos_per_unit:
        factor = nanos_per_number // nanos_per_unit
        units = pc.multiply(pc.cast(args[0], pa.int64()), factor)
        return pc.assume_timezone(pc.cast(units, pa.timestamp(unit)), "UTC")

    def convert(value: Any, precision: int = _MIN_LTZ_PRECISION) -> int:
        _check_precision(precision)
        number = value if isinstance(value, float) else int(value)
        return int(number * 10 ** (_MAX_PRECISION - precision)) // nanos_per_unit

    return by_row(convert)(frame, args, arg_types, result_type)


def _parse_epoch_units(
    nanos_per_unit: int, value: str, pattern: str = _DEFAULT_PATTERN, zone_name: str = "UTC"
) -> int | None:
    """Parse a timestamp in a time zone; return the number of units since 1970-01-01 00:00:00 UTC."""
    try:
        parsed = compile_parser(pattern)(value)
        timestamp = parsed.timestamp.replace(tzinfo=text.find_time_zone(zone_name))
    except (ValueError, OverflowError):
        return None
    micros = (timestamp - EPOCH) // MICROSECOND
    return (micros * 1000 + parsed.nanosecond) // nanos_per_unit


define(
    "TO_TIMESTAMP_LTZ",
    _TEMPORAL,
    ("number", "number, int", "string", "string, string", "string, string, string"),
    t.LocalZonedTimestampType(3),
    _to_timestamp_ltz,
    "Converts a number of units since 1970-01-01 00:00:00 UTC to TIMESTAMP_LTZ; a unit is 10^-precision seconds "
    "(milliseconds if the precision is not given). Or parses a timestamp by a pattern in a time zone (UTC if not "
    "given). The precision of the result is at least 3.",
    syntax="TO_TIMESTAMP_LTZ(number [, precision]) or TO_TIMESTAMP_LTZ(string [, pattern [, zone]])",
    null="always",
)


def _convert_tz(value: str, source: str, target: str) -> str | None:
    try:
        zoned = text.parse_timestamp(value).replace(tzinfo=text.find_time_zone(source))
        return zoned.astimezone(text.find_time_zone(target)).strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return None


define(
    "CONVERT_TZ",
    _TEMPORAL,
    "string, string, string",
    t.STRING,
    by_row(_convert_tz),
    "Converts a timestamp, given as text, from one time zone to another.",
    null="always",
)
