"""Merge equal subplans into one, which is computed once.

Promises: the same rows. Subplans with user-defined functions, random values or the current time are not shared, because
each computation may return different rows.
Does not know: what computing a subplan costs.

It runs after the rules that do not rewrite shared subplans."""

from __future__ import annotations

from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.evaluation.repeated import is_pure
from millstream.sql.logical import nodes as l
from millstream.sql.logical.rewriting import rewrite_bottom_up


def share_equal_plans(plan: l.Plan) -> l.Plan:
    """Share equal subplans everywhere in the plan."""
    candidates: dict[type[l.Plan], list[l.Plan]] = {}
    unshared: set[int] = set()

    def share(node: l.Plan) -> l.Plan:
        if any(id(input_plan) in unshared for input_plan in node.inputs()) or not _is_repeatable(node):
            unshared.add(id(node))
            kept.append(node)
            return node
        equal_type = candidates.setdefault(type(node), [])
        for other in equal_type:
            if _are_equal(node, other):
                return other
        equal_type.append(node)
        return node

    kept: list[l.Plan] = []  # keeps these nodes alive, so that no new node gets the id of a deleted one
    return rewrite_bottom_up(plan, share)


def _are_equal(left: l.Plan, right: l.Plan) -> bool:
    inputs = zip(left.inputs(), right.inputs(), strict=False)
    if len(left.inputs()) != len(right.inputs()) or not all(
        left_input is right_input for left_input, right_input in inputs
    ):
        return False
    if isinstance(left, l.Scan) and isinstance(right, l.Scan) and left.table is not right.table:
        return False
    return left == right


def _is_repeatable(node: l.Plan) -> bool:
    """Return whether equal nodes over the same input return the same rows, and `==` compares all their fields."""
    match node:
        case l.Scan():
            return isinstance(node.table, TableDefinition)
        case l.Project(exprs=exprs):
            return all(map(is_pure, exprs))
        case l.Filter(condition=condition):
            return is_pure(condition)
        case l.WatermarkAssigner(expr=expr):
            return is_pure(expr)
        case l.Join(condition=condition):
            return condition is None or is_pure(condition)
        case l.Aggregate(calls=calls):
            return all(call.user is None for call in calls)
        case l.WindowTable(window=window):
            return not window.processing
        case l.SetOperation() | l.Rank() | l.Expand():
            return True
    return False
