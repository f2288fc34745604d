"""PyFlink's `table.expressions`: functions that create expressions.

Promises: PyFlink's names and parameters.
Does not know: tables."""

from __future__ import annotations

from typing import Any

from millstream.errors import InvalidArgumentType
from millstream.sql.syntax import parse_expression
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.expression import Expression, JsonOnNull, TimePointUnit
from millstream.table.expression.expression import call_function
from millstream.table.expression.terms import symbol, to_node

CURRENT_ROW = Expression(s.Symbol(0, "CURRENT ROW"))
CURRENT_RANGE = Expression(s.Symbol(0, "CURRENT RANGE"))
UNBOUNDED_ROW = Expression(s.Symbol(0, "UNBOUNDED ROW"))
UNBOUNDED_RANGE = Expression(s.Symbol(0, "UNBOUNDED RANGE"))


def col(name: str) -> Expression:
    """Refer to a column of a table.

    Example:
        >>> col("amount") * 2
        (amount * 2)

    """
    return Expression(s.Name(0, (name,)))


def lit(v: Any, data_type: t.DataType | None = None) -> Expression:
    """Create a literal.

    Args:
        v: A Python value that SQL has a literal for.
        data_type: The type of the literal; by default derived from the value.

    """
    literal = Expression(to_node(v))
    return literal if data_type is None else literal.cast(data_type)


def range_(start: str | int, end: str | int) -> Expression:
    """Select the columns from one to another, for `with_columns` and `without_columns`.

    Args:
        start: The name of the first column, or its number from 1.
        end: The name of the last column, or its number from 1.

    """
    return call_function("$RANGE", lit(start), lit(end))


def and_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression:
    """Combine predicates with AND, in SQL's three-valued logic."""
    conjunction = call_function("AND", predicate0, predicate1)
    for predicate in predicates:
        conjunction = call_function("AND", conjunction, predicate)
    return conjunction


def or_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression:
    """Combine predicates with OR, in SQL's three-valued logic."""
    disjunction = call_function("OR", predicate0, predicate1)
    for predicate in predicates:
        disjunction = call_function("OR", disjunction, predicate)
    return disjunction


def not_(expression: Any) -> Expression:
    """Negate a predicate; NULL stays NULL."""
    return call_function("NOT", expression)


def current_database() -> Expression:
    """Return the name of the current database."""
    return call_function("CURRENT_DATABASE")


def current_date() -> Expression:
    """Return the current date in the session's time zone."""
    return call_function("CURRENT_DATE")


def current_time() -> Expression:
    """Return the current time of day in the session's time zone."""
    return call_function("CURRENT_TIME")


def current_timestamp() -> Expression:
    """Return the current time as TIMESTAMP_LTZ."""
    return call_function("CURRENT_TIMESTAMP")


def current_watermark(rowtimeAttribute: Any) -> Expression:
    """Return the current watermark of an event-time attribute; NULL before the first watermark."""
    return call_function("CURRENT_WATERMARK", rowtimeAttribute)


def local_time() -> Expression:
    """Return the current time of day in the session's time zone."""
    return call_function("LOCALTIME")


def local_timestamp() -> Expression:
    """Return the current date and time in the session's time zone, as TIMESTAMP."""
    return call_function("LOCALTIMESTAMP")


def to_date(date_str: Any, format: Any = None) -> Expression:
    """Parse a date.

    Args:
        date_str: The text.
        format: The pattern; the default is `yyyy-MM-dd`.

    """
    return call_function("TO_DATE", date_str, *([] if format is None else [format]))


def to_timestamp(timestamp_str: Any, format: Any = None) -> Expression:
    """Parse a timestamp without time zone.

    Args:
        timestamp_str: The text.
        format: The pattern; the default is `yyyy-MM-dd HH:mm:ss`.

    """
    return call_function("TO_TIMESTAMP", timestamp_str, *([] if format is None else [format]))


def to_timestamp_ltz(*args: Any) -> Expression:
    """Convert epoch time or text to TIMESTAMP_LTZ.

    Args:
        *args: A number and its precision (0 for seconds, 3 for milliseconds, 9 for nanoseconds), or a text with an
            optional pattern and time zone (UTC if not given).

    """
    return call_function("TO_TIMESTAMP_LTZ", *args)


def temporal_overlaps(
    left_time_point: Any, left_temporal: Any, right_time_point: Any, right_temporal: Any
) -> Expression:
    """Return whether two time ranges have a point in common; each is a start and an end or an interval."""
    return call_function(
        "OVERLAPS",
        call_function("ROW", left_time_point, left_temporal),
        call_function("ROW", right_time_point, right_temporal),
    )


