"""Arithmetic operators and mathematical functions.

Promises: integers overflow as in Java and divide toward zero; decimals have Flink's precision and scale, and are NULL
if they do not fit; division of exact numbers by zero fails.
Does not know: intervals; temporal_arithmetic.py adds them to dates and timestamps."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import arrow_type, round_decimal, scalar_value
from millstream.sql.functions import random_values
from millstream.sql.functions.registry import by_row, define, vectorized
from millstream.sql.functions.spark import NoSparkSpelling, SparkCall, spell_error
from millstream.sql.types import data_types as t
from millstream.sql.types.common_types import find_leading_type
from millstream.state.key_hashes import KeyHasher

_ARITHMETIC = "arithmetic"
_CONTEXT = Context(prec=80)


def _coerce_operands(arg_types: list[t.DataType]) -> list[t.DataType] | None:
    """Return the types of the operands of + - * / %: decimals keep their scale, other numbers get their common type."""
    numeric = [
        t.DOUBLE if isinstance(data_type, t.NullType) or t.is_text(data_type) else data_type for data_type in arg_types
    ]
    has_decimal = any(isinstance(data_type, t.DecimalType) for data_type in numeric)
    if has_decimal and not any(map(t.is_approximate, numeric)):
        return [t.as_decimal(data_type).with_null(data_type.null) for data_type in numeric]
    common = find_leading_type(numeric)
    return None if common is None else [common.with_null(data_type.null) for data_type in numeric]


def _derive_sum_type(arg_types: list[t.DataType]) -> t.DataType:
    a, b = arg_types
    if isinstance(a, t.DecimalType) and isinstance(b, t.DecimalType):
        scale = max(a.scale, b.scale)
        return t.create_decimal(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)
    return a


def _derive_product_type(arg_types: list[t.DataType]) -> t.DataType:
    a, b = arg_types
    if isinstance(a, t.DecimalType) and isinstance(b, t.DecimalType):
        return t.create_decimal(a.precision + b.precision + 1, a.scale + b.scale)
    return a


def _derive_quotient_type(arg_types: list[t.DataType]) -> t.DataType:
    a, b = arg_types
    if isinstance(a, t.DecimalType) and isinstance(b, t.DecimalType):
        scale = max(6, a.scale + b.precision + 1)
        return t.create_decimal(a.precision - a.scale + b.scale + scale, scale)
    return a


def _derive_remainder_type(arg_types: list[t.DataType]) -> t.DataType:
    a, b = arg_types
    if isinstance(a, t.DecimalType) and isinstance(b, t.DecimalType):
        scale = max(a.scale, b.scale)
        return t.create_decimal(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    return b


def _apply_kernel(function: Callable[..., Any], *, exact_decimals: bool = False) -> Any:
    """Compute with an Arrow kernel; decimals only if its result is exact and fits the result type."""

    def evaluate(_frame: Any, args: list[Any], _arg_types: list[t.DataType], result_type: t.DataType) -> Any:
        if not isinstance(result_type, t.DecimalType):
            return function(*args)
        if exact_decimals and result_type.precision < t.MAX_PRECISION:
            return pc.cast(function(*args), arrow_type(result_type))
        return NotImplemented

    return evaluate


def _compute_decimals(function: Callable[[Decimal, Decimal], Decimal]) -> Any:
    """Compute decimals value by value, rounded to the result type."""

    def evaluate(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
        assert isinstance(result_type, t.DecimalType)
        compute = by_row(lambda a, b: round_decimal(function(a, b), result_type))
        return compute(frame, args, arg_types, result_type)

    return evaluate


def _coerce_remainder_operands(arg_types: list[t.DataType]) -> list[t.DataType] | None:
    """Return the types of the operands of %: integers keep theirs, since the result has the type of the divisor."""
    if all(isinstance(data_type, t.IntegerType) for data_type in arg_types):
        return list(arg_types)
    return _coerce_operands(arg_types)


def _remainder(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    if isinstance(result_type, t.DecimalType):
        return NotImplemented
    if isinstance(result_type, t.IntegerType) and not arg_types[0].same(arg_types[1]):
        wide = arrow_type(find_leading_type(arg_types) or t.BIGINT)
        remainder = _remainder(frame, [pc.cast(arg, wide) for arg in args], [t.BIGINT, t.BIGINT], t.BIGINT)
        return pc.cast(remainder, arrow_type(result_type))
    if t.is_approximate(result_type):
        return by_row(lambda a, b: math.fmod(a, b) if b else math.nan)(frame, args, arg_types, result_type)
    a, b = args
    return pc.subtract(a, pc.multiply(pc.divide(a, b), b))


def _spell_operator(call: SparkCall) -> str:
    if not isinstance(call.type, t.NumericType):
        raise NoSparkSpelling(call)
    left, right = call.texts()
    return f"CAST(({left} {call.function} {right}) AS {call.result_type()})"


def _spell_division(call: SparkCall) -> str:
    """Division by zero returns NULL in Spark. In Flink it fails for exact numbers; for others it is infinity or NaN."""
    left, right = call.texts()
    type_name = call.result_type()
    if not isinstance(call.type, t.NumericType):
        raise NoSparkSpelling(call)
    is_never_zero = call.constant(call.args[1]) not in (None, 0)
    if t.is_approximate(call.type) and (not is_never_zero or call.function == "%"):
        raise NoSparkSpelling(call)
    operator = "div" if call.function == "/" and isinstance(call.type, t.IntegerType) else call.function
    text = f"CAST(({left} {operator} {right}) AS {type_name})"
    if is_never_zero:
        return text
    failure = spell_error("division by zero", type_name)
    return f"(CASE WHEN {left} IS NOT NULL AND {right} = 0 THEN {failure} ELSE {text} END)"


def _spell_unary(template: str) -> Callable[[SparkCall], str]:
    def spell(call: SparkCall) -> str:
        if not isinstance(call.type, t.NumericType):
            raise NoSparkSpelling(call)
        return template.format(call.text(0))

    return spell


_TWO_NUMBERS = "number, number"
for _symbol, _type_rule, _evaluate, _decimals, _doc in (
    ("+", _derive_sum_type, _apply_kernel(pc.add, exact_decimals=True), _CONTEXT.add, "Returns a plus b."),
    ("-", _derive_sum_type, _apply_kernel(pc.subtract, exact_decimals=True), _CONTEXT.subtract, "Returns a minus b."),
    (
        "*",
        _derive_product_type,
        _apply_kernel(pc.multiply, exact_decimals=True),
        _CONTEXT.multiply,
        "Returns a multiplied by b.",
    ),
):
    define(
        _symbol,
        _ARITHMETIC,
        _TWO_NUMBERS,
        _type_rule,
        _evaluate,
        _doc,
        fallback=_compute_decimals(_decimals),
        coerce=_coerce_operands,
        syntax=f"a {_symbol} b",
        spark=_spell_operator,
    )
define(
    "/",
    _ARITHMETIC,
    _TWO_NUMBERS,
    _derive_quotient_type,
    _apply_kernel(pc.divide),
    "Returns a divided by b. The quotient of two integers is an integer, truncated toward zero.",
    fallback=_compute_decimals(_CONTEXT.divide),
    coerce=_coerce_operands,
    syntax="a / b",
    spark=_spell_division,
)
define(
    "%",
    _ARITHMETIC,
    _TWO_NUMBERS,
    _derive_remainder_type,
    _remainder,
    "Returns the remainder of a divided by b. The result has the sign of a.",
    fallback=_compute_decimals(_CONTEXT.remainder),
    coerce=_coerce_remainder_operands,
    syntax="a % b or MOD(a, b)",
    aliases=("MOD",),
    spark=_spell_division,
)
define(
    "NEGATE",
    _ARITHMETIC,
    ("number", "interval"),
    lambda arg_types: arg_types[0],
    vectorized(pc.negate),
    "Returns the number or interval with the opposite sign.",
    syntax="- a",
    spark=_spell_unary("(- {})"),
)
define(
    "ABS",
    _ARITHMETIC,
    "number",
    lambda arg_types: arg_types[0],
    vectorized(pc.abs),
    "Returns the absolute value of the number.",
    spark=_spell_unary("ABS({})"),
)


def _compute_doubles(function: Callable[[float], float]) -> Any:
    def compute(value: float) -> float:
        try:
            return function(value)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return by_row(compute)


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        is_negative = base < 0 and exponent % 2 == 1
    except (ValueError, ZeroDivisionError):
        if base != 0:
            return math.nan
        is_negative = math.copysign(1, base) < 0 and exponent % 2 == 1
    return -math.inf if is_negative else math.inf


def _extend_logarithm(logarithm: Callable[[float], float]) -> Callable[[float], float]:
    """Return the logarithm with Java's results for numbers that are not positive: -infinity for 0, else NaN."""
    return lambda value: logarithm(value) if value > 0 else -math.inf if value == 0 else math.nan


