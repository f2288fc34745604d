"""A condition above a join goes into it, or below it to the side it is about.

Promises: the same rows; FROM a, b WHERE a.x = b.x becomes a join by keys.
Does not know: costs."""

from __future__ import annotations

from millstream.sql import logical as l
from millstream.sql.expressions import Expression, Ref, conjunction, conjuncts, references, shifted, substituted
from millstream.sql.rewriting import everywhere


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
    parts = conjuncts(plan.condition)
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


def _all(parts: list[Expression]) -> Expression:
    found = conjunction(parts)
    assert found is not None
    return found


def _filtered(plan: l.Plan, parts: list[Expression]) -> l.Plan:
    return _pushed(l.Filter(plan.schema, plan, _all(parts))) if parts else plan
