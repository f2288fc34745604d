"""A condition above a join goes into it, or below it to the side it is about.

Promises: the same rows; FROM a, b WHERE a.x = b.x becomes a join by keys.
Does not know: costs."""

from __future__ import annotations

from millstream.sql.expressions.nodes import (
    Apply,
    Expression,
    Ref,
    conjunction,
    conjuncts,
    references,
    shifted,
    substituted,
)
from millstream.sql.logical import nodes as l
from millstream.sql.logical.rewriting import everywhere
from millstream.sql.types import data_types as t


def filter_into_join(plan: l.Plan) -> l.Plan:
    """The rewrite."""
    return everywhere(plan, _pushed)


def _pushed(plan: l.Plan) -> l.Plan:
    if not isinstance(plan, l.Filter):
        return plan
    if isinstance(plan.input, l.Filter):
        inner = plan.input
        both = conjunction([*conjuncts(inner.condition), *conjuncts(plan.condition)])
        assert both is not None
        return _pushed(l.Filter(plan.schema, inner.input, both))
    if isinstance(plan.input, l.Project):
        project = plan.input
        if all(isinstance(each, Ref) for each in project.exprs) and isinstance(project.input, l.Join | l.Filter):
            condition = substituted(plan.condition, project.exprs)
            below = _pushed(l.Filter(project.input.schema, project.input, condition))
            return l.Project(project.schema, below, project.exprs)
        return plan
    if not isinstance(plan.input, l.Join):
        return plan
    join = plan.input
    width = len(join.left.schema)
    parts = [each for part in conjuncts(plan.condition) for each in _factored(part)]
    left = [p for p in parts if references(p) and max(references(p)) < width]
    if join.kind in ("semi", "anti"):
        inside = _filtered(join.left, parts)
        return l.Join(join.schema, inside, join.right, join.kind, join.condition, join.null_aware, join.ttl)
    right = [p for p in parts if references(p) and min(references(p)) >= width]
    if join.kind == "inner":
        rest = [p for p in parts if p not in left and p not in right]
        whole = conjunction([*conjuncts(join.condition), *rest])
        one = _filtered(join.left, left)
        other = _filtered(join.right, [shifted(p, lambda i: i - width) for p in right])
        return l.Join(join.schema, one, other, "inner", whole, join.null_aware, join.ttl)
    if join.kind == "left" and left:
        rest = [p for p in parts if p not in left]
        made: l.Plan = l.Join(
            join.schema, _filtered(join.left, left), join.right, "left", join.condition, False, join.ttl
        )
        return made if not rest else l.Filter(plan.schema, made, _all(rest))
    return plan


def _factored(part: Expression) -> list[Expression]:
    """(a AND x) OR (a AND y) as a, x OR y: what every branch says may be what joins."""
    branches = [conjuncts(each) for each in _disjuncts(part)]
    common = [each for each in branches[0] if all(each in other for other in branches[1:])]
    if len(branches) == 1 or not common:
        return [part]
    rests = [[each for each in branch if each not in common] for branch in branches]
    if not all(rests):
        return common
    rest = _all(rests[0])
    for branch in rests[1:]:
        other = _all(branch)
        rest = Apply(t.BooleanType(null=rest.type.null or other.type.null), "OR", (rest, other))
    return [*common, rest]


def _disjuncts(part: Expression) -> list[Expression]:
    if isinstance(part, Apply) and part.function == "OR":
        return [each for arg in part.args for each in _disjuncts(arg)]
    return [part]


def _all(parts: list[Expression]) -> Expression:
    found = conjunction(parts)
    assert found is not None
    return found


def _filtered(plan: l.Plan, parts: list[Expression]) -> l.Plan:
    return _pushed(l.Filter(plan.schema, plan, _all(parts))) if parts else plan
