"""A numbering of rows with a bound on the number is a Top-N.

Promises: the same rows; only as many are kept as the bound lets through.
Does not know: how Top-N is computed."""

from __future__ import annotations

from millstream.sql.expressions.nodes import Apply, Convert, Expression, Lit, Ref, conjunction, conjuncts, references
from millstream.sql.logical import nodes as l
from millstream.sql.logical.rewriting import everywhere
from millstream.sql.types import data_types as t

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_NO_END = 2**62


def recognise_rank(plan: l.Plan) -> l.Plan:
    """The rewrite."""
    return everywhere(plan, _recognised)


def _recognised(plan: l.Plan) -> l.Plan:
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
    place = len(node.input.schema)
    for project in reversed(projects):
        found = [i for i, each in enumerate(project.exprs) if each == Ref(each.type, place)]
        if len(found) != 1:
            return plan
        place = found[0]
    first, last, rest = _bounds(plan.condition, place)
    if last is None:
        return plan
    rank: l.Plan = l.Rank(node.schema, node.input, over.call.function, over.partition, over.order, first, last, True)
    for project in reversed(projects):
        rank = l.Project(project.schema, rank, project.exprs)
    left = conjunction(rest)
    return rank if left is None else l.Filter(plan.schema, rank, left)


def _bounds(condition: Expression, place: int) -> tuple[int, int | None, list[Expression]]:
    first, last = 1, None
    rest: list[Expression] = []
    for part in conjuncts(condition):
        bound = _bound(part, place)
        if bound is None:
            rest.append(part)
            continue
        sign, number = bound
        if sign in ("<=", "<", "="):
            high = number - 1 if sign == "<" else number
            last = high if last is None else min(last, high)
        if sign in (">=", ">", "="):
            first = max(first, number + 1 if sign == ">" else number)
    return first, last, rest


def _bound(part: Expression, place: int) -> tuple[str, int] | None:
    if not isinstance(part, Apply) or part.function not in _FLIPPED or references(part) != {place}:
        return None
    one, other = (_plain(arg) for arg in part.args)
    if isinstance(one, Ref) and isinstance(other, Lit) and isinstance(other.value, int):
        return part.function, other.value
    if isinstance(other, Ref) and isinstance(one, Lit) and isinstance(one.value, int):
        return _FLIPPED[part.function], one.value
    return None


def _plain(expression: Expression) -> Expression:
    if isinstance(expression, Convert) and isinstance(expression.type, t.IntegerType):
        return _plain(expression.operand)
    return expression
