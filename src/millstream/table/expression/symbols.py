"""Enums for arguments of functions: time units, and options of JSON functions.

Promises: PyFlink's enums. The value of a member is its keyword in SQL.
Does not know: expressions."""

from __future__ import annotations

from enum import Enum


class TimeIntervalUnit(Enum):
    """Time units for EXTRACT, FLOOR and CEIL.

    Example:
        >>> from millstream.table.expressions import col
        >>> day = col("rowtime").extract(TimeIntervalUnit.DAY)

    """

    YEAR = "YEAR"
    YEAR_TO_MONTH = "YEAR TO MONTH"
    QUARTER = "QUARTER"
    MONTH = "MONTH"
    WEEK = "WEEK"
    DAY = "DAY"
    DAY_TO_HOUR = "DAY TO HOUR"
    DAY_TO_MINUTE = "DAY TO MINUTE"
    DAY_TO_SECOND = "DAY TO SECOND"
    HOUR = "HOUR"
    SECOND = "SECOND"
    HOUR_TO_MINUTE = "HOUR TO MINUTE"
    HOUR_TO_SECOND = "HOUR TO SECOND"
    MINUTE = "MINUTE"
    MINUTE_TO_SECOND = "MINUTE TO SECOND"


class TimePointUnit(Enum):
    """Time units for TIMESTAMPDIFF.

    Example:
        >>> from millstream.table.expressions import col, timestamp_diff
        >>> days = timestamp_diff(TimePointUnit.DAY, col("ordered"), col("paid"))

    """

    YEAR = "YEAR"
    MONTH = "MONTH"
    DAY = "DAY"
    HOUR = "HOUR"
    MINUTE = "MINUTE"
    SECOND = "SECOND"
    QUARTER = "QUARTER"
    WEEK = "WEEK"
    MILLISECOND = "MILLISECOND"
    MICROSECOND = "MICROSECOND"


class JsonType(Enum):
    """The types of JSON values that IS JSON can check for.

    Example:
        >>> from millstream.table.expressions import col
        >>> condition = col("document").is_json(JsonType.OBJECT)

    """

    VALUE = "VALUE"
    SCALAR = "SCALAR"
    ARRAY = "ARRAY"
    OBJECT = "OBJECT"


class JsonExistsOnError(Enum):
    """The result of JSON_EXISTS if an error occurs.

    Example:
        >>> from millstream.table.expressions import col
        >>> condition = col("document").json_exists("$.name", JsonExistsOnError.FALSE)

    """

    TRUE = "TRUE"
    FALSE = "FALSE"
    UNKNOWN = "UNKNOWN"
    ERROR = "ERROR"


class JsonValueOnEmptyOrError(Enum):
    """The result of JSON_VALUE if the path selects nothing, or an error occurs.

    Example:
        >>> from millstream.table import DataTypes
        >>> from millstream.table.expressions import col
        >>> age = col("document").json_value("$.age", DataTypes.INT(), on_error=JsonValueOnEmptyOrError.ERROR)

    """

    NULL = "NULL"
    ERROR = "ERROR"
    DEFAULT = "DEFAULT"


class JsonQueryWrapper(Enum):
    """Whether JSON_QUERY wraps its result in an array.

    Example:
        >>> from millstream.table.expressions import col
        >>> tags = col("document").json_query("$.tags", JsonQueryWrapper.UNCONDITIONAL_ARRAY)

    """

    WITHOUT_ARRAY = "WITHOUT WRAPPER"
    CONDITIONAL_ARRAY = "WITH CONDITIONAL WRAPPER"
    UNCONDITIONAL_ARRAY = "WITH UNCONDITIONAL WRAPPER"


class JsonQueryOnEmptyOrError(Enum):
    """The result of JSON_QUERY if the path selects nothing, or an error occurs.

    Example:
        >>> from millstream.table.expressions import col
        >>> tags = col("document").json_query("$.tags", on_empty=JsonQueryOnEmptyOrError.EMPTY_ARRAY)

    """

    NULL = "NULL"
    EMPTY_ARRAY = "EMPTY ARRAY"
    EMPTY_OBJECT = "EMPTY OBJECT"
    ERROR = "ERROR"


class JsonOnNull(Enum):
    """Whether a JSON constructor writes NULL as a JSON null or leaves it out.

    Example:
        >>> from millstream.table.expressions import json_object, lit
        >>> document = json_object(JsonOnNull.ABSENT, "name", lit("tea"))

    """

    NULL = "NULL"
    ABSENT = "ABSENT"
