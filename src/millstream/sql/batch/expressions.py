"""Expressions in Spark's SQL.

Promises: an expression has a spelling only where Spark computes what Flink computes, with `spark.sql.ansi.enabled` off:
whole numbers wrap, decimals that do not fit are NULL, division of exact numbers by zero fails. What depends on no
column is computed here. All others have none, and are computed by the functions of this package.
Does not know: plans."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence

from millstream.errors import UserError
from millstream.sql import types as t
from millstream.sql.batch import spelling
from millstream.sql.evaluate import constant
from millstream.sql.expressions import Apply, Choose, Convert, Expression, Lit, Ref, Sym, UserCall, references, walk
from millstream.sql.fields import FieldRef
from millstream.sql.functions.library import function_named

#: Functions of the moment in which a query runs: the same for all rows.
OF_NOW = frozenset(
    {
        "CURRENT_DATE", "CURRENT_TIME", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_TIMESTAMP", "NOW",
        "CURRENT_ROW_TIMESTAMP", "PROCTIME", "UNIX_TIMESTAMP",
    }
)  # fmt: skip
_MICROS = datetime.timedelta(microseconds=1)
Spell = Callable[[Expression], str | None]


def can_be_mapped(expression: Expression) -> bool:
    """Whether the functions of this package can compute it on batches, wherever they are cut: no user's function,
    nothing random, nothing that asks for the watermark."""
    for each in walk(expression):
        if isinstance(each, UserCall):
            return False
        if not isinstance(each, Apply) or each.function in OF_NOW:
            continue
        if each.function in ("CURRENT_WATERMARK", "$PAST") or not function_named(each.function).deterministic:
            return False
    return True


def spelled(expression: Expression, columns: Sequence[str], zone: str) -> str | None:
    """The spelling over these columns; None where there is none."""

    def spell(each: Expression) -> str | None:
        if isinstance(each, Ref):
            return columns[each.index] if spelling.spark_type(each.type) is not None else None
        if _is_constant(each):
            return _folded(each, zone)
        match each:
            case Choose():
                return _choose(each, spell)
            case Convert():
                return _cast(each, spell)
            case FieldRef(operand=operand, index=index):
                inner = spell(operand)
                return None if inner is None else f"{inner}.`{index}`"
            case Apply():
                return _apply(each, spell)
        return None

    return spell(expression)


def _is_constant(expression: Expression) -> bool:
    if references(expression) or not can_be_mapped(expression):
        return False
    return not any(
        isinstance(each, Sym) or (isinstance(each, Apply) and each.function in OF_NOW) for each in walk(expression)
    )


def _folded(expression: Expression, zone: str) -> str | None:
    try:
        value = expression.value if isinstance(expression, Lit) else constant(expression, zone=zone)
    except UserError:
        return None  # it fails where it is computed
    return spelling.literal(value, expression.type)


def _all(parts: Sequence[Expression], spell: Spell) -> list[str] | None:
    made = [spell(each) for each in parts]
    return None if None in made else [each for each in made if each is not None]


def _choose(node: Choose, spell: Spell) -> str | None:
    args, kind = _all(node.args, spell), spelling.spark_type(node.type)
    if args is None or kind is None:
        return None
    pairs = "".join(f" WHEN {when} THEN {then}" for when, then in zip(args[0:-1:2], args[1:-1:2], strict=True))
    return f"CAST(CASE{pairs} ELSE {args[-1]} END AS {kind})"


# ------------------------------------------------------------------------------------------------------------ functions


def _apply(node: Apply, spell: Spell) -> str | None:
    if node.function in _SPECIAL:
        return _SPECIAL[node.function](node, spell)
    if node.function not in _PATTERNS:
        return None
    args = _all(node.args, spell)
    return None if args is None else _PATTERNS[node.function].format(*args)


def _scalar(kind: t.DataType) -> bool:
    return isinstance(kind, t.NumericType | t.BooleanType | t.DateType) or t.is_text(kind) or t.is_timestamp(kind)


def _comparison(node: Apply, spell: Spell) -> str | None:
    """NaN is neither equal to nor less than anything, itself included; Spark has it equal to itself and greatest."""
    args = _all(node.args, spell)
    kinds = [each.type for each in node.args]
    if args is None or not all(map(_scalar, kinds)):
        return None
    text = f"({args[0]} {node.function} {args[1]})"
    if not any(map(t.is_approximate, kinds)):
        return text
    guards = [
        f"isnan({arg})"
        for arg, each in zip(args, node.args, strict=True)
        if t.is_approximate(each.type) and not isinstance(each, Lit)
    ]
    if not guards:
        return text
    unknown = f"{args[0]} IS NULL OR {args[1]} IS NULL"
    if node.function == "<>":
        return f"({text} OR (({' OR '.join(guards)}) AND NOT ({unknown})))"
    return f"({text} AND (NOT ({' OR '.join(guards)}) OR {unknown}))"


def _exact(node: Apply, spell: Spell) -> str | None:
    """For values whose equality is one of bits."""
    args = _all(node.args, spell)
    if args is None or any(t.is_approximate(each.type) or not _scalar(each.type) for each in node.args):
        return None
    match node.function:
        case "IN":
            return f"({args[0]} IN ({', '.join(args[1:])}))"
        case "NULLIF":
            return f"NULLIF({args[0]}, {args[1]})"
        case "IS DISTINCT FROM":
            return f"(NOT ({args[0]} <=> {args[1]}))"
    return f"({args[0]} <=> {args[1]})"


def _arithmetic(node: Apply, spell: Spell) -> str | None:
    args, kind = _all(node.args, spell), spelling.spark_type(node.type)
    if args is None or kind is None or not isinstance(node.type, t.NumericType):
        return None
    return f"CAST(({args[0]} {node.function} {args[1]}) AS {kind})"


def _unary(node: Apply, spell: Spell) -> str | None:
    text = spell(node.args[0])
    if text is None or not isinstance(node.type, t.NumericType):
        return None
    return f"(- {text})" if node.function == "NEGATE" else f"ABS({text})"


def _division(node: Apply, spell: Spell) -> str | None:
    """Spark gives NULL for a division by zero, of floating point numbers too."""
    args, kind = _all(node.args, spell), spelling.spark_type(node.type)
    if args is None or kind is None or not isinstance(node.type, t.NumericType):
        return None
    divisor = node.args[1]
    known = _is_constant(divisor) and constant(divisor) not in (None, 0)
    if t.is_approximate(node.type) and (not known or node.function == "%"):
        return None
    sign = "div" if node.function == "/" and isinstance(node.type, t.IntegerType) else node.function
    sign = "%" if sign == "MOD" else sign
    text = f"CAST(({args[0]} {sign} {args[1]}) AS {kind})"
    if known:
        return text
    failed = f"CAST(raise_error('division by zero') AS {kind})"
    return f"(CASE WHEN {args[0]} IS NOT NULL AND {args[1]} = 0 THEN {failed} ELSE {text} END)"


def _like(node: Apply, spell: Spell) -> str | None:
    """A backslash is a character like any other in Flink."""
    if len(node.args) != 2:
        return None
    value, pattern = node.args
    if not isinstance(pattern, Lit) or not isinstance(pattern.value, str) or "\\" in pattern.value:
        return None
    text = spell(value)
    return None if text is None else f"({text} LIKE {spelling.string(pattern.value)})"


def _substring(node: Apply, spell: Spell) -> str | None:
    text = spell(node.args[0])
    places = [arg.value for arg in node.args[1:] if isinstance(arg, Lit) and arg.value is not None]
    if text is None or len(places) + 1 != len(node.args) or places[0] < 1 or places[-1] < 0:
        return None
    return f"SUBSTRING({', '.join([text, *map(str, places)])})"


_PARTS = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE")


def _extract(node: Apply, spell: Spell) -> str | None:
    unit, value = node.args
    if not isinstance(unit, Sym) or unit.word not in _PARTS or not isinstance(value.type, t.DateType | t.TimestampType):
        return None
    if isinstance(value.type, t.DateType) and unit.word in ("HOUR", "MINUTE"):
        return None
    text = spell(value)
    return None if text is None else f"CAST(EXTRACT({unit.word} FROM {text}) AS BIGINT)"


def _shifted(node: Apply, spell: Spell) -> str | None:
    base, span = node.args
    if not t.is_timestamp(base.type) or not t.is_timestamp(node.type):
        return None
    if not isinstance(span, Lit) or not isinstance(span.value, datetime.timedelta):
        return None
    text = spell(base)
    micros = span.value // _MICROS * (-1 if node.function.endswith("-") else 1)
    return None if text is None else f"TIMESTAMPADD(MICROSECOND, {micros}, {text})"


def _concat(node: Apply, spell: Spell) -> str | None:
    args = _all(node.args, spell)
    return f"CONCAT({', '.join(args)})" if args and all(t.is_text(each.type) for each in node.args) else None


def _coalesce(node: Apply, spell: Spell) -> str | None:
    args = _all(node.args, spell)
    return None if args is None else f"COALESCE({', '.join(args)})"


_PATTERNS = {
    "AND": "({} AND {})",
    "OR": "({} OR {})",
    "NOT": "(NOT {})",
    "IS NULL": "({} IS NULL)",
    "IS NOT NULL": "({} IS NOT NULL)",
    "IS UNKNOWN": "({} IS NULL)",
    "IS NOT UNKNOWN": "({} IS NOT NULL)",
    "IS TRUE": "({} IS TRUE)",
    "IS NOT TRUE": "({} IS NOT TRUE)",
    "IS FALSE": "({} IS FALSE)",
    "IS NOT FALSE": "({} IS NOT FALSE)",
    "CHAR_LENGTH": "CHAR_LENGTH({})",
}
_SPECIAL: dict[str, Callable[[Apply, Spell], str | None]] = {
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _comparison),
    **dict.fromkeys(("IN", "NULLIF", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"), _exact),
    **dict.fromkeys(("+", "-", "*"), _arithmetic),
    **dict.fromkeys(("/", "%", "MOD"), _division),
    **dict.fromkeys(("NEGATE", "ABS"), _unary),
    **dict.fromkeys(("TEMPORAL +", "TEMPORAL -"), _shifted),
    **dict.fromkeys(("||", "CONCAT"), _concat),
    **dict.fromkeys(("COALESCE", "IFNULL"), _coalesce),
    "LIKE": _like,
    "SUBSTRING": _substring,
    "EXTRACT": _extract,
}


# ---------------------------------------------------------------------------------------------------------------- casts


def _cast(node: Convert, spell: Spell) -> str | None:
    text, kind = spell(node.operand), spelling.spark_type(node.type)
    if text is None or kind is None:
        return None
    source, target = node.operand.type, node.type
    if source.same(target):
        return text
    match source, target:
        case ((t.CharType() | t.VarCharType()), t.VarCharType()):
            return text if target.length >= source.length else None
        case t.IntegerType(), (t.IntegerType() | t.FloatType() | t.DoubleType() | t.DecimalType()):
            return f"CAST({text} AS {kind})"
        case t.DecimalType(), (t.DecimalType() | t.DoubleType()):
            return f"CAST({text} AS {kind})"
        case t.FloatType(), t.DoubleType():
            return f"CAST({text} AS {kind})"
        case t.DateType(), t.TimestampType():
            return f"CAST({text} AS {kind})"
        case t.TimestampType(), t.TimestampType():
            return text if target.precision >= source.precision else None
        case t.LocalZonedTimestampType(), t.LocalZonedTimestampType():
            return text if target.precision >= source.precision else None
    return None
