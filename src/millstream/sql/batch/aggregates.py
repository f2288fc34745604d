"""Aggregates in Spark's SQL, of groups and over windows.

Promises: a call has a spelling only where Spark's answer is Flink's: the type of the result, NULL for nothing, whole
numbers that wrap; order of rows does not matter, or is given.
Does not know: plans."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.sql import types as t
from millstream.sql.batch.spelling import spark_type
from millstream.sql.expressions import AggregateCall
from millstream.sql.logical import OverCall


def grouped(call: AggregateCall, columns: Sequence[str]) -> str | None:
    """An aggregate of a group."""
    if call.order or call.user is not None:
        return None
    tail = "" if call.filter is None else f" FILTER (WHERE {columns[call.filter]})"
    return _spelled(call, columns, tail)


def over(each: OverCall, columns: Sequence[str]) -> str | None:
    """A call over a window."""
    call = each.call
    if call.user is not None or call.filter is not None or call.distinct:
        return None
    partition = f"PARTITION BY {', '.join(columns[i] for i in each.partition)}" if each.partition else ""
    ordered = order_text(each.order, columns)
    window = " ".join(part for part in (partition, f"ORDER BY {ordered}" if ordered else "") if part)
    if call.function in ("ROW_NUMBER", "RANK", "DENSE_RANK"):
        if not ordered:
            window = f"{window} ORDER BY 1".strip()
        return f"CAST({call.function}() OVER ({window}) AS BIGINT)"
    if call.function in ("CUME_DIST", "PERCENT_RANK") and ordered:
        return f"{call.function}() OVER ({window})"
    if call.function in ("LAG", "LEAD"):
        offset = call.options[0] if call.options else 1
        if len(call.options) > 1 or not isinstance(offset, int) or not ordered:
            return None
        return f"{call.function}({columns[call.args[0]]}, {offset}) OVER ({window})"
    frame = _frame(each) if ordered else ""
    return None if frame is None else _spelled(call, columns, f" OVER ({window}{frame})")


def _frame(each: OverCall) -> str | None:
    if not each.rows and len(each.order) != 1 and (each.lower, each.upper) != (None, 0):
        return None
    lower, upper = _bound(each.lower, each.rows, "UNBOUNDED PRECEDING"), _bound(each.upper, each.rows, "")
    if upper == "":
        upper = "UNBOUNDED FOLLOWING"
    return f" {'ROWS' if each.rows else 'RANGE'} BETWEEN {lower} AND {upper}"


def _bound(bound: int | None, rows: bool, unbounded: str) -> str:
    if bound is None:
        return unbounded
    if bound == 0:
        return "CURRENT ROW"
    side = "PRECEDING" if bound < 0 else "FOLLOWING"
    size = str(abs(bound)) if rows else f"INTERVAL '{abs(bound) // 1000}.{abs(bound) % 1000:03d}' SECOND"
    return f"{size} {side}"


def order_text(order: Sequence[tuple[int, bool, bool]], columns: Sequence[str]) -> str:
    """What stands behind ORDER BY."""
    return ", ".join(
        f"{columns[i]} {'ASC' if ascending else 'DESC'} NULLS {'FIRST' if first else 'LAST'}"
        for i, ascending, first in order
    )


def _spelled(call: AggregateCall, columns: Sequence[str], tail: str) -> str | None:
    kind = spark_type(call.type)
    if kind is None or (call.options and call.function != "SINGLE_VALUE"):
        return None
    args = ", ".join(columns[i] for i in call.args)
    inside = f"DISTINCT {args}" if call.distinct else args
    match call.function:
        case "COUNT":
            return f"COUNT({inside or '*'}){tail}"
        case "MIN" | "MAX" if _ordered(call.arg_types[0]):
            return f"{call.function}({inside}){tail}"
        case "SUM" if isinstance(call.arg_types[0], t.NumericType):
            return f"CAST(SUM({inside}){tail} AS {kind})"
        case "$SUM0" if isinstance(call.arg_types[0], t.NumericType):
            return f"COALESCE(CAST(SUM({inside}){tail} AS {kind}), CAST(0 AS {kind}))"
        case "AVG":
            return _mean(call, inside, tail, kind)
        case "SINGLE_VALUE" if not call.distinct and not tail:
            many = f"CAST(raise_error('a subquery that stands for a value has more than one row') AS {kind})"
            return f"CASE WHEN COUNT(*) > 1 THEN {many} ELSE FIRST({args}) END"
    return None


def _ordered(kind: t.DataType) -> bool:
    return isinstance(kind, t.NumericType | t.DateType | t.BooleanType) or t.is_text(kind) or t.is_timestamp(kind)


def _mean(call: AggregateCall, inside: str, tail: str, kind: str) -> str | None:
    """Of whole numbers the whole part; of decimals with the digits of Flink's type."""
    match call.arg_types[0]:
        case t.FloatType() | t.DoubleType():
            return f"CAST(AVG({inside}){tail} AS {kind})"
        case t.IntegerType():
            return f"CAST((SUM({inside}){tail} div COUNT({inside}){tail}) AS {kind})"
        case t.DecimalType(scale=scale):
            return f"CAST((CAST(SUM({inside}){tail} AS DECIMAL(38,{scale})) / COUNT({inside}){tail}) AS {kind})"
    return None
