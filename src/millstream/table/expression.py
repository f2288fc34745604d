"""Expression: a value computed from columns, written in Python.

Promises: PyFlink's operators, methods and properties; an expression is a piece of syntax tree, bound when a table uses
it, so it has the meaning of the same SQL.
Does not know: tables."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any

from millstream.errors import UserError
from millstream.sql import syntax as s
from millstream.sql import types as t

__all__ = [
    "Expression",
    "JsonExistsOnError",
    "JsonOnNull",
    "JsonQueryOnEmptyOrError",
    "JsonQueryWrapper",
    "JsonType",
    "JsonValueOnEmptyOrError",
    "TimeIntervalUnit",
    "TimePointUnit",
]


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


def node(value: Any) -> s.Expr:
    """A Python value or an expression as a piece of syntax tree."""
    if isinstance(value, Expression):
        return value._node
    match value:
        case None | bool() | int() | float() | str() | bytes() | Decimal():
            return s.Constant(0, value)
        case datetime.datetime():
            shown = value.replace(tzinfo=None).isoformat(
                " ", "milliseconds" if value.microsecond % 1000 == 0 else "microseconds"
            )
            return s.Call(0, "TIMESTAMP LITERAL", (s.Constant(0, shown),))
        case datetime.date():
            return s.Call(0, "DATE LITERAL", (s.Constant(0, value.isoformat()),))
        case datetime.time():
            return s.Call(0, "TIME LITERAL", (s.Constant(0, value.isoformat()),))
        case datetime.timedelta():
            millis = value // datetime.timedelta(milliseconds=1)
            return s.IntervalLiteral(0, str(abs(millis) / 1000), "SECOND", None, millis < 0)
        case list() | tuple():
            return s.Call(0, "ARRAY VALUE", tuple(map(node, value)))
        case dict():
            return s.Call(0, "MAP VALUE", tuple(node(each) for pair in value.items() for each in pair))
    msg = f"{value!r} cannot be part of an expression"
    raise UserError(msg, hint="use col('name'), lit(value), or a value that SQL has a literal for")


def made(name: str, *args: Any) -> Expression:
    """A function applied to values."""
    return Expression(s.Call(0, name, tuple(node(arg) for arg in args)))


def symbol(word: str) -> Expression:
    """A word that only a function understands."""
    return Expression(s.Symbol(0, word))


def _property(name: str, doc: str) -> property:
    return property(lambda self: made(name, self), doc=doc)


def _extract(unit: str, doc: str) -> property:
    return property(lambda self: made("EXTRACT", symbol(unit), self), doc=doc)


def _interval(unit: str, factor: int, doc: str) -> property:
    def make(self: Expression) -> Expression:
        value = self._node
        if not isinstance(value, s.Constant) or not isinstance(value.value, int):
            msg = f"an interval needs a whole number, as in lit(10).{unit.lower()}s"
            raise UserError(msg)
        amount = value.value * factor
        return Expression(s.IntervalLiteral(0, str(abs(amount)), unit, None, amount < 0))

    return property(make, doc=doc)


class Expression:
    """A value computed from columns."""

    __slots__ = ("_aliases", "_node", "_order")

    def __init__(self, j_expr_or_property_name: Any) -> None:
        given = j_expr_or_property_name
        self._node: s.Expr = s.Name(0, (given,)) if isinstance(given, str) else given
        self._aliases: tuple[str, ...] = ()
        self._order: bool | None = None

    # ---------------------------------------------------------------------------------------------------- operators

    def __abs__(self) -> Expression:
        return made("ABS", self)

    def __add__(self, other: Any) -> Expression:
        return made("+", self, other)

    def __radd__(self, other: Any) -> Expression:
        return made("+", other, self)

    def __sub__(self, other: Any) -> Expression:
        return made("-", self, other)

    def __rsub__(self, other: Any) -> Expression:
        return made("-", other, self)

    def __mul__(self, other: Any) -> Expression:
        return made("*", self, other)

    def __rmul__(self, other: Any) -> Expression:
        return made("*", other, self)

    def __truediv__(self, other: Any) -> Expression:
        return made("/", self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return made("/", other, self)

    def __mod__(self, other: Any) -> Expression:
        return made("%", self, other)

    def __rmod__(self, other: Any) -> Expression:
        return made("%", other, self)

    def __pow__(self, other: Any) -> Expression:
        return made("POWER", self, other)

    def __rpow__(self, other: Any) -> Expression:
        return made("POWER", other, self)

    def __neg__(self, *args: Any) -> Expression:
        return made("NEGATE", self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return made("=", self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return made("<>", self, other)

    def __lt__(self, other: Any) -> Expression:
        return made("<", self, other)

    def __le__(self, other: Any) -> Expression:
        return made("<=", self, other)

    def __gt__(self, other: Any) -> Expression:
        return made(">", self, other)

    def __ge__(self, other: Any) -> Expression:
        return made(">=", self, other)

    def __and__(self, other: Any) -> Expression:
        return made("AND", self, other)

    def __rand__(self, other: Any) -> Expression:
        return made("AND", other, self)

    def __or__(self, other: Any) -> Expression:
        return made("OR", self, other)

    def __ror__(self, other: Any) -> Expression:
        return made("OR", other, self)

    def __invert__(self) -> Expression:
        return made("NOT", self)

    def __getitem__(self, index: Any) -> Expression:
        return self.get(index)

    def __getattr__(self, name: str) -> Expression:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        msg = "an expression is neither true nor false"
        raise UserError(msg, hint="combine conditions with & | ~, not with and, or, not")

    def __str__(self) -> str:
        return text_of(self._node)

    def __repr__(self) -> str:
        return str(self)

    # ------------------------------------------------------------------------------------------------- names, order

    def alias(self, name: str, *extra_names: str) -> Expression:
        """The same value under another name."""
        renamed = Expression(self._node)
        renamed._aliases = (name, *extra_names)
        return renamed

    def as_argument(self, name: str) -> Expression:
        """The value as a named argument."""
        return Expression(s.NamedArgument(0, name, self._node))

    def _ordered(self, ascending: bool) -> Expression:
        turned = Expression(self._node)
        turned._order = ascending
        return turned

    asc = property(lambda self: self._ordered(True), doc="In ascending order.")
    desc = property(lambda self: self._ordered(False), doc="In descending order.")

    @property
    def distinct(self) -> Expression:
        """An aggregate of each value once."""
        call = self._node
        if not isinstance(call, s.Call):
            msg = "only an aggregate can be distinct, as in col('a').count.distinct"
            raise UserError(msg)
        return Expression(s.Call(call.at, call.name, call.args, True, path=call.path, user=call.user))

    def over(self, alias: Any) -> Expression:
        """An aggregate over a window that over_window named."""
        call = self._node
        name = (
            alias._node.parts[-1] if isinstance(alias, Expression) and isinstance(alias._node, s.Name) else str(alias)
        )
        assert isinstance(call, s.Call)
        spec = s.WindowSpec(0, name)
        return Expression(
            s.Call(
                call.at, call.name, call.args, call.distinct, over=spec, path=call.path, star=call.star, user=call.user
            )
        )

    # --------------------------------------------------------------------------------------------------- conditions

    is_null = _property("IS NULL", "Whether the value is NULL.")
    is_not_null = _property("IS NOT NULL", "Whether the value is not NULL.")
    is_true = _property("IS TRUE", "Whether the value is TRUE.")
    is_false = _property("IS FALSE", "Whether the value is FALSE.")
    is_not_true = _property("IS NOT TRUE", "Whether the value is not TRUE.")
    is_not_false = _property("IS NOT FALSE", "Whether the value is not FALSE.")

    def between(self, lower_bound: Any, upper_bound: Any) -> Expression:
        """Whether the value lies between two others."""
        return made("BETWEEN", self, lower_bound, upper_bound)

    def not_between(self, lower_bound: Any, upper_bound: Any) -> Expression:
        """Whether the value does not lie between two others."""
        return ~self.between(lower_bound, upper_bound)

    def then(self, if_true: Any, if_false: Any) -> Expression:
        """One value where this is TRUE, another where it is not."""
        return Expression(s.Case(0, None, ((self._node, node(if_true)),), node(if_false)))

    def if_null(self, null_replacement: Any) -> Expression:
        """The value, or another where it is NULL."""
        return made("IFNULL", self, null_replacement)

    def in_(self, first_element_or_table: Any, *remaining_elements: Any) -> Expression:
        """Whether the value is one of others, or in the only column of a table."""
        plan = getattr(first_element_or_table, "_plan", None)
        if plan is not None:
            star = s.Select(0, ((s.Star(0), None),), s.PlanSource(0, plan))
            return Expression(s.In(0, self._node, (), s.Query(0, star), False))
        items = tuple(node(each) for each in (first_element_or_table, *remaining_elements))
        return Expression(s.In(0, self._node, items, None, False))

    # --------------------------------------------------------------------------------------------------- aggregates

    sum = _property("SUM", "The sum; NULL of nothing.")
    sum0 = _property("$SUM0", "The sum; 0 of nothing.")
    min = _property("MIN", "The least value.")
    max = _property("MAX", "The greatest value.")
    count = _property("COUNT", "How many are not NULL.")
    avg = _property("AVG", "The mean.")
    first_value = _property("FIRST_VALUE", "The first value.")
    last_value = _property("LAST_VALUE", "The last value.")
    stddev_pop = _property("STDDEV_POP", "The standard deviation.")
    stddev_samp = _property("STDDEV_SAMP", "The standard deviation of a sample.")
    var_pop = _property("VAR_POP", "The variance.")
    var_samp = _property("VAR_SAMP", "The variance of a sample.")
    collect = _property("COLLECT", "A multiset of the values.")
    array_agg = _property("ARRAY_AGG", "An array of the values.")

    def list_agg(self, separator: str | None = None) -> Expression:
        """The strings with a separator between them."""
        return made("LISTAGG", self) if separator is None else made("LISTAGG", self, separator)

    def percentile(self, percentage: Any, frequency: Any = None) -> Expression:
        """A percentile of the numbers."""
        return made("PERCENTILE", self, percentage, *([] if frequency is None else [frequency]))

    # -------------------------------------------------------------------------------------------------------- types

    def cast(self, data_type: t.DataType) -> Expression:
        """The value in another type."""
        return Expression(s.Cast(0, self._node, data_type))

    def try_cast(self, data_type: t.DataType) -> Expression:
        """The value in another type, NULL where it cannot be."""
        return Expression(s.Cast(0, self._node, data_type, True))

    # -------------------------------------------------------------------------------------------------------- numbers

    abs = _property("ABS", "The absolute value.")
    exp = _property("EXP", "e to the power of the number.")
    log10 = _property("LOG10", "The logarithm to base 10.")
    log2 = _property("LOG2", "The logarithm to base 2.")
    ln = _property("LN", "The natural logarithm.")
    sqrt = _property("SQRT", "The square root.")
    sin = _property("SIN", "The sine.")
    sinh = _property("SINH", "The hyperbolic sine.")
    cos = _property("COS", "The cosine.")
    cosh = _property("COSH", "The hyperbolic cosine.")
    tan = _property("TAN", "The tangent.")
    tanh = _property("TANH", "The hyperbolic tangent.")
    cot = _property("COT", "The cotangent.")
    asin = _property("ASIN", "The arc sine.")
    acos = _property("ACOS", "The arc cosine.")
    atan = _property("ATAN", "The arc tangent.")
    degrees = _property("DEGREES", "Radians as degrees.")
    radians = _property("RADIANS", "Degrees as radians.")
    sign = _property("SIGN", "1, 0 or -1.")
    bin = _property("BIN", "The number in binary digits.")
    hex = _property("HEX", "The value in hexadecimal digits.")
    unhex = _property("UNHEX", "The bytes of hexadecimal digits.")

    def log(self, base: Any = None) -> Expression:
        """The logarithm."""
        return made("LOG", self) if base is None else made("LOG", base, self)

    def round(self, places: Any) -> Expression:
        """Rounded to so many places."""
        return made("ROUND", self, places)

    def truncate(self, n: Any = 0) -> Expression:
        """Cut to so many places."""
        return made("TRUNCATE", self, n)

    def floor(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression:
        """Rounded down."""
        return made("FLOOR", self, *([] if time_interval_unit is None else [symbol(time_interval_unit.value)]))

    def ceil(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression:
        """Rounded up."""
        return made("CEIL", self, *([] if time_interval_unit is None else [symbol(time_interval_unit.value)]))

    # -------------------------------------------------------------------------------------------------------- strings

    char_length = _property("CHAR_LENGTH", "The number of characters.")
    upper_case = _property("UPPER", "In upper case.")
    lower_case = _property("LOWER", "In lower case.")
    init_cap = _property("INITCAP", "Each word with a capital.")
    from_base64 = _property("FROM_BASE64", "What base 64 stands for.")
    to_base64 = _property("TO_BASE64", "In base 64.")
    ascii = _property("ASCII", "The number of the first character.")
    chr = _property("CHR", "The character of a number.")
    reverse = _property("REVERSE", "Backwards.")
    md5 = _property("MD5", "The MD5 hash.")
    sha1 = _property("SHA1", "The SHA-1 hash.")
    sha224 = _property("SHA224", "The SHA-224 hash.")
    sha256 = _property("SHA256", "The SHA-256 hash.")
    sha384 = _property("SHA384", "The SHA-384 hash.")
    sha512 = _property("SHA512", "The SHA-512 hash.")

    def sha2(self, hash_length: Any) -> Expression:
        """The SHA-2 hash of so many bits."""
        return made("SHA2", self, hash_length)

    def concat(self, other: Any) -> Expression:
        """Both strings."""
        return made("||", self, other)

    def starts_with(self, start_expr: Any) -> Expression:
        """Whether the string begins with another."""
        return made("STARTSWITH", self, start_expr)

    def ends_with(self, end_expr: Any) -> Expression:
        """Whether the string ends with another."""
        return made("ENDSWITH", self, end_expr)

    def substring(self, begin_index: Any, length: Any = None) -> Expression:
        """A part of the string."""
        return made("SUBSTRING", self, begin_index, *([] if length is None else [length]))

    def substr(self, begin_index: Any, length: Any = None) -> Expression:
        """A part of the string."""
        return self.substring(begin_index, length)

    def translate(self, from_str: Any, to_str: Any) -> Expression:
        """With characters replaced one by one."""
        return made("TRANSLATE", self, from_str, to_str)

    def trim_leading(self, character: Any = None) -> Expression:
        """Without characters at the beginning."""
        return made("TRIM", symbol("LEADING"), " " if character is None else character, self)

    def trim_trailing(self, character: Any = None) -> Expression:
        """Without characters at the end."""
        return made("TRIM", symbol("TRAILING"), " " if character is None else character, self)

    def trim(self, character: Any = None) -> Expression:
        """Without characters at both ends."""
        return made("TRIM", symbol("BOTH"), " " if character is None else character, self)

    def ltrim(self, trim_str: Any = None) -> Expression:
        """Without characters at the beginning."""
        return made("LTRIM", self, *([] if trim_str is None else [trim_str]))

    def rtrim(self, trim_str: Any = None) -> Expression:
        """Without characters at the end."""
        return made("RTRIM", self, *([] if trim_str is None else [trim_str]))

    def btrim(self, trim_str: Any = None) -> Expression:
        """Without characters at both ends."""
        return made("BTRIM", self, *([] if trim_str is None else [trim_str]))

    def replace(self, search: Any = None, replacement: Any = None) -> Expression:
        """With a part replaced."""
        return made("REPLACE", self, search, replacement)

    def like(self, pattern: Any = None, escape: Any = None) -> Expression:
        """Whether the string matches a pattern."""
        return made("LIKE", self, pattern, *([] if escape is None else [escape]))

    def similar(self, pattern: Any = None) -> Expression:
        """Whether the string matches a SQL regular expression."""
        return made("SIMILAR TO", self, pattern)

    def position(self, haystack: Any = None) -> Expression:
        """Where this string begins in another."""
        return made("POSITION", self, haystack)

    def lpad(self, length: Any, pad: Any) -> Expression:
        """Filled on the left."""
        return made("LPAD", self, length, pad)

    def rpad(self, length: Any, pad: Any) -> Expression:
        """Filled on the right."""
        return made("RPAD", self, length, pad)

    def overlay(self, new_string: Any, starting: Any, length: Any = None) -> Expression:
        """With a part replaced."""
        return made("OVERLAY", self, new_string, starting, *([] if length is None else [length]))

    def regexp(self, regex: Any) -> Expression:
        """Whether a regular expression matches."""
        return made("REGEXP", self, regex)

    def regexp_count(self, regex: Any) -> Expression:
        """How often a regular expression matches."""
        return made("REGEXP_COUNT", self, regex)

    def regexp_replace(self, regex: Any, replacement: Any) -> Expression:
        """With every match replaced."""
        return made("REGEXP_REPLACE", self, regex, replacement)

    def regexp_extract(self, regex: Any, extract_index: Any = None) -> Expression:
        """A match or a group of it."""
        return made("REGEXP_EXTRACT", self, regex, *([] if extract_index is None else [extract_index]))

    def regexp_extract_all(self, regex: Any, extract_index: Any = None) -> Expression:
        """All matches of a group."""
        return made("REGEXP_EXTRACT_ALL", self, regex, *([] if extract_index is None else [extract_index]))

    def regexp_instr(self, regex: Any) -> Expression:
        """Where a regular expression first matches."""
        return made("REGEXP_INSTR", self, regex)

    def regexp_substr(self, regex: Any) -> Expression:
        """The first match."""
        return made("REGEXP_SUBSTR", self, regex)

    def repeat(self, n: Any) -> Expression:
        """So many times."""
        return made("REPEAT", self, n)

    def decode(self, charset: Any) -> Expression:
        """Bytes as a string."""
        return made("DECODE", self, charset)

    def encode(self, charset: Any) -> Expression:
        """A string as bytes."""
        return made("ENCODE", self, charset)

    def left(self, length: Any) -> Expression:
        """The first characters."""
        return made("LEFT", self, length)

    def right(self, length: Any) -> Expression:
        """The last characters."""
        return made("RIGHT", self, length)

    def instr(self, s: Any) -> Expression:
        """Where another string begins in this one."""
        return made("INSTR", self, s)

    def locate(self, s: Any, pos: Any = None) -> Expression:
        """Where this string begins in another."""
        return made("LOCATE", self, s, *([] if pos is None else [pos]))

    def parse_url(self, part_to_extract: Any, key: Any = None) -> Expression:
        """A part of a URL."""
        return made("PARSE_URL", self, part_to_extract, *([] if key is None else [key]))

    def printf(self, *obj: Any) -> Expression:
        """Values written by this template."""
        return made("PRINTF", self, *obj)

    def url_decode(self) -> Expression:
        """What a URL-encoded string stands for."""
        return made("URL_DECODE", self)

    def url_encode(self) -> Expression:
        """As part of a URL."""
        return made("URL_ENCODE", self)

    def split(self, delimiter: Any) -> Expression:
        """The parts between separators."""
        return made("SPLIT", self, delimiter)

    def split_index(self, separator: Any, index: Any) -> Expression:
        """One of the parts between separators."""
        return made("SPLIT_INDEX", self, separator, index)

    def str_to_map(self, list_delimiter: Any = None, key_value_delimiter: Any = None) -> Expression:
        """A map from text."""
        if list_delimiter is None or key_value_delimiter is None:
            return made("STR_TO_MAP", self)
        return made("STR_TO_MAP", self, list_delimiter, key_value_delimiter)

    def elt(self, expr: Any, *exprs: Any) -> Expression:
        """The string at this index."""
        return made("ELT", self, expr, *exprs)

    # ----------------------------------------------------------------------------------------------------------- time

    to_date = property(lambda self: Expression(s.Cast(0, self._node, t.DATE)), doc="As a date.")
    to_time = property(lambda self: Expression(s.Cast(0, self._node, t.TIME)), doc="As a time of day.")
    to_timestamp = property(lambda self: Expression(s.Cast(0, self._node, t.TimestampType(3))), doc="As a timestamp.")
    year = _interval("YEAR", 1, "Years.")
    years = _interval("YEAR", 1, "Years.")
    quarter = _interval("MONTH", 3, "Quarters.")
    quarters = _interval("MONTH", 3, "Quarters.")
    month = _interval("MONTH", 1, "Months.")
    months = _interval("MONTH", 1, "Months.")
    week = _interval("DAY", 7, "Weeks.")
    weeks = _interval("DAY", 7, "Weeks.")
    day = _interval("DAY", 1, "Days.")
    days = _interval("DAY", 1, "Days.")
    hour = _interval("HOUR", 1, "Hours.")
    hours = _interval("HOUR", 1, "Hours.")
    minute = _interval("MINUTE", 1, "Minutes.")
    minutes = _interval("MINUTE", 1, "Minutes.")
    second = _interval("SECOND", 1, "Seconds.")
    seconds = _interval("SECOND", 1, "Seconds.")

    @property
    def millis(self) -> Expression:
        """Milliseconds."""
        value = self._node
        assert isinstance(value, s.Constant)
        return Expression(s.IntervalLiteral(0, str(Decimal(abs(value.value)) / 1000), "SECOND", None, value.value < 0))

    milli = millis

    def extract(self, time_interval_unit: TimeIntervalUnit) -> Expression:
        """A part of a moment."""
        return made("EXTRACT", symbol(time_interval_unit.value), self)

    @property
    def rowtime(self) -> Expression:
        """The time attribute of a group window, or the column as event time."""
        return Expression(s.FieldOf(0, self._node, "rowtime"))

    @property
    def proctime(self) -> Expression:
        """The processing time of a group window."""
        return Expression(s.FieldOf(0, self._node, "proctime"))

    @property
    def start(self) -> Expression:
        """Where a group window starts."""
        return Expression(s.FieldOf(0, self._node, "start"))

    @property
    def end(self) -> Expression:
        """Where a group window ends."""
        return Expression(s.FieldOf(0, self._node, "end"))

    # ----------------------------------------------------------------------------------------------------- collections

    cardinality = _property("CARDINALITY", "How many there are.")
    element = _property("ELEMENT", "The only element.")
    map_keys = _property("MAP_KEYS", "The keys.")
    map_values = _property("MAP_VALUES", "The values.")
    map_entries = _property("MAP_ENTRIES", "The entries.")

    @property
    def flatten(self) -> Expression:
        """All fields of a row."""
        return Expression(s.Call(0, "$FLATTEN", (self._node,)))

    def get(self, name_or_index: Any) -> Expression:
        """A field of a row."""
        if isinstance(name_or_index, int):
            return self.at(name_or_index)
        if isinstance(self._node, s.Name):
            return Expression(s.Name(0, (*self._node.parts, name_or_index)))
        return Expression(s.FieldOf(0, self._node, name_or_index))

    def at(self, index: Any) -> Expression:
        """The element at a position, from 1, or of a key."""
        return Expression(s.Access(0, self._node, node(index)))

    def array_append(self, addition: Any) -> Expression:
        """With an element behind."""
        return made("ARRAY_APPEND", self, addition)

    def array_prepend(self, addition: Any) -> Expression:
        """With an element before."""
        return made("ARRAY_PREPEND", self, addition)

    def array_concat(self, *arrays: Any) -> Expression:
        """One array after the other."""
        return made("ARRAY_CONCAT", self, *arrays)

    def array_contains(self, needle: Any) -> Expression:
        """Whether an element is there."""
        return made("ARRAY_CONTAINS", self, needle)

    def array_distinct(self) -> Expression:
        """Without duplicates."""
        return made("ARRAY_DISTINCT", self)

    def array_position(self, needle: Any) -> Expression:
        """Where an element is."""
        return made("ARRAY_POSITION", self, needle)

    def array_remove(self, needle: Any) -> Expression:
        """Without an element."""
        return made("ARRAY_REMOVE", self, needle)

    def array_reverse(self) -> Expression:
        """Backwards."""
        return made("ARRAY_REVERSE", self)

    def array_slice(self, start_offset: Any, end_offset: Any = None) -> Expression:
        """Some of the elements."""
        return made("ARRAY_SLICE", self, start_offset, *([] if end_offset is None else [end_offset]))

    def array_sort(self, ascending_order: Any = None, null_first: Any = None) -> Expression:
        """In order."""
        more = [each for each in (ascending_order, null_first) if each is not None]
        return made("ARRAY_SORT", self, *more)

    def array_union(self, array: Any) -> Expression:
        """The elements of both."""
        return made("ARRAY_UNION", self, array)

    def array_except(self, array: Any) -> Expression:
        """The elements that are not in the other."""
        return made("ARRAY_EXCEPT", self, array)

    def array_intersect(self, array: Any) -> Expression:
        """The elements that are in both."""
        return made("ARRAY_INTERSECT", self, array)

    def array_max(self) -> Expression:
        """The greatest element."""
        return made("ARRAY_MAX", self)

    def array_min(self) -> Expression:
        """The least element."""
        return made("ARRAY_MIN", self)

    def array_join(self, delimiter: Any, null_replacement: Any = None) -> Expression:
        """The strings with a separator."""
        return made("ARRAY_JOIN", self, delimiter, *([] if null_replacement is None else [null_replacement]))

    def map_union(self, *maps: Any) -> Expression:
        """All entries."""
        return made("MAP_UNION", self, *maps)

    # ------------------------------------------------------------------------------------------------------------ JSON

    def is_json(self, json_type: JsonType | None = None) -> Expression:
        """Whether the string is JSON."""
        return made("IS JSON", self, symbol("VALUE" if json_type is None else json_type.value))

    def json_exists(self, path: str, on_error: JsonExistsOnError | None = None) -> Expression:
        """Whether a path leads to something."""
        how = [] if on_error is None else [Expression(s.NamedArgument(0, "ON ERROR", s.Symbol(0, on_error.value)))]
        return made("JSON_EXISTS", self, path, *how)

    def json_value(
        self,
        path: str,
        returning_type: t.DataType = t.STRING,
        on_empty: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_empty: Any = None,
        on_error: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_error: Any = None,
    ) -> Expression:
        """A scalar of a JSON document."""
        args: list[Any] = [self, path, Expression(s.Cast(0, s.Constant(0, None), returning_type))]
        for event, how, default in (("ON EMPTY", on_empty, default_on_empty), ("ON ERROR", on_error, default_on_error)):
            value = node(default) if how is JsonValueOnEmptyOrError.DEFAULT else s.Symbol(0, how.value)
            args.append(Expression(s.NamedArgument(0, event, value)))
        return made("JSON_VALUE", *args)

    def json_query(
        self,
        path: str,
        wrapping_behavior: JsonQueryWrapper = JsonQueryWrapper.WITHOUT_ARRAY,
        on_empty: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
        on_error: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
    ) -> Expression:
        """An object or array of a JSON document."""
        handling = [
            Expression(s.NamedArgument(0, event, s.Symbol(0, how.value)))
            for event, how in (("ON EMPTY", on_empty), ("ON ERROR", on_error))
        ]
        return made("JSON_QUERY", self, path, symbol(wrapping_behavior.value), *handling)

    def json_quote(self) -> Expression:
        """As a JSON string."""
        return made("JSON_QUOTE", self)

    def json_unquote(self) -> Expression:
        """What a JSON string stands for."""
        return made("JSON_UNQUOTE", self)


def text_of(expression: s.Expr) -> str:
    """An expression as SQL, roughly."""
    match expression:
        case s.Name(parts=parts):
            return ".".join(parts)
        case s.Constant(value=value):
            return f"'{value}'" if isinstance(value, str) else str(value)
        case s.Call(name=name, args=args):
            inside = [text_of(arg) for arg in args]
            if len(inside) == 2 and not name.replace("_", "").replace("$", "").isalnum():
                return f"({inside[0]} {name} {inside[1]})"
            return f"{name}({', '.join(inside)})"
        case s.Cast(operand=operand, type=kind):
            return f"CAST({text_of(operand)} AS {kind})"
    return type(expression).__name__


Maker = Callable[..., Expression]
