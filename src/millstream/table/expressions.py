"""Functions that make expressions.

Promises: PyFlink's names and parameters.
Does not know: tables."""

from __future__ import annotations

from typing import Any

from millstream.errors import UserError
from millstream.sql.syntax import parse_expression
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.expression import Expression, JsonOnNull, TimePointUnit
from millstream.table.expression.expression import made
from millstream.table.expression.terms import node, symbol

CURRENT_ROW = Expression(s.Symbol(0, "CURRENT ROW"))
CURRENT_RANGE = Expression(s.Symbol(0, "CURRENT RANGE"))
UNBOUNDED_ROW = Expression(s.Symbol(0, "UNBOUNDED ROW"))
UNBOUNDED_RANGE = Expression(s.Symbol(0, "UNBOUNDED RANGE"))


def col(name: str) -> Expression:
    """A column."""
    return Expression(s.Name(0, (name,)))


def lit(v: Any, data_type: t.DataType | None = None) -> Expression:
    """A constant."""
    found = Expression(node(v))
    return found if data_type is None else found.cast(data_type)


def range_(start: str | int, end: str | int) -> Expression:
    """The columns from one to another, for with_columns."""
    return made("$RANGE", *(lit(each) for each in (start, end)))


def and_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression:
    """All of them."""
    found = made("AND", predicate0, predicate1)
    for each in predicates:
        found = made("AND", found, each)
    return found


def or_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression:
    """One of them."""
    found = made("OR", predicate0, predicate1)
    for each in predicates:
        found = made("OR", found, each)
    return found


def not_(expression: Any) -> Expression:
    """The opposite."""
    return made("NOT", expression)


def current_database() -> Expression:
    """The current database."""
    return made("CURRENT_DATABASE")


def current_date() -> Expression:
    """The date now."""
    return made("CURRENT_DATE")


def current_time() -> Expression:
    """The time now."""
    return made("CURRENT_TIME")


def current_timestamp() -> Expression:
    """The moment now."""
    return made("CURRENT_TIMESTAMP")


def current_watermark(rowtimeAttribute: Any) -> Expression:
    """The watermark of a time attribute."""
    return made("CURRENT_WATERMARK", rowtimeAttribute)


def local_time() -> Expression:
    """The time now, in the session's zone."""
    return made("LOCALTIME")


def local_timestamp() -> Expression:
    """The date and time now, in the session's zone."""
    return made("LOCALTIMESTAMP")


def to_date(date_str: Any, format: Any = None) -> Expression:
    """A date read from text."""
    return made("TO_DATE", date_str, *([] if format is None else [format]))


def to_timestamp(timestamp_str: Any, format: Any = None) -> Expression:
    """A timestamp read from text."""
    return made("TO_TIMESTAMP", timestamp_str, *([] if format is None else [format]))


def to_timestamp_ltz(*args: Any) -> Expression:
    """A moment from a number or text."""
    return made("TO_TIMESTAMP_LTZ", *args)


def temporal_overlaps(
    left_time_point: Any, left_temporal: Any, right_time_point: Any, right_temporal: Any
) -> Expression:
    """Whether two spans of time have a moment in common."""
    return made("OVERLAPS", made("ROW", left_time_point, left_temporal), made("ROW", right_time_point, right_temporal))


def date_format(timestamp: Any, format: Any) -> Expression:
    """A moment as text."""
    return made("DATE_FORMAT", timestamp, format)


def timestamp_diff(time_point_unit: TimePointUnit, time_point1: Any, time_point2: Any) -> Expression:
    """How many units lie between two moments."""
    return made("TIMESTAMPDIFF", symbol(time_point_unit.value), time_point1, time_point2)


def convert_tz(date_str: Any, tz_from: Any, tz_to: Any) -> Expression:
    """A timestamp as text, in another zone."""
    return made("CONVERT_TZ", date_str, tz_from, tz_to)


def from_unixtime(unixtime: Any, format: Any = None) -> Expression:
    """Seconds since 1970 as text."""
    return made("FROM_UNIXTIME", unixtime, *([] if format is None else [format]))


def unix_timestamp(date_str: Any = None, format: Any = None) -> Expression:
    """Seconds since 1970."""
    return made("UNIX_TIMESTAMP", *(each for each in (date_str, format) if each is not None))


def array(head: Any, *tail: Any) -> Expression:
    """An array."""
    return made("ARRAY VALUE", head, *tail)


def row(head: Any, *tail: Any) -> Expression:
    """A row."""
    return made("ROW", head, *tail)


def object_of(class_name: str, *args: Any) -> Expression:
    """An object of a class, of field names and values in turn."""
    return made("OBJECT_OF", class_name, *args)


def map_(key: Any, value: Any, *tail: Any) -> Expression:
    """A map of keys and values in turn."""
    return made("MAP VALUE", key, value, *tail)


def map_from_arrays(key: Any, value: Any) -> Expression:
    """A map of keys and values."""
    return made("MAP_FROM_ARRAYS", key, value)


