"""Comparisons, logical operators and conditional functions.

Promises: a comparison with NULL is NULL; AND, OR and NOT have three-valued logic; IS ... is never NULL.
Does not know: subqueries."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import is_nested, scalar_value
from millstream.sql.expressions.nodes import Lit
from millstream.sql.functions.registry import by_row, define, to_common_type, vectorized
from millstream.sql.functions.spark import NoSparkSpelling, SparkCall, is_scalar, spell_string
from millstream.sql.types import data_types as t
from millstream.sql.types.common_types import find_common_type

_COMPARISON = "comparison"


def _coerce_comparable(arg_types: list[t.DataType]) -> list[t.DataType] | None:
    """Return the common type for both arguments; a string gets the type that it is compared with."""
    texts = [t.is_text(data_type) for data_type in arg_types]
    if any(texts) and not all(texts):
        other = next(data_type for data_type, text in zip(arg_types, texts, strict=True) if not text)
        if isinstance(other, t.NumericType):
            other = t.DOUBLE
        if isinstance(other, t.NullType | t.BitmapType | t.VariantType) or is_nested(other) or t.is_bytes(other):
            return arg_types if isinstance(other, t.NullType) else None
        return [other.with_null(data_type.null) for data_type in arg_types]
    common = find_common_type(arg_types)
    if common is None:
        return None
    if isinstance(common, t.NullType):
        return [t.BOOLEAN for _ in arg_types]
    return [_remove_length(common).with_null(data_type.null) for data_type in arg_types]


def _coerce_equal(arg_types: list[t.DataType]) -> list[t.DataType] | None:
    """Return the types for = and <>, which compare a FLOAT on the left with a DOUBLE as FLOAT; < and > do not."""
    left, right = arg_types
    if isinstance(left, t.FloatType) and isinstance(right, t.DoubleType):
        return [left, t.FLOAT.with_null(right.null)]
    return _coerce_comparable(arg_types)


def _remove_length(data_type: t.DataType) -> t.DataType:
    return t.STRING if t.is_text(data_type) else data_type


def _coerce_ordered(arg_types: list[t.DataType]) -> list[t.DataType] | None:
    result = _coerce_comparable(arg_types)
    return result if result is not None and t.is_comparable(result[0]) else None


def _create_comparison(compare: Callable[[Any, Any], bool], kernel: Callable[..., Any]) -> Callable[..., Any]:
    fallback = by_row(lambda a, b: compare(a, b))

    def evaluate(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
        return fallback(frame, args, arg_types, result_type) if is_nested(arg_types[0]) else kernel(*args)

    return evaluate


def _spell_comparison(call: SparkCall) -> str:
    """Flink: NaN is neither equal to nor less than any value. Spark: NaN equals itself and is the greatest value."""
    left, right = call.texts()
    if not all(map(is_scalar, call.arg_types)):
        raise NoSparkSpelling(call)
    text = f"({left} {call.function} {right})"
    guards = [
        f"isnan({operand})"
        for operand, arg in ((left, call.args[0]), (right, call.args[1]))
        if t.is_approximate(arg.type) and not isinstance(arg, Lit)
    ]
    if not guards:
        return text
    unknown = f"{left} IS NULL OR {right} IS NULL"
    if call.function == "<>":
        return f"({text} OR (({' OR '.join(guards)}) AND NOT ({unknown})))"
    return f"({text} AND (NOT ({' OR '.join(guards)}) OR {unknown}))"


def _spell_if_exact(template: Callable[[list[str]], str]) -> Callable[[SparkCall], str]:
    """Spell calls that compare values, but not floating-point numbers: NaN and -0.0 compare differently in Spark."""

    def spell(call: SparkCall) -> str:
        if any(t.is_approximate(data_type) or not is_scalar(data_type) for data_type in call.arg_types):
            raise NoSparkSpelling(call)
        return template(call.texts())

    return spell


for _symbol, _kernel, _compare, _description in (
    ("=", pc.equal, lambda a, b: a == b, "equal to"),
    ("<>", pc.not_equal, lambda a, b: a != b, "not equal to"),
    ("<", pc.less, lambda a, b: a < b, "less than"),
    ("<=", pc.less_equal, lambda a, b: a <= b, "less than or equal to"),
    (">", pc.greater, lambda a, b: a > b, "greater than"),
    (">=", pc.greater_equal, lambda a, b: a >= b, "greater than or equal to"),
):
    define(
        _symbol,
        _COMPARISON,
        "any, any",
        t.BOOLEAN,
        _create_comparison(_compare, _kernel),
        f"Returns TRUE if value1 is {_description} value2. Returns NULL if either is NULL.",
        syntax=f"value1 {_symbol} value2",
        coerce=_coerce_equal if _symbol in ("=", "<>") else _coerce_ordered,
        spark=_spell_comparison,
    )


def _compute_is_null(_frame: Any, args: list[Any], _arg_types: list[t.DataType], _result_type: t.DataType) -> Any:
    return pc.is_null(args[0])


def _compute_is_not_null(_frame: Any, args: list[Any], _arg_types: list[t.DataType], _result_type: t.DataType) -> Any:
    return pc.is_valid(args[0])


define(
    "IS NULL",
    _COMPARISON,
    "any",
    t.BOOLEAN,
    _compute_is_null,
    "Returns TRUE if the value is NULL.",
    null="never",
    syntax="value IS NULL",
    spark="({0} IS NULL)",
)
define(
    "IS NOT NULL",
    _COMPARISON,
    "any",
    t.BOOLEAN,
    _compute_is_not_null,
    "Returns TRUE if the value is not NULL.",
    null="never",
    syntax="value IS NOT NULL",
    spark="({0} IS NOT NULL)",
)


def _compute_is_not_distinct(frame: Any, args: list[Any], arg_types: list[t.DataType], _result_type: t.DataType) -> Any:
    left, right = args
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    equal = _create_comparison(lambda a, b: a == b, pc.equal)(frame, args, arg_types, t.BOOLEAN)
    return pc.or_(both_null, pc.fill_null(equal, False))


define(
    "IS NOT DISTINCT FROM",
    _COMPARISON,
    "any, any",
    t.BOOLEAN,
    _compute_is_not_distinct,
    "Returns TRUE if the values are equal. NULL is equal to NULL here.",
    null="never",
    coerce=_coerce_comparable,
    syntax="value1 IS NOT DISTINCT FROM value2",
    spark=_spell_if_exact(lambda args: f"({args[0]} <=> {args[1]})"),
)
define(
    "IS DISTINCT FROM",
    _COMPARISON,
    "any, any",
    t.BOOLEAN,
    lambda *call: pc.invert(_compute_is_not_distinct(*call)),
    "Returns TRUE if the values differ. NULL is equal to NULL here.",
    null="never",
    coerce=_coerce_comparable,
    syntax="value1 IS DISTINCT FROM value2",
    spark=_spell_if_exact(lambda args: f"(NOT ({args[0]} <=> {args[1]}))"),
)


@lru_cache(maxsize=512)
def compile_like_pattern(pattern: str, escape: str | None = None) -> re.Pattern[str]:
    """Return the regular expression of a LIKE pattern."""
    if escape is not None and len(escape) != 1:
        msg = f"invalid escape character '{escape}'"
        raise ValueError(msg)
    result: list[str] = []
    i = 0
    while i < len(pattern):
        c = pattern[i]
        if escape and c == escape:
            if i + 1 >= len(pattern) or (pattern[i + 1] not in "_%" and pattern[i + 1] != escape):
                msg = f"invalid escape sequence in '{pattern}' at {i}"
                raise ValueError(msg)
            result.append(re.escape(pattern[i + 1]))
            i += 1
        else:
            result.append(".*" if c == "%" else "." if c == "_" else re.escape(c))
        i += 1
    return re.compile("".join(result), re.DOTALL)


def _like(value: str, pattern: str, escape: str | None = None) -> bool:
    return compile_like_pattern(pattern, escape).fullmatch(value) is not None


def _like_kernel(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    is_constant = len(args) == 2 and isinstance(args[1], pa.Scalar) and args[1].is_valid
    if is_constant and "\\" not in scalar_value(args[1]):
        return pc.match_like(args[0], scalar_value(args[1]))
    return by_row(_like)(frame, args, arg_types, result_type)


def _spell_like(call: SparkCall) -> str:
    """In Flink a backslash is an ordinary character, in Spark it is the escape character."""
    pattern = call.args[1]
    if len(call.args) != 2 or not isinstance(pattern, Lit) or not isinstance(pattern.value, str):
        raise NoSparkSpelling(call)
    if "\\" in pattern.value:
        raise NoSparkSpelling(call)
    return f"({call.text(0)} LIKE {spell_string(pattern.value)})"


define(
    "LIKE",
    _COMPARISON,
    ("string, string", "string, string, string"),
    t.BOOLEAN,
    _like_kernel,
    "Returns TRUE if the string matches the pattern. In a pattern, % matches any characters and _ matches "
    "one character.",
    syntax="string LIKE pattern [ESCAPE character]",
    spark=_spell_like,
)


@lru_cache(maxsize=512)
def _compile_similar_pattern(pattern: str, escape: str | None = None) -> re.Pattern[str]:
    result: list[str] = []
    i = 0
    while i < len(pattern):
        c = pattern[i]
        if escape and c == escape and i + 1 < len(pattern):
            result.append(re.escape(pattern[i + 1]))
            i += 1
        else:
            result.append({"%": ".*", "_": "."}.get(c, re.escape(c) if c in ".^$\\" else c))
        i += 1
    try:
        return re.compile("".join(result), re.DOTALL)
    except re.error as problem:
        msg = f"'{pattern}' is not a pattern: {problem}"
        raise ValueError(msg) from None


define(
    "SIMILAR TO",
    _COMPARISON,
    ("string, string", "string, string, string"),
    t.BOOLEAN,
    by_row(lambda value, pattern, escape=None: _compile_similar_pattern(pattern, escape).fullmatch(value) is not None),
    "Returns TRUE if the string matches the SQL regular expression.",
    syntax="string SIMILAR TO pattern [ESCAPE character]",
)


_LOGIC = "logic"
define(
    "AND",
    _LOGIC,
    "boolean, boolean",
    t.BOOLEAN,
    vectorized(pc.and_kleene),
    "Returns TRUE if both are TRUE, FALSE if one is FALSE, else NULL.",
    syntax="boolean1 AND boolean2",
    spark="({0} AND {1})",
)
define(
    "OR",
    _LOGIC,
    "boolean, boolean",
    t.BOOLEAN,
    vectorized(pc.or_kleene),
    "Returns TRUE if one is TRUE, FALSE if both are FALSE, else NULL.",
    syntax="boolean1 OR boolean2",
    spark="({0} OR {1})",
)
define(
    "NOT",
    _LOGIC,
    "boolean",
    t.BOOLEAN,
    vectorized(pc.invert),
    "Returns the opposite of the boolean, or NULL if it is NULL.",
    syntax="NOT boolean",
    spark="(NOT {0})",
)
for _name, _expected, _invert in (
    ("IS TRUE", True, False),
    ("IS NOT TRUE", True, True),
    ("IS FALSE", False, False),
    ("IS NOT FALSE", False, True),
):

    def _is(
        _frame: Any,
        args: list[Any],
        _arg_types: Any,
        _result_type: Any,
        expected: bool = _expected,
        invert: bool = _invert,
    ) -> Any:
        result = pc.fill_null(args[0] if expected else pc.invert(args[0]), False)
        return pc.invert(result) if invert else result

    define(
        _name,
        _LOGIC,
        "boolean",
        t.BOOLEAN,
        _is,
        f"Returns TRUE if the value {_name.lower()}. Never returns NULL.",
        null="never",
        syntax=f"boolean {_name}",
        spark=f"({{0}} {_name})",
    )
define(
    "IS UNKNOWN",
    _LOGIC,
    "boolean",
    t.BOOLEAN,
    _compute_is_null,
    "Returns TRUE if the value is NULL.",
    null="never",
    syntax="boolean IS UNKNOWN",
    spark="({0} IS NULL)",
)
define(
    "IS NOT UNKNOWN",
    _LOGIC,
    "boolean",
    t.BOOLEAN,
    _compute_is_not_null,
    "Returns TRUE if the value is TRUE or FALSE.",
    null="never",
    syntax="boolean IS NOT UNKNOWN",
    spark="({0} IS NOT NULL)",
)


_CONDITIONAL = "conditional"


def _coalesce(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    if is_nested(result_type):
        return by_row(lambda *values: next((v for v in values if v is not None), None), strict=False)(
            frame, args, arg_types, result_type
        )
    return pc.coalesce(*args)


def _derive_coalesce_type(arg_types: list[t.DataType]) -> t.DataType:
    return arg_types[0].with_null(all(data_type.null for data_type in arg_types))


def _spell_coalesce(call: SparkCall) -> str:
    return f"COALESCE({', '.join(call.texts())})"


define(
    "COALESCE",
    _CONDITIONAL,
    "any, any...",
    _derive_coalesce_type,
    _coalesce,
    "Returns the first argument that is not NULL, or NULL if all are.",
    null="rule",
    coerce=to_common_type,
    spark=_spell_coalesce,
)
define(
    "IFNULL",
    _CONDITIONAL,
    "any, any",
    _derive_coalesce_type,
    _coalesce,
    "Returns the first argument, or the second if the first is NULL.",
    null="rule",
    coerce=to_common_type,
    spark=_spell_coalesce,
)


def _nullif(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    compute = by_row(lambda a, b: None if a == b else a, strict=False)
    return compute(frame, args, arg_types, result_type)


def _coerce_nullif(arg_types: list[t.DataType]) -> list[t.DataType] | None:
    """Return the common type of the arguments; numbers keep theirs, since the result has the type of the first."""
    if all(isinstance(data_type, t.NumericType) for data_type in arg_types):
        return list(arg_types)
    return to_common_type(arg_types)


define(
    "NULLIF",
    _CONDITIONAL,
    "any, any",
    lambda arg_types: arg_types[0],
    _nullif,
    "Returns NULL if both arguments are equal, else the first argument.",
    null="always",
    coerce=_coerce_nullif,
    spark=_spell_if_exact(lambda args: f"NULLIF({args[0]}, {args[1]})"),
)


def _coerce_orderable(arg_types: list[t.DataType]) -> list[t.DataType] | None:
    result = to_common_type(arg_types)
    return result if result is not None and t.is_comparable(result[0]) else None


def _select(select: Callable[..., Any]) -> Any:
    return by_row(lambda *values: select(values))


define(
    "GREATEST",
    _CONDITIONAL,
    "any, any...",
    lambda arg_types: arg_types[0],
    _select(max),
    "Returns the greatest of the arguments. Returns NULL if one of them is NULL.",
    coerce=_coerce_orderable,
)
define(
    "LEAST",
    _CONDITIONAL,
    "any, any...",
    lambda arg_types: arg_types[0],
    _select(min),
    "Returns the least of the arguments. Returns NULL if one of them is NULL.",
    coerce=_coerce_orderable,
)
define(
    "IS_ALPHA",
    _CONDITIONAL,
    "string",
    t.BOOLEAN,
    by_row(lambda v: v is not None and v.isalpha(), strict=False),
    "Returns TRUE if all characters of the string are letters, and FALSE for NULL.",
    null="never",
)
define(
    "IS_DIGIT",
    _CONDITIONAL,
    "string",
    t.BOOLEAN,
    by_row(lambda v: v is not None and v.isdigit(), strict=False),
    "Returns TRUE if all characters of the string are digits, and FALSE for NULL.",
    null="never",
)


def _is_decimal(value: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value.strip()) is not None


define(
    "IS_DECIMAL",
    _CONDITIONAL,
    "string",
    t.BOOLEAN,
    by_row(lambda v: v is not None and _is_decimal(v), strict=False),
    "Returns TRUE if the string is a number, and FALSE for NULL.",
    null="never",
)


def _coerce_in(arg_types: list[t.DataType]) -> list[t.DataType] | None:
    typed = [data_type for data_type in arg_types if not isinstance(data_type, t.NullType)]
    if not typed:
        return [t.BOOLEAN for _ in arg_types]
    if isinstance(typed[0], t.FloatType) and all(isinstance(data_type, t.NumericType) for data_type in typed):
        return [t.FLOAT.with_null(data_type.null) for data_type in arg_types]
    pair = _coerce_comparable([typed[0], find_common_type(typed) or typed[-1]])
    if pair is not None and find_common_type(typed) is not None:
        common = pair[0]
    else:  # strings are cast to the common type of the others
        common_of_others = find_common_type([data_type for data_type in typed if not t.is_text(data_type)])
        if common_of_others is None:
            return None
        common = common_of_others
    return [common.with_null(data_type.null) for data_type in arg_types]


def _in(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    value, items = args[0], args[1:]
    if is_nested(arg_types[0]) or not all(isinstance(item, pa.Scalar) for item in items):
        return by_row(_is_in, strict=False)(frame, args, arg_types, result_type)
    valid = [item for item in items if item.is_valid]
    value_set = pa.array([scalar_value(item) for item in valid], value.type)
    result = (
        pc.is_in(value, value_set=value_set)
        if isinstance(value, pa.Array)
        else pa.scalar(scalar_value(value) in [scalar_value(item) for item in valid])
    )
    unknown = pc.is_null(value)
    if len(valid) < len(items):
        unknown = pc.or_(unknown, pc.invert(result))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), result)


def _is_in(value: Any, *items: Any) -> bool | None:
    if value is None:
        return None
    if value in [item for item in items if item is not None]:
        return True
    return None if None in items else False


define(
    "IN",
    _COMPARISON,
    "any, any...",
    t.BOOLEAN,
    _in,
    "Returns TRUE if the value is equal to one of the others. Returns NULL if it is not and one of them is NULL.",
    coerce=_coerce_in,
    syntax="value IN (value1, ...)",
    spark=_spell_if_exact(lambda args: f"({args[0]} IN ({', '.join(args[1:])}))"),
)
