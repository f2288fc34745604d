"""Equal parts of a plan become one part, which is computed once.

Promises: the same rows; only parts that give the same rows whenever they are computed are shared: none with a user's
function, with chance or with the clock in it.
Does not know: what computing a part costs.

It comes last: a part that is used twice is rewritten by no other rule."""

from __future__ import annotations

from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.evaluation.repeated import is_pure
from millstream.sql.logical import nodes as l
from millstream.sql.logical.rewriting import everywhere


def share_equal_plans(plan: l.Plan) -> l.Plan:
    """The rewrite."""
    known: dict[type[l.Plan], list[l.Plan]] = {}
    unshared: set[int] = set()

    def shared(node: l.Plan) -> l.Plan:
        if any(id(each) in unshared for each in node.inputs()) or not _repeatable(node):
            unshared.add(id(node))
            kept.append(node)
            return node
        same = known.setdefault(type(node), [])
        for other in same:
            if _alike(node, other):
                return other
        same.append(node)
        return node

    kept: list[l.Plan] = []  # so that no other node gets the number of one that is gone
    return everywhere(plan, shared)


def _alike(one: l.Plan, other: l.Plan) -> bool:
    inputs = zip(one.inputs(), other.inputs(), strict=False)
    if len(one.inputs()) != len(other.inputs()) or not all(mine is theirs for mine, theirs in inputs):
        return False
    if isinstance(one, l.Scan) and isinstance(other, l.Scan) and one.table is not other.table:
        return False
    return one == other


def _repeatable(node: l.Plan) -> bool:
    """Whether equal nodes over the same input give the same rows, and equality sees all of them."""
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