_log = _extend_logarithm(math.log)


define(
    "POWER",
    _ARITHMETIC,
    "double, double",
    t.DOUBLE,
    by_row(_power),
    "Returns the first number raised to the power of the second.",
)
define("SQRT", _ARITHMETIC, "double", t.DOUBLE, vectorized(pc.sqrt), "Returns the square root of the number.")
define("LN", _ARITHMETIC, "double", t.DOUBLE, by_row(_log), "Returns the natural logarithm of the number.")
define(
    "LOG10",
    _ARITHMETIC,
    "double",
    t.DOUBLE,
    by_row(_extend_logarithm(math.log10)),
    "Returns the logarithm of the number to base 10.",
)
define(
    "LOG2",
    _ARITHMETIC,
    "double",
    t.DOUBLE,
    by_row(_extend_logarithm(lambda value: math.log(value) / math.log(2.0))),  # as Flink computes it
    "Returns the logarithm of the number to base 2.",
)
define(
    "LOG", _ARITHMETIC, ("double", "double, double"), t.DOUBLE,
    by_row(lambda a, b=None: _log(a) if b is None else _log(b) / _log(a)),
    "Returns the natural logarithm of the number. With two arguments, the first is the base and the "
"second is the number.",
)  # fmt: skip
define(
    "EXP", _ARITHMETIC, "double", t.DOUBLE, _compute_doubles(math.exp), "Returns e raised to the power of the number."
)
for _name, _function, _doc in (
    ("SIN", math.sin, "Returns the sine of the angle in radians."),
    ("SINH", math.sinh, "Returns the hyperbolic sine of the number."),
    ("COS", math.cos, "Returns the cosine of the angle in radians."),
    ("COSH", math.cosh, "Returns the hyperbolic cosine of the number."),
    ("TAN", math.tan, "Returns the tangent of the angle in radians."),
    ("TANH", math.tanh, "Returns the hyperbolic tangent of the number."),
    ("COT", lambda v: 1.0 / math.tan(v), "Returns the cotangent of the angle in radians."),
    ("ASIN", math.asin, "Returns the arc sine of the number."),
    ("ACOS", math.acos, "Returns the arc cosine of the number."),
    ("ATAN", math.atan, "Returns the arc tangent of the number."),
    ("DEGREES", math.degrees, "Converts radians to degrees."),
    ("RADIANS", math.radians, "Converts degrees to radians."),
):
    define(_name, _ARITHMETIC, "double", t.DOUBLE, _compute_doubles(_function), _doc)
