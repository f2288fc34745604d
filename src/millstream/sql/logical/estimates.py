"""Estimates of row counts and costs, for EXPLAIN ESTIMATED_COST.

Promises: every plan has an estimate. It is based on the row counts of the tables where they are known, and on default
selectivities otherwise. No planning decision depends on it.
Does not know: data."""

from __future__ import annotations

import math

from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.expressions.nodes import Apply, Expression
from millstream.sql.logical import nodes as l

UNKNOWN = 1e8  # row count of a table without statistics, as in Flink
_EQUAL, _COMPARED, _OTHER = 0.15, 0.5, 0.25  # selectivities of conditions
_GROUPS, _FIRST = 0.2, 0.2  # output rows for each input row of an aggregate and of a Top-N


def estimate_rows(plan: l.Plan) -> float:
    """Estimate the number of rows of a plan."""
    inputs = [estimate_rows(input_plan) for input_plan in plan.inputs()]
    match plan:
        case l.Scan(table=TableDefinition() as table):
            declared = table.options.get("number-of-rows", "")
            return float(declared) if declared.isdecimal() else UNKNOWN
        case l.Scan():
            return UNKNOWN
        case l.Values():
            return float(len(plan.rows))
        case l.Filter(condition=condition):
            return max(1.0, inputs[0] * _estimate_selectivity(condition))
        case l.Join(kind=join_type, condition=condition):
            return _join_rows(join_type, inputs[0], inputs[1], is_cross=condition is None)
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


def estimate_cost(plan: l.Plan) -> float:
    """Sum the estimated rows of all nodes of a plan."""
    return estimate_rows(plan) + sum(estimate_cost(input_plan) for input_plan in plan.inputs())


def estimate_text(plan: l.Plan) -> str:
    """Format the estimates of a node for EXPLAIN."""
    rows, cost = _format_scientific(estimate_rows(plan)), _format_scientific(estimate_cost(plan))
    return f": rowcount = {rows}, cumulative cost = {{{cost} rows}}"


def _join_rows(join_type: str, left: float, right: float, *, is_cross: bool) -> float:
    if join_type in ("semi", "anti"):
        return max(1.0, left * _COMPARED)
    if is_cross:
        return left * right
    least = {"left": left, "right": right, "full": left + right}.get(join_type, 1.0)
    return max(left, right, least)


def _estimate_selectivity(condition: Expression) -> float:
    if not isinstance(condition, Apply):
        return _OTHER
    match condition.function:
        case "AND":
            return math.prod(_estimate_selectivity(operand) for operand in condition.args)
        case "OR":
            return min(1.0, sum(_estimate_selectivity(operand) for operand in condition.args))
        case "=":
            return _EQUAL
        case "<" | ">" | "<=" | ">=":
            return _COMPARED
    return _OTHER


def _format_scientific(number: float) -> str:
    """Format a number as Flink does: 1.0E8."""
    if number < 1e7:
        return f"{number:.1f}"
    mantissa, exponent = f"{number:.3e}".split("e")
    digits = mantissa.rstrip("0")
    return f"{digits}{'0' if digits.endswith('.') else ''}E{int(exponent)}"
