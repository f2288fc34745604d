"""Aggregates in Spark's SQL, of groups and over windows.

Promises: a call has a spelling only where Spark's answer is Flink's: the type of the result, NULL for nothing, whole
numbers that wrap; order of rows does not matter, or is given.
Does not know: plans."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.functions.aggregates import AGGREGATES
from millstream.sql.functions.over_functions import OVER_FUNCTIONS
from millstream.sql.functions.spark import SparkAggregate, SparkOverCall, spark_type
from millstream.sql.logical.nodes import OverCall


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
    order = order_text(each.order, columns)
    window_call = SparkOverCall(call, tuple(columns[i] for i in call.args), partition, order)
    if call.function in OVER_FUNCTIONS:
        return OVER_FUNCTIONS[call.function].spark(window_call)
    frame = _frame(each) if order else ""
    return None if frame is None else _spelled(call, columns, f" OVER ({window_call.window()}{frame})")


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
    type_name = spark_type(call.type)
    if type_name is None or call.options:
        return None
    args = ", ".join(columns[i] for i in call.args)
    return AGGREGATES[call.function].spark(SparkAggregate(call, args, tail, type_name))