def date_format(timestamp: Any, format: Any) -> Expression:
    """Format a timestamp as text with a pattern such as `yyyy-MM-dd`."""
    return call_function("DATE_FORMAT", timestamp, format)


def timestamp_diff(time_point_unit: TimePointUnit, time_point1: Any, time_point2: Any) -> Expression:
    """Return the number of whole units from the first time point to the second."""
    return call_function("TIMESTAMPDIFF", symbol(time_point_unit.value), time_point1, time_point2)


def convert_tz(date_str: Any, tz_from: Any, tz_to: Any) -> Expression:
    """Convert a timestamp text of the form `yyyy-MM-dd HH:mm:ss` from one time zone to another."""
    return call_function("CONVERT_TZ", date_str, tz_from, tz_to)


def from_unixtime(unixtime: Any, format: Any = None) -> Expression:
    """Format seconds since 1970-01-01 00:00:00 UTC as text in the session's time zone."""
    return call_function("FROM_UNIXTIME", unixtime, *([] if format is None else [format]))


def unix_timestamp(date_str: Any = None, format: Any = None) -> Expression:
    """Return seconds since 1970-01-01 00:00:00 UTC: the current time, or that of a text."""
    return call_function("UNIX_TIMESTAMP", *(argument for argument in (date_str, format) if argument is not None))


def array(head: Any, *tail: Any) -> Expression:
    """Create an array of values."""
    return call_function("ARRAY VALUE", head, *tail)


def row(head: Any, *tail: Any) -> Expression:
    """Create a row of values."""
    return call_function("ROW", head, *tail)


def object_of(class_name: str, *args: Any) -> Expression:
    """Create an object of a structured type.

    Args:
        class_name: The name of the type.
        *args: Field names and values, alternating.

    """
    return call_function("OBJECT_OF", class_name, *args)


def map_(key: Any, value: Any, *tail: Any) -> Expression:
    """Create a map of keys and values, alternating."""
    return call_function("MAP VALUE", key, value, *tail)


def map_from_arrays(key: Any, value: Any) -> Expression:
    """Create a map of an array of keys and an array of values."""
    return call_function("MAP_FROM_ARRAYS", key, value)


def row_interval(rows: int) -> Expression:
    """Create an interval of a number of rows, for the frame of an over window."""
    return Expression(s.Call(0, "$ROWS", (s.Literal(0, rows),)))


def pi() -> Expression:
    """Return the number pi."""
    return call_function("PI")


def e() -> Expression:
    """Return Euler's number e."""
    return call_function("E")


def rand(seed: Any = None) -> Expression:
    """Return a pseudorandom DOUBLE of at least 0 and less than 1."""
    return call_function("RAND", *([] if seed is None else [seed]))


def rand_integer(bound: Any, seed: Any = None) -> Expression:
    """Return a pseudorandom INT of at least 0 and less than a bound."""
    return call_function("RAND_INTEGER", *([] if seed is None else [seed]), bound)


def atan2(y: Any, x: Any) -> Expression:
    """Return the angle of the point (x, y), the arc tangent of y / x."""
    return call_function("ATAN2", y, x)


def negative(v: Any) -> Expression:
    """Negate a number."""
    return call_function("NEGATE", v)


def concat(first: Any, *others: Any) -> Expression:
    """Concatenate strings; NULL if one of them is NULL."""
    return call_function("CONCAT", first, *others)


def concat_ws(separator: Any, first: Any, *others: Any) -> Expression:
    """Concatenate strings with a separator; NULLs are skipped."""
    return call_function("CONCAT_WS", separator, first, *others)


def uuid() -> Expression:
    """Return a random UUID as text."""
    return call_function("UUID")


def null_of(data_type: t.DataType) -> Expression:
    """Create a NULL of a data type."""
    return Expression(s.Cast(0, s.Literal(0, None), data_type))


def log(v: Any, base: Any = None) -> Expression:
    """Return the logarithm of a number; without a base, the natural logarithm."""
    return call_function("LOG", v) if base is None else call_function("LOG", base, v)


def source_watermark() -> Expression:
    """Use the watermarks that the source emits itself, in a watermark declaration."""
    return call_function("SOURCE_WATERMARK")


def if_then_else(condition: Any, if_true: Any, if_false: Any) -> Expression:
    """Return one of two values, depending on whether a condition is TRUE."""
    return Expression(s.Case(0, None, ((to_node(condition), to_node(if_true)),), to_node(if_false)))


