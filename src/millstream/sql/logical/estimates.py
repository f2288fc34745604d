"""How many rows a plan may make: EXPLAIN ESTIMATED_COST.

Promises: a number for every plan, from the number of rows of its tables where that is known and from usual shares
where it is not; an estimate decides nothing.
Does not know: data."""

from __future__ import annotations

import math

from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.expressions.nodes import Apply, Expression
from millstream.sql.logical import nodes as l

UNKNOWN = 1e8  # rows of a table nobody has counted, as in Flink
_EQUAL, _COMPARED, _OTHER = 0.15, 0.5, 0.25
_GROUPS, _FIRST = 0.2, 0.2


def rows(plan: l.Plan) -> float:
    """The rows a plan makes."""
    inputs = [rows(each) for each in plan.inputs()]
    match plan:
        case l.Scan(table=TableDefinition() as table):
            known = table.options.get("number-of-rows", "")
            return float(known) if known.isdecimal() else UNKNOWN
        case l.Scan():
            return UNKNOWN
        case l.Values():
            return float(len(plan.rows))
        case l.Filter(condition=condition):
            return max(1.0, inputs[0] * _share(condition))
        case l.Join(kind=kind, condition=condition):
            return _joined(kind, inputs[0], inputs[1], crossed=condition is None)
        case l.Aggregate(keys=keys):
            return max(1.0, inputs[0] * _GROUPS) if keys else 1.0
        case l.Expand(sets=sets):
            return inputs[0] * len(sets)
        case l.WindowTable(window=window):
            return inputs[0] * (math.ceil(window.size / window.slide) if window.kind == "HOP" and window.slide else 1)
        case l.SetOperation(operator="UNION"):
            return sum(inputs)
        case l.Sort(limit=limit):
            return inputs[0] if limit is None else min(inputs[0], float(limit))
        case l.Rank(partition=partition, first=first, last=last):
            return max(1.0, inputs[0] * _FIRST) if partition else min(inputs[0], float(last - first + 1))
    return inputs[0] if inputs else 1.0


def cost(plan: l.Plan) -> float:
    """The rows that all steps of a plan make together."""
    return rows(plan) + sum(cost(each) for each in plan.inputs())


def text(plan: l.Plan) -> str:
    """What EXPLAIN shows behind a step."""
    return f": rowcount = {_scientific(rows(plan))}, cumulative cost = {{{_scientific(cost(plan))} rows}}"


def _joined(kind: str, left: float, right: float, *, crossed: bool) -> float:
    if kind in ("semi", "anti"):
        return max(1.0, left * _COMPARED)
    if crossed:
        return left * right
    least = {"left": left, "right": right, "full": left + right}.get(kind, 1.0)
    return max(left, right, least)


def _share(condition: Expression) -> float:
    if not isinstance(condition, Apply):
        return _OTHER
    match condition.function:
        case "AND":
            return math.prod(_share(each) for each in condition.args)
        case "OR":
            return min(1.0, sum(_share(each) for each in condition.args))
        case "=":
            return _EQUAL
        case "<" | ">" | "<=" | ">=":
            return _COMPARED
    return _OTHER


def _scientific(number: float) -> str:
    """A number as Flink writes it: 1.0E8."""
    if number < 1e7:
        return f"{number:.1f}"
    mantissa, exponent = f"{number:.3e}".split("e")
    digits = mantissa.rstrip("0")
    return f"{digits}{'0' if digits.endswith('.') else ''}E{int(exponent)}"
