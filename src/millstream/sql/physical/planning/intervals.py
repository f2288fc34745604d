"""Conditions that bound the time between two rows.

Promises: what is said of two time attributes becomes a lower and an upper bound; all other conditions are left.
Does not know: joins."""

from __future__ import annotations

import datetime

from millstream.sql.expressions.nodes import Apply, Convert, Expression, Lit, Ref
from millstream.sql.types import data_types as t

_MS = datetime.timedelta(milliseconds=1)
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def interval_bounds(
    parts: list[Expression], left: t.RowType, right: t.RowType
) -> tuple[tuple[int, int], int, int, list[Expression]] | None:
    """The bounds right + lower <= left <= right + upper in conditions on two time attributes, and what is left."""
    width = len(left)
    kinds = [*left.types, *right.types]
    lower: int | None = None
    upper: int | None = None
    times: tuple[int, int] | None = None
    others: list[Expression] = []
    for part in parts:
        found = _time_bound(part, kinds, width)
        if found is None or (times is not None and found[0] != times):
            others.append(part)
            continue
        times, sign, offset = found
        if sign in ("<=", "<", "="):
            bound = offset - 1 if sign == "<" else offset
            upper = bound if upper is None else min(upper, bound)
        if sign in (">=", ">", "="):
            bound = offset + 1 if sign == ">" else offset
            lower = bound if lower is None else max(lower, bound)
    if times is None or lower is None or upper is None:
        return None
    return times, lower, upper, others


def _time_bound(part: Expression, kinds: list[t.DataType], width: int) -> tuple[tuple[int, int], str, int] | None:
    """left (sign) right + offset."""
    if not isinstance(part, Apply) or part.function not in _TURNED:
        return None
    sides = [_moved(arg, kinds) for arg in part.args]
    if None in sides:
        return None
    (one, first), (other, second) = sides  # type: ignore[misc]
    sign = part.function
    if one >= width > other:
        one, first, other, second, sign = other, second, one, first, _TURNED[sign]
    if not one < width <= other:
        return None
    return (one, other - width), sign, second - first


def _moved(expression: Expression, kinds: list[t.DataType]) -> tuple[int, int] | None:
    """A time attribute plus so many milliseconds."""
    if isinstance(expression, Convert) and t.is_timestamp(expression.type):
        return _moved(expression.operand, kinds)
    if isinstance(expression, Ref):
        return (expression.index, 0) if t.attribute_of(kinds[expression.index]) is not None else None
    if isinstance(expression, Apply) and expression.function in ("TEMPORAL +", "TEMPORAL -"):
        base, span = _moved(expression.args[0], kinds), expression.args[1]
        if base is not None and isinstance(span, Lit) and isinstance(span.value, datetime.timedelta):
            millis = int(span.value // _MS)
            return base[0], base[1] + (millis if expression.function.endswith("+") else -millis)
    return None