define(
    "ATAN2",
    _ARITHMETIC,
    "double, double",
    t.DOUBLE,
    by_row(math.atan2),
    "Returns the angle of the point (x, y), where the first argument is y and the second is x.",
)
define("PI", _ARITHMETIC, "", t.DOUBLE, lambda *_: pa.scalar(math.pi), "Returns the number pi.", null="never")
define("E", _ARITHMETIC, "", t.DOUBLE, lambda *_: pa.scalar(math.e), "Returns Euler's number e.", null="never")


def _sign(value: Any) -> Any:
    if isinstance(value, Decimal):
        return Decimal((value > 0) - (value < 0))
    return type(value)((value > 0) - (value < 0))


define(
    "SIGN",
    _ARITHMETIC,
    "number",
    lambda arg_types: arg_types[0],
    by_row(_sign),
    "Returns 1 for a positive number, 0 for zero and -1 for a negative number.",
)


def _round(rounding: str) -> Any:
    """Compute ROUND or TRUNCATE, which differ in the rounding mode of `decimal`."""

    def evaluate(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
        def round_value(value: Any, digits: int = 0) -> Any:
            if isinstance(value, float) and not math.isfinite(value):
                return value
            number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
            if isinstance(value, float) and -number.as_tuple().exponent <= digits:  # type: ignore[operator]
                return value  # there is nothing to round, and the digits may be too many for a decimal
            result = number.quantize(Decimal(1).scaleb(-digits), rounding=rounding, context=_CONTEXT)
            if isinstance(result_type, t.DecimalType):
                return round_decimal(result, result_type)
            return float(result) + 0.0 if isinstance(value, float) else int(result)  # 0.0, not -0.0

        return by_row(round_value)(frame, args, arg_types, result_type)

    return evaluate


def round_decimal_type(data_type: t.DecimalType, digits: int) -> t.DataType:
    """Return the type of ROUND of a decimal to a constant number of decimal places."""
    if digits >= data_type.scale:
        return data_type
    scale = max(digits, 0)
    return t.DecimalType(min(t.MAX_PRECISION, data_type.precision - data_type.scale + 1 + scale), scale)


define(
    "ROUND",
    _ARITHMETIC,
    ("number", "number, int"),
    lambda arg_types: arg_types[0],
    _round(ROUND_HALF_UP),
    "Rounds the number to a number of decimal places (0 if not given), half up.",
)
define(
    "TRUNCATE",
    _ARITHMETIC,
    ("number", "number, int"),
    lambda arg_types: arg_types[0],
    _round(ROUND_DOWN),
    "Truncates the number to a number of decimal places (0 if not given).",
)


def derive_integer_part_type(arg_types: list[t.DataType]) -> t.DataType:
    """Return the type of FLOOR and CEIL of a number."""
    data_type = arg_types[0]
    return t.DecimalType(data_type.precision, 0) if isinstance(data_type, t.DecimalType) else data_type


def create_rounding(*, up: bool) -> Any:
    """Compute CEIL of numbers if `up`, else FLOOR."""

    def evaluate(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
        if isinstance(result_type, t.IntegerType):
            return args[0]
        if isinstance(result_type, t.DecimalType):
            function = math.ceil if up else math.floor
            compute = by_row(lambda value: round_decimal(Decimal(function(value)), result_type))
            return compute(frame, args, arg_types, result_type)
        return (pc.ceil if up else pc.floor)(args[0])

    return evaluate


def _rand(frame: Any, args: list[Any], _arg_types: list[t.DataType], _result_type: t.DataType) -> Any:
    return random_values.draw_doubles(frame, args[0] if args else None)


def _rand_integer(frame: Any, args: list[Any], _arg_types: list[t.DataType], _result_type: t.DataType) -> Any:
    return random_values.draw_integers(frame, args[0] if len(args) == 2 else None, args[-1])


define(
    "RAND",
    _ARITHMETIC,
    ("", "int"),
    t.DOUBLE,
    _rand,
    "Returns a random number of at least 0.0 and less than 1.0. Calls with the same seed return the same sequence.",
    deterministic=False,
    null="never",
)
define(
    "RAND_INTEGER",
    _ARITHMETIC,
    ("int", "int, int"),
    t.INT,
    _rand_integer,
    "Returns a random integer of at least 0 and less than the bound. Calls with the same seed return the "
    "same sequence.",
    deterministic=False,
    syntax="RAND_INTEGER([seed,] bound)",
)
define(
    "UUID",
    _ARITHMETIC,
    "",
    t.CharType(36),
    lambda frame, *_: random_values.draw_uuids(frame),
    "Returns a random UUID of version 4.",
    deterministic=False,
    null="never",
)
define(
    "BIN",
    _ARITHMETIC,
    "bigint",
    t.STRING,
    by_row(lambda v: f"{v & (2**64 - 1):b}"),
    "Returns the integer in binary digits.",
)


def _hex(value: Any) -> str:
    if isinstance(value, str):
        return value.encode().hex().upper()
    return value.hex().upper() if isinstance(value, bytes) else f"{value & (2**64 - 1):X}"


define(
    "HEX",
    _ARITHMETIC,
    ("integer", "string", "bytes"),
    t.STRING,
    by_row(_hex),
    "Returns an integer, or the bytes of a string, in hexadecimal digits.",
)


def _unhex(value: str) -> bytes | None:
    try:
        return bytes.fromhex(value if len(value) % 2 == 0 else "0" + value)
    except ValueError:
        return None


define(
    "UNHEX",
    _ARITHMETIC,
    "string",
    t.BYTES,
    by_row(_unhex),
    "Converts hexadecimal digits to bytes. Returns NULL if the string is not hexadecimal.",
    null="always",
)


def _bucket(frame: Any, args: list[Any], _arg_types: list[t.DataType], _result_type: t.DataType) -> Any:
    """Compute the bucket of each row with hashes that are the same in every process."""
    hasher = KeyHasher()
    hashes = np.zeros(frame.count, dtype=np.uint64)
    for arg in args[1:]:
        column = pa.repeat(arg, frame.count) if isinstance(arg, pa.Scalar) else arg
        hashes = hashes * np.uint64(31) + hasher.of_column(column).astype(np.uint64)
    buckets = np.uint64(scalar_value(args[0]))
    return pa.array(((hashes ^ (hashes >> np.uint64(32))) % buckets).astype(np.int64))


define(
    "$BUCKET",
    "internal",
    "bigint, any...",
    t.BIGINT,
    _bucket,
    "Returns the bucket of the values, of a number of buckets.",
    null="never",
)
