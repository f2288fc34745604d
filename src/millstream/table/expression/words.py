"""Words that functions take as arguments: units of time, and how JSON functions behave.

Promises: PyFlink's enums; a member's value is the word as SQL has it.
Does not know: expressions."""

from __future__ import annotations

from enum import Enum


class TimeIntervalUnit(Enum):
    """Units of time for EXTRACT, FLOOR and CEIL."""

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
    """Units of time for differences."""

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
    """Kinds of JSON."""

    VALUE = "VALUE"
    SCALAR = "SCALAR"
    ARRAY = "ARRAY"
    OBJECT = "OBJECT"


class JsonExistsOnError(Enum):
    """What JSON_EXISTS gives on an error."""

    TRUE = "TRUE"
    FALSE = "FALSE"
    UNKNOWN = "UNKNOWN"
    ERROR = "ERROR"


class JsonValueOnEmptyOrError(Enum):
    """What JSON_VALUE gives when there is nothing, or an error."""

    NULL = "NULL"
    ERROR = "ERROR"
    DEFAULT = "DEFAULT"


class JsonQueryWrapper(Enum):
    """Whether JSON_QUERY wraps its result in an array."""

    WITHOUT_ARRAY = "WITHOUT WRAPPER"
    CONDITIONAL_ARRAY = "WITH CONDITIONAL WRAPPER"
    UNCONDITIONAL_ARRAY = "WITH UNCONDITIONAL WRAPPER"


class JsonQueryOnEmptyOrError(Enum):
    """What JSON_QUERY gives when there is nothing, or an error."""

    NULL = "NULL"
    EMPTY_ARRAY = "EMPTY ARRAY"
    EMPTY_OBJECT = "EMPTY OBJECT"
    ERROR = "ERROR"


class JsonOnNull(Enum):
    """What JSON constructors do with NULL."""

    NULL = "NULL"
    ABSENT = "ABSENT"
