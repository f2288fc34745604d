"""The option `index` of document stores: a name, or a pattern such as `users-{log_ts|yyyy-MM-dd}`.

Promises: the patterns of Flink's connectors: a column, a column of a date or time with a pattern of Java's
DateTimeFormatter, or the processing time, `{now()|yyyy-MM-dd}`. One part in braces.
Does not know: documents."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.sql.connector.table_connector import TableContext
from millstream.sql.errors import nearest
from millstream.sql.functions.date_patterns import check_format_pattern, compile_formatter
from millstream.sql.functions.text import find_time_zone
from millstream.sql.types import data_types as t
from millstream.times import EPOCH
from millstream.types.row import Row

_VARIABLE = re.compile(r"\{([^{}|]+)(\|[^{}]*)?\}")
_NOW = re.compile(r"\s*(now\(\s*\)|current_timestamp)\s*", re.IGNORECASE)
_DEFAULT_PATTERNS: tuple[tuple[type[t.DataType], str], ...] = (
    (t.DateType, "yyyy_MM_dd"),
    (t.TimeType, "HH_mm_ss"),
    (t.TimestampType, "yyyy_MM_dd_HH_mm_ss"),
    (t.LocalZonedTimestampType, "yyyy_MM_dd_HH_mm_ss"),
)
_PLAIN_TYPES = t.CharType | t.VarCharType | t.IntegerType
_SOME_DAY = datetime.date(1970, 1, 1)


@dataclass(frozen=True)
class IndexName:
    """The name of an index: `prefix`, the value of a column or the processing time, and `suffix`.

    `pattern` is the format of a date or time; None for a value that is written as it is."""

    prefix: str
    suffix: str = ""
    column: int | None = None
    pattern: str | None = None
    zone: str = "UTC"

    @property
    def is_of_processing_time(self) -> bool:
        """Whether the name depends on the time at which a row is written."""
        return self.column is None and self.pattern is not None

    def bind(self, now: int) -> Callable[[Row], str]:
        """Return the function that names the index of a row that is written at a time."""
        prefix, suffix, column, pattern, zone = self.prefix, self.suffix, self.column, self.pattern, self.zone
        format_time = None if pattern is None else compile_formatter(pattern)
        time_zone = find_time_zone(zone)
        if column is None:
            fixed = prefix
            if format_time is not None:
                moment = EPOCH + datetime.timedelta(milliseconds=now)
                fixed += format_time(moment.astimezone(time_zone).replace(tzinfo=None))
            return lambda _row: fixed + suffix

        def name_index(row: Row) -> str:
            value = row._values[column]
            if value is None:
                return f"{prefix}null{suffix}"
            return f"{prefix}{value if format_time is None else format_time(_to_local(value, time_zone))}{suffix}"

        return name_index


def _to_local(value: Any, zone: datetime.tzinfo) -> datetime.datetime:
    """Return a date, a time or a timestamp as a local timestamp."""
    if isinstance(value, datetime.datetime):
        return value if value.tzinfo is None else value.astimezone(zone).replace(tzinfo=None)
    if isinstance(value, datetime.time):
        return datetime.datetime.combine(_SOME_DAY, value)
    return datetime.datetime.combine(value, datetime.time())


def read_index_name(context: TableContext) -> IndexName:
    """Return the index that the option `index` of a table names."""
    text = context.required("index")
    variables = list(_VARIABLE.finditer(text))
    if not text or len(variables) > 1:
        message = "option 'index' is empty" if not text else f"option 'index' can have one part in braces, not '{text}'"
        raise context.fail(message)
    if not variables:
        if "{" in text or "}" in text:
            message = f"option 'index' has a brace without its partner: '{text}'"
            raise context.fail(message)
        return IndexName(text)
    match = variables[0]
    prefix, suffix, name = text[: match.start()], text[match.end() :], match[1]
    pattern = None if match[2] is None else match[2][1:]
    names = context.sink_schema.names
    if name not in names and _NOW.fullmatch(name) and pattern is not None:
        return IndexName(prefix, suffix, None, _check(context, pattern or "yyyy_MM_dd_HH_mm_ss"), context.zone)
    if name not in names:
        message = f"option 'index' names the column '{name}', which the table does not have"
        raise context.fail(message, nearest(name, names))
    column = names.index(name)
    data_type = context.sink_schema.types[column]
    if pattern is None:
        if not isinstance(data_type, _PLAIN_TYPES) and _default_pattern(data_type) is None:
            message = f"the column '{name}' of the option 'index' is {data_type}"
            raise context.fail(message, "it can be text, an integer, a date or a time")
        return IndexName(prefix, suffix, column, _default_pattern(data_type), context.zone)
    default = _default_pattern(data_type)
    if default is None:
        message = f"the column '{name}' of the option 'index' has a date pattern and is {data_type}"
        raise context.fail(message, "date patterns are for DATE, TIME, TIMESTAMP and TIMESTAMP_LTZ")
    return IndexName(prefix, suffix, column, _check(context, pattern or default), context.zone)


def _default_pattern(data_type: t.DataType) -> str | None:
    return next((pattern for kind, pattern in _DEFAULT_PATTERNS if isinstance(data_type, kind)), None)


def _check(context: TableContext, pattern: str) -> str:
    try:
        check_format_pattern(pattern)
    except ValueError as problem:
        message = f"option 'index': {problem}"
        raise context.fail(message) from None
    return pattern
