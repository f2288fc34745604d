"""Recognition of interval joins: conditions that bound the time between two rows.

Promises: conditions on two time attributes become a lower and an upper bound; other conditions are returned
as they are.
Does not know: joins."""

from __future__ import annotations

import datetime

from millstream.sql.expressions.nodes import Apply, Convert, Expression, Lit, Ref
from millstream.sql.types import data_types as t
from millstream.times import MILLISECOND

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def compute_interval_bounds(
    parts: list[Expression], left: t.RowType, right: t.RowType
) -> tuple[tuple[int, int], int, int, list[Expression]] | None:
    """Return the bounds right + lower <= left <= right + upper of two time attributes, and the other conditions."""
    width = len(left)
    data_types = [*left.types, *right.types]
    lower: int | None = None
    upper: int | None = None
    times: tuple[int, int] | None = None
    others: list[Expression] = []
    for part in parts:
        time_bound = _match_bound(part, data_types, width)
        if time_bound is None or (times is not None and time_bound[0] != times):
            others.append(part)
            continue
        times, operator, offset = time_bound
        if operator in ("<=", "<", "="):
            bound = offset - 1 if operator == "<" else offset
            upper = bound if upper is None else min(upper, bound)
        if operator in (">=", ">", "="):
            bound = offset + 1 if operator == ">" else offset
            lower = bound if lower is None else max(lower, bound)
    if times is None or lower is None or upper is None:
        return None
    return times, lower, upper, others


def _match_bound(part: Expression, data_types: list[t.DataType], width: int) -> tuple[tuple[int, int], str, int] | None:
    """Match a comparison: left (operator) right + offset."""
    if not isinstance(part, Apply) or part.function not in _MIRRORED:
        return None
    sides = [_match_time(arg, data_types) for arg in part.args]
    if None in sides:
        return None
    (left, left_offset), (right, right_offset) = sides  # type: ignore[misc]
    operator = part.function
    if left >= width > right:
        left, left_offset, right, right_offset, operator = right, right_offset, left, left_offset, _MIRRORED[operator]
    if not left < width <= right:
        return None
    return (left, right - width), operator, right_offset - left_offset


def _match_time(expression: Expression, data_types: list[t.DataType]) -> tuple[int, int] | None:
    """Match a time attribute plus milliseconds, and return its column index and the milliseconds."""
    if isinstance(expression, Convert) and t.is_timestamp(expression.type):
        return _match_time(expression.operand, data_types)
    if isinstance(expression, Ref):
        return (expression.index, 0) if t.get_time_attribute(data_types[expression.index]) is not None else None
    if isinstance(expression, Apply) and expression.function in ("TEMPORAL +", "TEMPORAL -"):
        base, span = _match_time(expression.args[0], data_types), expression.args[1]
        if base is not None and isinstance(span, Lit) and isinstance(span.value, datetime.timedelta):
            millis = int(span.value // MILLISECOND)
            return base[0], base[1] + (millis if expression.function.endswith("+") else -millis)
    return None
