"""Spelling of expressions in Spark SQL.

Promises: an expression has a spelling only if Spark computes what Flink computes, with `spark.sql.ansi.enabled` off:
integers overflow, decimals that do not fit are NULL, division of exact numbers by zero fails. Expressions without
columns are evaluated during planning. Expressions without a spelling are computed by our own functions.
Does not know: plans; the spelling of functions, which their declarations contain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from millstream.errors import UserError
from millstream.sql.evaluation.evaluate import evaluate_constant
from millstream.sql.expressions.nodes import (
    Apply,
    Choose,
    Convert,
    Expression,
    FieldRef,
    Lit,
    Ref,
    Sym,
    UserCall,
    find_references,
    walk,
)
from millstream.sql.functions.library import get_function
from millstream.sql.functions.spark import SparkCall, get_spark_type, spell_call, spell_literal
from millstream.sql.types import data_types as t

#: Functions of the current time, which is the same for all rows of a batch query.
CURRENT_TIME_FUNCTIONS = frozenset(
    {
        "CURRENT_DATE", "CURRENT_TIME", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_TIMESTAMP", "NOW",
        "CURRENT_ROW_TIMESTAMP", "PROCTIME", "UNIX_TIMESTAMP",
    }
)  # fmt: skip
Spell = Callable[[Expression], str | None]


def can_be_mapped(expression: Expression) -> bool:
    """Whether our own functions can compute an expression inside Spark: it has no user-defined function, no random
    function and no function of the watermark, whose results depend on how rows are divided into batches."""
    for node in walk(expression):
        if isinstance(node, UserCall):
            return False
        if not isinstance(node, Apply) or node.function in CURRENT_TIME_FUNCTIONS:
            continue
        if node.function in ("CURRENT_WATERMARK", "$PAST") or not get_function(node.function).deterministic:
            return False
    return True


def spell_expression(expression: Expression, columns: Sequence[str], zone: str) -> str | None:
    """Spell an expression over columns; None if it has no spelling."""

    def spell(node: Expression) -> str | None:
        if isinstance(node, Ref):
            return columns[node.index] if get_spark_type(node.type) is not None else None
        if _is_constant(node):
            return _spell_constant(node, zone)
        match node:
            case Choose():
                return _choose(node, spell)
            case Convert():
                return _cast(node, spell)
            case FieldRef(operand=operand, index=index):
                inner = spell(operand)
                return None if inner is None else f"{inner}.`{index}`"
            case Apply():
                return _apply(node, spell, zone)
        return None

    return spell(expression)


def _is_constant(expression: Expression) -> bool:
    if find_references(expression) or not can_be_mapped(expression):
        return False
    return not any(
        isinstance(node, Sym) or (isinstance(node, Apply) and node.function in CURRENT_TIME_FUNCTIONS)
        for node in walk(expression)
    )


def _spell_constant(expression: Expression, zone: str) -> str | None:
    try:
        value = expression.value if isinstance(expression, Lit) else evaluate_constant(expression, zone=zone)
    except UserError:
        return None  # it fails when the query computes it
    return spell_literal(value, expression.type)


def _choose(node: Choose, spell: Spell) -> str | None:
    args, type_name = [spell(arg) for arg in node.args], get_spark_type(node.type)
    if None in args or type_name is None:
        return None
    pairs = "".join(f" WHEN {when} THEN {then}" for when, then in zip(args[0:-1:2], args[1:-1:2], strict=True))
    return f"CAST(CASE{pairs} ELSE {args[-1]} END AS {type_name})"


def _apply(node: Apply, spell: Spell, zone: str) -> str | None:
    def constant_value(expression: Expression) -> Any:
        return evaluate_constant(expression, zone=zone) if _is_constant(expression) else None

    call = SparkCall(node.function, node.type, node.args, spell, constant_value)
    return spell_call(get_function(node.function).spark, call)


# ---------------------------------------------------------------------------------------------------------------- casts


def _cast(node: Convert, spell: Spell) -> str | None:
    text, type_name = spell(node.operand), get_spark_type(node.type)
    if text is None or type_name is None:
        return None
    source, target = node.operand.type, node.type
    if source.same(target):
        return text
    match source, target:
        case ((t.CharType() | t.VarCharType()), t.VarCharType()):
            return text if target.length >= source.length else None
        case t.IntegerType(), (t.IntegerType() | t.FloatType() | t.DoubleType() | t.DecimalType()):
            return f"CAST({text} AS {type_name})"
        case t.DecimalType(), (t.DecimalType() | t.DoubleType()):
            return f"CAST({text} AS {type_name})"
        case t.FloatType(), t.DoubleType():
            return f"CAST({text} AS {type_name})"
        case t.DateType(), t.TimestampType():
            return f"CAST({text} AS {type_name})"
        case t.TimestampType(), t.TimestampType():
            return text if target.precision >= source.precision else None
        case t.LocalZonedTimestampType(), t.LocalZonedTimestampType():
            return text if target.precision >= source.precision else None
    return None
