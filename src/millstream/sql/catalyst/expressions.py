"""Expressions in Spark's SQL.

Promises: an expression has a spelling only where Spark computes what Flink computes, with `spark.sql.ansi.enabled` off:
whole numbers wrap, decimals that do not fit are NULL, division of exact numbers by zero fails. What depends on no
column is computed here. All others have none, and are computed by the functions of this package.
Does not know: plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from millstream.errors import UserError
from millstream.sql.evaluation.evaluate import constant
from millstream.sql.expressions.fields import FieldRef
from millstream.sql.expressions.nodes import (
    Apply,
    Choose,
    Convert,
    Expression,
    Lit,
    Ref,
    Sym,
    UserCall,
    references,
    walk,
)
from millstream.sql.functions.library import function_named
from millstream.sql.functions.spark import SparkCall, literal, spark_type, spell_call
from millstream.sql.types import data_types as t

#: Functions of the moment in which a query runs: the same for all rows.
OF_NOW = frozenset(
    {
        "CURRENT_DATE", "CURRENT_TIME", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_TIMESTAMP", "NOW",
        "CURRENT_ROW_TIMESTAMP", "PROCTIME", "UNIX_TIMESTAMP",
    }
)  # fmt: skip
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
            return columns[each.index] if spark_type(each.type) is not None else None
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
                return _apply(each, spell, zone)
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
    return literal(value, expression.type)


def _all(parts: Sequence[Expression], spell: Spell) -> list[str] | None:
    made = [spell(each) for each in parts]
    return None if None in made else [each for each in made if each is not None]


def _choose(node: Choose, spell: Spell) -> str | None:
    args, kind = _all(node.args, spell), spark_type(node.type)
    if args is None or kind is None:
        return None
    pairs = "".join(f" WHEN {when} THEN {then}" for when, then in zip(args[0:-1:2], args[1:-1:2], strict=True))
    return f"CAST(CASE{pairs} ELSE {args[-1]} END AS {kind})"


def _apply(node: Apply, spell: Spell, zone: str) -> str | None:
    def constant_value(expression: Expression) -> Any:
        return constant(expression, zone=zone) if _is_constant(expression) else None

    call = SparkCall(node.function, node.type, node.args, spell, constant_value)
    return spell_call(function_named(node.function).spark, call)


# ---------------------------------------------------------------------------------------------------------------- casts


def _cast(node: Convert, spell: Spell) -> str | None:
    text, kind = spell(node.operand), spark_type(node.type)
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
