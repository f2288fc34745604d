"""Push the conjuncts of a filter into a join, or below it to the side that they read.

Promises: the same rows; FROM a, b WHERE a.x = b.x becomes a join by keys.
Does not know: costs."""

from __future__ import annotations

from millstream.sql.expressions.nodes import (
    Apply,
    Expression,
    Ref,
    combine_conjuncts,
    find_references,
    shift_references,
    split_conjuncts,
    substitute,
)
from millstream.sql.logical import nodes as l
from millstream.sql.logical.rewriting import rewrite_bottom_up
from millstream.sql.types import data_types as t


def filter_into_join(plan: l.Plan) -> l.Plan:
    """Push filters into joins everywhere in the plan."""
    return rewrite_bottom_up(plan, _push_down)


def _push_down(plan: l.Plan) -> l.Plan:
    if not isinstance(plan, l.Filter):
        return plan
    if isinstance(plan.input, l.Filter):
        inner = plan.input
        both = combine_conjuncts([*split_conjuncts(inner.condition), *split_conjuncts(plan.condition)])
        assert both is not None
        return _push_down(l.Filter(plan.schema, inner.input, both))
    if isinstance(plan.input, l.Project):
        project = plan.input
        if all(isinstance(expr, Ref) for expr in project.exprs) and isinstance(project.input, l.Join | l.Filter):
            condition = substitute(plan.condition, project.exprs)
            below = _push_down(l.Filter(project.input.schema, project.input, condition))
            return l.Project(project.schema, below, project.exprs)
        return plan
    if not isinstance(plan.input, l.Join):
        return plan
    join = plan.input
    width = len(join.left.schema)
    parts = [conjunct for part in split_conjuncts(plan.condition) for conjunct in _factor_out(part)]
    left = [p for p in parts if find_references(p) and max(find_references(p)) < width]
    if join.kind in ("semi", "anti"):
        inside = _add_filter(join.left, parts)
        return l.Join(join.schema, inside, join.right, join.kind, join.condition, join.null_aware, join.ttl)
    right = [p for p in parts if find_references(p) and min(find_references(p)) >= width]
    if join.kind == "inner":
        rest = [p for p in parts if p not in left and p not in right]
        join_condition = combine_conjuncts([*split_conjuncts(join.condition), *rest])
        filtered_left = _add_filter(join.left, left)
        filtered_right = _add_filter(join.right, [shift_references(p, lambda i: i - width) for p in right])
        return l.Join(join.schema, filtered_left, filtered_right, "inner", join_condition, join.null_aware, join.ttl)
    if join.kind == "left" and left:
        rest = [p for p in parts if p not in left]
        pushed: l.Plan = l.Join(
            join.schema, _add_filter(join.left, left), join.right, "left", join.condition, False, join.ttl
        )
        return pushed if not rest else l.Filter(plan.schema, pushed, _conjoin(rest))
    return plan


def _factor_out(part: Expression) -> list[Expression]:
    """Rewrite (a AND x) OR (a AND y) to a AND (x OR y): a conjunct of every branch may be a join key."""
    branches = [split_conjuncts(disjunct) for disjunct in _split_disjuncts(part)]
    common = [conjunct for conjunct in branches[0] if all(conjunct in other for other in branches[1:])]
    if len(branches) == 1 or not common:
        return [part]
    rests = [[conjunct for conjunct in branch if conjunct not in common] for branch in branches]
    if not all(rests):
        return common
    rest = _conjoin(rests[0])
    for branch in rests[1:]:
        other = _conjoin(branch)
        rest = Apply(t.BooleanType(null=rest.type.null or other.type.null), "OR", (rest, other))
    return [*common, rest]


def _split_disjuncts(part: Expression) -> list[Expression]:
    if isinstance(part, Apply) and part.function == "OR":
        return [disjunct for arg in part.args for disjunct in _split_disjuncts(arg)]
    return [part]


def _conjoin(parts: list[Expression]) -> Expression:
    condition = combine_conjuncts(parts)
    assert condition is not None
    return condition


def _add_filter(plan: l.Plan, parts: list[Expression]) -> l.Plan:
    return _push_down(l.Filter(plan.schema, plan, _conjoin(parts))) if parts else plan
