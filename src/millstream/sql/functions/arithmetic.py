"""Numbers: operators and mathematics.

Promises: whole numbers wrap as in Java and divide towards zero; decimals get Flink's precision and scale and become
NULL when they do not fit; division of whole numbers by zero fails.
Does not know: intervals; temporal_arithmetic.py adds them to moments."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import arrow_type, rounded, scalar_value
from millstream.sql.functions import chance
from millstream.sql.functions.registry import by_row, define, vectorized
from millstream.sql.functions.spark import NoSparkSpelling, SparkCall
from millstream.sql.types import data_types as t
from millstream.sql.types.common_types import common_type
from millstream.state.key_hashes import KeyHasher

_A = "arithmetic"
_CONTEXT = Context(prec=80)


def _numbers(kinds: list[t.DataType]) -> list[t.DataType] | None:
    """Operands of + - * / %: approximate and whole ones alike; exact ones keep their own scale."""
    filled = [t.DOUBLE if isinstance(kind, t.NullType) or t.is_text(kind) else kind for kind in kinds]
    if any(isinstance(kind, t.DecimalType) for kind in filled) and not any(map(t.is_approximate, filled)):
        return [t.as_decimal(kind).with_null(kind.null) for kind in filled]
    common = common_type(filled)
    return None if common is None else [common.with_null(kind.null) for kind in filled]


def _sum_type(kinds: list[t.DataType]) -> t.DataType:
    a, b = kinds
    if isinstance(a, t.DecimalType) and isinstance(b, t.DecimalType):
        scale = max(a.scale, b.scale)
        return t.decimal(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)
    return a


def _product_type(kinds: list[t.DataType]) -> t.DataType:
    a, b = kinds
    if isinstance(a, t.DecimalType) and isinstance(b, t.DecimalType):
        return t.decimal(a.precision + b.precision + 1, a.scale + b.scale)
    return a


def _quotient_type(kinds: list[t.DataType]) -> t.DataType:
    a, b = kinds
    if isinstance(a, t.DecimalType) and isinstance(b, t.DecimalType):
        scale = max(6, a.scale + b.precision + 1)
        return t.decimal(a.precision - a.scale + b.scale + scale, scale)
    return a


def _remainder_type(kinds: list[t.DataType]) -> t.DataType:
    a, b = kinds
    if isinstance(a, t.DecimalType) and isinstance(b, t.DecimalType):
        scale = max(a.scale, b.scale)
        return t.decimal(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    return b


def _operator(quick: Callable[..., Any], exact: Callable[[Decimal, Decimal], Decimal]) -> Any:
    def evaluate(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
        if isinstance(kind, t.DecimalType):
            return by_row(lambda a, b: rounded(exact(a, b), kind))(frame, args, kinds, kind)
        return quick(*args)

    return evaluate


def _sum(quick: Callable[..., Any], exact: Callable[[Decimal, Decimal], Decimal]) -> Any:
    slow = _operator(quick, exact)

    def evaluate(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
        if isinstance(kind, t.DecimalType) and kind.precision < t.MAX_PRECISION:
            return pc.cast(quick(*args), arrow_type(kind))
        return slow(frame, args, kinds, kind)

    return evaluate


def _product(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    if isinstance(kind, t.DecimalType) and kind.precision < t.MAX_PRECISION:
        return pc.cast(pc.multiply(*args), arrow_type(kind))
    return _operator(pc.multiply, _CONTEXT.multiply)(frame, args, kinds, kind)


def _divide(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    if isinstance(kind, t.DecimalType):
        return by_row(lambda a, b: rounded(_CONTEXT.divide(a, b), kind))(frame, args, kinds, kind)
    return pc.divide(*args)


def _modulo(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    if isinstance(kind, t.DecimalType):
        return by_row(lambda a, b: rounded(_CONTEXT.remainder(a, b), kind))(frame, args, kinds, kind)
    if t.is_approximate(kind):
        return by_row(lambda a, b: math.fmod(a, b) if b else math.nan)(frame, args, kinds, kind)
    a, b = args
    return pc.subtract(a, pc.multiply(pc.divide(a, b), b))


def _spell_operator(call: SparkCall) -> str:
    if not isinstance(call.type, t.NumericType):
        raise NoSparkSpelling(call)
    left, right = call.texts()
    return f"CAST(({left} {call.function} {right}) AS {call.result_type()})"


def _spell_division(call: SparkCall) -> str:
    """A division by zero is NULL in Spark, of floating-point numbers too; exact numbers fail as in Flink."""
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
    failure = f"CAST(raise_error('division by zero') AS {type_name})"
    return f"(CASE WHEN {left} IS NOT NULL AND {right} = 0 THEN {failure} ELSE {text} END)"


def _spell_unary(template: str) -> Callable[[SparkCall], str]:
    def spell(call: SparkCall) -> str:
        if not isinstance(call.type, t.NumericType):
            raise NoSparkSpelling(call)
        return template.format(call.text(0))

    return spell


_PAIR = "number, number"
define(
    "+",
    _A,
    _PAIR,
    _sum_type,
    _sum(pc.add, _CONTEXT.add),
    "The sum.",
    coerce=_numbers,
    syntax="a + b",
    spark=_spell_operator,
)
define(
    "-",
    _A,
    _PAIR,
    _sum_type,
    _sum(pc.subtract, _CONTEXT.subtract),
    "The difference.",
    coerce=_numbers,
    syntax="a - b",
    spark=_spell_operator,
)
define("*", _A, _PAIR, _product_type, _product, "The product.", coerce=_numbers, syntax="a * b", spark=_spell_operator)
define(
    "/",
    _A,
    _PAIR,
    _quotient_type,
    _divide,
    "The quotient; of whole numbers the whole part.",
    coerce=_numbers,
    syntax="a / b",
    spark=_spell_division,
)
define(
    "%",
    _A,
    _PAIR,
    _remainder_type,
    _modulo,
    "The remainder, with the sign of the first number.",
    coerce=_numbers,
    syntax="a % b",
    spark=_spell_division,
    aliases=("MOD",),
)
define(
    "NEGATE",
    _A,
    ("number", "interval"),
    lambda kinds: kinds[0],
    vectorized(pc.negate),
    "The opposite number.",
    syntax="- a",
    spark=_spell_unary("(- {})"),
)
define(
    "ABS",
    _A,
    "number",
    lambda kinds: kinds[0],
    vectorized(pc.abs),
    "The absolute value.",
    spark=_spell_unary("ABS({})"),
)


def _real(function: Callable[[float], float]) -> Any:
    def safe(value: float) -> float:
        try:
            return function(value)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return by_row(safe)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf if value == 0 else math.nan


def _power(base: float, exponent: float) -> float:
    try:
        made = math.pow(base, exponent)
    except OverflowError:
        return math.inf
    except (ValueError, ZeroDivisionError):
        return math.inf if base == 0 else math.nan
    return made


def _positive(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: function(value) if value > 0 else -math.inf if value == 0 else math.nan


define("POWER", _A, "double, double", t.DOUBLE, by_row(_power), "The first number to the power of the second.")
define("SQRT", _A, "double", t.DOUBLE, vectorized(pc.sqrt), "The square root.")
define("LN", _A, "double", t.DOUBLE, by_row(_log), "The natural logarithm.")
define("LOG10", _A, "double", t.DOUBLE, by_row(_positive(math.log10)), "The logarithm to base 10.")
define("LOG2", _A, "double", t.DOUBLE, by_row(_positive(math.log2)), "The logarithm to base 2.")
define(
    "LOG", _A, ("double", "double, double"), t.DOUBLE,
    by_row(lambda a, b=None: _log(a) if b is None else _log(b) / _log(a)),
    "The natural logarithm, or that of the second number to the base of the first.",
)  # fmt: skip
define("EXP", _A, "double", t.DOUBLE, _real(math.exp), "e to the power of the number.")
for _name, _function, _doc in (
    ("SIN", math.sin, "The sine."),
    ("SINH", math.sinh, "The hyperbolic sine."),
    ("COS", math.cos, "The cosine."),
    ("COSH", math.cosh, "The hyperbolic cosine."),
    ("TAN", math.tan, "The tangent."),
    ("TANH", math.tanh, "The hyperbolic tangent."),
    ("COT", lambda v: 1.0 / math.tan(v), "The cotangent."),
    ("ASIN", math.asin, "The arc sine."),
    ("ACOS", math.acos, "The arc cosine."),
    ("ATAN", math.atan, "The arc tangent."),
    ("DEGREES", math.degrees, "Radians as degrees."),
    ("RADIANS", math.radians, "Degrees as radians."),
):
    define(_name, _A, "double", t.DOUBLE, _real(_function), _doc)
define("ATAN2", _A, "double, double", t.DOUBLE, by_row(math.atan2), "The arc tangent of a point (y, x).")
define("PI", _A, "", t.DOUBLE, lambda *_: pa.scalar(math.pi), "The number pi.", null="never")
define("E", _A, "", t.DOUBLE, lambda *_: pa.scalar(math.e), "The number e.", null="never")


def _sign(value: Any) -> Any:
    if isinstance(value, Decimal):
        return Decimal((value > 0) - (value < 0))
    return type(value)((value > 0) - (value < 0))


define("SIGN", _A, "number", lambda kinds: kinds[0], by_row(_sign), "1, 0 or -1.")


def _round_type(kinds: list[t.DataType]) -> t.DataType:
    return kinds[0]


def _round(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    def half_up(value: Any, digits: int = 0) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            return value
        number = (
            value
            if isinstance(value, Decimal)
            else Decimal(repr(value))
            if isinstance(value, float)
            else Decimal(value)
        )
        made = number.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP, context=_CONTEXT)
        if isinstance(kind, t.DecimalType):
            return rounded(made, kind)
        return float(made) if isinstance(value, float) else int(made)

    return by_row(half_up)(frame, args, kinds, kind)


def _round_decimal(kinds: list[t.DataType], digits: int | None) -> t.DataType:
    """The type of ROUND of a decimal with a constant number of digits."""
    kind = kinds[0]
    assert isinstance(kind, t.DecimalType)
    wanted = 0 if digits is None else digits
    if wanted >= kind.scale:
        return kind
    if wanted < 0:
        return t.DecimalType(min(t.MAX_PRECISION, kind.precision - kind.scale + 1), 0)
    return t.DecimalType(min(t.MAX_PRECISION, kind.precision - kind.scale + 1 + wanted), wanted)


define(
    "ROUND",
    _A,
    ("number", "number, int"),
    _round_type,
    _round,
    "The number with so many digits after the point, half up.",
)


def _truncate(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    def cut(value: Any, digits: int = 0) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            return value
        number = (
            value
            if isinstance(value, Decimal)
            else Decimal(repr(value))
            if isinstance(value, float)
            else Decimal(value)
        )
        made = number.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_DOWN, context=_CONTEXT)
        if isinstance(kind, t.DecimalType):
            return rounded(made, kind)
        return float(made) if isinstance(value, float) else int(made)

    return by_row(cut)(frame, args, kinds, kind)


define(
    "TRUNCATE",
    _A,
    ("number", "number, int"),
    _round_type,
    _truncate,
    "The number cut to so many digits after the point.",
)


def _whole_type(kinds: list[t.DataType]) -> t.DataType:
    kind = kinds[0]
    return t.DecimalType(kind.precision, 0) if isinstance(kind, t.DecimalType) else kind


def whole(up: bool) -> Any:
    """FLOOR or CEIL of numbers."""

    def evaluate(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
        if isinstance(kind, t.IntegerType):
            return args[0]
        if isinstance(kind, t.DecimalType):
            turn = math.ceil if up else math.floor
            return by_row(lambda v: rounded(Decimal(turn(v)), kind))(frame, args, kinds, kind)
        return (pc.ceil if up else pc.floor)(args[0])

    return evaluate


whole_type = _whole_type


def _rand(frame: Any, args: list[Any], _kinds: list[t.DataType], _kind: t.DataType) -> Any:
    return chance.draw_doubles(frame, args[0] if args else None)


def _rand_integer(frame: Any, args: list[Any], _kinds: list[t.DataType], _kind: t.DataType) -> Any:
    return chance.draw_integers(frame, args[0] if len(args) == 2 else None, args[-1])


define(
    "RAND", _A, ("", "int"), t.DOUBLE, _rand, "A random number from 0 to below 1.", deterministic=False, null="never"
)
define(
    "RAND_INTEGER",
    _A,
    ("int", "int, int"),
    t.INT,
    _rand_integer,
    "A random whole number from 0 to below the bound.",
    deterministic=False,
    syntax="RAND_INTEGER([seed,] bound)",
)
define(
    "UUID",
    _A,
    "",
    t.CharType(36),
    lambda frame, *_: chance.draw_uuids(frame),
    "A random UUID.",
    deterministic=False,
    null="never",
)
define("BIN", _A, "bigint", t.STRING, by_row(lambda v: f"{v & (2**64 - 1):b}"), "The number in binary digits.")


def _hex(value: Any) -> str:
    if isinstance(value, str):
        return value.encode().hex().upper()
    return value.hex().upper() if isinstance(value, bytes) else f"{value & (2**64 - 1):X}"


define("HEX", _A, ("integer", "string", "bytes"), t.STRING, by_row(_hex), "A number or string in hexadecimal digits.")


def _unhex(value: str) -> bytes | None:
    try:
        return bytes.fromhex(value if len(value) % 2 == 0 else "0" + value)
    except ValueError:
        return None


define("UNHEX", _A, "string", t.BYTES, by_row(_unhex), "The bytes that hexadecimal digits stand for.", null="always")


def _bucket(frame: Any, args: list[Any], _kinds: list[t.DataType], _kind: t.DataType) -> Any:
    """Equal values are in one part, whatever process asks."""
    hasher = KeyHasher()
    hashes = np.zeros(frame.count, dtype=np.uint64)
    for arg in args[1:]:
        column = pa.repeat(arg, frame.count) if isinstance(arg, pa.Scalar) else arg
        hashes = hashes * np.uint64(31) + hasher.of_column(column).astype(np.uint64)
    parts = np.uint64(scalar_value(args[0]))
    return pa.array(((hashes ^ (hashes >> np.uint64(32))) % parts).astype(np.int64))


define(
    "$BUCKET", "internal", "bigint, any...", t.BIGINT, _bucket, "Which of so many parts values are in.", null="never"
)
