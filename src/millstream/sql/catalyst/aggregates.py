"""Spelling of aggregate calls in Spark SQL, with GROUP BY and with OVER.

Promises: a call has a spelling only if Spark's result is Flink's: its type, NULL if there are no rows, integers that
overflow. Calls whose result depends on the order of rows have a spelling only with ORDER BY.
Does not know: plans; the spelling of functions, which their classes declare."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.functions.aggregates import AGGREGATES
from millstream.sql.functions.over_functions import OVER_FUNCTIONS
from millstream.sql.functions.spark import SparkAggregate, SparkOverCall, get_spark_type
from millstream.sql.logical.nodes import OverCall


def spell_aggregate(call: AggregateCall, columns: Sequence[str]) -> str | None:
    """Spell an aggregate of a group; None if it has no spelling."""
    if call.order or call.user is not None:
        return None
    tail = "" if call.filter is None else f" FILTER (WHERE {columns[call.filter]})"
    return _spell_call(call, columns, tail)


def spell_over(over: OverCall, columns: Sequence[str]) -> str | None:
    """Spell a call with OVER; None if it has no spelling."""
    call = over.call
    if call.user is not None or call.filter is not None or call.distinct:
        return None
    partition = f"PARTITION BY {', '.join(columns[i] for i in over.partition)}" if over.partition else ""
    order = spell_order(over.order, columns)
    window_call = SparkOverCall(call, tuple(columns[i] for i in call.args), partition, order)
    if call.function in OVER_FUNCTIONS:
        return OVER_FUNCTIONS[call.function].spark(window_call)
    frame = _spell_frame(over) if order else ""
    return None if frame is None else _spell_call(call, columns, f" OVER ({window_call.window()}{frame})")


def _spell_frame(over: OverCall) -> str | None:
    if not over.rows and len(over.order) != 1 and (over.lower, over.upper) != (None, 0):
        return None
    lower, upper = _spell_bound(over.lower, over.rows, "UNBOUNDED PRECEDING"), _spell_bound(over.upper, over.rows, "")
    if upper == "":
        upper = "UNBOUNDED FOLLOWING"
    return f" {'ROWS' if over.rows else 'RANGE'} BETWEEN {lower} AND {upper}"


def _spell_bound(bound: int | None, rows: bool, unbounded: str) -> str:
    if bound is None:
        return unbounded
    if bound == 0:
        return "CURRENT ROW"
    side = "PRECEDING" if bound < 0 else "FOLLOWING"
    size = str(abs(bound)) if rows else f"INTERVAL '{abs(bound) // 1000}.{abs(bound) % 1000:03d}' SECOND"
    return f"{size} {side}"


def spell_order(order: Sequence[tuple[int, bool, bool]], columns: Sequence[str]) -> str:
    """Spell the sort keys after ORDER BY."""
    return ", ".join(
        f"{columns[i]} {'ASC' if ascending else 'DESC'} NULLS {'FIRST' if first else 'LAST'}"
        for i, ascending, first in order
    )


def _spell_call(call: AggregateCall, columns: Sequence[str], tail: str) -> str | None:
    type_name = get_spark_type(call.type)
    if type_name is None or call.options:
        return None
    args = ", ".join(columns[i] for i in call.args)
    return AGGREGATES[call.function].spark(SparkAggregate(call, args, tail, type_name))
