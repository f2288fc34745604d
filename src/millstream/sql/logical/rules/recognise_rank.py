"""Rewrite ROW_NUMBER, RANK or DENSE_RANK with a filter on the number to a Top-N.

Promises: the same rows; state holds only the rows that the filter can let through.
Does not know: how Top-N is computed."""

from __future__ import annotations

from millstream.sql.expressions.nodes import (
    Apply,
    Convert,
    Expression,
    Lit,
    Ref,
    combine_conjuncts,
    find_references,
    split_conjuncts,
)
from millstream.sql.logical import nodes as l
from millstream.sql.logical.rewriting import rewrite_bottom_up
from millstream.sql.types import data_types as t

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def recognise_rank(plan: l.Plan) -> l.Plan:
    """Recognise Top-N queries everywhere in the plan."""
    return rewrite_bottom_up(plan, _recognise)


def _recognise(plan: l.Plan) -> l.Plan:
    if not isinstance(plan, l.Filter):
        return plan
    projects: list[l.Project] = []
    node = plan.input
    while isinstance(node, l.Project):
        projects.append(node)
        node = node.input
    if not isinstance(node, l.Over) or len(node.calls) != 1:
        return plan
    over = node.calls[0]
    if over.call.function not in ("ROW_NUMBER", "RANK", "DENSE_RANK"):
        return plan
    rank_index = len(node.input.schema)
    for project in reversed(projects):
        indices = [i for i, expr in enumerate(project.exprs) if expr == Ref(expr.type, rank_index)]
        if len(indices) != 1:
            return plan
        rank_index = indices[0]
    first, last, rest = _read_bounds(plan.condition, rank_index)
    if last is None:
        return plan
    rank: l.Plan = l.Rank(node.schema, node.input, over.call.function, over.partition, over.order, first, last, True)
    for project in reversed(projects):
        rank = l.Project(project.schema, rank, project.exprs)
    remaining_condition = combine_conjuncts(rest)
    return rank if remaining_condition is None else l.Filter(plan.schema, rank, remaining_condition)


def _read_bounds(condition: Expression, rank_index: int) -> tuple[int, int | None, list[Expression]]:
    first, last = 1, None
    rest: list[Expression] = []
    for part in split_conjuncts(condition):
        bound = _read_bound(part, rank_index)
        if bound is None:
            rest.append(part)
            continue
        operator, number = bound
        if operator in ("<=", "<", "="):
            high = number - 1 if operator == "<" else number
            last = high if last is None else min(last, high)
        if operator in (">=", ">", "="):
            first = max(first, number + 1 if operator == ">" else number)
    return first, last, rest


def _read_bound(part: Expression, rank_index: int) -> tuple[str, int] | None:
    if not isinstance(part, Apply) or part.function not in _FLIPPED or find_references(part) != {rank_index}:
        return None
    left, right = (_strip_cast(arg) for arg in part.args)
    if isinstance(left, Ref) and isinstance(right, Lit) and isinstance(right.value, int):
        return part.function, right.value
    if isinstance(right, Ref) and isinstance(left, Lit) and isinstance(left.value, int):
        return _FLIPPED[part.function], left.value
    return None


def _strip_cast(expression: Expression) -> Expression:
    if isinstance(expression, Convert) and isinstance(expression.type, t.IntegerType):
        return _strip_cast(expression.operand)
    return expression