def row_interval(rows: int) -> Expression:
    """So many rows, for over windows and count windows."""
    return Expression(s.Call(0, "$ROWS", (s.Literal(0, rows),)))


def pi() -> Expression:
    """The number pi."""
    return made("PI")


def e() -> Expression:
    """The number e."""
    return made("E")


def rand(seed: Any = None) -> Expression:
    """A random number from 0 to 1."""
    return made("RAND", *([] if seed is None else [seed]))


def rand_integer(bound: Any, seed: Any = None) -> Expression:
    """A random whole number below a bound."""
    return made("RAND_INTEGER", *([] if seed is None else [seed]), bound)


def atan2(y: Any, x: Any) -> Expression:
    """The arc tangent of a point."""
    return made("ATAN2", y, x)


def negative(v: Any) -> Expression:
    """The opposite number."""
    return made("NEGATE", v)


def concat(first: Any, *others: Any) -> Expression:
    """All strings."""
    return made("CONCAT", first, *others)


def concat_ws(separator: Any, first: Any, *others: Any) -> Expression:
    """All strings, with a separator."""
    return made("CONCAT_WS", separator, first, *others)


def uuid() -> Expression:
    """A random UUID."""
    return made("UUID")


def null_of(data_type: t.DataType) -> Expression:
    """NULL of a type."""
    return Expression(s.Cast(0, s.Literal(0, None), data_type))


def log(v: Any, base: Any = None) -> Expression:
    """The logarithm."""
    return made("LOG", v) if base is None else made("LOG", base, v)


def source_watermark() -> Expression:
    """The watermark that the source makes itself."""
    return made("SOURCE_WATERMARK")


def if_then_else(condition: Any, if_true: Any, if_false: Any) -> Expression:
    """One value or another."""
    return Expression(s.Case(0, None, ((node(condition), node(if_true)),), node(if_false)))


def coalesce(*args: Any) -> Expression:
    """The first value that is not NULL."""
    return made("COALESCE", *args)


def with_all_columns() -> Expression:
    """All columns."""
    return Expression(s.Star(0))


def with_columns(head: Any, *tails: Any) -> Expression:
    """These columns."""
    return made("$WITH_COLUMNS", *(_column(each) for each in (head, *tails)))


def without_columns(head: Any, *tails: Any) -> Expression:
    """All columns but these."""
    return made("$WITHOUT_COLUMNS", *(_column(each) for each in (head, *tails)))


def _column(value: Any) -> Expression:
    if isinstance(value, str):
        return col(value)
    return value if isinstance(value, Expression) else lit(value)


def json(value: Any) -> Expression:
    """Text that is JSON already, inside a JSON constructor."""
    return made("JSON", value)


def json_string(value: Any) -> Expression:
    """A value as JSON."""
    return made("JSON_STRING", value)


def json_object(on_null: JsonOnNull = JsonOnNull.NULL, *args: Any) -> Expression:
    """A JSON object of keys and values in turn."""
    return made("JSON_OBJECT", symbol(on_null.value), *args)


def json_object_agg(on_null: JsonOnNull, key_expr: Any, value_expr: Any) -> Expression:
    """A JSON object of all keys and values."""
    return made("JSON_OBJECTAGG", key_expr, value_expr, symbol(on_null.value))


def json_array(on_null: JsonOnNull = JsonOnNull.ABSENT, *args: Any) -> Expression:
    """A JSON array of values."""
    return made("JSON_ARRAY", symbol(on_null.value), *args)


def json_array_agg(on_null: JsonOnNull, item_expr: Any) -> Expression:
    """A JSON array of all values."""
    return made("JSON_ARRAYAGG", item_expr, symbol(on_null.value))


def lag(expr: Any, offset: int = 1, default: Any = None) -> Expression:
    """The value of an earlier row of an over window."""
    return made("LAG", expr, offset, *([] if default is None else [default]))


def lead(expr: Any, offset: int = 1, default: Any = None) -> Expression:
    """The value of a later row of an over window."""
    return made("LEAD", expr, offset, *([] if default is None else [default]))


def descriptor(*column_names: str) -> Expression:
    """Columns, for table functions."""
    return Expression(s.Descriptor(0, column_names))


def call(f: Any, *args: Any) -> Expression:
    """A function by its name, or a user's function, applied to values."""
    if isinstance(f, str):
        path = tuple(part.strip("`") for part in f.split("."))
        name = f.upper() if len(path) == 1 else path[-1]
        return Expression(s.Call(0, name, tuple(map(node, args)), path=path if len(path) > 1 else ()))
    if callable(f):
        found = f(*args)
        if isinstance(found, Expression):
            return found
    msg = f"{f!r} is not a function"
    raise UserError(msg, hint="give the name of a function, or what udf() returned")


def call_sql(sql_expression: str) -> Expression:
    """An expression written in SQL."""
    return Expression(parse_expression(sql_expression))