def coalesce(*args: Any) -> Expression:
    """Return the first argument that is not NULL."""
    return call_function("COALESCE", *args)


def with_all_columns() -> Expression:
    """Select all columns."""
    return Expression(s.Star(0))


def with_columns(head: Any, *tails: Any) -> Expression:
    """Select columns by name, by number from 1, or by `range_`."""
    return call_function("$WITH_COLUMNS", *map(_column, (head, *tails)))


def without_columns(head: Any, *tails: Any) -> Expression:
    """Select all columns except some, which are given by name, by number from 1, or by `range_`."""
    return call_function("$WITHOUT_COLUMNS", *map(_column, (head, *tails)))


def _column(value: Any) -> Expression:
    if isinstance(value, str):
        return col(value)
    return value if isinstance(value, Expression) else lit(value)


def json(value: Any) -> Expression:
    """Insert text that is already JSON into `json_object` or `json_array` without quoting it."""
    return call_function("JSON", value)


def json_string(value: Any) -> Expression:
    """Serialize a value as JSON."""
    return call_function("JSON_STRING", value)


def json_object(on_null: JsonOnNull = JsonOnNull.NULL, *args: Any) -> Expression:
    """Create a JSON object.

    Args:
        on_null: Whether a NULL value becomes a JSON null or is left out.
        *args: Keys and values, alternating.

    """
    return call_function("JSON_OBJECT", symbol(on_null.value), *args)


def json_object_agg(on_null: JsonOnNull, key_expr: Any, value_expr: Any) -> Expression:
    """Aggregate keys and values to a JSON object."""
    return call_function("JSON_OBJECTAGG", key_expr, value_expr, symbol(on_null.value))


def json_array(on_null: JsonOnNull = JsonOnNull.ABSENT, *args: Any) -> Expression:
    """Create a JSON array.

    Args:
        on_null: Whether a NULL element becomes a JSON null or is left out.
        *args: The elements.

    """
    return call_function("JSON_ARRAY", symbol(on_null.value), *args)


def json_array_agg(on_null: JsonOnNull, item_expr: Any) -> Expression:
    """Aggregate values to a JSON array."""
    return call_function("JSON_ARRAYAGG", item_expr, symbol(on_null.value))


def lag(expr: Any, offset: int = 1, default: Any = None) -> Expression:
    """Return the value of an earlier row of an over window.

    Args:
        expr: The value.
        offset: How many rows before the current one.
        default: The value if there is no such row.

    """
    return call_function("LAG", expr, offset, *([] if default is None else [default]))


def lead(expr: Any, offset: int = 1, default: Any = None) -> Expression:
    """Return the value of a later row of an over window.

    Args:
        expr: The value.
        offset: How many rows after the current one.
        default: The value if there is no such row.

    """
    return call_function("LEAD", expr, offset, *([] if default is None else [default]))


def descriptor(*column_names: str) -> Expression:
    """Create a DESCRIPTOR of columns, an argument of table-valued functions."""
    return Expression(s.Descriptor(0, column_names))


_AGGREGATES = {  # names of the Table API that SQL spells differently
    "STDDEVPOP": "STDDEV_POP",
    "STDDEVSAMP": "STDDEV_SAMP",
    "SUM0": "$SUM0",
    "VARPOP": "VAR_POP",
    "VARSAMP": "VAR_SAMP",
}


def call(f: Any, *args: Any) -> Expression:
    """Call a function.

    Args:
        f: The name of a built-in or registered function, or a function of `udf`, `udtf`, `udaf` or `udtaf`.
        *args: The arguments.

    Raises:
        UserError: If `f` is neither.

    Example:
        >>> call("UPPER", col("name"))
        UPPER(name)

    """
    if isinstance(f, str):
        path = tuple(part.strip("`") for part in f.split("."))
        name = _AGGREGATES.get(f.upper(), f.upper()) if len(path) == 1 else path[-1]
        return Expression(s.Call(0, name, tuple(map(to_node, args)), path=path if len(path) > 1 else ()))
    if callable(f):
        expression = f(*args)
        if isinstance(expression, Expression):
            return expression
    msg = f"{f!r} is not a function"
    raise InvalidArgumentType(
        msg, hint="give the name of a function, or a function of udf(), udtf(), udaf() or udtaf()"
    )


def call_sql(sql_expression: str) -> Expression:
    """Parse an expression that is written in SQL.

    Example:
        >>> call_sql("amount + 1")
        (amount + 1)

    """
    return Expression(parse_expression(sql_expression))
